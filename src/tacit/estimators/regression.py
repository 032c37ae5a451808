"""Private linear and ridge regression."""

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.linear_model import LinearRegression as PlainLinearRegression
from sklearn.linear_model import Ridge as PlainRidge
from sklearn.pipeline import Pipeline

from tacit._types import Floats
from tacit.estimators.base import PrivateLinearModel
from tacit.estimators.wording import BUDGET, OPTIONS, RANDOM, REGRESSOR_ATTRIBUTES, ROW_NORM, Y_BOUNDS
from tacit.preprocessing.validation import penalty_strength, target_bounds
from tacit.problems import SQUARED

_PARAMETERS = f"""{ROW_NORM}
    {Y_BOUNDS}
    solver : str, default="auto"
        One of "auto", "coordinate", "dual", "frank-wolfe", "gradient", "greedy", "objective", "sgd" and "statistics".
        "dual" and "sgd" serve only add-remove, "dual" needs a penalty, and "frank-wolfe" is not for ridge regression.
        docs/choosing-a-solver.md compares them.
    {OPTIONS}
    {RANDOM}"""


class PrivateRegressor(RegressorMixin, PrivateLinearModel):
    """The squared loss, with the target clipped to declared or released bounds."""

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the model, spending the whole budget."""
        X, y = self._validated(X, y, y_numeric=True)
        if y.dtype.kind not in "fiub":
            raise ValueError("y must hold real numbers")
        targets = np.asarray(y, dtype=np.float64)
        l2, l1 = self._penalty(X.shape[0])
        bounds = target_bounds(self.y_bounds)
        fit = self._fit(X, targets, loss=SQUARED, outputs=1, l2=l2, l1=l1, y_bounds=bounds)
        self.coef_, self.intercept_ = fit.coef[0], float(fit.intercept[0])
        self.y_bounds_ = fit.y_bounds
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        target_bounds(self.y_bounds)

    def _penalty(self, n: int) -> tuple[float, float]:  # noqa: ARG002
        """The strengths (l2, l1) of l2 / 2 |coef|^2 + l1 |coef|_1 next to half the mean squared error of n rows."""
        return 0.0, 0.0

    def predict(self, X: Any) -> Floats:
        """The linear function of clipped rows."""
        return self._margins(X)[:, 0]


class LinearRegression(PrivateRegressor):
    __doc__ = f"""Least squares under (epsilon, delta)-differential privacy.

    Nothing needs to be declared or tuned: units are found privately, inside the same budget. The solver regularises a
    little where the noise demands it.

    Parameters
    ----------
    {BUDGET}
    {_PARAMETERS}

    Attributes
    ----------
    {REGRESSOR_ATTRIBUTES}

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tacit import LinearRegression
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LinearRegression(epsilon=10.0, y_bounds=(0, 400)).fit(X, y)
    >>> model.coef_.shape
    (10,)
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        adjacency: str = "add-remove",
        *,
        row_norm: float | None = None,
        y_bounds: tuple[float, float] | None = None,
        solver: str = "auto",
        fit_intercept: bool = True,
        coef_bounds: Any = None,
        n_iter: int | None = None,
        n_passes: float | None = None,
        batch_size: int | None = None,
        order: str = "permuted",
        clipping: str = "row",
        clip: float | None = None,
        step: float | None = None,
        averaging: str | int | None = None,
        smoothness: Any = "private",
        variant: str = "secret",
        inner: str = "exact",
        l1_radius: float | None = None,
        entry_bound: float | None = None,
        sampler: str = "bucket",
        random_state: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency
        self.row_norm = row_norm
        self.y_bounds = y_bounds
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.coef_bounds = coef_bounds
        self.n_iter = n_iter
        self.n_passes = n_passes
        self.batch_size = batch_size
        self.order = order
        self.clipping = clipping
        self.clip = clip
        self.step = step
        self.averaging = averaging
        self.smoothness = smoothness
        self.variant = variant
        self.inner = inner
        self.l1_radius = l1_radius
        self.entry_bound = entry_bound
        self.sampler = sampler
        self.random_state = random_state
        self.verbose = verbose

    def to_sklearn(self) -> Pipeline:
        """An exact scikit-learn pipeline, clip then model, that predicts without tacit."""
        return self._pipeline(PlainLinearRegression(fit_intercept=self.fit_intercept))


class Ridge(PrivateRegressor):
    __doc__ = f"""Ridge regression under (epsilon, delta)-differential privacy.

    Nothing needs to be declared or tuned: units are found privately, inside the same budget.

    Parameters
    ----------
    {BUDGET}
    alpha : float, default=1.0
        Strength of the l2 penalty, as in scikit-learn. The solver may regularise more where the noise demands it.
    {_PARAMETERS}

    Attributes
    ----------
    {REGRESSOR_ATTRIBUTES}

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tacit import Ridge
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = Ridge(alpha=0.1, epsilon=10.0, y_bounds=(0, 400)).fit(X, y)
    >>> model.coef_.shape
    (10,)
    """

    _serves_ball = False

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        adjacency: str = "add-remove",
        *,
        alpha: float = 1.0,
        row_norm: float | None = None,
        y_bounds: tuple[float, float] | None = None,
        solver: str = "auto",
        fit_intercept: bool = True,
        coef_bounds: Any = None,
        n_iter: int | None = None,
        n_passes: float | None = None,
        batch_size: int | None = None,
        order: str = "permuted",
        clipping: str = "row",
        clip: float | None = None,
        step: float | None = None,
        averaging: str | int | None = None,
        smoothness: Any = "private",
        variant: str = "secret",
        inner: str = "exact",
        l1_radius: float | None = None,
        entry_bound: float | None = None,
        sampler: str = "bucket",
        random_state: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency
        self.alpha = alpha
        self.row_norm = row_norm
        self.y_bounds = y_bounds
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.coef_bounds = coef_bounds
        self.n_iter = n_iter
        self.n_passes = n_passes
        self.batch_size = batch_size
        self.order = order
        self.clipping = clipping
        self.clip = clip
        self.step = step
        self.averaging = averaging
        self.smoothness = smoothness
        self.variant = variant
        self.inner = inner
        self.l1_radius = l1_radius
        self.entry_bound = entry_bound
        self.sampler = sampler
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        penalty_strength("alpha", self.alpha)

    def _penalty(self, n: int) -> tuple[float, float]:
        return float(self.alpha) / n, 0.0

    def to_sklearn(self) -> Pipeline:
        """An exact scikit-learn pipeline, clip then model, that predicts without tacit."""
        return self._pipeline(PlainRidge(alpha=self.alpha, fit_intercept=self.fit_intercept))
