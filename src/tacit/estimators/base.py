"""What all linear estimators share: common parameters, validation, the clip at prediction, export."""

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from tacit._types import Floats
from tacit.blocks.validate import validated
from tacit.bounding import LinearModel, Units
from tacit.estimators.fit import FewRowsWarning, private_fit
from tacit.kernels.gradient import dense_margins
from tacit.privacy import Budget, Unit, checks
from tacit.problems import SQUARED, Loss, Penalty
from tacit.problems.bounds import Bounds, declared_pairs
from tacit.problems.declared import coefficient_bounds, declared_size, verbosity
from tacit.problems.task import LinearTask
from tacit.solvers import Solver, check_solver, choose

_PREDICT_BLOCK = 4096
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
    row_norm: float | None = None
    solver: str | Solver = "auto"
    fit_intercept: bool = True
    coef_bounds: Any = None
    random_state: int | None = None
    verbose: int = 0

    def _validated(self, X: Any, y: Any, **options: Any) -> tuple[Any, Any]:
        """X as a float array or CSR, y as an array; what is bad raises here, before any budget is spent."""
        self._check_parameters()
        checked: Any = validated(
            self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=2, **options
        )
        X, y = checked
        if _is_sparse(X):
            kind = X.dtype if self._wants_ball else np.float64
            X = csr_array(X, dtype=kind, copy=not X.has_canonical_format)
            X.sum_duplicates()
        return X, y

    @property
    def _solver_name(self) -> str:
        """What the solver is called, however it was given."""
        return self.solver.name if isinstance(self.solver, Solver) else self.solver

    @property
    def _radius(self) -> float | None:
        """The radius of the l1 ball, if one was asked for."""
        radius = getattr(self, "l1_radius", None)
        return None if radius is None else declared_size("l1_radius", radius)

    @property
    def _wants_ball(self) -> bool:
        """Whether coefficients are kept in an l1 ball, in place of a penalty."""
        return self._solver_name == "frank-wolfe" or (self._solver_name == "auto" and self._radius is not None)

    def _check_parameters(self) -> None:
        """Everything that can be refused without data."""
        Budget(self.epsilon, 0.5 if self.delta is None else self.delta, self.adjacency)  # type: ignore[arg-type]
        if self.row_norm is not None:
            declared_size("row_norm", self.row_norm)
            if self.bounds is not None:
                raise ValueError("bounds and row_norm both say how large rows are: declare one of them")
        declared_pairs(self.bounds)
        check_solver(self.solver)
        _ = self._radius  # refused here, if it is no size
        if self._wants_ball and not self._serves_ball:
            raise ValueError(
                f"{type(self).__name__} has an l2 penalty, which solver='frank-wolfe' does not serve; Lasso and"
                " LinearRegression take l1_radius"
            )
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise TypeError(f"fit_intercept must be True or False, got {self.fit_intercept!r}")
        coefficient_bounds(self.coef_bounds)
        verbosity(self.verbose)
        if self.random_state is not None:
            checks.whole_seed(self.random_state)

    def _bounds_of(self, X: Any) -> Bounds | None:
        """The declared bounds of the columns of X."""
        bounds = Bounds.of(self.bounds, X.shape[1], getattr(self, "feature_names_in_", None))
        if bounds is not None and _is_sparse(X):
            if not bounds.are_whole:
                raise ValueError("bounds must be declared for all columns of sparse rows, or for none of them")
            if np.any((bounds.low > 0.0) | (bounds.high < 0.0)):
                raise ValueError("bounds of sparse rows must hold 0, which is what most of their entries are")
        return bounds

    def _fit(
        self,
        X: NDArray[np.floating] | csr_array,
        targets: Floats,
        *,
        loss: Loss,
        outputs: int = 1,
        l2: Floats | float = 0.0,
        l1: Floats | float = 0.0,
        y_bounds: tuple[float, float] | None = None,
    ) -> LinearModel:
        """Take the path of a fit, and keep what it released."""
        n, d = X.shape
        if self._wants_ball:
            l1 = l2 = 0.0
        task = LinearTask(
            unit=Unit("row", n),
            d=d,
            budget=Budget.for_rows(n, self.epsilon, self.delta, self.adjacency, stacklevel=4),  # type: ignore[arg-type]
            sparse=_is_sparse(X),
            row_norm=None if self.row_norm is None else float(self.row_norm),
            bounds=self._bounds_of(X),
            loss=loss,
            outputs=outputs,
            fit_intercept=bool(self.fit_intercept),
            penalty=Penalty(l1, l2, *(coefficient_bounds(self.coef_bounds, d) or ())),
            l1_radius=self._radius,
            y_bounds=y_bounds,
        )
        solver = choose(self.solver, task)
        fitted = private_fit(task, solver, (X, targets), seed=self.random_state, verbose=int(self.verbose))
        units: Units = fitted.units
        if units.warning is not None:
            warnings.warn(units.warning, FewRowsWarning, stacklevel=3)
        model = units.model(fitted.result, task.penalty)
        self.clip_low_, self.clip_high_ = units.clip_low, units.clip_high
        self.coef_noise_ = model.coef_noise if outputs > 1 or loss != SQUARED else model.coef_noise[0]
        self.plan_, self.guarantee_ = fitted.promise, fitted.guarantee
        for name in ("coef_path_", "intercept_path_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        if model.path is not None:
            self.coef_path_, self.intercept_path_ = model.path
        return model

    def _margins(self, X: Any) -> Floats:
        """The linear function on clipped rows, of shape (n, outputs); each row by itself, to the last bit."""
        check_is_fitted(self)
        X = validated(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        coef = self.coef_ if _is_sparse(self.coef_) else np.atleast_2d(self.coef_)
        if not _is_sparse(X):
            return self._dense_margins(np.clip(X, self.clip_low_, self.clip_high_))
        if np.all((self.clip_low_ <= 0.0) & (self.clip_high_ >= 0.0)):
            if not np.all(np.isinf(self.clip_low_)):
                clipped = np.clip(X.data, self.clip_low_[X.indices], self.clip_high_[X.indices])
                X = csr_array((clipped, X.indices, X.indptr), shape=X.shape)
        else:
            # A zero lies outside the clip of a model fitted on dense data, so rows are filled, a block at a time.
            starts = range(0, X.shape[0], _PREDICT_BLOCK)
            blocks = (np.clip(X[i : i + _PREDICT_BLOCK].toarray(), self.clip_low_, self.clip_high_) for i in starts)
            return np.concatenate([self._dense_margins(block) for block in blocks])
        return np.asarray(safe_sparse_dot(X, coef.T, dense_output=True) + self.intercept_)

    def _dense_margins(self, X: Any) -> Floats:
        """By a loop over each row: BLAS may round a row otherwise where another one is missing."""
        coef, outputs = np.atleast_2d(dense(self.coef_)), np.ravel(self.intercept_)
        out = np.empty((len(outputs), len(X)))
        for margins, weights, intercept in zip(out, coef, outputs, strict=True):
            dense_margins(X, 1.0, np.append(weights, intercept), margins)
        return np.ascontiguousarray(out.T)

    def to_sklearn(self) -> Pipeline:
        """An exact scikit-learn pipeline, clip then model, that predicts without tacit."""
        check_is_fitted(self)
        return self._pipeline(self._plain(**{name: getattr(self, name) for name in _EXPORTED if hasattr(self, name)}))

    def _pipeline(self, model: Any) -> Pipeline:
        """The clip, then a fitted scikit-learn model: nothing in it comes from tacit."""
        coef = np.array(dense(self.coef_))
        widest = float(self.clip_high_.max())
        if np.all(np.isinf(self.clip_low_)):
            clip = FunctionTransformer(accept_sparse=True)
        elif np.all((self.clip_high_ == widest) & (self.clip_low_ == -widest)):
            clip = MaxAbsScaler(clip=True)  # which takes sparse rows, and divides by the bound
            clip.max_abs_ = clip.scale_ = self.clip_high_.copy()
            clip.n_samples_seen_ = 0
            coef *= widest
        else:
            limits = {"a_min": self.clip_low_.copy(), "a_max": self.clip_high_.copy()}
            clip = FunctionTransformer(np.clip, validate=True, kw_args=limits)
        clip.n_features_in_ = self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            clip.feature_names_in_ = np.copy(self.feature_names_in_)
        model.n_features_in_ = self.n_features_in_
        model.coef_, model.intercept_ = coef, np.copy(self.intercept_)
        return make_pipeline(clip, model)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.non_deterministic = False
        return tags


def dense(coef: Any) -> Floats:
    """Coefficients as an array, also where they were made sparse."""
    return np.asarray(coef.toarray() if _is_sparse(coef) else coef)


def _is_sparse(X: Any) -> bool:
    return bool(sparse.issparse(X))
