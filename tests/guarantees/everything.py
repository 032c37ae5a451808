"""Everything in the library that releases something, on a small table each, and rows that try to be seen.

An entry runs on any number of records, for a number of rows that is declared: so a row can be really absent. Solvers
and PCA solvers join by being registered; a preprocessing step, a score or a protocol is listed here.
"""

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from sklearn.preprocessing import FunctionTransformer, Normalizer

from tacit.bounding import Centring, scales
from tacit.bounding.declared import DeclaredScale
from tacit.bounding.norms import MomentScale, NormScale
from tacit.bounding.scales import MagnitudeScale, PooledScale
from tacit.bounding.target import LabelScale
from tacit.bounding.templates import Reader
from tacit.estimators import PCA, LogisticRegression, joint, make_private_pipeline
from tacit.federated import FeatureSharing, Marginals, Sketching
from tacit.federated.protocols import bounds, protocol_for
from tacit.federated.protocols.base import Holding
from tacit.federated.protocols.bounds import one_entry_per_row
from tacit.federated.protocols.marginals import party as marginals_party
from tacit.federated.sketches import Sketch
from tacit.federated.study import Member, Study
from tacit.metrics.release import Asked, released_scores
from tacit.metrics.terms import Agreed
from tacit.preprocessing import PrivateEncoder, PrivateScaler
from tacit.preprocessing.summaries import released_sum
from tacit.privacy import Budget, Gate, NoiseSource, Plan, Release, Unit
from tacit.privacy.events import OBJECTIVE_RATIO
from tacit.privacy.mechanisms import Quantile
from tacit.problems import LOSSES
from tacit.problems.bounds import Bounds
from tacit.problems.task import ComponentsTask
from tacit.solvers import Coordinate, Dual, FrankWolfe, Greedy, classes, guard
from tacit.solvers.pca import PCA_SOLVERS, Stochastic, VarianceReduced
from tests.metrics.support import CASES as SCORES
from tests.metrics.support import LAWS
from tests.solvers.pca.support import table_of

from .cases import BASIC, CASES, CLASSES, TEXT, TUNED, WIDE, WITH_WIDE_FORM, Case, D, N, private_fit, sample
from .recorder import transcript
from .steps import LeakError, Missing, Step

ADJACENCIES = ("add-remove", "replace-one")
FIRST = 4  # of the hostile rows: others take the place of these
Record = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Entry:
    """What is run, the records that two worlds share, and rows that are put in or left out.

    Parameters
    ----------
    run : callable
        From records and the row that is missing among them, if any, to whatever the run returns.
    hostile : callable
        From what a run without the row returned, or None, to records.
    by_formula : mapping
        Releases whose stated sensitivity no row reaches, with the least that the argument for them allows.
    most : mapping
        Releases that no row may move by the whole of the stated sensitivity, with the part of it that one may.
    """

    name: str
    adjacency: str
    planned: Plan | Callable[[], Plan]  # where it takes a run to know it, it is asked for when it is needed
    records: Sequence[Record]
    run: Callable[[Sequence[Record], Missing | None], Any]
    hostile: Callable[[Any], Sequence[Record]]
    by_formula: Mapping[str, Callable[[list[Step]], float]] = field(default_factory=dict)
    most: Mapping[str, float] = field(default_factory=dict)
    case: Case | None = None  # of a fit

    def __str__(self) -> str:
        return f"{self.name}, {self.adjacency}"

    @property
    def group(self) -> str:
        """What runs, whatever the loss, the adjacency and the storage."""
        if self.case is None:
            return self.name.split(",")[0]
        form = self.case.variant if self.case.solver.name in ("dual", "sgd") else ""
        form = "wide" if self.case.wide else form
        form = self.name.removeprefix(str(self.case)).strip() or form
        return f"fit {self.case.solver.name}{', ' + form if form else ''}"

    @cached_property
    def plan(self) -> Plan:
        """All that will be released."""
        return self.planned() if callable(self.planned) else self.planned

    @property
    def releases(self) -> list[str]:
        """The names of what is planned; those of parties without the party."""
        return sorted({release.name.split("/")[-1] for release in self.plan.releases})

    @property
    def samples(self) -> bool:
        """Whether some releases are of samples."""
        return any(release.sampling < 1.0 for release in self.plan.releases)

    def neighbours(self, every: bool = False) -> Iterator[list[tuple[Step, Step]]]:
        """Releases of two worlds with one history, in pairs: the row first, in the middle and last.

        Add-remove: one world is without the row. The history comes from there, and rows are chosen in view of it; once
        more it comes from the world with the row. Replace-one: one row in place of another. Rows take turns between
        the places, but for those chosen in view of a run; those of a fit, unless `every` row is to replace each, take
        turns between the rows that they replace as well. Every second one has the same label: two rows are replaced by
        all rows of one label, the next two by all rows of the other.
        """
        n, rows = len(self.records) + 1, list(self.hostile(None))
        places = (0, n // 2, n - 1)
        if self.adjacency == "replace-one":
            in_view = self.hostile(self._run(rows[0], 0, None))[len(rows) :]
            for turn, row in enumerate([*rows[:FIRST], *in_view[:4]]):
                theirs = rows if every or self.case is None else rows[turn // 2 % 2 :: 2]
                yield from self.worlds(row, [*theirs, *in_view], places[turn % 3])
            return
        for turn, place in enumerate(places):

            def others(seen: Any, turn: int = turn) -> list[Record]:
                return [*rows[turn::3], *self.hostile(seen)[len(rows) :]]

            yield from self.worlds(None, others, place)
            yield from self.worlds(rows[turn], [None], place)

    def worlds(self, first: Any, others: Any, place: int) -> Iterator[list[tuple[Step, Step]]]:
        """The world with the row `first` (None: without a row), and those with each of the others."""
        missing, read = Missing(place, len(self.records) + 1), remembered()
        with read, transcript(coin=True, row=place, missing=missing if first is None else None) as history:
            seen = self._run(first, place, missing)
        for other in others(seen) if callable(others) else others:
            with read, transcript(history, missing=missing if other is None else None) as replayed:
                again = self._run(other, place, missing)
            if told(seen) != told(again):
                raise LeakError("what a run returns differs, where all that it released is the same")
            yield list(zip(history, replayed, strict=True))

    def without_the_coin(self) -> list[tuple[Step, Step]]:
        """Releases with and without a row that takes part in no sample: those of samples must be the same."""
        place = len(self.records) // 2
        missing = Missing(place, len(self.records) + 1)
        with transcript(coin=False, row=place, missing=missing) as history:
            self._run(None, place, missing)
        with transcript(history) as replayed:
            self._run(self.hostile(None)[3], place, missing)
        return [pair for pair in zip(history, replayed, strict=True) if pair[0].sampling < 1.0]

    def _run(self, row: Any, place: int, missing: Missing | None) -> Any:
        if row is None:
            return self.run(self.records, missing)
        return self.run([*self.records[:place], row, *self.records[place:]], None)


def remembered() -> Any:
    """Where histograms are read, what was read of the same numbers before is handed out again: replays repeat them."""
    known: dict[tuple[Any, ...], Any] = {}

    class Remembering(Reader):
        """Knows results by all that a reading is given, and by what was read first."""

        def first(self, counts: Any, noise: float) -> Any:
            self._key = self._n, noise, counts.tobytes()
            return self._again(self._key, super().first, counts, noise)

        def second(self, counts: Any, noise: float, rough: Any, top: Any) -> Any:
            key = *self._key, noise, counts.tobytes(), rough.tobytes(), top.tobytes()
            return self._again(key, super().second, counts, noise, rough, top)

        def _again(self, key: tuple[Any, ...], read: Callable[..., Any], *given: Any) -> Any:
            if key not in known:
                result = read(*given)
                known[key] = copy.deepcopy(result), dict(vars(self)) | {"_logs": self._logs.copy()}
            result, state = known[key]
            vars(self).update(state | {"_logs": state["_logs"].copy()})  # the one array that a later reading changes
            return copy.deepcopy(result)

    return patch.object(scales, "Reader", Remembering)


def told(result: Any) -> list[Any]:
    """All numbers and texts in what a run returns, to the last bit."""
    if isinstance(result, np.ndarray):
        return [result.shape, result.dtype.str, result.tobytes()]
    if isinstance(result, dict):
        return [part for key, value in result.items() for part in (key, *told(value))]
    if isinstance(result, list | tuple):
        return [part for value in result for part in told(value)]
    if is_dataclass(result) and not isinstance(result, type):
        return [part for f in fields(result) for part in (f.name, *told(getattr(result, f.name)))]
    if isinstance(result, float):
        return [result.hex()]
    return [repr(result)]


# --- fits ------------------------------------------------------------------------------------------------------------


ROWS = {
    "middle": [0.0, 3.0, -0.5],
    "one column": [1e6, 0.0, 0.0],
    "nothing": [0.0, 0.0, 0.0],
    "half of the columns": [-1e6, -1e6, 1e6],
    "far": [1e8, -1e8, 1e8],
    "huge": [1e300, -1e300, 1e300],
    "tiny": [1e-300, 1e-300, -1e-300],
    "spread": [3.0, 30.0, 1.0],
    "opposite": [-3.0, -30.0, -1.0],
    "other column": [0.0, -1e6, 0.0],
    "less of one": [40.0, 0.0, 0.0],
    "last column": [0.0, 0.0, 1e6],
    "all columns": [1e6, 1e6, 1e6],
    "all but the first": [-1e6, 1e6, 1e6],
    "no number": [math.nan, 1.0, -1e6],
}


def forms_of(case: Case, form: str = "") -> list[tuple[Any, str, Any]]:
    """What has to be patched: for many columns, one scale, class counts of few rows, the guard against much noise."""
    wide = [(WITH_WIDE_FORM[case.solver.name], "FULL_MATRIX", 1)] if case.wide else []
    many = [(classes, "ENOUGH", 0.0)] if form.startswith("classes") else []
    noisy = [(guard, "_NOISY", 0.0)] if form == "guarded" else []
    pooled = [(PooledScale, "is_due", staticmethod(lambda *_: True))] if form == "one scale" else []
    return [*wide, *many, *noisy, *pooled]


@contextmanager
def patches(forms: list[tuple[Any, str, Any]]) -> Iterator[None]:
    """All of them at once."""
    with ExitStack() as stack:
        for place, name, value in forms:
            stack.enter_context(patch.object(place, name, value))
        yield


def of_case(case: Case, n: int = N, form: str = "", **asked: Any) -> Entry:
    """A fit of n rows, of which one is the hostile one; perhaps of another form than the case's."""
    X, targets = sample(case, n=n - 1)
    records = list(zip(X, targets, strict=True))
    epsilon = 5e3 if case.perturbs else 50.0 if case.wide else 5.0  # weights so large that losses are steep
    request = case.request(**({"epsilon": epsilon, "n": n, "seed": 1} | asked))
    forms = forms_of(case, form)

    def run(records: Sequence[Record], missing: Missing | None) -> Any:
        del missing
        table, labels = np.array([x for x, _ in records]), np.array([t for _, t in records])
        with patches(forms):
            return private_fit(request, csr_array(table) if case.sparse else table, labels)

    def hostile(fit: Any) -> list[Record]:
        low, high = case.far_targets
        rows = [(np.array(row), (low, high)[k % 2]) for k, row in enumerate(ROWS.values())]
        rows += [(np.array(row), (high, low)[k % 2]) for k, row in enumerate(ROWS.values())]
        rows += [(X[5], targets[5]), (X[5], low), (X[5], 0.0 if case.loss == "squared" else high)]  # duplicates
        if fit is not None:  # along the weights that were found, where the loss is steep, and across them
            if case.loss == "multinomial":  # far on the side of a class and of another, with the label of the other
                apart = 1e6 * np.sign(fit.coef[int(low)] - fit.coef[int(high)])
                rows += [(apart, high), (-apart, low)]
            along, across = (1e6 * x / max(np.linalg.norm(x), 1e-300) for x in _across(fit.coef[0]))
            rows += [(along + 2 * across, low), (along - 2 * across, low)]  # steep both, and nearly opposite
            rows += [(1e6 * np.sign(fit.coef[0]), low), (-1e6 * np.sign(fit.coef[0]), high)]
            rows += [(along, low), (-along, high), (1e-3 * across, low)]
        return rows

    with patches(forms):
        plan = request.plan
    most = {"updates": math.sqrt(0.5)} if case.variant == "published" else {}
    formulas = _formulas(case) | (_MOMENTUM if form.startswith("momentum") else {})
    return Entry(" ".join([str(case), form]).strip(), case.adjacency, plan, records, run, hostile, formulas, most, case)


def _across(weights: Any) -> tuple[Any, Any]:
    """The weights, and a direction at a right angle to them."""
    return weights, np.array([weights[1], -weights[0], 0.0])


def _formulas(case: Case) -> dict[str, Callable[[list[Step]], float]]:
    """What the variants that stand for comparison state, and how far a search may stop from the minimiser."""
    options: Any = case.made(N)
    if case.variant == "published":
        return {"updates": lambda _: math.sqrt(2.0) * options.clip}
    if case.variant == "primal":
        return {"updates": lambda _: 2.0 * options.clip * math.sqrt(options.batch_size)}
    if case.variant == "sequential":
        size = options.batch_size
        return {"updates": lambda _: 2.0 * options.clip * math.sqrt(size * (size + 1))}
    if not case.perturbs:
        return {}
    doubled = 1.0 if case.adjacency == "add-remove" else 2.0

    def stopping_point(steps: list[Step]) -> float:
        linear = next(step for step in steps if step.name == "linear term")
        square = case.request().task.width  # of the norm of a row, the intercept included
        convexity = doubled * LOSSES[case.loss].curvature * square * linear.multiplier / OBJECTIVE_RATIO
        return 2e-6 * linear.noise / convexity  # twice the tolerance of the search over the strong convexity

    return {"stopping point": stopping_point}


# Steps over all rows, with momentum, have a release that no row of standardised columns can fill: its bound is the
# longest row over the least penalty.
_MOMENTUM: dict[str, Callable[[list[Step]], float]] = {"largest curvature": lambda _: 9.0 * (D + 1) / 2e-4}


def _class_forms(case: Case) -> Iterator[Entry]:
    """Class counts, a surplus of each class, and weights: at a budget at which weights are large."""
    declared = (2.0, 0.5, 1.0)[: CLASSES if case.is_multiclass else 2]
    if case.solver.name == "gradient":
        yield of_case(case, form="classes", epsilon=50.0)
        if not (case.is_multiclass and case.adjacency == "replace-one"):
            yield of_case(replace(case, sparse=True), form="classes", epsilon=1e3)
    large = 300.0 if case.solver.name == "gradient" and case.loss == "logistic" else 50.0  # slopes are to be steep
    yield of_case(case, form="classes, declared weights", epsilon=large, class_weight=declared)
    yield of_case(case, form="classes, balanced", epsilon=50.0, class_weight="balanced")


def _more_forms() -> Iterator[Entry]:
    """Options that lead to another form of a solver."""
    for case in BASIC:
        if case.solver.serves.weights and case.loss != "squared":
            yield from _class_forms(case)
        if case.solver.name == "gradient" and case.loss == "squared":
            for sparse in (False, True):
                yield of_case(replace(case, sparse=sparse), form="guarded")
        counted = case.solver.name in ("coordinate", "dual") and case.loss == "logistic"
        if counted and not (case.is_multiclass or case.declared or case.whole):
            yield of_case(case, form="classes", epsilon=50.0)
        if case.solver.name == "coordinate":
            for form, options in RAW_FORMS.items():
                raw = replace(case, sparse=form != "columns as they are")
                yield of_case(raw, form=form, bounds=ALL_DECLARED, solver=Coordinate(rescale=False, **options))
        if case.adjacency == "replace-one" or case.whole:
            continue
        if case.solver.name == "dual" and case.loss != "logistic":
            yield of_case(case, form="momentum", epsilon=1e6, solver=Dual(n_passes=8))
            yield of_case(case, form="momentum tail", epsilon=1e6, solver=Dual(n_passes=8, averaging="tail"))
        if case.solver.name == "coordinate":
            yield of_case(case, form="one scale")
        if case.solver.name == "greedy":
            yield of_case(case, form="laplace", solver=Greedy(n_iter=5, smoothness="laplace"))
        if not case.declared:
            yield of_case(case, form="declared columns", bounds=SOME_DECLARED)
        if case.solver.name == "frank-wolfe":
            for form, asked in VERTEX_FORMS.items():
                for sparse in (False, True):
                    yield of_case(replace(case, sparse=sparse), form=form, **asked)


def _loose_forms() -> Iterator[Entry]:
    """Where no row need reach what is stated: declared columns are not as wide as others can be, sparse rows short."""
    for case in BASIC:
        if case.solver.name == "gradient" and case.is_multiclass and case.adjacency == "replace-one":
            yield of_case(replace(case, sparse=True), form="classes", epsilon=1e3)
        if not case.declared and not case.whole:
            yield of_case(replace(case, sparse=True), form="declared columns", bounds=ALL_DECLARED)
            yield of_case(case, form="declared columns, no intercept", bounds=SOME_DECLARED, fit_intercept=False)
            if case.adjacency == "replace-one" or case.solver.name in ONE_OF_EACH_LAYOUT:
                yield of_case(case, form="columns declared from zero", bounds=FROM_ZERO)
    for case in [*BASIC, *TEXT]:
        if case.solver.name in (*ONE_OF_EACH_LAYOUT, "text") and not (case.declared or case.whole):
            yield of_case(replace(case, sparse=True), form="some declared columns", bounds=SOME_DECLARED)


ONE_OF_EACH_LAYOUT = ("coordinate", "frank-wolfe", "gradient")
SOME_DECLARED = Bounds(np.array([-2.0, -np.inf, -1.0]), np.array([2.0, np.inf, 3.0]))
FROM_ZERO = Bounds(np.array([0.0, -np.inf, -3.0]), np.array([2.0, np.inf, 0.0]))
ALL_DECLARED = Bounds(np.array([-2.0, -0.5, -1.0]), np.array([2.0, 4.0, 3.0]))
RAW_FORMS: dict[str, dict[str, Any]] = {
    "columns as they are": {},
    "columns as they are, laplace": {"smoothness": "laplace", "n_passes": 2.5},
}
VERTEX_FORMS: dict[str, dict[str, Any]] = {
    "two-level": {"solver": FrankWolfe(n_iter=12, sampler="two-level")},
    "gumbel": {"solver": FrankWolfe(n_iter=12, sampler="gumbel")},
    "declared entries": {"solver": FrankWolfe(n_iter=12, entry_bound=2.0), "l1_radius": 3.0},
}
FITS = [*(of_case(case) for case in CASES + WIDE + TEXT + TUNED), *_more_forms()]
LOOSE = [*_loose_forms()]


# --- PCA -------------------------------------------------------------------------------------------------------------


def _of_pca(
    solver: Any, adjacency: str, sparse: bool, declared: bool = False, form: str = "", bounds: Bounds | None = None
) -> Entry:
    """Centred, with nothing declared but perhaps bounds; or as it is, of a declared norm or bounds, two components."""
    n = 30
    budget = Budget(1.0, 1e-5, adjacency)  # type: ignore[arg-type]
    task = ComponentsTask(
        unit=Unit("row", n),
        d=2,
        budget=budget,
        sparse=sparse,
        row_norm=20.0 if declared and bounds is None else None,
        bounds=bounds,
        k=1 + declared,
        center=not declared,
    )
    bounding, algorithm = Centring(task), solver.at(task)
    plan = Plan(*bounding.releases, *algorithm.releases(bounding.left))
    rng = np.random.default_rng(1)
    records = [(x,) for x in rng.normal(size=(n - 1, 2)) * [2.0, 0.5] + 1.0]

    def run(records: Sequence[Record], missing: Missing | None) -> Any:
        del missing
        X: Any = np.array([x for (x,) in records])
        X = csr_array(X) if sparse else X
        with Gate(plan.calibrate(task.budget, task.unit, "test"), NoiseSource(3)) as gate:
            rows = bounding.run(table_of(X), gate)
            return rows.units, algorithm.run(rows, gate)

    def hostile(seen: Any) -> list[Record]:
        del seen
        turns = np.arange(12) * (math.pi / 12)  # a half turn: the opposite row has the same second moments
        far = [(50.0 * np.array([math.cos(t), math.sin(t)]),) for t in turns]
        return [
            *far,
            (np.array([-50.0, 0.0]),),
            (np.zeros(2),),
            (np.full(2, 1e-200),),
            (np.full(2, 1e200),),
            (np.array([math.nan, 50.0]),),
            (np.array([0.3, math.nan]),),
            (np.full(2, math.nan),),
            (np.array([math.inf, 0.0]),),
            records[3],
        ]

    kind = ("sparse" if sparse else "dense") + " declared" * declared
    return Entry(f"PCA {solver.name}{form and ' '}{form}, {kind}", adjacency, plan, records, run, hostile)


PCAS = [
    _of_pca(kind(), adjacency, sparse, declared)
    for kind in PCA_SOLVERS.values()
    for adjacency in kind.serves.adjacencies
    for sparse in (False, True)
    for declared in (False, True)
]
STEP_FORMS: dict[str, Any] = {
    "by gradients": Stochastic(n_iter=4, sampling_rate=0.5, step_size=0.5),
    "by gradients, declared clip": VarianceReduced(n_snapshots=2, n_inner=3, step_size=0.5, clip=0.8),
    "over all rows": VarianceReduced(n_snapshots=3, n_inner=2, sampling_rate=1.0),
}
PCAS += [
    _of_pca(solver, "add-remove", sparse, declared=sparse, form=form)
    for form, solver in STEP_FORMS.items()
    for sparse in (False, True)
]
PCA_BOUNDS = {
    "some columns": Bounds(np.array([-2.0, -np.inf]), np.array([4.0, np.inf])),
    "all columns": Bounds(np.array([-4.0, -3.0]), np.array([4.0, 3.0])),
}
PCAS += [
    _of_pca(PCA_SOLVERS["gauss"](), adjacency, sparse, form=f"with bounds of {form}", bounds=bounds)
    for form, bounds in PCA_BOUNDS.items()
    for adjacency in ADJACENCIES
    for sparse in (False, True)
]
LOOSE += [
    _of_pca(solver(), adjacency, sparse, form="with bounds of some columns", bounds=PCA_BOUNDS["some columns"])
    for name, solver in PCA_SOLVERS.items()
    for adjacency in solver.serves.adjacencies
    for sparse in (False, True)
    if name != "gauss"
]
LOOSE += [
    _of_pca(PCA_SOLVERS["gauss"](), adjacency, sparse, True, f"with bounds of {form}", bounds)
    for form, bounds in PCA_BOUNDS.items()
    for adjacency in ADJACENCIES
    for sparse in (False, True)
]


# --- preprocessing ---------------------------------------------------------------------------------------------------


def _of_step(
    name: str, adjacency: str, releases: Any, run_step: Callable[[Any, Any], Any], width: int = 3, epsilon: float = 5.0
) -> Entry:
    calibrated = Plan(*releases).calibrate(Budget(epsilon, 1e-3, adjacency), ROWS, "test")  # type: ignore[arg-type]
    records = [(x,) for x in np.random.default_rng(2).normal(size=(N - 1, width)) + 1.0]

    def run(records: Sequence[Record], missing: Missing | None) -> Any:
        del missing
        with Gate(calibrated, NoiseSource(4)) as gate:
            return run_step(gate, np.array([x for (x,) in records]))

    def hostile(seen: Any) -> list[Record]:
        del seen
        return [(np.array(row[:width]),) for row in ROWS.values()] + [
            (np.full(width, 7.0),), (np.full(width, -7.0),), (np.zeros(width),), records[2],
        ]  # fmt: skip

    return Entry(name, adjacency, calibrated.plan, records, run, hostile)


def _steps(adjacency: str) -> list[Entry]:
    grid = np.linspace(-5.0, 5.0, 21)
    scales = {
        "scale by magnitudes": MagnitudeScale(N, 3),
        "scale by magnitudes and means": MagnitudeScale(N, 3, means=True),
        "scale by one histogram": PooledScale(N, 3),
        "scale by moments": MomentScale(N, 3, 4.0),
        "scale of columns of which some are declared": DeclaredScale.of(N, SOME_DECLARED),
    }
    entries = [_of_step(name, adjacency, scale.releases(1.0), scale.run) for name, scale in scales.items()]
    norms = NormScale(N, 3)
    entries.append(
        _of_step("scale by norms", adjacency, norms.releases(1.0), lambda m, X: norms.run(m, np.abs(X).max(axis=1)))
    )
    target = LabelScale(N, noisy=True)
    for told, epsilon in (("in bins", 5.0), ("in windows", 1.0)):
        entries.append(
            _of_step(
                f"target {told}", adjacency, target.releases(1.0), lambda m, X: target.run(m, X[:, 0]), epsilon=epsilon
            )
        )
    mean = [Release("mean", "gaussian", share=1.0)]
    entries.append(_of_step("mean", adjacency, mean, lambda gate, X: released_sum(gate, X, N, 2.0)))
    quantile = [Release("quantile", "exponential", share=1.0)]
    entries.append(
        _of_step(
            "quantile", adjacency, quantile, lambda m, X: m.release("quantile", Quantile(0.6, grid, rows=N), X[:, 0])
        )
    )
    return entries


def _of_encoder(adjacency: str, name: str = "encoder", **told: Any) -> Entry:
    """Two columns of text and one of numbers, in which rows bring values of their own."""
    encoder = PrivateEncoder(max_categories=4, **told)
    records = [(("ab"[k % 2], "xyz"[k % 3], float(k)),) for k in range(N - 1)]

    def read(records: Sequence[Record]) -> Any:
        return encoder._read(pd.DataFrame([row for (row,) in records], columns=["one", "two", "three"]))

    budget = Budget(5.0, 1e-3, adjacency)  # type: ignore[arg-type]
    calibrated = Plan(*encoder._releases(read(records), 1.0)).calibrate(budget, Unit("row", N), "test")

    def run(records: Sequence[Record], missing: Missing | None) -> Any:
        del missing
        with Gate(calibrated, NoiseSource(4)) as gate:
            return encoder._run(read(records), gate)

    def hostile(seen: Any) -> list[Record]:
        del seen
        rows = [("alone", "mine", 1e300), ("a", "x", 0.0), ("1", "2.5", -1.0), ("c", "c", math.nan), ("", "?", 5.0)]
        return [(row,) for row in [*rows, ("a", None, 1.0), (None, None, 0.0), ("NA", "1e3", 0.0)]]

    return Entry(name, adjacency, calibrated.plan, records, run, hostile)


def _of_pipeline(name: str, adjacency: str, *steps: Any, first: str = "ab") -> Entry:
    """All steps in one budget, of N declared rows."""
    records = [((first[k % 2], "xyz"[k % 3], float(k % 5)), k // 2 % 2) for k in range(N - 1)]

    def pipeline() -> Any:
        return make_private_pipeline(*steps, epsilon=20.0, delta=1e-3, adjacency=adjacency, random_state=3)

    def run(records: Sequence[Record], missing: Missing | None) -> Any:
        del missing
        table = pd.DataFrame([row for row, _ in records], columns=["one", "two", "three"])
        with patch.object(joint, "rows_in", lambda _: N):
            model = pipeline().fit(table, np.array([label for _, label in records]))
        last = model[-1]
        kept = last.__dict__ if hasattr(last, "components_") else {"coef": last.coef_, "intercept": last.intercept_}
        return model[0].categories_, {
            key: value for key, value in kept.items() if isinstance(value, np.ndarray | float)
        }

    def hostile(seen: Any) -> list[Record]:
        del seen
        rows = [("alone", "mine", 1e300), ("a", "x", 0.0), ("b", "own", -1e6), ("c", "c", 1e6), ("", "?", 5.0)]
        rows += [("a", None, 1.0), (None, None, 0.0), ("1e300", "7", 0.0), ("x\x1by", "x\x1by", 0.0)]
        rows += [] if "by themselves" in name else [("a", "x", math.nan)]  # Normalizer takes no holes
        return [(row, label) for row in rows for label in (0, 1)]

    def plan() -> Plan:
        whole = [*records, records[0]]
        table = pd.DataFrame([row for row, _ in whole], columns=["one", "two", "three"])
        return pipeline().fit(table, [label for _, label in whole]).plan_.plan

    return Entry(f"pipeline {name}", adjacency, plan, records, run, hostile)


def _pipelines(adjacency: str) -> list[Entry]:
    def encoder() -> PrivateEncoder:
        return PrivateEncoder(max_categories=4)

    def parsing() -> PrivateEncoder:
        return PrivateEncoder(max_categories=4, parse=["one", "two"])

    told, bounds = {"classes": [0, 1]}, {"three": (-2.0, 2.0)}
    return [
        _of_pipeline("encoder, gradient", adjacency, encoder(), LogisticRegression(**told)),
        _of_pipeline("encoder, coordinate", adjacency, encoder(), LogisticRegression(solver="coordinate", **told)),
        _of_pipeline("encoder, scaler, gradient", adjacency, encoder(), PrivateScaler(), LogisticRegression(**told)),
        _of_pipeline("encoder, PCA", adjacency, encoder(), PCA(2)),
        _of_pipeline("encoder, PCA with bounds", adjacency, encoder(), PCA(2, bounds=bounds)),
        _of_pipeline(
            "encoder, scaler with bounds, gradient",
            adjacency,
            encoder(),
            PrivateScaler(bounds=bounds),
            LogisticRegression(**told),
        ),
        _of_pipeline(
            "encoder, rows by themselves, gradient",
            adjacency,
            encoder(),
            Normalizer(),
            FunctionTransformer(np.exp),
            LogisticRegression(**told),
        ),
        _of_pipeline("parsed columns, gradient", adjacency, parsing(), LogisticRegression(**told), first="12"),
        _of_pipeline(
            "parsed columns, scaler with bounds, PCA",
            adjacency,
            parsing(),
            PrivateScaler(bounds=bounds),
            PCA(2),
            first="12",
        ),
    ]


def _encoders(adjacency: str) -> list[Entry]:
    return [_of_encoder(adjacency), _of_encoder(adjacency, "encoder, parsed columns", parse=["one", "two"])]


STEPS = [entry for adjacency in ADJACENCIES for entry in [*_steps(adjacency), *_encoders(adjacency)]]


# --- scores ----------------------------------------------------------------------------------------------------------


def _of_score(name: str, law: str, adjacency: str) -> Entry:
    case = SCORES[name]

    def run(records: Sequence[Record], missing: Missing | None) -> Any:
        del missing
        return released_scores(
            [Asked(case.query, case.sums(records))],
            Agreed(1.0, 1e-6, adjacency, law, 0),
        )

    rows = [case.row, case.opposite, case.others[0]]
    plan = Plan(Release(case.query.name, law, share=1.0))  # type: ignore[arg-type]
    return Entry(f"score {name}, {law}", adjacency, plan, case.others, run, lambda _: rows)


EVALUATIONS = [_of_score(name, law, adjacency) for name in SCORES for law in LAWS for adjacency in ADJACENCIES]


# --- between organisations -------------------------------------------------------------------------------------------


@contextmanager
def without_the_row(missing: Missing, study: Study) -> Iterator[None]:
    """A party without a row: the agreed sketch has a column for it, which meets nothing there."""
    apply, back, target = Sketch.apply, Sketch.back, marginals_party._target

    def with_nothing(sketch: Sketch, columns: Any) -> Any:
        return apply(sketch, np.insert(np.asarray(columns), missing.row, 0.0, axis=0))

    def target_of_others(agreed: Any, holding: Holding, told: Any) -> Any:
        found = target(agreed, holding, told)
        of_all = len(found.values) == missing.n
        return replace(found, values=np.delete(found.values, missing.row)) if of_all else found

    def of_places(X: Any) -> Any:
        """Which entry a row speaks with goes by its place, which is public in a study."""
        return np.delete(one_entry_per_row(np.insert(X, missing.row, 0.0, axis=0)), missing.row)

    with ExitStack() as stack:
        for room in (bounds, marginals_party):
            stack.enter_context(patch.object(room, "one_entry_per_row", of_places))
        stack.enter_context(patch.object(Sketch, "apply", with_nothing))
        stack.enter_context(patch.object(marginals_party, "_target", target_of_others))
        if isinstance(study.protocol, FeatureSharing):
            stack.enter_context(patch.object(Sketch, "back", lambda s, v: np.delete(back(s, v), missing.row)))
        yield


def _of_study(name: str, study: Study) -> Entry:
    protocol = protocol_for(study)
    plan = protocol.plan()
    rng = np.random.default_rng(5)
    y = rng.choice([-1.0, 1.0], study.n_rows - 1)
    X = rng.uniform(0, 2, (study.n_rows - 1, 6)) * y[:, None]
    if study.outputs > 1:  # the second class is two
        y = np.where(y > 0.0, 0.0, rng.integers(1, study.outputs, len(y)))
    records = list(zip(X, y, strict=True))

    def run(records: Sequence[Record], missing: Missing | None) -> Any:
        table, labels = np.array([x for x, _ in records]), np.array([t for _, t in records])
        edges = np.cumsum([0, *(member.n_features for member in study.members)])
        holdings = {
            member.name: Holding(member.name, table[:, low:high], labels if member.labels else None)
            for member, low, high in zip(study.members, edges, edges[1:], strict=False)
        }
        calibrated = protocol.promise
        gates = {n: Gate(calibrated.part(f"{n}/"), NoiseSource(10 + k)) for k, n in enumerate(holdings)}
        memory: dict[str, dict[str, Any]] = {name: {} for name in holdings}
        rounds = protocol.coordinate()
        try:
            asked = next(rounds)
            while True:
                answers = {}
                for party, question in asked.items():
                    if "score" in question.arrays:  # of a coordinator that asks for most
                        question = replace(question, arrays={"score": np.full(len(question.arrays["score"]), 9.0)})
                    with nullcontext() if missing is None else without_the_row(missing, study):
                        answer = protocol.answer(holdings[party], question, gates[party], memory[party])
                    memory[party] |= answer.memory
                    answers[party] = answer.releases
                asked = rounds.send(answers)
        except StopIteration as end:
            return end.value

    def hostile(seen: Any) -> list[Record]:
        del seen
        one, other = np.array([9.0, 0, 0, 9.0, 0, 0]), np.array([0, 9.0, 0, 0, 9.0, 0])
        far = [one, 9.0 * np.resize([1.0, -1.0], 6), np.full(6, 9.0)]
        rows = [*far, other, *(-x for x in far), np.zeros(6), X[1], 1e150 * np.ones(6)]
        labels = (-1.0, 1.0) if study.loss == "logistic" else (-9.0, 9.0, 0.1, 0.9, -0.9, 1.6)
        labels = labels if study.outputs == 1 else tuple(map(float, range(study.outputs)))
        turns = 2 if study.outputs == 1 else 1
        return [(x, labels[k % turns]) for k, x in enumerate(rows)] + [(x, t) for x in (one, far[2]) for t in labels]

    return Entry(name, study.adjacency, plan, records, run, hostile)


def _studies(adjacency: str) -> list[Entry]:
    told: dict[str, Any] = {"y_bounds": (-2.0, 2.0), "entry_bound": 1.5, "sketch": Sketching(size=3)}
    told |= {"epsilon": 20.0, "l1_radius": 3.0, "delta": 1e-6, "adjacency": adjacency}
    told |= {"protocol": Marginals(n_selected=2, cross="sketched")}
    sharing = {"protocol": FeatureSharing(n_iter=4, geometry="best")}
    forms: dict[str, dict[str, Any]] = {
        "marginals study": {},
        "marginals study, all columns": {"protocol": Marginals(n_selected=3, cross="sketched")},
        "marginals study, sketched labels": {"labels": "sketched", "fit_intercept": False},
        "marginals study, products again": {"protocol": Marginals(n_selected=2), "epsilon": 50.0},
        "marginals study, sketched columns": {"epsilon": 1e4, "delta": 0.08},
        "marginals study, nothing declared": {"y_bounds": None, "entry_bound": None},
        "marginals study, logistic": {"loss": "logistic", "y_bounds": None, "classes": (-1, 1)},
        "marginals study, three classes": {"loss": "logistic", "y_bounds": None, "classes": (0, 1, 2)},
        "feature-sharing study, product": {"protocol": FeatureSharing(n_iter=4, geometry="product")},
        "feature-sharing study, serial": {"protocol": FeatureSharing(n_iter=4, geometry="serial")},
        "feature-sharing study, some blocks": {
            "protocol": FeatureSharing(n_iter=4, geometry="product", blocks=2, sampling="distributed", tau=1, seed=1)
        },
        "feature-sharing study, sets of blocks": {
            "protocol": FeatureSharing(
                n_iter=6, geometry="product", blocks=3, sampling=((0.5, (0, 1, 4)), (0.3, (2,)), (0.2, (3, 5)))
            )
        },
        "feature-sharing study, best": sharing,
        "feature-sharing study, sketched labels": sharing | {"labels": "sketched"},
        "feature-sharing study, logistic": sharing | {"loss": "logistic", "y_bounds": None, "classes": (-1, 1)},
    }
    entries = []
    for name, changes in forms.items():
        options = told | changes
        loss = options.pop("loss", "squared")
        holder = options.get("labels") == "sketched"
        members = tuple(Member(f"p{k}", 3, not holder or k == 1) for k in range(2))
        entries.append(_of_study(name, Study("study", loss, members, 12, **options)))
    return entries


STUDIES = [entry for adjacency in ADJACENCIES for entry in _studies(adjacency)]

LOOSE += [entry for adjacency in ADJACENCIES for entry in _pipelines(adjacency)]

EVERYTHING = FITS + PCAS + STEPS + EVALUATIONS + STUDIES
