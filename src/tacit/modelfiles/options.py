"""Parameters that are objects, such as `solver=Dual(batch_size=100)`: which classes a file may name for them.

A file names a class of this list or none, and holds all parameters of it. Such an object keeps its parameters and does
nothing else when it is made; what they say is checked with the model that has it.
"""

from inspect import signature

from tacit.federated import FeatureSharing, Marginals, Sketching
from tacit.solvers import SOLVERS
from tacit.solvers.pca import PCA_SOLVERS

_FEDERATED = (FeatureSharing, Marginals, Sketching)
OPTIONS: dict[str, type] = {kind.__name__: kind for kind in (*SOLVERS.values(), *PCA_SOLVERS.values(), *_FEDERATED)}
"""By the name that a file has for each."""

_LINEAR = frozenset({"bounds"})
LATER: dict[str, frozenset[str]] = {
    "LogisticRegression": _LINEAR | {"l1_ratio"},
    **dict.fromkeys(("LinearSVC", "LinearRegression", "Ridge", "Lasso", "ElasticNet"), _LINEAR),
    "Coordinate": frozenset({"smoothness_share", "coef_init", "intercept_init", "rescale", "keep_path"}),
}
"""Parameters that came after the first files, by class: a file without them means their defaults."""


def parameters_of(kind: type) -> frozenset[str]:
    """What a file holds of an object of this class."""
    return frozenset(signature(kind).parameters)
