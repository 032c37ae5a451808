"""Parameters that are objects, such as `protocol=Marginals(n_selected=4)`: which classes a file may name for them.

A file names a class of this list or none, and holds all parameters of it. Such an object keeps its parameters and does
nothing else when it is made; what they say is checked with the model that has it.
"""

from inspect import signature

from tacit.federated import FeatureSharing, Marginals, Sketching

OPTIONS: dict[str, type] = {kind.__name__: kind for kind in (FeatureSharing, Marginals, Sketching)}
"""By the name that a file has for each."""


def parameters_of(kind: type) -> frozenset[str]:
    """What a file holds of an object of this class."""
    return frozenset(signature(kind).parameters)
