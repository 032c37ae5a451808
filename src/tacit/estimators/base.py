"""What all linear estimators share: common parameters, validation, the clip at prediction, export."""

import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, MinMaxScaler
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from tacit._types import Floats
from tacit.blocks import TableRows
from tacit.blocks.validate import validated
from tacit.bounding import LinearModel, Units
from tacit.estimators.fit import FewRowsWarning, Fitted
from tacit.kernels.rows import dense_margins
from tacit.privacy import Budget, Unit, checks
from tacit.problems import SQUARED, Loss, Penalty
from tacit.problems.bounds import Bounds, check_trust, declared_pairs, truths
from tacit.problems.declared import coefficient_bounds, declared_size, interval, inverse_strength, penalty_strength
from tacit.problems.task import LinearTask
from tacit.solvers import Solver, check_solver, is_table

_PREDICT_BLOCK = 4096
_ROWS: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}
_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "row_norm": declared_size,
    "l1_radius": declared_size,
    "y_bounds": interval,
    "C": inverse_strength,
    "alpha": penalty_strength,
    "l1_ratio": checks.closed_unit,
}
_MAY_BE_NONE = ("row_norm", "l1_radius", "y_bounds")
_EXPORTED = ("C", "alpha", "fit_intercept", "l1_ratio", "loss")  # parameters that mean the same in scikit-learn


@dataclass(eq=False, repr=False)
class PrivateLinearModel(BaseEstimator):
    """Base of the linear estimators; parameters are documented on each of them."""

    predicts_rows_alone: ClassVar[bool] = True  # for `tacit.metrics`: a row's prediction does not depend on others
    _plain: ClassVar[Any]  # scikit-learn's model, for export
    _serves_ball: ClassVar[bool] = False  # an l1 ball can take the place of the penalty

    epsilon: float = 1.0
    delta: float | None = None
    adjacency: str = "add-remove"
    _: KW_ONLY
    bounds: Any = None
    trust_dtypes: bool = False
    row_norm: float | None = None
    solver: str | Solver = "auto"
    fit_intercept: bool = True
    coef_bounds: Any = None
    random_state: int | None = None
    verbose: int = 0

    def _validated(self, X: Any, y: Any, **options: Any) -> tuple[Any, Any]:
        """X as a float array or CSR, y as an array; what is bad raises here, before any budget is spent."""
        self._check_parameters()
        self._truths = truths(X, trusted=self.trust_dtypes)
        checked: Any = validated(self, X, y, ensure_min_samples=2, **_ROWS, ensure_all_finite="allow-nan", **options)
        X, y = checked
        if not isinstance(X, np.ndarray):
            kind = X.dtype if self._wants_ball else np.float64
            X = csr_array(X, dtype=kind, copy=not X.has_canonical_format)
            X.sum_duplicates()
            solver = "frank-wolfe" if self._wants_ball else self._solver_name
            if is_table(X.shape[0], X.shape[1], solver, self.row_norm):
                return TableRows(X), y
            X = csr_array((np.where(np.isnan(X.data), 0.0, X.data), X.indices, X.indptr), shape=X.shape, dtype=kind)
        return X, y

    @property
    def _solver_name(self) -> str:
        """What the solver is called, however it was given."""
        return self.solver.name if isinstance(self.solver, Solver) else self.solver

    @property
    def _wants_ball(self) -> bool:
        """Whether coefficients are kept in an l1 ball, in place of a penalty."""
        has_radius = getattr(self, "l1_radius", None) is not None
        return self._solver_name == "frank-wolfe" or (self._solver_name == "auto" and has_radius)

    def _check_parameters(self) -> None:
        """Everything that can be refused without data."""
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise TypeError(f"fit_intercept must be True or False, got {self.fit_intercept!r}")
        check_terms(self)
        coefficient_bounds(self.coef_bounds)
        declared_pairs(self.bounds)
        check_trust(self.trust_dtypes)
        for name, value in self.get_params(deep=False).items():
            if name in _CHECKS and not (value is None and name in _MAY_BE_NONE):
                _CHECKS[name](name, value)
        if self.bounds is not None and self.row_norm is not None:
            raise ValueError("bounds and row_norm both say how large rows are: declare one of them")
        check_solver(self.solver)
        if not self._serves_ball and self._wants_ball:
            raise ValueError(
                f"{type(self).__name__} has an l2 penalty, which solver='frank-wolfe' does not serve; Lasso and"
                " LinearRegression take l1_radius"
            )

    def _bounds_of(self, X: Any) -> Bounds | None:
        """The declared bounds of the columns of X."""
        typed = () if self.row_norm is not None else self._truths
        names, sparse = getattr(self, "feature_names_in_", None), not isinstance(X, np.ndarray | TableRows)
        return Bounds.of(self.bounds, X.shape[1], names, typed, sparse=sparse)

    def _task(
        self,
        X: Any,
        loss: Loss,
        *,
        outputs: int = 1,
        l2: Floats | float = 0.0,
        l1: Floats | float = 0.0,
        y_bounds: tuple[float, float] | None = None,
    ) -> LinearTask:
        """The public facts of a fit."""
        n, d = X.shape
        l1, l2 = (0.0, 0.0) if self._wants_ball else (l1, l2)
        return LinearTask(
            row_norm=number(self.row_norm),
            bounds=self._bounds_of(X),
            l1_radius=number(getattr(self, "l1_radius", None)),
            y_bounds=y_bounds,
            loss=loss,
            outputs=outputs,
            fit_intercept=bool(self.fit_intercept),
            penalty=Penalty(l1, l2, *(coefficient_bounds(self.coef_bounds, d) or ())),
            d=d,
            sparse=not isinstance(X, np.ndarray | TableRows),
            unit=Unit("row", n),
            budget=Budget.for_rows(n, self.epsilon, self.delta, self.adjacency, stacklevel=5),  # type: ignore[arg-type]
        )

    def _keep(self, task: LinearTask, fitted: Fitted) -> LinearModel:
        """Keep what a fit released; the model, in the user's units."""
        units: Units = fitted.units
        if units.warning is not None:
            warnings.warn(units.warning, FewRowsWarning, stacklevel=4)
        model = units.model(fitted.result, task.penalty)
        self.clip_low_, self.clip_high_ = units.features.low, units.features.high
        self.fill_ = np.array(units.features.centre)
        self.coef_noise_ = model.coef_noise[0] if task.loss == SQUARED else model.coef_noise
        self.plan_, self.guarantee_ = fitted.promise, fitted.guarantee
        for name in ("_truths", "coef_path_", "intercept_path_"):  # of the table, and of an earlier fit
            self.__dict__.pop(name, None)
        if model.path is not None:
            self.coef_path_, self.intercept_path_ = model.path
        return model

    def _margins(self, X: Any) -> Floats:
        """The linear function on clipped rows, of shape (n, outputs); each row by itself, to the last bit."""
        check_is_fitted(self)
        holes = "allow-nan" if hasattr(self, "fill_") else True  # models of older files do not know what to fill in
        X = validated(self, X, **_ROWS, ensure_all_finite=holes, reset=False)
        coef = self.coef_ if isinstance(self.coef_, csr_array) else np.atleast_2d(self.coef_)
        if isinstance(X, np.ndarray):
            return self._dense_margins(self._clipped(X))
        if np.all((self.clip_low_ <= 0.0) & (self.clip_high_ >= 0.0)):
            X = csr_array((self._clipped(X.data, X.indices), X.indices, X.indptr), shape=X.shape)
        else:
            # A zero lies outside the clip of a model fitted on dense data, so rows are filled, a block at a time.
            starts = range(0, X.shape[0], _PREDICT_BLOCK)
            blocks = (X[i : i + _PREDICT_BLOCK].toarray() for i in starts)
            return np.concatenate([self._dense_margins(self._clipped(block)) for block in blocks])
        return np.asarray(safe_sparse_dot(X, coef.T, dense_output=True) + self.intercept_)

    def _clipped(self, values: Any, columns: Any = slice(None)) -> Any:
        """Values of these columns inside the clip; what is missing is filled in."""
        clipped = np.clip(values, self.clip_low_[columns], self.clip_high_[columns])
        return np.where(np.isnan(clipped), self.fill_[columns], clipped) if hasattr(self, "fill_") else clipped

    def _dense_margins(self, X: Any) -> Floats:
        """By a loop over each row: BLAS may round a row differently when another row is missing."""
        coef, outputs = np.atleast_2d(dense(self.coef_)), np.ravel(self.intercept_)
        out = np.empty((len(outputs), len(X)))
        for margins, weights, intercept in zip(out, coef, outputs, strict=True):
            dense_margins(X, 1.0, np.append(weights, intercept), margins)
        return np.ascontiguousarray(out.T)

    def to_sklearn(self) -> Pipeline:
        """A scikit-learn pipeline that predicts the same without tacit: clip, fill in what is missing, model."""
        check_is_fitted(self)
        return self._pipeline(self._plain(**{name: getattr(self, name) for name in _EXPORTED if hasattr(self, name)}))

    def _pipeline(self, model: Any) -> Pipeline:
        """The clip, what to fill in, and a fitted scikit-learn model: nothing in it comes from tacit.

        Each is one of scikit-learn's own transformers, as other tools read them: ONNX has no word for a function.
        """
        coef, intercept = np.array(dense(self.coef_)), np.copy(self.intercept_)
        fill = self.fill_ if hasattr(self, "fill_") else np.clip(0.0, self.clip_low_, self.clip_high_)
        if not np.all(np.isinf(self.clip_low_)) and np.any(np.isinf(self.clip_low_)):
            raise TypeError("scikit-learn clips all columns or none, and here bounds of some text columns are declared")
        widest = float(self.clip_high_.max())
        if np.all(np.isinf(self.clip_low_)):
            clip = FunctionTransformer(accept_sparse=True)
        elif np.all((self.clip_high_ == widest) & (self.clip_low_ == -widest)):
            clip = MaxAbsScaler(clip=True)  # which takes sparse rows, and divides by the bound
            clip.max_abs_ = clip.scale_ = self.clip_high_.copy()
            clip.n_samples_seen_ = 0
            coef, fill = coef * widest, fill / widest
        else:
            # Brought to [0, 1]. A column whose clip is a single value has no width, and adds a constant.
            low, width = self.clip_low_, self.clip_high_ - self.clip_low_
            clip = MinMaxScaler(clip=True).fit(np.stack([low, self.clip_high_]))
            intercept = intercept + coef @ low
            coef, fill = coef * width, (fill - low) / np.where(width > 0.0, width, 1.0)
        clip.n_features_in_ = self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            clip.feature_names_in_ = np.copy(self.feature_names_in_)
        model.n_features_in_ = self.n_features_in_
        model.coef_, model.intercept_ = coef, intercept
        return make_pipeline(clip, SimpleImputer().fit(fill[None, :]), model)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        tags.non_deterministic = False
        return tags


def check_terms(estimator: Any) -> None:
    """Refuse a budget, a seed or a `verbose` that no data could go with."""
    delta = 0.5 if estimator.delta is None else estimator.delta
    Budget(estimator.epsilon, delta, estimator.adjacency)
    if not isinstance(estimator.verbose, bool):
        checks.count("verbose", estimator.verbose, least=0)
    if estimator.random_state is not None:
        checks.whole_seed(estimator.random_state)


def number(value: float | None) -> float | None:
    """What was declared, if anything, as a float."""
    return None if value is None else float(value)


def dense(coef: Any) -> Floats:
    """Coefficients as an array, also where they were made sparse."""
    return np.asarray(coef.toarray() if isinstance(coef, csr_array) else coef)
