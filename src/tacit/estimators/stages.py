"""The private steps of a pipeline: each says what it will release before any of them runs.

A step is planned for the public width of the table that will reach it: the columns that pass, declared categories, and
`max_categories` for each column whose categories are still to be found. So everything the plan fixes is known before
the encoder has released anything. The table that comes out may be narrower. Then the model follows with its clips and
scales, if its algorithm can (`Algorithm.narrowed`); else columns of zeros stand for what was not found.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import check_array

from tacit._types import Floats
from tacit.blocks.here import ThisMachine, rows_of
from tacit.blocks.lazy import BlockTable, no_targets
from tacit.blocks.reading import FREELY
from tacit.blocks.table import canonical, is_sparse, stays_sparse
from tacit.bounding.magnitudes import LIMIT
from tacit.estimators.classifiers import LinearSVC, LogisticRegression
from tacit.estimators.fit import Fitted, arranged
from tacit.estimators.modelstage import LinearStage, merged
from tacit.estimators.pca import PCA
from tacit.estimators.regressors import ElasticNet, Lasso, LinearRegression, Ridge
from tacit.estimators.stage import Facts, Stage
from tacit.kernels.rows import dense_margins
from tacit.preprocessing import PrivateEncoder, PrivateScaler
from tacit.preprocessing.coding import Coded, Reading
from tacit.privacy import Budget, Gate, Guarantee, Promise, Release
from tacit.problems.bounds import truths


class EncoderStage(Stage):
    """A `PrivateEncoder`: the width of what it hands on is not known before it has run."""

    solver = "encoder"

    def __init__(self, name: str, step: PrivateEncoder, facts: Facts) -> None:
        super().__init__(name, step)
        if facts.X is None:
            raise ValueError(f"step {name!r}, PrivateEncoder, must come before other private steps")
        self._reading: Reading = step._read(facts.X)
        self.releases = step._releases(self._reading, 1.0)
        self.values = 2 * max(len(self._reading.found), 1)
        in_parts = isinstance(facts.X, BlockTable)
        typed = facts.X.seen.truths if in_parts else truths(facts.X, trusted=step.trust_dtypes)
        self._truths = [self._reading.frame.names[k] for k in typed]
        exact, holes = not self._reading.found, bool(self._reading.voted)
        out = _layout(self._reading.planned, facts.n, self._reading.known, self._truths)
        self.out = replace(out, is_exact=exact, has_holes=holes)

    def follows(self, facts: Facts) -> bool:  # noqa: ARG002
        """Nothing comes before it that could be narrower."""
        return True

    def run(self, X: Any, gate: Gate) -> None:
        """Find the categories."""
        del X
        self.step._keep(self.step._run(self._reading, gate), None)

    @property
    def width(self) -> int:
        """As many as were found, or as planned for."""
        return max(sum(len(list(column.sources)) for column in self.step.columns_), 1)

    @property
    def made(self) -> Facts:
        """What came out."""
        return _layout(self.step.columns_, self.out.n, self.out.known, self._truths)

    def fill(self) -> None:
        """Hand on columns of zeros for what was not found: the table is as planned."""
        self.step._fill(self._reading)


def _layout(columns: tuple[Coded, ...], n: int, known: Any, truths: Sequence[str]) -> Facts:
    """The facts of a table that is encoded so, with its truth values; one without columns has a column of zeros."""
    sources = [source for column in columns for source in column.sources]
    passes = np.array([free for column in columns for free in column.free], dtype=np.bool_)
    names = tuple(source.column if free else "" for source, free in zip(sources, passes, strict=True))
    wide = passes & ~np.isin([source.column for source in sources], truths)
    low, high = np.where(wide, -np.inf, 0.0), np.where(wide, np.inf, 1.0)
    if not sources:
        return Facts(n, 1, None, known, ("",), np.zeros(1), np.ones(1))
    return Facts(n, len(sources), None, known, names, low, high)


class ScalerStage(Stage):
    """A `PrivateScaler`: columns in, columns out, all of them between -3 and 3."""

    solver = "scaler"

    def __init__(self, name: str, step: PrivateScaler, facts: Facts) -> None:
        super().__init__(name, step)
        self._bounds = step.bounds
        self._table, d = None, facts.d
        if isinstance(facts.X, BlockTable):
            step._check_parameters()
            facts.X.tell(step)
            d = facts.X.d
        else:
            known = step._validated(facts.known)
            self._table, d = (known, known.shape[1]) if facts.X is not None else (None, facts.d)
        self.releases, self.values = self._planned(replace(facts, d=d), strict=True), 100 * d
        self.out = self.after(replace(facts, d=d))

    def follows(self, facts: Facts) -> bool:
        """As long as there is something to find, or nothing: a column has its own histograms, in the same releases."""
        return len(self._planned(facts)) == len(self.releases)

    def follow(self, facts: Facts) -> None:
        """With what is known of the columns that there are."""
        self._planned(facts)

    def _planned(self, facts: Facts, *, strict: bool = False) -> tuple[Release, ...]:
        """What there is to find beside what is declared, here and by the steps before."""
        if self._table is None:
            self.step.bounds = merged(self.step, self._bounds, facts, strict=strict)
        return self.step._scale(facts.n, facts.d).releases(1.0)

    def after(self, facts: Facts) -> Facts:
        """As many columns, within the limit of three scales."""
        limit = np.full(facts.d, LIMIT)
        return Facts(facts.n, facts.d, None, _zeros(facts), None, -limit, limit, facts.is_exact)

    def run(self, X: Any, gate: Gate) -> None:
        """Find the scales."""
        X = X if self._table is None else self._table
        self.step.n_features_in_ = X.shape[1]
        rows = X.source(no_targets) if isinstance(X, BlockTable) else X
        self._scaling = self.step._scale(self.out.n, X.shape[1]).run(gate, rows)

    @property
    def width(self) -> int:
        """As many as reach it."""
        return len(self._scaling.scale)

    def transform(self, X: Any) -> Any:
        """Scaled columns."""
        rows = check_array(X, **FREELY) if self._table is None else self._table
        return self._scaling.transform(rows)

    def keep(self, promise: Promise, guarantee: Guarantee) -> None:
        """And the scales."""
        self.step._keep(self._scaling, guarantee)
        super().keep(promise, guarantee)


class ComponentsStage(Stage):
    """A `PCA`: as many columns out as it has components."""

    def __init__(self, name: str, step: PCA, facts: Facts, budget: Budget) -> None:
        super().__init__(name, step)
        step._check_parameters()
        if step._keeps_those_above_noise:
            raise ValueError(
                f"step {name!r}, PCA, must have a number of components: later steps are planned for so many columns,"
                " before n_components='noise' is known"
            )
        if facts.X is None and step.bounds is not None:
            step.bounds = merged(step, step.bounds, facts, strict=True)
        self._table, d = None, facts.d
        if isinstance(facts.X, BlockTable):
            facts.X.tell(step)
            d = facts.X.d
        else:
            known = canonical(step._validated(facts.known))
            self._table, d = (known, known.shape[1]) if facts.X is not None else (None, facts.d)
        task, solver = step._asked((facts.n, d), sparse=stays_sparse(self._table), streamed=facts.in_parts)
        self._task = replace(task, budget=budget)
        self._fit = arranged(self._task, solver)
        self.solver, self.releases, self.values = solver.name, self._fit.releases, task.most_values
        self.out = Facts(facts.n, task.k, None, _zeros(facts))

    def follows(self, facts: Facts) -> bool:
        """Only a table of the planned width: the matrix is as large as planned."""
        return facts.d == self._task.d

    def run(self, X: Any, gate: Gate) -> None:
        """Find the components."""
        X = X if self._table is None else self._table
        self.step.n_features_in_ = X.shape[1]
        with ThisMachine(math.inf) as place:
            rows = X.source(no_targets) if isinstance(X, BlockTable) else rows_of(X, place)
            result, units = self._fit.run(rows, gate)
        self._fitted = Fitted(result, units, gate.promise, gate.guarantee)
        self.step._keep(self._task, self._fitted)

    def transform(self, X: Any) -> Any:
        """Rows in the coordinates of the components; sums that no float holds are as large as one can be.

        Each row by itself, to the last bit: BLAS would let a row that is left out change how others are summed, and a
        next step could make much of it, a sign for instance.
        """
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names")  # which parts forget
            return np.nan_to_num(self.step._about_mean(_products(self.step._filled(X), self.step.components_)))


def _products(rows: Any, components: Floats) -> Floats:
    """Of each row and each component; SciPy's loops over sparse rows are one by one already."""
    if is_sparse(rows):
        return np.asarray(rows @ components.T)
    dense = np.ascontiguousarray(rows, dtype=np.float64)
    out = np.empty((len(components), len(dense)))
    for component, products in zip(components, out, strict=True):
        dense_margins(dense, 0.0, np.append(component, 0.0), products)
    return out.T


def _zeros(facts: Facts) -> Floats:
    """A column for checks, where none is known: of the rows that there are, which a test may make one less."""
    return np.zeros((2 if isinstance(facts.known, BlockTable) else facts.known.shape[0], 1))


MODELS = (LogisticRegression, LinearSVC, LinearRegression, Ridge, Lasso, ElasticNet)
PRIVATE: tuple[type, ...] = (PrivateEncoder, PrivateScaler, PCA, *MODELS)
"""The steps that spend a budget, by exact class."""

DEFAULT_SHARES: dict[type, float] = {PrivateEncoder: 0.1, PrivateScaler: 0.2, PCA: 0.3}
"""Parts of the budget (of mu^2) of steps that another private step follows; the last one has what is left."""


def staged(name: str, step: Any, facts: Facts, y: Any, budget: Budget) -> Stage:
    """A private step, planned for what is known of its table; what is bad raises here, before anything is released."""
    if type(step) is PrivateEncoder:
        return EncoderStage(name, step, facts)
    if type(step) is PrivateScaler:
        return ScalerStage(name, step, facts)
    if type(step) is PCA:
        return ComponentsStage(name, step, facts, budget)
    return LinearStage(name, step, facts, y, budget)
