"""Private linear and ridge regression."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.linear_model import LinearRegression as PlainLinearRegression
from sklearn.linear_model import Ridge as PlainRidge
from sklearn.pipeline import Pipeline

from tacit.estimators.base import PrivateLinearModel
from tacit.preprocessing.validation import penalty_strength, target_bounds

Floats = NDArray[np.float64]

_PARAMETERS = """epsilon : float, default=1.0
        Privacy budget; `float("inf")` is the non-private limit.
    delta : float, default=None
        None: `n_rows ** -1.5`.
    adjacency : {"add-remove", "replace-one"}, default="add-remove"
        What one person may change: their row's presence, or its content.
    row_norm : float, default=None
        A public bound on the l2 norm of a row. Rows are clipped to it for finding scales. None: found privately.
    y_bounds : pair of float, default=None
        Public bounds on the target, to which it is clipped. None: found privately.
    solver : {"auto", "gradient", "objective", "sgd", "statistics"}, default="auto"
        The algorithm; "sgd" serves only add-remove. docs/choosing-a-solver.md compares them.
    fit_intercept : bool, default=True
        False: no intercept and no centring.
    n_iter : int, default=None
        Steps of the gradient solver. None: a rule in the number of rows and columns and the budget.
    n_passes : float, default=None
        Passes over the rows of the sgd solver. None: a rule as above.
    batch_size : int, default=None
        Expected number of rows in a step of the sgd solver. None: a rule as above.
    random_state : int, default=None
        None draws fresh cryptographic noise. An integer makes the fit reproducible, and the noise known to those who
        know the integer.
    verbose : int, default=0
        1 prints progress, which tells nothing of the data."""

_ATTRIBUTES = """coef_ : ndarray of shape (n_features,)
        In the user's units, valid inside the clip.
    intercept_ : float
    clip_low_, clip_high_ : ndarray of shape (n_features,)
        What each column is clipped to, in `fit` and in `predict`; infinite for sparse data.
    y_bounds_ : tuple of float
        What the target was clipped to.
    coef_noise_ : ndarray of shape (n_features,)
        The standard deviation that the noise alone gives each coefficient, to first order.
    plan_ : CalibratedPlan
        Every release of the fit with its part of the budget and its noise, as fixed before the data was read.
    guarantee_ : Guarantee
        What the fit gave away.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Privacy
    -------
    Unit: one row. Neighbours: `adjacency`. Mechanism: Gaussian noise, accounted exactly (for sparse
    data without `row_norm` one private selection as well, accounted by Renyi DP); "sgd" and "objective" as their pages
    say. Released: scales and what the solver's plan lists, of which all attributes are functions. Assumed: the number
    of rows and the columns are public, and no transformer before this one was fitted on the data."""


class _PrivateRegressor(RegressorMixin, PrivateLinearModel):
    """The squared loss, with the target clipped to declared or released bounds."""

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the model, spending the whole budget."""
        bounds, strength = target_bounds(self.y_bounds), self._penalty_strength()
        X, y = self._validated(X, y, y_numeric=True)
        if y.dtype.kind not in "fiub":
            raise ValueError("y must hold real numbers")
        targets = np.asarray(y, dtype=np.float64)
        fit = self._fit(X, targets, loss="squared", outputs=1, l2=strength / X.shape[0], y_bounds=bounds)
        self.coef_, self.intercept_ = fit.coef[0], float(fit.intercept[0])
        self.y_bounds_ = fit.y_bounds
        return self

    def _penalty_strength(self) -> float:
        """scikit-learn's alpha."""
        return 0.0

    def predict(self, X: Any) -> Floats:
        """The linear function of clipped rows."""
        return self._margins(X)[:, 0]


class LinearRegression(_PrivateRegressor):
    __doc__ = f"""Least squares under (epsilon, delta)-differential privacy.

    Nothing needs to be declared or tuned: units are found privately, inside the same budget. The solver regularises a
    little where the noise demands it.

    Parameters
    ----------
    {_PARAMETERS}

    Attributes
    ----------
    {_ATTRIBUTES}

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
        n_iter: int | None = None,
        n_passes: float | None = None,
        batch_size: int | None = None,
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
        self.n_iter = n_iter
        self.n_passes = n_passes
        self.batch_size = batch_size
        self.random_state = random_state
        self.verbose = verbose

    def to_sklearn(self) -> Pipeline:
        """An exact scikit-learn pipeline, clip then model, that predicts without tacit."""
        return self._pipeline(PlainLinearRegression(fit_intercept=self.fit_intercept))


class Ridge(_PrivateRegressor):
    __doc__ = f"""Ridge regression under (epsilon, delta)-differential privacy.

    Nothing needs to be declared or tuned: units are found privately, inside the same budget.

    Parameters
    ----------
    {_PARAMETERS}
    alpha : float, default=1.0
        Strength of the l2 penalty, as in scikit-learn. The solver may regularise more where the noise demands it.

    Attributes
    ----------
    {_ATTRIBUTES}

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tacit import Ridge
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = Ridge(alpha=0.1, epsilon=10.0, y_bounds=(0, 400)).fit(X, y)
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
        n_iter: int | None = None,
        n_passes: float | None = None,
        batch_size: int | None = None,
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
        self.n_iter = n_iter
        self.n_passes = n_passes
        self.batch_size = batch_size
        self.random_state = random_state
        self.verbose = verbose

    def _penalty_strength(self) -> float:
        return penalty_strength("alpha", self.alpha)

    def to_sklearn(self) -> Pipeline:
        """An exact scikit-learn pipeline, clip then model, that predicts without tacit."""
        return self._pipeline(PlainRidge(alpha=self.alpha, fit_intercept=self.fit_intercept))
