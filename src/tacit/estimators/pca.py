"""`PCA`: principal components under differential privacy."""

import math
import warnings
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from sklearn import decomposition
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from tacit._types import Floats
from tacit.blocks.centred import Centre
from tacit.blocks.here import ThisMachine, rows_of
from tacit.blocks.lazy import BlockTable
from tacit.blocks.partitions import lazily
from tacit.blocks.reading import ROWS, opened
from tacit.blocks.table import Table, canonical, stays_sparse
from tacit.blocks.validate import is_lazy, validated
from tacit.estimators.base import check_terms, number
from tacit.estimators.fit import FewRowsWarning, Fitted, private_fit
from tacit.estimators.normal import NormalModel
from tacit.estimators.wording import BUDGET, GUARANTEE, RANDOM, TRUST
from tacit.privacy import Budget, Unit
from tacit.problems.bounds import Bounds, check_trust, declared_pairs, truths
from tacit.problems.declared import declared_size
from tacit.problems.task import ComponentsTask
from tacit.solvers import check_solver
from tacit.solvers import pca as solvers
from tacit.solvers.base import Solver
from tacit.solvers.pca.spectrum import Spectrum


@dataclass(eq=False, repr=False)
class PCA(NormalModel, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    __doc__ = f"""Principal components of rows about people, under differential privacy.

    Rows are centred by a private mean and scaled to a norm of at most a radius; what is fitted is the PCA of these
    bounded rows.

    Parameters
    ----------
    n_components : int or "noise", default=None
        How many components. None: the smaller of the numbers of rows and columns. "noise": those of the released
        spectrum that stand above the noise, at least one; looked for are as many as there can be, at most 200 in more
        than 2,000 columns, and 20 by solvers that hold no matrix. A part of the variance and "mle" are refused: both
        choose the number from the private spectrum.
    {BUDGET}
    center : bool, default=True
        False: second moments about zero, without a mean.
    bounds : pair, sequence of pairs or dict, default=None
        What columns lie between, as public knowledge: one pair (low, high) for all columns, one for each (None where
        nothing is known), or pairs by the names or numbers of some columns. Values are clipped to them, and declared
        columns take no part in finding the scale of the rows; where all are declared it is not looked for. The mean and
        the radius still are. Those of sparse rows must hold 0.
    {TRUST}
    row_norm : float, default=None
        A public bound on the l2 norm of a row. Rows are clipped to it for the mean, and for everything if not `center`.
        None: found privately.
    center_norm : float, default=None
        A public bound on the distance of a row from the mean, to which centred rows are clipped. None: found privately.
    solver : str or solver object, default="auto"
        The algorithm by its name, or an object of `tacit.solvers.pca` with its options, such as `Stochastic(clip=0.5)`.
        The names are "auto", "gauss", "stochastic", "variance-reduced", "power" and "mod-sulq". "auto" is "gauss" if
        its matrix fits `memory_limit` and the data is dense or has at most 4,000 columns; else "stochastic", or "power"
        for replace-one neighbours and blocks of sparse rows.
    memory_limit : float, default=2e9
        Bytes that the matrix of "gauss" and "mod-sulq" may take: 4 d (d + 1).
    whiten : bool, default=False
        Whether `transform` divides by standard deviations. A component below the noise floor has no known one, and is
        divided by the root of the floor.
    {RANDOM}

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal rows, by decreasing variance.
    mean_ : ndarray of shape (n_features,)
        The private mean; zero if not `center`.
    explained_variance_ : ndarray of shape (n_components,)
        Variance of the bounded rows along each component, cleared of what noise adds; NaN below `noise_floor_`.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        The same over the total variance of the bounded rows. That is the trace of the released matrix of "gauss" and
        "mod-sulq", and a release of its own of the others.
    singular_values_ : ndarray of shape (n_components,)
    noise_variance_ : float
        As in scikit-learn: the mean variance along the directions that are left out. It is not about privacy noise.
    noise_floor_ : float
        The variance that privacy noise alone shows: a component below it may be nothing but noise.
    reliability_ : ndarray of shape (n_components,)
        An estimate of each component's squared cosine with the one that would have been found without noise; 0 below
        the floor. It holds for variances that are well apart.
    radius_ : float
        What the norm of centred rows was clipped to.
    n_components_ : int
        How many components there are.
    {GUARANTEE}

    Notes
    -----
    Privacy
    ~~~~~~~
    Unit: one row. Neighbours: `adjacency`. Mechanism: Gaussian noise, accounted exactly; "stochastic" and
    "variance-reduced" add it to sums over Poisson samples, accounted by privacy loss distributions. Released: scale,
    mean and radius as far as they are not declared, and what the solver's plan lists, of which all attributes are
    functions; how many components "noise" keeps is one too. Assumed: the number of rows and the columns are public, and
    no transformer before this one was fitted on the data. `transform`, `score` and `score_samples` tell of the rows
    they are given to whoever calls them: what they return is as private as X.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from tacit import PCA
    >>> X, _ = load_digits(return_X_y=True)
    >>> pca = PCA(n_components=3, epsilon=5.0).fit(X)
    >>> pca.transform(X).shape
    (1797, 3)
    """

    n_components: int | str | None = None
    epsilon: float = 1.0
    delta: float | None = None
    adjacency: str = "add-remove"
    _: KW_ONLY
    center: bool = True
    bounds: Any = None
    trust_dtypes: bool = False
    row_norm: float | None = None
    center_norm: float | None = None
    solver: str | Solver = "auto"
    memory_limit: float = 2e9
    whiten: bool = False
    random_state: int | None = None
    verbose: int = 0

    def fit(self, X: Any, y: Any = None) -> "PCA":  # noqa: ARG002
        """Fit on an array (memory-mapped ones are read in blocks) or a sparse matrix, spending the whole budget.

        Sparse rows of up to 256 columns are taken for dense ones, a few at a time. Dask arrays and data frames stay on
        the workers of the active client; without a client this machine computes them, a partition at a time.
        """
        if is_lazy(X):
            return self.fit_blocks(X)
        self._check_parameters()
        X = canonical(self._validated(X))
        with ThisMachine(math.inf) as place:
            table = rows_of(X, place)
            task, solver = self._asked(table.shape, sparse=stays_sparse(X))
            return self._keep(task, private_fit(task, solver, table, seed=self.random_state, verbose=int(self.verbose)))

    def fit_blocks(self, blocks: Any) -> "PCA":
        """Fit on rows that together may be larger than memory, spending the whole budget.

        Parameters
        ----------
        blocks : files, table, or iterable of blocks
            As for linear models: Parquet or CSV files, a pyarrow table or dataset, a polars lazy frame, or blocks of
            rows, which may be sparse. There are passes for the row norm (unless declared), the mean and the radius.
            "gauss" and "mod-sulq" make one more, for the matrix. For the others bounded rows are held, in memory or in
            a scratch file. The result is that of `fit` with the same solver, to the last bit.
        """
        self._check_parameters()
        with opened(blocks) as reading:
            table = BlockTable.of(reading, "none", trusted=bool(self.trust_dtypes), sparse=True).tell(self)
            rows = table.components_rows()
            task, solver = self._asked(table.shape, sparse=isinstance(rows, Table), streamed=True)
            return self._keep(task, private_fit(task, solver, rows, seed=self.random_state, verbose=int(self.verbose)))

    @lazily
    def transform(self, X: Any) -> Floats:
        """Rows in the coordinates of the components; sparse rows stay sparse until they are projected.

        What is missing is at the mean.
        """
        return self._about_mean(np.asarray(self._filled(X) @ self.components_.T))

    def _about_mean(self, products: Floats) -> Floats:
        """Coordinates, from the products of rows and components."""
        projected = products - self.mean_ @ self.components_.T
        return projected / self._whitening() if self.whiten else projected

    @lazily
    def inverse_transform(self, X: Any) -> Floats:
        """Back to the columns of the data."""
        check_is_fitted(self)
        coordinates = check_array(X, dtype=np.float64)
        if self.whiten:
            coordinates = coordinates * self._whitening()
        return np.asarray(coordinates @ self.components_ + self.mean_)

    def to_sklearn(self) -> Pipeline:
        """A fitted scikit-learn pipeline that transforms without tacit: fill in what is missing, then its own PCA."""
        check_is_fitted(self)
        plain = decomposition.PCA(n_components=self.n_components_, whiten=self.whiten)
        for name in ("explained_variance_ratio_", "singular_values_", "components_", "mean_"):
            setattr(plain, name, np.copy(getattr(self, name)))
        plain.explained_variance_ = self._whitening() ** 2 if self.whiten else np.copy(self.explained_variance_)
        plain.noise_variance_, plain.n_components_ = self.noise_variance_, self.n_components_
        plain.n_samples_, plain.n_features_in_ = self.guarantee_.n_rows, self.n_features_in_
        imputer = SimpleImputer().fit(self.mean_[None, :])
        if hasattr(self, "feature_names_in_"):
            imputer.feature_names_in_ = np.copy(self.feature_names_in_)
        return make_pipeline(imputer, plain)

    def _check_parameters(self) -> None:
        """Everything that can be refused without data."""
        check_terms(self)
        for name in ("row_norm", "center_norm", "memory_limit"):
            if getattr(self, name) is not None or name == "memory_limit":
                declared_size(name, getattr(self, name))
        declared_pairs(self.bounds)
        check_trust(self.trust_dtypes)
        if self.bounds is not None and self.row_norm is not None:
            raise ValueError("bounds and row_norm both say how large rows are: declare one of them")
        check_solver(self.solver, solvers.PCA_SOLVERS, solvers.__name__)
        for name in ("center", "whiten"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise TypeError(f"{name} must be True or False, got {getattr(self, name)!r}")
        if self.center_norm is not None and not self.center:
            raise ValueError("center_norm bounds the distance from the mean; with center=False declare row_norm")
        k = self.n_components
        whole = isinstance(k, int | np.integer) and not isinstance(k, bool) and k >= 1
        if not (k is None or whole or self._keeps_those_above_noise):
            raise ValueError(
                "n_components must be an integer of at least 1, 'noise' or None; a part of the variance or 'mle' would"
                f" choose it from the private spectrum. Got {k!r}"
            )

    def _validated(self, X: Any) -> Any:
        """X as an array or CSR; what is bad raises here, before any budget is spent."""
        self._truths = truths(X, trusted=self.trust_dtypes)
        return validated(self, X, **ROWS, ensure_min_samples=2)

    def _asked(self, shape: tuple[int, int], *, sparse: bool, streamed: bool = False) -> tuple[ComponentsTask, Solver]:
        """The public facts of a fit, and the solver for them; `sparse` for rows that stay so."""
        n, d = shape
        most = min(n, d)
        by_rule = self.n_components is None or self._keeps_those_above_noise
        k = most if by_rule else int(self.n_components)  # type: ignore[arg-type]
        if k > most:
            raise ValueError(
                f"n_components must be at most {most}, the smaller of {n:,} rows (n_samples) and {d:,} columns, got {k}"
            )
        task = ComponentsTask(
            unit=Unit("row", n),
            d=d,
            budget=Budget.for_rows(n, self.epsilon, self.delta, self.adjacency, stacklevel=4),  # type: ignore[arg-type]
            sparse=sparse,
            streamed=streamed,
            row_norm=number(self.row_norm),
            bounds=self._bounds_of(d, sparse=sparse),
            k=k,
            center=bool(self.center),
            center_norm=number(self.center_norm),
        )
        solver = solvers.choose(self.solver, task, float(self.memory_limit))
        if self._keeps_those_above_noise:
            task = replace(task, k=min(most, solvers.most_candidates(solver, d)))
        return task, solver

    def _bounds_of(self, d: int, *, sparse: bool) -> Bounds | None:
        """The declared bounds of the columns."""
        typed = () if self.row_norm is not None else self._truths
        return Bounds.of(self.bounds, d, getattr(self, "feature_names_in_", None), typed, sparse=sparse)

    def _keep(self, task: ComponentsTask, fitted: Fitted) -> "PCA":
        """Attributes as in scikit-learn: variances about an estimated mean are over n - 1."""
        centre: Centre = fitted.units
        if centre.lost:
            warnings.warn(
                "the budget is too small to find the scale of the rows (declare row_norm); 1 was used",
                FewRowsWarning,
                stacklevel=3,
            )
        spectrum: Spectrum = fitted.result
        if self._keeps_those_above_noise:
            spectrum = spectrum.above_noise()
        self.mean_, self.radius_ = centre.mean, centre.radius
        self.plan_, self.guarantee_ = fitted.promise, fitted.guarantee
        del self._truths
        weight = task.n - 1 if task.center else task.n
        k = len(spectrum.components)
        self.components_, self.n_components_ = spectrum.components, k
        self.explained_variance_ = spectrum.captured / weight
        self.singular_values_ = np.sqrt(spectrum.captured)
        known = float(np.nansum(spectrum.captured))
        total = max(spectrum.total, known)
        self.explained_variance_ratio_ = spectrum.captured / total if total > 0.0 else np.full(k, np.nan)
        left = min(task.n, task.d) - k
        self.noise_variance_ = (total - known) / weight / left if left else 0.0
        self.noise_floor_, self.reliability_ = spectrum.floor / weight, spectrum.reliability
        return self

    @property
    def _keeps_those_above_noise(self) -> bool:
        return isinstance(self.n_components, str) and self.n_components == "noise"

    def _whitening(self) -> Floats:
        """What whitening divides by: the standard deviation along each component, or the root of the noise floor."""
        variance = np.where(np.isnan(self.explained_variance_), self.noise_floor_, self.explained_variance_)
        return np.sqrt(np.maximum(variance, np.finfo(np.float64).eps))

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        return tags
