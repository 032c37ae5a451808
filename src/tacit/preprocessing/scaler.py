"""`PrivateScaler`: a StandardScaler that may stand in front of a private estimator."""

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from tacit._types import Floats
from tacit.blocks.lazy import BlockTable, no_targets
from tacit.blocks.partitions import lazily
from tacit.blocks.reading import opened as reading_of
from tacit.blocks.validate import is_lazy, validated
from tacit.bounding.declared import DeclaredScale
from tacit.bounding.magnitudes import LIMIT
from tacit.bounding.norms import MomentScale
from tacit.bounding.scales import MagnitudeScale, Scaling
from tacit.preprocessing.summaries import Terms
from tacit.privacy import Budget, Guarantee, Plan
from tacit.privacy.path import opened
from tacit.problems.bounds import Bounds, check_trust, declared_pairs, truths
from tacit.problems.declared import declared_size

_ROWS: dict[str, Any] = {"dtype": [np.float64, np.float32], "ensure_all_finite": "allow-nan"}


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
    bounds : pair, sequence of pairs or dict, default=None
        What columns lie between, as public knowledge: one pair (low, high) for all columns, one for each (None where
        nothing is known), or pairs by the names or numbers of some columns. Declared columns cost nothing, and where
        all of them are declared nothing is released. Values beyond the bounds are clipped, those inside never.
    row_norm : float, default=None
        A public bound on the l2 norm of a row, to which rows are clipped for finding scales. None: nothing is assumed.
    trust_dtypes : bool, default=False
        Whether a column of truth values lies between 0 and 1 by its type. Say True only where the type was declared, in
        a schema or a database: readers of csv files infer it from the rows.
    random_state : int, default=None
        As in the estimators: None for data about real people.

    Attributes
    ----------
    mean_, scale_ : ndarray of shape (n_features,)
        Released centres and scales; of declared columns, what brings their bounds to [-sqrt(3), sqrt(3)], or to
        [-1, 3] if they start at 0.
    clip_low_, clip_high_ : ndarray of shape (n_features,)
        What values are clipped to: the declared bounds, or three scales to each side of the centre, or the two values
        of a column that has no others.
    guarantee_ : Guarantee
        What the scaler gave away; None where all columns are declared.

    Notes
    -----
    Privacy
    ~~~~~~~
    Unit: one row. Neighbours: `adjacency`. Mechanism: two noisy histograms of magnitudes per column (or one noisy
    pair of moments where `row_norm` is declared), Gaussian, accounted exactly. Released: the attributes are functions
    of these. A missing value (NaN) is in no bin, and stands at the centre when it is scaled.

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
    bounds: Any = None
    row_norm: float | None = None
    trust_dtypes: bool = False
    random_state: int | None = None

    def fit(self, X: Any, y: Any = None) -> "PrivateScaler":  # noqa: ARG002
        """Find centres and scales, spending the whole budget, if there is anything to find."""
        if is_lazy(X):
            return self.fit_blocks(X)
        X = self._validated(X)
        n, d = X.shape
        scale = self._scale(n, d)
        if isinstance(scale, DeclaredScale) and scale.rest is None:
            return self._keep(scale.known(), None)
        plan = Plan(*scale.releases(1.0))
        terms = Terms(adjacency=self.adjacency, random_state=self.random_state)
        with opened(plan, n, "scaler", self.epsilon, self.delta, values=100 * d, **terms) as gate:
            scaling = scale.run(gate, X)
        return self._keep(scaling, gate.guarantee)

    def fit_blocks(self, blocks: Any) -> "PrivateScaler":
        """`fit` on rows that together may be larger than memory, with the same result to the last bit.

        Parameters
        ----------
        blocks : files, table, or iterable of blocks
            As for the estimators: paths of Parquet or CSV files, a pyarrow table or dataset, a polars lazy frame, or
            blocks of rows in something that can be read several times.
        """
        self._check_parameters()
        with reading_of(blocks) as reading:
            return self.fit(BlockTable.of(reading, "none", trusted=bool(self.trust_dtypes)))

    def _check_parameters(self) -> None:
        """Everything that can be refused without data."""
        Budget(self.epsilon, 0.5 if self.delta is None else self.delta, self.adjacency)  # type: ignore[arg-type]
        declared_pairs(self.bounds)
        check_trust(self.trust_dtypes)
        if self.row_norm is not None:
            declared_size("row_norm", self.row_norm)
        if self.bounds is not None and self.row_norm is not None:
            raise ValueError("bounds and row_norm both say how large rows are: declare one of them")

    def _validated(self, X: Any) -> Any:
        """X as an array, or as rows in parts; what is bad raises here, before any budget is spent."""
        self._check_parameters()
        if isinstance(X, BlockTable):
            X.tell(self)
            return X.source(no_targets)
        self._truths = truths(X, trusted=self.trust_dtypes)
        return validated(self, X, **_ROWS, ensure_min_samples=2)

    def _scale(self, n: int, d: int) -> MagnitudeScale | MomentScale | DeclaredScale:
        """How scales will be found: what that releases follows from public numbers."""
        if self.row_norm is not None:
            return MomentScale(n, d, float(self.row_norm))
        bounds = Bounds.of(self.bounds, d, getattr(self, "feature_names_in_", None), self._truths)
        return MagnitudeScale(n, d) if bounds is None else DeclaredScale.of(n, bounds)

    def _keep(self, scaling: Scaling, guarantee: Guarantee | None) -> "PrivateScaler":
        """Keep what was found."""
        if scaling.lost:
            warnings.warn(
                f"the budget is too small to find the scale of {scaling.lost} of {len(scaling.scale)} columns (declare"
                " bounds or row_norm); a pooled scale or 1 was used",
                stacklevel=3,
            )
        self.mean_, self.scale_ = scaling.centre, scaling.scale
        self.clip_low_, self.clip_high_ = scaling.low, scaling.high
        self.guarantee_ = guarantee
        for name in ("_truths", "plan_"):  # of the table, and of a pipeline that fitted it before
            self.__dict__.pop(name, None)
        return self

    @lazily
    def transform(self, X: Any) -> Floats:
        """Clipped, centred and scaled columns, between -3 and 3; what is missing becomes 0."""
        check_is_fitted(self)
        X = validated(self, X, **_ROWS, reset=False)
        return Scaling(self.mean_, self.scale_, LIMIT).transform(np.clip(X, self.clip_low_, self.clip_high_))

    @lazily
    def inverse_transform(self, X: Any) -> Floats:
        """Back to the user's units (of what was inside the clip)."""
        check_is_fitted(self)
        return np.asarray(np.asarray(X, dtype=np.float64) * self.scale_ + self.mean_)

    def to_sklearn(self) -> Pipeline:
        """A scikit-learn pipeline that does the same without tacit: clip, fill in what is missing, scale.

        The clip brings columns to [0, 1], as scikit-learn has no other; the last step leads from there to the scale.
        """
        check_is_fitted(self)
        low, width = self.clip_low_, self.clip_high_ - self.clip_low_
        clip = MinMaxScaler(clip=True).fit(np.stack([low, self.clip_high_]))
        if hasattr(self, "feature_names_in_"):
            clip.feature_names_in_ = np.copy(self.feature_names_in_)
        middle = (self.mean_ - low) / width
        scale = StandardScaler().fit(middle[None, :])
        scale.scale_ = self.scale_ / width
        scale.var_ = np.square(scale.scale_)
        return make_pipeline(clip, SimpleImputer().fit(middle[None, :]), scale)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
