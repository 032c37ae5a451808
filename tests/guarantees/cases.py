"""Every solver with every loss, adjacency and kind of data it serves, and pairs of neighbours for them.

A solver joins by being registered.
"""

import itertools
import math
from dataclasses import dataclass, replace
from functools import lru_cache
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, ZCDpEvent
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from scipy.sparse import csr_array

from tacit.estimators import fit
from tacit.privacy import Budget, Guarantee, Plan, Promise, Unit, events
from tacit.problems import LOSSES, Penalty
from tacit.problems.task import LinearTask
from tacit.solvers import SOLVERS, Solver, Text, gradient, objective

N, D, CLASSES = 24, 3, 3
ROUNDING = 1 + 1e-12  # of a distance that a test computes
quiet = pytest.mark.filterwarnings("ignore:.*(random_state is set|budget is too small):UserWarning")


class Request(NamedTuple):
    """All that a fit is told."""

    task: LinearTask
    solver: Solver
    seed: int | None = None

    @property
    def plan(self) -> Plan:
        """All releases of the fit, whose noise is left open."""
        return Plan(*fit.arranged(self.task, self.solver).releases)


@dataclass(frozen=True, eq=False)
class Fit:
    """What a linear model tells of its fit."""

    coef: Any
    coef_noise: Any
    intercept: Any
    clip_low: Any
    clip_high: Any
    y_bounds: tuple[float, float] | None
    path: tuple[Any, Any] | None
    plan: Promise
    guarantee: Guarantee


def private_fit(request, X, targets):
    """The path of a fit, with the model in the user's units."""
    fitted = fit.private_fit(request.task, request.solver, (X, targets), seed=request.seed)
    units = fitted.units
    model = units.model(fitted.result, request.task.penalty)
    told = model.coef, model.coef_noise, model.intercept, units.features.low, units.features.high, units.y_bounds
    return Fit(*told, model.path, fitted.promise, fitted.guarantee)


@dataclass(frozen=True)
class Case:
    """A solver, by its class, with what it is asked to serve; `wide` takes the form for many columns.

    A solver that samples is asked for few steps, on samples of a quarter of the rows or on all of them (`whole`); one
    with options of its own for those of a `variant`. `classes` asks for one class against the rest.
    """

    solver: Any
    loss: str
    adjacency: str
    sparse: bool = False
    declared: bool = False
    wide: bool = False
    whole: bool = False
    variant: str = ""
    classes: bool = False

    def __str__(self):
        words = (self.solver.name, self.loss, self.adjacency, "sparse" if self.sparse else "dense")
        flags = [name for name in ("declared", "wide", "whole", "classes") if getattr(self, name)]
        return " ".join((*words, *flags, *[self.variant] * bool(self.variant)))

    def request(self, epsilon=5.0, delta=1e-3, n=N, d=D, l2=0.01, fit_intercept=True, seed=None, **asked):
        """`asked`: a solver object in place of the case's own, l1, coef_bounds, l1_radius, bounds, class_weight."""
        task = LinearTask(
            unit=Unit("row", n),
            d=d,
            budget=Budget(epsilon, delta, self.adjacency),
            sparse=self.sparse,
            row_norm=20.0 if self.declared else None,
            bounds=asked.get("bounds"),
            loss=LOSSES[self.loss],
            outputs=CLASSES if self.is_multiclass else 1,
            fit_intercept=fit_intercept,
            penalty=Penalty(asked.get("l1", 0.0), l2, *asked.get("coef_bounds", ())),
            l1_radius=asked.get("l1_radius"),
            y_bounds=(-5.0, 5.0) if self.declared and self.loss == "squared" else None,
            class_weight=asked.get("class_weight"),
        )
        return Request(task, asked.get("solver") or self.made(n), seed)

    def made(self, n):
        """The solver object."""
        if self.variant:
            return self.solver(**(VARIANTS | DUAL_VARIANTS | SGD_VARIANTS)[self.variant])
        if not self.has_option("batch_size"):
            few = {"greedy": 5, "frank-wolfe": 12}.get(self.solver.name)
            return self.solver() if few is None else self.solver(n_iter=few)
        return self.solver(batch_size=n, n_passes=20) if self.whole else self.solver(batch_size=n // 4, n_passes=5)

    @property
    def start(self):
        """The coefficients and the intercept that a fit begins with."""
        solver = self.made(N)
        coef, intercept = getattr(solver, "coef_init", None), getattr(solver, "intercept_init", None)
        return np.zeros(D + 1) if coef is None else np.append(coef, intercept)

    def has_option(self, name):
        return name in signature(self.solver).parameters

    @property
    def planned(self):
        """What the solver releases with the whole budget."""
        task, solver, _ = self.request()
        return solver.at(task).releases(1.0)

    @property
    def text(self):
        """Whether the solver is for text, and takes sparse rows only."""
        return self.solver.serves.sparse_only

    @property
    def samples(self):
        return any(r.sampling < 1.0 for r in self.planned)

    @property
    def optimises(self):
        """Whether the solver minimises a penalised loss: one that does is scikit-learn without noise."""
        return self.solver.name not in ("one-shot", "frank-wolfe")

    @property
    def is_multiclass(self):
        return self.classes or self.loss == "multinomial"

    def releases(self, name):
        """Whether the solver plans a release of that name, or of that kind."""
        return any(name in (r.name, r.kind) for r in self.planned)

    @property
    def perturbs(self):
        """Whether noise enters through the objective: what is released is no sum over rows."""
        return self.releases("objective")

    @property
    def is_gaussian(self):
        """Whether all that the solver releases is Gaussian, of all rows."""
        return self.has_mu and not self.chooses

    @property
    def has_mu(self):
        """The same; or selections, which are zCDP as Gaussian releases are."""
        return not self.samples and not self.perturbs

    @property
    def chooses(self):
        """Whether the solver draws candidates by the exponential mechanism."""
        return self.releases("exponential")

    def store(self, table):
        return csr_array(table) if self.sparse else table

    def targets(self, margins):
        """Targets that follow the margins."""
        if self.is_multiclass:
            return np.digitize(margins, [-1.0, 1.0]).astype(np.float64)
        return 2.0 * margins + 1.0 if self.loss == "squared" else np.where(margins > 0, 1.0, -1.0)

    @property
    def far_targets(self):
        """Two targets as far apart as can be."""
        if self.is_multiclass:
            return 0.0, 2.0
        return (-1e6, 1e6) if self.loss == "squared" else (-1.0, 1.0)


# Every order, clipping and averaging of the coordinate solver, and constants that need no release; the rule's own are
# jittered, by rows and private. Parts of passes, and a start that is not zero.
START = {"coef_init": (0.5, -0.1, 1.0), "intercept_init": 2.0, "keep_path": True}
VARIANTS = {
    "cyclic periodic": {"order": "cyclic", "averaging": "periodic"},
    "coordinate clipping, last": {"clipping": "coordinate", "averaging": "last"},
    "random, two loops": {"order": "random", "clipping": "coordinate", "averaging": 2, "n_passes": 5},
    "cyclic coordinate clipping, tail": {"order": "cyclic", "clipping": "coordinate", "averaging": "tail"},
    "declared smoothness, three loops": {"smoothness": (1.0, 0.7, 0.2), "averaging": 3, "n_passes": 7, "clip": 0.4},
    "part of a pass": {"n_passes": 1.7, "averaging": "last", "order": "permuted"},
    "laplace smoothness": {"smoothness": "laplace", "smoothness_share": 0.3, "n_passes": 3},
    "few updates from a start": {"n_passes": 0.6, "clipping": "coordinate"} | START,
    "part of a pass from a start": {"n_passes": 2.75, "smoothness": (1.0, 0.7, 0.2)} | START,
}
# What the paper compares the dual solver with, and its inner step; steps that take all rows are in `test_dual`.
DUAL_VARIANTS = {
    "published": {"variant": "published", "batch_size": 6, "n_passes": 3, "clip": 0.5},
    "sequential": {"variant": "sequential", "batch_size": 5, "n_passes": 2, "clip": 0.5},
    "primal": {"variant": "primal", "batch_size": 2, "n_passes": 3, "clip": 1e-3},
    "newton": {"inner": "newton", "batch_size": 6, "n_passes": 3},
    "as asked": {"averaging": "last", "least_penalty": 0.0, "damping": 0.5, "batch_size": 6, "n_passes": 3},
}
# The papers' baseline, with everything set.
SGD_VARIANTS = {
    "plain": {
        **{"batch_size": 6, "n_passes": 3, "clip": 0.5, "learning_rate": 0.3},
        **{"momentum": 0.0, "averaging": "last"},
    },
}
BASIC = [
    Case(solver, loss.name, adjacency, whole=whole)
    for solver in SOLVERS.values()
    if not solver.serves.sparse_only
    for loss in solver.serves.losses
    for adjacency in solver.serves.adjacencies
    for whole in ((False, True) if "batch_size" in signature(solver).parameters else (False,))
]
# A solver that samples has many losses, and on all rows it is like others; solvers that work by columns are tested on
# them by themselves too: not all of it needs every kind of data.
CASES = [
    replace(case, sparse=s, declared=b)
    for case in BASIC
    for s in (False, True)
    for b in (False, True)
    if s == b
    or not (
        case.whole
        or (case.samples and case.loss not in ("squared", "logistic"))
        or case.solver.name in ("coordinate", "greedy")
    )
]
WITH_WIDE_FORM = {"gradient": gradient, "objective": objective}
WIDE = [
    replace(case, sparse=s, declared=True, wide=True)
    for case in BASIC
    if case.solver.name in WITH_WIDE_FORM
    for s in (False, True)
]
TEXT = [
    Case(Text, "logistic", adjacency, sparse=True, declared=b)
    for adjacency in Text.serves.adjacencies
    for b in (False, True)
]
COORDINATE = [case for case in BASIC if case.solver.name == "coordinate"]
TUNED = [  # losses, adjacencies and kinds of data take turns
    replace(COORDINATE[k % len(COORDINATE)], sparse=k % 2 == 1, declared=k % 4 > 1, variant=name)
    for k, name in enumerate(VARIANTS)
]
DUAL = [case for case in BASIC if case.solver.name == "dual" and not case.whole]
TUNED += [
    replace(case, sparse=k % 2 == 1, declared=j % 2 == 1, variant=name)
    for j, name in enumerate(DUAL_VARIANTS)
    for k, case in enumerate(DUAL)
    if name != "newton" or case.loss == "logistic"
]
TUNED += [
    replace(case, classes=True, sparse=case.loss == "hinge", declared=True, variant=name)
    for case in DUAL
    if LOSSES[case.loss] in case.solver.serves.multiclass
    for name in ("", "published", "sequential")
    if not name or case.loss == "hinge"
]
TUNED += [
    replace(case, sparse=k % 2 == 1, declared=k % 4 > 1, variant=name)
    for name in SGD_VARIANTS
    for k, case in enumerate(case for case in BASIC if case.solver.name == "sgd" and not case.whole)
]
GAUSSIAN = [case for case in BASIC if case.is_gaussian]
WITH_MU = [case for case in BASIC if case.has_mu]
SUMS = [case for case in BASIC if not case.perturbs]


def timed(cases):
    """The same, some of them for the long run only."""
    return [pytest.param(case, marks=[pytest.mark.slow] * is_long(case)) for case in cases]


def is_long(case):
    """Solvers that sample rows: each budget takes time to calibrate. Storages and declared bounds take turns, too."""
    quick = {"sgd": ("squared", "logistic"), "dual": ("squared",)}.get(case.solver.name, (case.loss,))
    repeats = case.sparse != case.declared and not (case.wide or case.text or case.variant)
    return case.loss not in quick or (case.whole and case.loss != "squared") or repeats


basic = pytest.mark.parametrize("case", timed(BASIC), ids=str)
every_case = pytest.mark.parametrize("case", timed(CASES + WIDE + TEXT), ids=str)
every_variant = pytest.mark.parametrize("case", timed(CASES + WIDE + TEXT + TUNED), ids=str)


def table(n=N, d=D, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.resize([1.0, 8.0, 0.2], d) + np.resize([0.0, 3.0, -0.5], d)
    return X * (rng.random((n, d)) < 0.8)


def sample(case, n=N, d=D, seed=0):
    X = table(n, d, seed)
    noise = np.random.default_rng(seed + 1).normal(size=n)
    return X, case.targets((X - X.mean(axis=0)) @ np.resize([1.0, -0.1, 3.0], d) + noise)


# Row 0 of one world and of the other, and whether its targets differ too.
PAIRS = {
    "nothing": ([0.0, 0.0, 0.0], [5.0, 50.0, -2.0], False),
    "huge": ([1e300, -1e300, 1e300], [-1e300, 1e300, 1e300], True),
    "one feature": ([40.0, 0.0, 0.0], [-40.0, 0.0, 0.0], True),
    "all features": ([3.0, 30.0, 1.0], [-3.0, -30.0, -1.0], False),
    "label": ([2.0, 20.0, 0.5], [2.0, 20.0, 0.5], True),
}


def pair_of_tables(case, name):
    one, other, relabel = PAIRS[name]
    low, high = case.far_targets
    worlds = []
    for row, target in ((one, low), (other, high if relabel else low)):
        X, targets = sample(case)
        X[0], targets[0] = row, target
        worlds.append((case.store(X), targets))
    return worlds


def fresh_fits(case, **options):
    """A mechanism from (X, targets) to a fit, with new noise each time it is called."""
    seeds = itertools.count()
    return lambda data: private_fit(case.request(seed=next(seeds), **options), *data)


def told(fit):
    """All that a fit tells, as one vector."""
    clip = [] if np.all(np.isinf(fit.clip_low)) else [fit.clip_low, fit.clip_high]
    bounds = [] if fit.y_bounds is None else [fit.y_bounds]
    return np.concatenate([fit.coef.ravel(), fit.intercept, *clip, *bounds])


def standardised(fit):
    """The same, as weights on the bounded data and logarithms of scales, which a linear audit sees better."""
    coef, intercept, scales = fit.coef, fit.intercept, []
    if np.all(np.isfinite(fit.clip_low)):
        centre, scale = (fit.clip_low + fit.clip_high) / 2, (fit.clip_high - fit.clip_low) / 6
        coef, intercept, scales = coef * scale, intercept + coef @ centre, [np.log(scale), centre / scale]
    if fit.y_bounds is not None:
        low, high = fit.y_bounds
        unit = (high - low) / 6
        coef, intercept = coef / unit, (intercept - (low + high) / 2) / unit
        scales += [[math.log(unit), low / unit]]
    return np.concatenate([coef.ravel(), intercept, *scales])


def claimed_mu(event):
    """From the noise alone: sqrt(sum of 1 / z^2) over Gaussian releases, of 2 rho over selections."""
    total = 0.0
    for leaf, times in events.walk(event):
        if isinstance(leaf, GaussianDpEvent):
            total += times / leaf.noise_multiplier**2
        elif isinstance(leaf, ZCDpEvent):
            total += times * 2.0 * leaf.rho
    return math.sqrt(total)


@lru_cache  # several cases plan the same event
def recomputed(event, delta):
    """Epsilon, by an accountant of `dp_accounting`."""
    kinds = {type(leaf) for leaf, _ in events.walk(event)}
    if ZCDpEvent not in kinds:
        accountant = PLDAccountant()
    elif PoissonSampledDpEvent in kinds:  # whose Renyi curve takes time, above all at large orders
        orders = [1.0 + np.geomspace(0.1, 1, 12), np.arange(2, 8, 0.25), np.arange(8, 64), np.arange(64, 400, 8)]
        accountant = RdpAccountant(orders=np.concatenate(orders))
    else:
        accountant = RdpAccountant(orders=1.0 + np.geomspace(0.01, 1e5, 2_000))
    return accountant.compose(event).get_epsilon(delta)
