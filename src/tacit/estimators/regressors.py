"""Private regressors: the squared loss, with no penalty, an l2 penalty, an l1 penalty, or both."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import RegressorMixin
from sklearn.linear_model import ElasticNet as PlainElasticNet
from sklearn.linear_model import Lasso as PlainLasso
from sklearn.linear_model import LinearRegression as PlainLinearRegression
from sklearn.linear_model import Ridge as PlainRidge
from sklearn.utils.validation import check_is_fitted

from tacit._types import Floats
from tacit.blocks.partitions import lazily
from tacit.blocks.reading import Targets
from tacit.estimators.base import PrivateLinearModel
from tacit.estimators.blockwise import FitsBlocks, Scored
from tacit.estimators.fit import Fitted
from tacit.estimators.wording import PARAMETERS, RADIUS, REGRESSION
from tacit.problems import SQUARED, Loss
from tacit.problems.declared import interval, penalty_strength
from tacit.problems.task import LinearTask

Strength = Floats | float

_SMOOTH = """"coordinate", "dual", "frank-wolfe", "gradient", "greedy", "objective", "sgd" and
        "statistics". "dual" and "sgd" serve only add-remove, "dual" needs a penalty, and "frank-wolfe" is not for ridge
        regression."""

_SPARSE = """"coordinate", "frank-wolfe", "greedy" and "sgd". "sgd" serves only add-remove, and
        "frank-wolfe" is not for the elastic net."""

_SPARSE_REGRESSION = REGRESSION._replace(
    attribute=f"""sparse_coef_ : csr_array of shape (1, n_features)
        `coef_`, stored without its zeros.
    {REGRESSION.attribute}"""
)


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateRegressor(Scored, RegressorMixin, FitsBlocks, PrivateLinearModel):
    """The squared loss, with the target clipped to declared or released bounds."""

    y_bounds: tuple[float, float] | None = None

    _reads: ClassVar[Targets] = "numbers"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # on the 200 rows of scikit-learn's checks the noise of a seed decides
        return tags

    @property
    def _some_loss(self) -> Loss:
        return SQUARED

    def _asked(self, X: Any, y: Any) -> tuple[LinearTask, Floats]:
        """The public facts of a fit, and the target; of X only the shape and the storage are read."""
        if y.dtype.kind not in "fiub":
            raise ValueError("y must hold real numbers")
        l2, l1 = self._penalty(*X.shape)
        bounds = None if self.y_bounds is None else interval("y_bounds", self.y_bounds)
        return self._task(X, SQUARED, l2=l2, l1=l1, y_bounds=bounds), np.asarray(y, dtype=np.float64)

    def _learned(self, task: LinearTask, fitted: Fitted) -> Self:
        """Keep the model that was found."""
        model = self._keep(task, fitted)
        self.coef_, self.intercept_ = model.coef[0], float(model.intercept[0])
        self.y_bounds_ = model.y_bounds
        return self

    def _penalty(self, n: int, d: int) -> tuple[Strength, Strength]:  # noqa: ARG002
        """The strengths (l2, l1) of l2 / 2 |coef|^2 + l1 |coef|_1 next to half the mean squared error of n rows."""
        return 0.0, 0.0

    @lazily
    def predict(self, X: Any) -> Floats:
        """The linear function of clipped rows."""
        return self._margins(X)[:, 0]


@dataclass(eq=False, repr=False, kw_only=True)
class LinearRegression(PrivateRegressor):
    __doc__ = f"""Least squares under (epsilon, delta)-differential privacy.

    The solver regularises a little where the noise demands it.

    {PARAMETERS}
    {RADIUS}
    {REGRESSION.docs(_SMOOTH, "LinearRegression(epsilon=10.0, y_bounds=(0, 400))")}"""

    _plain = PlainLinearRegression
    _serves_ball: ClassVar[bool] = True

    l1_radius: float | None = None


@dataclass(eq=False, repr=False, kw_only=True)
class Ridge(PrivateRegressor):
    __doc__ = f"""Ridge regression under (epsilon, delta)-differential privacy.

    {PARAMETERS}
    alpha : float or array of shape (n_features,), default=1.0
        Strength of the l2 penalty, as in scikit-learn: one for all coefficients, or one for each. The solver may
        regularise more where the noise demands it.
    {REGRESSION.docs(_SMOOTH, "Ridge(alpha=0.1, epsilon=10.0, y_bounds=(0, 400))")}"""

    _plain = PlainRidge

    alpha: Any = 1.0

    def _penalty(self, n: int, d: int) -> tuple[Strength, Strength]:
        return penalty_strength("alpha", self.alpha, d) / n, 0.0


@dataclass(eq=False, repr=False, kw_only=True)
class _SparseRegressor(PrivateRegressor):
    """A squared loss and a penalty that sets coefficients to zero."""

    alpha: Any = 1.0

    @property
    def sparse_coef_(self) -> csr_array:
        """`coef_`, stored without its zeros."""
        check_is_fitted(self)
        return csr_array(np.atleast_2d(self.coef_))


@dataclass(eq=False, repr=False, kw_only=True)
class Lasso(_SparseRegressor):
    __doc__ = f"""Least squares with an l1 penalty under (epsilon, delta)-differential privacy.

    The objective is scikit-learn's, `|y - X w|^2 / (2 n_rows) + alpha |w|_1`, on standardised columns if the data is
    dense.

    {PARAMETERS}
    alpha : float or array of shape (n_features,), default=1.0
        Strength of the l1 penalty, as in scikit-learn: in units of the target. One for all coefficients, or one for
        each, as in reweighted l1.
    {RADIUS}
    {_SPARSE_REGRESSION.docs(_SPARSE, "Lasso(alpha=5.0, epsilon=10.0, y_bounds=(0, 400))")}"""

    _plain = PlainLasso
    _serves_ball: ClassVar[bool] = True
    _has_l1: ClassVar[bool] = True

    l1_radius: float | None = None

    def _penalty(self, n: int, d: int) -> tuple[Strength, Strength]:  # noqa: ARG002
        return 0.0, penalty_strength("alpha", self.alpha, d)


@dataclass(eq=False, repr=False, kw_only=True)
class ElasticNet(_SparseRegressor):
    __doc__ = f"""Least squares with l1 and l2 penalties under (epsilon, delta)-differential privacy.

    The objective is scikit-learn's,
    `|y - X w|^2 / (2 n_rows) + alpha l1_ratio |w|_1 + alpha (1 - l1_ratio) / 2 |w|^2`, on standardised columns if the
    data is dense.

    {PARAMETERS}
    alpha : float or array of shape (n_features,), default=1.0
        Strength of both penalties, as in scikit-learn: one for all coefficients, or one for each. The solver may
        regularise more where the noise demands it.
    l1_ratio : float, default=0.5
        The part of the l1 penalty, from 0 (only l2) to 1 (the lasso).
    {_SPARSE_REGRESSION.docs(_SPARSE, "ElasticNet(alpha=0.5, l1_ratio=0.9, epsilon=10.0, y_bounds=(0, 400))")}"""

    _plain = PlainElasticNet

    l1_ratio: float = 0.5

    def _penalty(self, n: int, d: int) -> tuple[Strength, Strength]:  # noqa: ARG002
        alpha, ratio = penalty_strength("alpha", self.alpha, d), float(self.l1_ratio)
        return alpha * (1.0 - ratio), alpha * ratio
