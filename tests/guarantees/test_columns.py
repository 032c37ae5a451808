"""What one row can change in solvers that work by columns: never more than they say, on any history.

The bound of a pass with clipped rows is a bound on a sum: a row may change one derivative by all of the clip, or all of
them a little. Here random rows (huge ones, tiny ones, those whose norm overflows) are put against others and against
nothing, on the histories of wild and of calm runs; then the two rows that come closest to the bound are audited; then
mistakes of the kinds that such a solver invites are made, and caught.
"""

import itertools
import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csc_array

from tacit.blocks import Bounded
from tacit.privacy import Budget, Gate, NoiseSource, Plan, Unit, audit
from tacit.problems import LOSSES, Penalty
from tacit.problems.bounds import Bounds
from tacit.problems.task import LinearTask
from tacit.solvers import Coordinate, Greedy, Solver, coordinate
from tacit.solvers.coordinate.columns import Columns

from .cases import ROUNDING, claimed_mu, quiet
from .recorder import transcript, twin
from .worlds import evidence, half_the_noise, mu_between, two_worlds, wrong_noise

pytestmark = quiet

ADJACENCIES = ("add-remove", "replace-one")
every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)
NOTHING = 1e300  # a row of such numbers has no norm: it is silenced, as if it were not there
wild = st.one_of(
    st.floats(-3.0, 3.0),
    st.sampled_from([0.0, 3.0, -5.0]),
    st.floats(-1e140, 1e140),
    st.floats(-1e-150, 1e-150),
    st.just(NOTHING),
)


def task_of(n, d, adjacency, loss="squared", fit_intercept=False, epsilon=5.0, sparse=False, bounds=None):
    return LinearTask(
        unit=Unit("row", n),
        d=d,
        budget=Budget(epsilon, 1e-3, adjacency),
        sparse=sparse,
        loss=LOSSES[loss],
        fit_intercept=fit_intercept,
        bounds=bounds,
    )


def rows_of(Z, targets):
    return Bounded(Z, targets, Penalty(l2=np.zeros(Z.shape[1]), l1=np.zeros(Z.shape[1])))


@dataclass(frozen=True, eq=False)
class Run:
    """A solver with the whole budget, on rows that need not be bounded; new noise each time."""

    task: LinearTask
    solver: Solver
    penalty: Penalty | None = None

    @cached_property
    def calibrated(self):
        releases = self.solver.at(self.task).releases(1.0)
        return Plan(*releases).calibrate(self.task.budget, self.task.unit, "test")

    @cached_property
    def seeds(self):
        return itertools.count()

    @property
    def claim(self):
        return claimed_mu(self.calibrated.event)

    def __call__(self, rows):
        data = rows if self.penalty is None else replace(rows, penalty=self.penalty)
        with Gate(self.calibrated, NoiseSource(next(self.seeds))) as gate:
            return self.solver.at(self.task).run(data, gate).weights[0]


def most_moved(pairs):
    """The largest change of a release that two worlds differ by, as a part of what noise covers.

    Values of a walk are known after rounding to the grid, which the noise covers as well.
    """
    parts = []
    for step, other in pairs:
        rounding = 0.0 if step.tape is None else step.tape.step * math.sqrt(step.freedom) / step.sensitivity
        parts.append(step.moved(other) - rounding)
    return max(parts)


# --- any rows, any history --------------------------------------------------------------------------------------------


@st.composite
def runs(draw, solver, clipping="row"):
    """A solver's run with what a user may set, and two tables that differ in row 0."""
    d, n = draw(st.integers(1, 4)), draw(st.integers(2, 6))
    adjacency, loss = draw(st.sampled_from(ADJACENCIES)), draw(st.sampled_from(solver.serves.losses)).name
    # The largest entry, which greedy goes by, does not overflow: there nothing is a row of zeros, without an intercept.
    silenced = solver is Coordinate
    fit_intercept, sparse = draw(st.booleans()) and (silenced or adjacency == "replace-one"), draw(st.booleans())
    options = {"step": draw(st.sampled_from([None, 0.1, 100.0])), "clip": draw(st.sampled_from([None, 1e-3, 1.0, 1e3]))}
    if solver is Coordinate:
        orders = [None, "permuted", "cyclic"] + ["random"] * (clipping == "coordinate")
        options |= {"order": draw(st.sampled_from(orders)), "clipping": clipping}
        options["n_passes"] = draw(st.sampled_from([1, 2, 3, 0.2, 0.7, 1.5]))
        options["averaging"] = draw(st.sampled_from([None, "last", "periodic", 2]))
        if draw(st.booleans()):
            options["coef_init"] = [draw(st.sampled_from([0.0, 0.5, -20.0, 1e80])) for _ in range(d)]
    else:
        options["n_iter"] = draw(st.integers(1, 4))
    epsilon = draw(st.sampled_from([0.01, 1.0, 30.0, 1e5]))
    if draw(st.booleans()):
        options["smoothness"] = tuple(draw(st.sampled_from([1e-6, 0.3, 1.0, 40.0, 1e8])) for _ in range(d))
    elif epsilon == 1.0 and draw(st.booleans()):
        options["smoothness"] = "laplace"
    bounds = Bounds(-np.ones(d), np.full(d, 2.0)) if silenced and draw(st.booleans()) else None
    if bounds is not None:
        options["rescale"] = draw(st.booleans())
    task = task_of(n, d, adjacency, loss, fit_intercept, epsilon, sparse, bounds)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    l2, l1 = rng.random((2, d)) * draw(st.sampled_from([0.0, 1.0]))
    low, high = draw(st.sampled_from([(-math.inf, math.inf), (0.0, math.inf), (-0.1, 2.0), (1e6, 1e9)]))
    run = Run(task, solver(**options), Penalty(l2=l2, l1=l1, low=low, high=high))
    Z = np.clip(rng.normal(size=(n, d)), -3.0, 3.0)
    targets = np.clip(rng.normal(size=n), -3.0, 3.0) if loss == "squared" else rng.choice([-1.0, 1.0], size=n)
    worlds = []
    for world in range(2):
        one, label = Z.copy(), targets.copy()
        one[0] = draw(st.lists(wild, min_size=d, max_size=d))
        if world and adjacency == "add-remove":
            one[0] = NOTHING if fit_intercept or (silenced and draw(st.booleans())) else 0.0
        elif draw(st.booleans()):
            label[0] = -label[0]
        worlds.append(rows_of(csc_array(one) if sparse else one, label))
    return run, worlds


FORMS = ((Coordinate, "row"), (Coordinate, "coordinate"), (Greedy, "row"))


@pytest.mark.parametrize(("solver", "clipping"), FORMS)
@given(data=st.data())
@settings(derandomize=True, deadline=None, max_examples=150, database=None)
def test_no_row_changes_a_release_by_more_than_it_says(solver, clipping, data):
    run, worlds = data.draw(runs(solver, clipping))
    if data.draw(st.booleans()):
        worlds.reverse()
    pairs = two_worlds(run, *worlds)
    assert most_moved(pairs) <= 1.0 + 1e-12
    if clipping == "coordinate":  # no value by more than the unit that it is noised in
        for step, other in (pair for pair in pairs if pair[0].name != "smoothness"):
            one = 2.0 if run.task.budget.adjacency == "replace-one" else 1.0
            assert np.abs(step.exact - other.exact).max() <= one + step.tape.step
            assert step.sensitivity == pytest.approx(one * math.sqrt(len(step.exact)))


# --- the two rows that come closest to the bound ----------------------------------------------------------------------

# The features of row 0, which has an intercept too: on the bound in one of them, or spread over all; or none.
CLOSEST = {"one coordinate": [30.0, 0.0], "spread": [1.0, 1.0], "intercept alone": [0.0, 0.0]}


def closest_rows(name, adjacency, n=40):
    """Others balance each other, so that weights stay near 0 and row 0 has a derivative far above its limits.

    Against nothing, or the opposite of the row: the same features and, as the intercept's entry is 1, another label.
    """
    Z = np.tile([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]], (n // 4, 1))
    targets = np.repeat([-3.0, 3.0], n // 2)
    Z[0] = CLOSEST[name]
    other, labels = Z.copy(), targets.copy()
    if adjacency == "add-remove":
        other[0] = NOTHING
    else:
        labels[0] = -labels[0]
    return rows_of(Z, targets), rows_of(other, labels)


def few_passes(adjacency, **options):
    """Few passes with declared constants, so that the passes have all of the budget."""
    given = {"n_passes": 3, "clip": 0.1, "smoothness": (1.0, 1.0)} | options
    return Run(task_of(40, 2, adjacency, fit_intercept=True), Coordinate(**given))


@every_adjacency
@pytest.mark.parametrize("name", ["one coordinate", "spread"])
@pytest.mark.parametrize("order", ["jittered", "permuted", "cyclic"])
def test_the_closest_rows_take_all_of_mu_and_not_more(name, adjacency, order):
    run = few_passes(adjacency, order=order)
    rows, other = closest_rows(name, adjacency)
    for worlds in ((rows, other), (other, rows)):
        found = mu_between(two_worlds(run, *worlds))
        assert 0.998 * run.claim <= found <= run.claim * ROUNDING


@every_adjacency
@pytest.mark.parametrize("passes", [3, 2.34, 0.67])
@pytest.mark.parametrize("order", ["permuted", "random"])
def test_clipping_by_coordinate_is_tight_for_a_row_that_fills_all_of_them(adjacency, order, passes):
    run = few_passes(adjacency, order=order, clipping="coordinate", n_passes=passes)
    rows, other = closest_rows("spread", adjacency)
    assert 0.999 * run.claim <= mu_between(two_worlds(run, rows, other)) <= run.claim * ROUNDING


@pytest.mark.slow
@every_adjacency
def test_the_best_test_finds_no_more_than_is_claimed_and_half_the_noise(adjacency):
    """The likelihood ratio of the transcript, in both worlds; `test_audits` has a row that is spread over all."""
    run = few_passes(adjacency, n_passes=1)
    rows, other = closest_rows("one coordinate", adjacency)
    mechanism = evidence(run, rows, other)

    def found(confidence):
        outputs = audit.run(mechanism, rows, other, 400)
        return audit.mu_lower_bound(outputs, confidence=confidence, score=lambda ratios: ratios[:, 0])

    assert run.claim / 4 <= found(0.999) <= run.claim
    with half_the_noise():
        assert found(0.99) > run.claim


# --- mistakes are caught ----------------------------------------------------------------------------------------------


@every_adjacency
def test_an_intercept_that_is_not_bounded_is_caught(adjacency, monkeypatch):
    limits = Columns.limits

    def forgetful(self, *bounds, **norm):
        honest = limits(self, *bounds, **norm)
        honest[1] *= 1e6
        return honest

    monkeypatch.setattr(Columns, "limits", forgetful)
    for name in CLOSEST:
        assert most_moved(two_worlds(few_passes(adjacency), *closest_rows(name, adjacency))) > 1.2


@every_adjacency
def test_an_intercept_that_is_not_counted_is_caught(adjacency, monkeypatch):
    monkeypatch.setattr(coordinate.math, "hypot", lambda *_: 1.0)
    for name in ("one coordinate", "spread"):
        assert most_moved(two_worlds(few_passes(adjacency), *closest_rows(name, adjacency))) > 1.02


@every_adjacency
def test_visiting_a_coordinate_twice_in_a_pass_is_caught(adjacency, monkeypatch):
    monkeypatch.setattr(coordinate, "coordinates", lambda *_: np.array([0, 0, 2], dtype=np.int64))
    assert most_moved(two_worlds(few_passes(adjacency), *closest_rows("one coordinate", adjacency))) > 1.3


@every_adjacency
def test_a_part_of_a_pass_with_less_noise_than_its_updates_cost_is_caught(adjacency, monkeypatch):
    """By rows one update can take all of the bound; by coordinates k of them cost sqrt(k)."""
    rows, other = closest_rows("spread", adjacency)
    capped = few_passes(adjacency, clipping="coordinate", n_passes=0.67)
    one = few_passes(adjacency, order="cyclic", n_passes=0.34)
    assert most_moved(two_worlds(one, *closest_rows("one coordinate", adjacency))) > 0.9
    honest = coordinate._Clipping.release_of
    monkeypatch.setattr(coordinate._Clipping, "release_of", lambda self, part: honest(self, part / 2))
    assert most_moved(two_worlds(capped, rows, other)) > 1.3


def test_random_order_with_rows_clipped_is_refused_in_the_plan():
    with pytest.raises(ValueError, match=r"order='random' needs clipping='coordinate'"):
        _ = few_passes("add-remove", order="random").calibrated


@every_adjacency
def test_the_exact_sign_of_a_derivative_in_the_step_is_caught(adjacency, monkeypatch):
    """The size is noisy, the sign is not: as a row may turn it, outputs tell the two worlds apart."""
    advance = Columns.advance

    def leaky(self, tape, limits, rules, order, w, changes):
        released = np.empty(len(order))
        for k in range(len(order)):
            part = slice(k, k + 1)
            place = limits, rules, order[part]
            silent = type(tape)(np.zeros(1, dtype=np.int64), tape.step, tape.bound)
            exact = advance(twin(self), silent, *place, w.copy(), changes[part].copy())[0]
            whole = round(exact / tape.step)
            total = math.copysign(abs(whole + int(tape.noise[k])), exact)
            loaded = type(tape)(np.array([int(total) - whole]), tape.step, tape.bound)
            released[k] = advance(self, loaded, *place, w, changes[part])[0]
        return released

    def found(confidence):
        run = few_passes(adjacency, n_passes=1, averaging="last")
        return audit.mu_lower_bound(audit.run(run, rows, other, 150), confidence=confidence) / run.claim

    rows, other = closest_rows("spread", adjacency)
    rows.Z[3] = other.Z[3] = -0.5, 0.5  # so that sums without row 0 are a little below zero
    assert found(0.999) <= 1.0
    monkeypatch.setattr(Columns, "advance", leaky)
    assert found(0.99) > 1.0


def test_one_value_of_a_pass_without_noise_is_caught(monkeypatch):
    advance = Columns.advance

    def mostly_noisy(self, tape, *rest):
        tape.noise[-1] = 0
        return advance(self, tape, *rest)

    rows, _ = closest_rows("spread", "add-remove")
    with transcript() as steps:
        few_passes("add-remove")(rows)
    assert not wrong_noise(steps)
    monkeypatch.setattr(Columns, "advance", mostly_noisy)
    with transcript() as steps:
        few_passes("add-remove")(rows)
    assert wrong_noise(steps) == {"passes"}


# --- scores in float64 ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("far", [1e3, 1e9, 1e13, 1e14])
def test_the_rounding_of_scores_is_in_their_spread(far):
    """A score is a difference of weights: of one that bounds keep far from zero, little is left but rounding."""
    for n in (37, 40):
        solver = Greedy(n_iter=12, clip=1.0, smoothness=(1.0, 1.0))
        penalty = Penalty(l2=np.zeros(2), l1=np.zeros(2), low=np.array([far, -math.inf]))
        run = Run(task_of(n, 2, "add-remove"), solver, penalty)
        # Others pull at the second weight alone; row 0 raises one score as much as it lowers the other.
        Z, targets = np.tile([0.0, 3.0], (n, 1)), np.full(n, 3.0)
        targets[: n // 2 + 8] = -3.0
        Z[0] = 3.0
        absent = Z.copy()
        absent[0] = 0.0
        for _ in range(10):
            assert most_moved(two_worlds(run, rows_of(Z, targets), rows_of(absent, targets))) <= 1.0
