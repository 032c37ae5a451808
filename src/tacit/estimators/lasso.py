"""Private lasso and elastic net."""

from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.linear_model import ElasticNet as PlainElasticNet
from sklearn.linear_model import Lasso as PlainLasso
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from tacit.estimators.regression import PrivateRegressor
from tacit.estimators.wording import BUDGET, OPTIONS, RANDOM, REGRESSOR_ATTRIBUTES, ROW_NORM, Y_BOUNDS
from tacit.preprocessing.validation import penalty_strength
from tacit.privacy import checks

_PARAMETERS = f"""{ROW_NORM}
    {Y_BOUNDS}
    solver : {{"auto", "coordinate", "frank-wolfe", "greedy", "sgd"}}, default="auto"
        The algorithm; "sgd" serves only add-remove, and "frank-wolfe" is not for the elastic net.
        docs/choosing-a-solver.md compares them.
    {OPTIONS}
    {RANDOM}"""

_ATTRIBUTES = f"""sparse_coef_ : csr_array of shape (1, n_features)
        `coef_`, stored without its zeros.
    {REGRESSOR_ATTRIBUTES}"""


class _SparseRegressor(PrivateRegressor):
    """A squared loss and a penalty that sets coefficients to zero."""

    @property
    def sparse_coef_(self) -> csr_array:
        """`coef_`, stored without its zeros."""
        check_is_fitted(self)
        return csr_array(np.atleast_2d(self.coef_))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        penalty_strength("alpha", self.alpha)


class Lasso(_SparseRegressor):
    __doc__ = f"""Least squares with an l1 penalty under (epsilon, delta)-differential privacy.

    The objective is scikit-learn's, `|y - X w|^2 / (2 n_rows) + alpha |w|_1`, on standardised columns if the data is
    dense. Nothing needs to be declared or tuned: units are found privately, inside the same budget.

    Parameters
    ----------
    {BUDGET}
    alpha : float, default=1.0
        Strength of the l1 penalty, as in scikit-learn: in units of the target.
    {_PARAMETERS}

    Attributes
    ----------
    {_ATTRIBUTES}

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tacit import Lasso
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = Lasso(alpha=5.0, epsilon=10.0, y_bounds=(0, 400)).fit(X, y)
    >>> model.coef_.shape
    (10,)
    """

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

    def _penalty(self, n: int) -> tuple[float, float]:  # noqa: ARG002
        return 0.0, float(self.alpha)

    def to_sklearn(self) -> Pipeline:
        """An exact scikit-learn pipeline, clip then model, that predicts without tacit."""
        return self._pipeline(PlainLasso(alpha=self.alpha, fit_intercept=self.fit_intercept))


class ElasticNet(_SparseRegressor):
    __doc__ = f"""Least squares with l1 and l2 penalties under (epsilon, delta)-differential privacy.

    The objective is scikit-learn's,
    `|y - X w|^2 / (2 n_rows) + alpha l1_ratio |w|_1 + alpha (1 - l1_ratio) / 2 |w|^2`, on standardised columns if the
    data is dense. Nothing needs to be declared or tuned: units are found privately, inside the same budget.

    Parameters
    ----------
    {BUDGET}
    alpha : float, default=1.0
        Strength of both penalties, as in scikit-learn. The solver may regularise more where the noise demands it.
    l1_ratio : float, default=0.5
        The part of the l1 penalty, from 0 (only l2) to 1 (the lasso).
    {_PARAMETERS}

    Attributes
    ----------
    {_ATTRIBUTES}

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tacit import ElasticNet
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ElasticNet(alpha=0.5, l1_ratio=0.9, epsilon=10.0, y_bounds=(0, 400)).fit(X, y)
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
        l1_ratio: float = 0.5,
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
        self.l1_ratio = l1_ratio
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
        checks.closed_unit("l1_ratio", self.l1_ratio)

    def _penalty(self, n: int) -> tuple[float, float]:  # noqa: ARG002
        alpha, ratio = float(self.alpha), float(self.l1_ratio)
        return alpha * (1.0 - ratio), alpha * ratio

    def to_sklearn(self) -> Pipeline:
        """An exact scikit-learn pipeline, clip then model, that predicts without tacit."""
        plain = PlainElasticNet(alpha=self.alpha, l1_ratio=self.l1_ratio, fit_intercept=self.fit_intercept)
        return self._pipeline(plain)
