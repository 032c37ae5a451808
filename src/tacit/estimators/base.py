"""What all linear estimators share: common parameters, validation, the clip at prediction, export."""

from typing import Any

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
from tacit.estimators.driver import Fit, Request, private_fit
from tacit.kernels.gradient import dense_margins
from tacit.preprocessing.validation import (
    averaging_rule,
    coefficient_bounds,
    declared_size,
    smoothness_constants,
    validated,
)
from tacit.privacy import Budget, checks
from tacit.privacy.mechanisms.vertices import SAMPLERS
from tacit.problems import SQUARED, Loss, Penalty
from tacit.solvers import SOLVERS, Options, Task, choose, limits
from tacit.solvers.task import PenaltyName

_PREDICT_BLOCK = 4096


class PrivateLinearModel(BaseEstimator):
    """Base of the linear estimators; parameters are documented on each of them."""

    predicts_rows_alone = True  # `tacit.metrics.evaluate` reads it: a row's prediction does not depend on others

    _serves_ball = True  # an l1 ball can take the place of the penalty

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
    def _wants_ball(self) -> bool:
        """Whether coefficients are kept in an l1 ball, in place of a penalty."""
        return self.solver == "frank-wolfe" or (self.solver == "auto" and self.l1_radius is not None)

    def _check_parameters(self) -> None:
        """Everything that can be refused without data."""
        Budget(self.epsilon, 0.5 if self.delta is None else self.delta, self.adjacency)
        if self.row_norm is not None:
            declared_size("row_norm", self.row_norm)
        checks.one_of("solver", self.solver, ("auto", *SOLVERS))
        if self._wants_ball and not self._serves_ball:
            raise ValueError(
                f"{type(self).__name__} has an l2 penalty, which solver='frank-wolfe' does not serve; Lasso and"
                " LinearRegression take l1_radius"
            )
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise TypeError(f"fit_intercept must be True or False, got {self.fit_intercept!r}")
        coefficient_bounds(self.coef_bounds)
        self._options()
        if not isinstance(self.verbose, bool):
            checks.count("verbose", self.verbose, least=0)
        if self.random_state is not None:
            checks.whole_seed(self.random_state)

    def _options(self, d: int | None = None) -> Options:
        """What the solver is told, checked; lengths of arrays only where the number of features is known."""
        order = checks.one_of("order", self.order, ("permuted", "cyclic", "random"))
        clipping = checks.one_of("clipping", self.clipping, ("row", "coordinate"))
        if (order, clipping) == ("random", "row"):
            raise ValueError(
                "order='random' needs clipping='coordinate': the bound of row clipping needs every coordinate visited"
                " equally often, as order='permuted' and order='cyclic' do"
            )
        return Options(
            None if self.n_iter is None else limits.checked_iterations(self.n_iter, self.solver),
            None if self.n_passes is None else limits.checked_passes(self.n_passes),
            None if self.batch_size is None else checks.count("batch_size", self.batch_size),
            order,
            clipping,
            None if self.clip is None else declared_size("clip", self.clip),
            None if self.step is None else declared_size("step", self.step),
            averaging_rule(self.averaging),
            smoothness_constants(self.smoothness, d),
            checks.one_of("variant", self.variant, ("secret", "published", "sequential", "primal")),
            checks.one_of("inner", self.inner, ("exact", "newton")),
            None if self.l1_radius is None else declared_size("l1_radius", self.l1_radius),
            None if self.entry_bound is None else declared_size("entry_bound", self.entry_bound),
            checks.one_of("sampler", self.sampler, tuple(SAMPLERS)),
        )

    def _fit(
        self,
        X: NDArray[np.floating] | csr_array,
        targets: Floats,
        *,
        loss: Loss,
        outputs: int,
        l2: float,
        l1: float = 0.0,
        y_bounds: tuple[float, float] | None = None,
    ) -> Fit:
        """Run the driver and keep what it released."""
        n, d = X.shape
        if self.batch_size is not None and self.batch_size > n:
            raise ValueError(f"batch_size must be at most the number of rows, {n:,}, got {self.batch_size!r}")
        budget = Budget.for_rows(n, self.epsilon, self.delta, self.adjacency, stacklevel=4)
        coef_bounds = coefficient_bounds(self.coef_bounds, d)
        if self._wants_ball:
            l1 = l2 = 0.0
        penalties = _penalties(l2, l1, coef_bounds is not None)
        intercept = bool(self.fit_intercept)
        task = Task(n, d, loss, outputs, _is_sparse(X), intercept, budget, penalties, self._options(d))
        row_norm = None if self.row_norm is None else float(self.row_norm)
        request = Request(
            task,
            choose(self.solver, task),
            Penalty(l1, l2, *(coef_bounds or ())),
            row_norm,
            y_bounds,
            self.random_state,
            int(self.verbose),
        )
        fit = private_fit(request, X, targets)
        self.clip_low_, self.clip_high_ = fit.clip_low, fit.clip_high
        self.coef_noise_ = fit.coef_noise if outputs > 1 or loss != SQUARED else fit.coef_noise[0]
        self.plan_, self.guarantee_ = fit.plan, fit.guarantee
        return fit

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

    def _pipeline(self, model: Any) -> Pipeline:
        """The clip, then a fitted scikit-learn model: nothing in it comes from tacit."""
        check_is_fitted(self)
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


def _penalties(l2: float, l1: float, bounds: bool) -> tuple[PenaltyName, ...]:
    """What the solver must serve. Without any penalty that is l2 of strength 0: plain losses are smooth."""
    asked: dict[PenaltyName, bool] = {"l2": l2 > 0 or l1 == 0, "l1": l1 > 0, "bounds": bounds}
    return tuple(name for name, wanted in asked.items() if wanted)
