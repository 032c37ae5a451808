"""`PrivateScaler`: a StandardScaler that may stand in front of a private estimator."""

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from tacit._types import Floats
from tacit.blocks.validate import validated
from tacit.bounding.magnitudes import LIMIT
from tacit.bounding.scales import MagnitudeScale, MomentScale, Scaling
from tacit.preprocessing.summaries import Terms
from tacit.privacy import Budget, Guarantee, Plan
from tacit.privacy.path import opened
from tacit.problems.declared import declared_size


@dataclass(eq=False, repr=False)
class PrivateScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Centre, scale and clip columns, with centres and scales found under differential privacy.

    A fitted `StandardScaler` in front of a private model voids the model's guarantee; this one has a guarantee of its
    own, which composes with the model's (`tacit.privacy.compose`). Tacit's own estimators need neither: they find
    scales inside their budget.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of the scaler.
    delta : float, default=None
        None: `n_rows ** -1.5`.
    adjacency : {"add-remove", "replace-one"}, default="add-remove"
        What one person may change.
    row_norm : float, default=None
        A public bound on the l2 norm of a row, to which rows are clipped for finding scales. None: nothing is assumed.
    random_state : int, default=None
        As in the estimators: None for data about real people.

    Attributes
    ----------
    mean_, scale_ : ndarray of shape (n_features,)
        Released centres and scales.
    clip_low_, clip_high_ : ndarray of shape (n_features,)
        Three scales to each side of the centre, or the two values of a column that has no others: what values are
        clipped to.
    guarantee_ : Guarantee
        What the scaler gave away.

    Notes
    -----
    Privacy
    ~~~~~~~
    Unit: one row. Neighbours: `adjacency`. Mechanism: two noisy histograms of magnitudes per column (or one noisy
    pair of moments where `row_norm` is declared), Gaussian, accounted exactly. Released: the attributes are functions
    of these.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from tacit import PrivateScaler
    >>> X, _ = load_breast_cancer(return_X_y=True)
    >>> Z = PrivateScaler(epsilon=10.0).fit_transform(X)
    >>> bool(abs(Z).max() <= 3.0)
    True
    """

    epsilon: float = 1.0
    delta: float | None = None
    adjacency: str = "add-remove"
    _: KW_ONLY
    row_norm: float | None = None
    random_state: int | None = None

    def fit(self, X: Any, y: Any = None) -> "PrivateScaler":  # noqa: ARG002
        """Find centres and scales, spending the whole budget."""
        Budget(self.epsilon, 0.5 if self.delta is None else self.delta, self.adjacency)  # type: ignore[arg-type]
        X = self._validated(X)
        n, d = X.shape
        scale = self._scale(n, d)
        terms = Terms(adjacency=self.adjacency, random_state=self.random_state)
        plan = Plan(*scale.releases(1.0))
        with opened(plan, n, "scaler", self.epsilon, self.delta, values=100 * d, **terms) as gate:
            scaling = scale.run(gate, X)
        return self._keep(scaling, gate.guarantee)

    def _validated(self, X: Any) -> Any:
        """X as an array; what is bad raises here, before any budget is spent."""
        return validated(self, X, dtype=[np.float64, np.float32], ensure_min_samples=2)

    def _scale(self, n: int, d: int) -> MagnitudeScale | MomentScale:
        """How scales will be found: what that releases follows from public numbers."""
        if self.row_norm is None:
            return MagnitudeScale(n, d)
        return MomentScale(n, d, declared_size("row_norm", self.row_norm))

    def _keep(self, scaling: Scaling, guarantee: Guarantee) -> "PrivateScaler":
        """Keep what was found."""
        if scaling.lost:
            warnings.warn(
                f"the budget is too small to find the scale of {scaling.lost} of {len(scaling.scale)} columns (declare"
                " row_norm); a pooled scale or 1 was used",
                stacklevel=3,
            )
        self.mean_, self.scale_ = scaling.centre, scaling.scale
        self.clip_low_, self.clip_high_ = scaling.low, scaling.high
        self.guarantee_ = guarantee
        return self

    def transform(self, X: Any) -> Floats:
        """Clipped, centred and scaled columns, between -3 and 3."""
        check_is_fitted(self)
        X = validated(self, X, dtype=[np.float64, np.float32], reset=False)
        return Scaling(self.mean_, self.scale_, LIMIT).transform(np.clip(X, self.clip_low_, self.clip_high_))

    def inverse_transform(self, X: Any) -> Floats:
        """Back to the user's units (of what was inside the clip)."""
        check_is_fitted(self)
        return np.asarray(np.asarray(X, dtype=np.float64) * self.scale_ + self.mean_)
