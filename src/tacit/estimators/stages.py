"""The private steps of a pipeline: each says what it will release before any of them runs.

A step is planned for the public width of the table that will reach it: the columns that pass, declared categories, and
`max_categories` for each column whose categories are still to be found. So everything the plan fixes is known before
the encoder has released anything. The table that comes out may be narrower. Then the model follows with its clips and
scales, if its algorithm can (`Algorithm.narrowed`); else columns of zeros stand for what was not found.
"""

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit._types import Floats
from tacit.blocks.table import Table, canonical
from tacit.bounding.magnitudes import LIMIT
from tacit.estimators.base import PrivateLinearModel
from tacit.estimators.classifiers import LinearSVC, LogisticRegression
from tacit.estimators.fit import Arranged, Fitted, arranged
from tacit.estimators.pca import PCA
from tacit.estimators.regressors import ElasticNet, Lasso, LinearRegression, Ridge
from tacit.preprocessing import PrivateEncoder, PrivateScaler
from tacit.preprocessing.coding import Coded, Reading
from tacit.privacy import Budget, Gate, Guarantee, Promise, Release
from tacit.problems.bounds import declared_pairs
from tacit.problems.task import LinearTask
from tacit.solvers import Solver, choose


@dataclass(frozen=True, eq=False)
class Facts:
    """What is known of the table that will reach a step.

    Parameters
    ----------
    n, d : int
        Rows, and the most columns that there can be.
    X : table or None
        The table itself, where no private step comes before.
    known : array
        Columns that will be among it, for checks that must come before any release.
    names : tuple of str, optional
        Of the columns, where an encoder made them.
    low, high : array, optional
        What columns lie between; infinite where that is not known.
    is_exact : bool, default=True
        Whether there will be `d` columns, and not fewer.
    has_holes : bool, default=False
        Whether cells can be NaN that the checks do not see: those of columns on which the rows vote.
    """

    n: int
    d: int
    X: Any
    known: Any
    names: tuple[str, ...] | None = None
    low: Floats | None = None
    high: Floats | None = None
    is_exact: bool = True
    has_holes: bool = False


class Stage(ABC):
    """A private step in a pipeline."""

    solver: str  # in the words of the guarantee
    releases: tuple[Release, ...]  # with shares that add up to 1
    values: int  # no release holds more numbers
    out: Facts  # what is known of the table that it hands on

    def __init__(self, name: str, step: Any) -> None:
        self.name, self.step = name, step

    @abstractmethod
    def follows(self, facts: Facts) -> bool:
        """Whether the planned releases can be made on a table of fewer columns, of which these facts hold."""

    def follow(self, facts: Facts) -> None:
        """Work on such a table, or on one as planned: there is nothing to change but for a model."""
        del facts

    def after(self, facts: Facts) -> Facts:  # noqa: ARG002
        """What it then hands on."""
        return self.out

    @abstractmethod
    def run(self, X: Any, gate: Gate) -> None:
        """Make the releases."""

    def transform(self, X: Any) -> Any:
        """The table for the next step, as an array."""
        out = self.step.transform(X)
        return out.to_numpy() if hasattr(out, "to_numpy") else out

    def keep(self, promise: Promise, guarantee: Guarantee) -> None:
        """What the step states: the guarantee of the whole, with its own solver."""
        self.step.plan_ = replace(promise, solver=self.solver)
        self.step.guarantee_ = replace(guarantee, solver=self.solver)


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
        frame, columns = self._reading.frame, self._reading.planned
        numbers = [frame.numbers(k) for k, column in enumerate(columns) if column.categories is None]
        known = np.column_stack(numbers) if numbers else np.zeros((frame.n, 1))
        exact, holes = not self._reading.found, bool(self._reading.voted)
        self.out = replace(_layout(columns, facts.n, known), is_exact=exact, has_holes=holes)

    def follows(self, facts: Facts) -> bool:  # noqa: ARG002
        """Nothing comes before it that could be narrower."""
        return True

    def run(self, X: Any, gate: Gate) -> None:
        """Find the categories."""
        del X
        self.step._keep(self.step._run(self._reading, gate), None)

    @property
    def made(self) -> Facts:
        """What came out."""
        return _layout(self.step.columns_, self.out.n, self.out.known)

    def fill(self) -> None:
        """Hand on columns of zeros for what was not found: the table is as planned."""
        self.step._fill(self._reading)


def _layout(columns: tuple[Coded, ...], n: int, known: Any) -> Facts:
    """The facts of a table that is encoded so; one without columns has a column of zeros."""
    sources = [source for column in columns for source in column.sources]
    passes = np.array([free for column in columns for free in column.free], dtype=np.bool_)
    names = tuple(source.column if free else "" for source, free in zip(sources, passes, strict=True))
    low, high = np.where(passes, -np.inf, 0.0), np.where(passes, np.inf, 1.0)
    if not sources:
        return Facts(n, 1, None, known, ("",), np.zeros(1), np.ones(1))
    return Facts(n, len(sources), None, known, names, low, high)


class ScalerStage(Stage):
    """A `PrivateScaler`: columns in, columns out, all of them between -3 and 3."""

    solver = "scaler"

    def __init__(self, name: str, step: PrivateScaler, facts: Facts) -> None:
        super().__init__(name, step)
        _check_whole(name, step, facts)
        known = step._validated(facts.known)
        self._table = known if facts.X is not None else None
        d = facts.d if self._table is None else known.shape[1]
        self.releases, self.values = step._scale(facts.n, d).releases(1.0), 100 * d
        self.out = self.after(replace(facts, d=d))

    def follows(self, facts: Facts) -> bool:  # noqa: ARG002
        """Always: a column has its own histograms, in the same releases."""
        return True

    def after(self, facts: Facts) -> Facts:
        """As many columns, within the limit of three scales."""
        limit = np.full(facts.d, LIMIT)
        return Facts(facts.n, facts.d, None, _zeros(facts), None, -limit, limit, facts.is_exact)

    def run(self, X: Any, gate: Gate) -> None:
        """Find the scales."""
        X = X if self._table is None else self._table
        self.step.n_features_in_ = X.shape[1]
        self._scaling = self.step._scale(self.out.n, X.shape[1]).run(gate, X)

    def transform(self, X: Any) -> Any:
        """Scaled columns."""
        return self._scaling.transform(X if self._table is None else self._table)

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
        _check_whole(name, step, facts)
        known = _table(step._validated(facts.known), facts.n)
        self._table = known if facts.X is not None else None
        task, solver = step._asked(self._table or Table.of(np.broadcast_to(0.0, (facts.n, facts.d))), streamed=False)
        self._task = replace(task, budget=budget)
        self._fit = arranged(self._task, solver)
        self.solver, self.releases, self.values = solver.name, self._fit.releases, task.most_values
        self.out = Facts(facts.n, task.k, None, _zeros(facts))

    def follows(self, facts: Facts) -> bool:
        """Only a table of the planned width: the matrix is as large as planned."""
        return facts.d == self._task.d

    def run(self, X: Any, gate: Gate) -> None:
        """Find the components."""
        table = self._table or _table(X, self.out.n)
        self.step.n_features_in_ = table.d
        result, units = self._fit.run(table, gate)
        self._fitted = Fitted(result, units, gate.promise, gate.guarantee)
        self.step._keep(self._task, self._fitted)

    def transform(self, X: Any) -> Any:
        """Rows in the coordinates of the components; sums that no float holds are as large as one can be."""
        with np.errstate(all="ignore"):
            return np.nan_to_num(super().transform(X))


def _check_whole(name: str, step: Any, facts: Facts) -> None:
    """Refuse a step that takes no missing values where a cell of one person could be one, and stop it half way."""
    if facts.has_holes:
        raise ValueError(
            f"step {name!r}, {type(step).__name__}, takes no missing values, and in a column that PrivateEncoder is to"
            " parse a cell of the other kind is one: give the column its type beforehand, or leave the step out"
        )


def _zeros(facts: Facts) -> Floats:
    """A column for checks, where none is known: of the rows that there are, which a test may make one less."""
    return np.zeros((facts.known.shape[0], 1))


def _table(X: Any, n: int) -> Table:
    """The rows, of which there are n by what is public."""
    return replace(Table.of(canonical(X)), n=n)


class LinearStage(Stage):
    """A linear model, which comes last."""

    def __init__(self, name: str, step: PrivateLinearModel, facts: Facts, y: Any, budget: Budget) -> None:
        super().__init__(name, step)
        self._bounds, self._budget, self._facts = step.bounds, budget, facts
        X, self._y = step._validated(facts.known, y)
        if not facts.is_exact:
            _check_same_for_all(name, step)
        self._table = X if facts.X is not None else None
        self._task, self._targets = self._asked(facts)
        solver = choose(step.solver, self._task)
        self._fit = arranged(self._task, solver)
        self.solver, self.releases, self.values = solver.name, self._fit.releases, self._task.most_values
        self.out = facts

    def follows(self, facts: Facts) -> bool:
        """Where the algorithm does, with the same releases."""
        return facts.d == self._facts.d or self._narrowed(facts) is not None

    def follow(self, facts: Facts) -> None:
        """With clips and scales for the columns that there are."""
        self._task, _ = self._asked(facts)
        self._fit = self._fit if facts.d == self._facts.d else self._narrowed(facts) or self._fit

    def run(self, X: Any, gate: Gate) -> None:
        """Find the weights."""
        table = X if self._table is None else self._table
        self.step.n_features_in_ = table.shape[1]
        result, units = self._fit.run((table, self._targets), gate)
        self._fitted = Fitted(result, units, gate.promise, gate.guarantee)

    def keep(self, promise: Promise, guarantee: Guarantee) -> None:
        """And the model."""
        super().keep(promise, guarantee)
        fitted = replace(self._fitted, promise=self.step.plan_, guarantee=self.step.guarantee_)
        self.step._learned(self._task, fitted)

    def _asked(self, facts: Facts) -> tuple[LinearTask, Floats]:
        """The public facts of the fit, for the model's own part of the budget."""
        shape = self._table
        if shape is None:
            shape = np.broadcast_to(0.0, (facts.n, facts.d))
            self.step.bounds = _merged(self.step, self._bounds, facts, strict=facts is self._facts)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of delta, of which the pipeline has warned
            task, targets = self.step._asked(shape, self._y)
        return replace(task, budget=self._budget), targets

    def _narrowed(self, facts: Facts) -> Arranged | None:
        task, _ = self._asked(facts)
        return self._fit.narrowed(task)


def _check_same_for_all(name: str, step: PrivateLinearModel) -> None:
    """Refuse what is told of each feature where nobody knows beforehand how many there will be."""
    options = step.solver.get_params() if isinstance(step.solver, Solver) else {}
    low, high = (0.0, 0.0) if step.coef_bounds is None else step.coef_bounds
    told: dict[str, Any] = {key: getattr(step, key, 0.0) for key in ("C", "alpha")} | options
    told["coef_bounds"] = low if np.ndim(low) else high
    for key, value in told.items():
        if np.ndim(value):
            raise ValueError(
                f"step {name!r} has {key} with a number for each feature, and how many there are is not known before"
                " PrivateEncoder has found the categories: give one number, or declare the categories"
            )


def _merged(step: Any, told: Any, facts: Facts, *, strict: bool) -> Any:
    """What is declared of a model's columns, with what the steps before it know: by the numbers of columns.

    Where `strict`, before anything is released, bounds of a column that cannot be there are refused.
    """
    pairs = declared_pairs(told)
    if facts.low is None or facts.high is None or step.row_norm is not None:
        return told
    if facts.names is None and pairs is not None:
        raise ValueError("bounds of columns that PrivateScaler scales are -3 and 3: declare none on the model")
    known = {k: (float(low), float(high)) for k, (low, high) in enumerate(zip(facts.low, facts.high, strict=True))}
    known = {k: pair for k, pair in known.items() if math.isfinite(pair[0])}
    free = {name: k for k, name in enumerate(facts.names or ()) if k not in known}
    if isinstance(pairs, tuple):
        known |= dict.fromkeys(free.values(), pairs)
    elif pairs:
        if not isinstance(told, Mapping) or not all(isinstance(key, str) for key in pairs):
            raise ValueError("bounds of what PrivateEncoder makes go by name: bounds={'age': (17, 90)}")
        unknown = sorted(set(pairs) - set(free))
        if unknown and strict:
            raise ValueError(f"bounds names the column {unknown[0]!r}, which is not a number that reaches the model")
        known |= {free[name]: pair for name, pair in pairs.items() if name in free}
    return known or None


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
