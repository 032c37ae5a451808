"""What one row can change in the solvers for text: never more than they say, on any history; and what it costs.

Random rows (huge ones, tiny ones, those whose norm overflows) are put against others and against nothing, on histories
of wild and of calm runs. The general checks and audits of every solver run for these as well.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, ZCDpEvent
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from tacit.blocks import Bounded
from tacit.privacy import Gate, NoiseSource
from tacit.privacy.mechanisms import Threshold
from tacit.problems import Penalty
from tacit.solvers import OneShot, Text, text
from tacit.solvers.text import one_shot
from tests.solvers.support import task as problem

from .cases import ROUNDING, quiet
from .recorder import transcript
from .worlds import ADJACENCIES, NOTHING, Repeated, two_worlds, wild

pytestmark = quiet

FORMS = {"one-shot": (OneShot(), True), "one-shot dense": (OneShot(), False), "steps": (Text(n_iter=5), True)}
every_form = pytest.mark.parametrize("form", FORMS)
every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)


@dataclass(frozen=True, eq=False)
class Run(Repeated):
    """A solver with the whole budget, on rows that need not be bounded; new noise each time."""

    form: str
    adjacency: str
    epsilon: float = 2.0
    n: int = 12
    d: int = 4
    fit_intercept: bool = True
    l2: float = 0.0

    @property
    def solver(self):
        return FORMS[self.form][0]

    @property
    def sparse(self):
        return FORMS[self.form][1]

    @cached_property
    def task(self):
        asked = (self.n, self.d, self.sparse, self.fit_intercept, self.epsilon, self.adjacency)
        return problem("logistic", *asked, 1e-3, penalty=Penalty())

    def rows(self, Z, targets):
        penalty = Penalty(l2=np.full(self.d, self.l2), l1=np.zeros(self.d))
        return Bounded(csr_array(Z) if self.sparse else Z, targets, penalty)

    def __call__(self, rows):
        with Gate(self.calibrated, NoiseSource(next(self.seeds))) as gate:
            return self.solver.at(self.task).run(rows, gate)


@every_form
@every_adjacency
@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(data=st.data())
def test_no_row_moves_a_release_further_than_its_noise_covers(form, adjacency, data):
    draw = data.draw
    epsilon, intercept = draw(st.sampled_from([0.01, 1.0, 30.0, 1e4, 1e8])), draw(st.booleans())
    run = Run(form, adjacency, epsilon, fit_intercept=intercept, l2=draw(st.sampled_from([0.0, 1.0])))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    Z = rng.normal(size=(run.n, run.d)) * 10.0 ** rng.integers(-3, 3, size=(run.n, 1))
    targets = rng.choice([-1.0, 1.0], size=run.n)
    worlds = []
    for k in range(2):
        absent = adjacency == "add-remove" and k == 1
        row = [NOTHING] * run.d if absent else draw(st.lists(wild, min_size=run.d, max_size=run.d))
        table, labels = Z.copy(), targets.copy()
        table[0], labels[0] = row, draw(st.sampled_from([-1.0, 1.0]))
        worlds.append(run.rows(table, labels))
    for pair in (worlds, worlds[::-1]):
        assert max(step.moved(other) for step, other in two_worlds(run, *pair)) <= ROUNDING


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(
    p=st.floats(0.001, 0.999),
    pair=st.lists(st.floats(-1, 1), min_size=8, max_size=8),
    same=st.booleans(),
    turn=st.sampled_from([-1.0, 0.0, 1.0]),
    lengths=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    squares=st.booleans(),
)
def test_two_rows_are_at_most_twice_the_residual_apart(p, pair, same, turn, lengths, squares):
    """The bound for replace-one of the one shot, on the formula itself."""
    x, z = np.array(pair[:4]), np.array(pair[4:])
    z = turn * x if turn else z  # the same direction and the opposite one, above all
    x, z = (v * length / max(np.linalg.norm(v), 1e-9) for v, length in zip((x, z), lengths, strict=True))
    residuals = (1.0 - p, 1.0 - p) if same else (1.0 - p, -p)

    def contribution(residual, row):
        return np.concatenate([residual * row, one_shot._RATIO * (row**2 if squares else np.abs(row))])

    apart = np.linalg.norm(contribution(residuals[0], x) - contribution(residuals[1], z))
    assert apart <= 2.0 * max(p, 1.0 - p) * ROUNDING


@every_adjacency
def test_an_opposite_row_reaches_the_bound_of_replace_one_and_an_absent_one_that_of_add_remove(adjacency):
    for form in ("one-shot", "one-shot dense"):
        run = Run(form, adjacency)
        Z = np.zeros((run.n, run.d))
        other = Z.copy()
        Z[0] = [9.0, 0.0, 0.0, 0.0]
        other[0] = NOTHING if adjacency == "add-remove" else -Z[0]
        for label in (-1.0, 1.0):
            targets = np.resize([label, 1.0, -1.0], run.n)
            pairs = two_worlds(run, run.rows(Z, targets), run.rows(other, targets))
            moved = {step.name: step.moved(twin) for step, twin in pairs}
            clip = _clip(pairs)
            if adjacency == "add-remove":  # the longer of the two residuals is c
                most = math.hypot(_residual(pairs, label), one_shot._RATIO) / math.hypot(clip, one_shot._RATIO)
            else:
                most = _residual(pairs, label) / clip
            assert moved["sums"] == pytest.approx(most, rel=1e-6)


def _share(pairs, n=12):
    step = next(step for step, _ in pairs if step.name == "class share")
    found = float(step.released) / n
    p = 0.5 + (found - 0.5) / (1.0 + 12.0 * (step.noise / n) ** 2)
    return min(max(p, 1.0 / n), 1.0 - 1.0 / n)


def _clip(pairs):
    return max(_share(pairs), 1.0 - _share(pairs))


def _residual(pairs, label):
    return 1.0 - _share(pairs) if label > 0 else _share(pairs)


# --- what it costs ----------------------------------------------------------------------------------------------------


@every_form
@every_adjacency
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_the_noise_that_ran_costs_the_epsilon_asked_for(form, adjacency, epsilon):
    """From the noise of each release over its sensitivity, by the accountant of `dp_accounting` alone."""
    run = Run(form, adjacency, epsilon)
    rng = np.random.default_rng(0)
    with transcript() as steps:
        run(run.rows(rng.normal(size=(run.n, run.d)), rng.choice([-1.0, 1.0], size=run.n)))
    accountant = RdpAccountant(orders=1.0 + np.geomspace(0.01, 1e5, 2_000))
    for step in steps:
        ratio = step.noise / step.sensitivity
        accountant.compose(ZCDpEvent(ratio**-2 / 8) if step.is_selection else GaussianDpEvent(ratio))
    assert 0.99 * epsilon <= accountant.get_epsilon(1e-3) <= epsilon * (1 + 1e-9)


@every_form
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_shares_of_the_budget_are_shares_of_rho(form, fit_intercept):
    run = Run(form, "add-remove", fit_intercept=fit_intercept)
    spent = {}
    for release, z in zip(run.calibrated.plan.releases, run.calibrated.multipliers, strict=True):
        spent[release.name] = z**-2 / 8 if release.kind == "exponential" else release.count * z**-2 / 2
    left = 0.94 if fit_intercept else 1.0
    ends = {"class share": 0.01, "threshold": 0.05} if fit_intercept else {}
    inner = {"column sizes": 0.05, "row norms": 0.005, "gradients": 0.945} if form == "steps" else {"sums": 1.0}
    shares = ends | {name: left * share for name, share in inner.items()}
    total = sum(spent.values())
    assert {name: value / total for name, value in spent.items()} == pytest.approx(shares)


def test_the_threshold_is_drawn_by_the_rows_it_gets_right():
    """A grid that one row moves by one candidate's count: what the mechanism is told is what the model predicts."""
    run = Run("one-shot", "add-remove", epsilon=1e8, n=50)
    rng = np.random.default_rng(0)
    Z, targets = np.abs(rng.normal(size=(run.n, run.d))), rng.choice([-1.0, 1.0], size=run.n)
    with transcript() as steps:
        weights = run(run.rows(Z, targets)).weights[0]
    scores = steps[-1].exact
    right = np.count_nonzero((Z @ weights[:-1] + weights[-1] > 0) == (targets > 0))
    assert steps[-1].name == "threshold"
    assert scores[steps[-1].released] == right == scores.max()
    assert len(scores) == len(text.GRID)


# --- mistakes are caught ----------------------------------------------------------------------------------------------


@every_form
@every_adjacency
def test_an_exact_threshold_is_no_release(form, adjacency, monkeypatch):
    """The best threshold in place of a drawn one is not what was planned."""
    best = lambda self, grant, margins, positive: 0.0  # noqa: ARG005, E731
    monkeypatch.setattr(Threshold, "draw", best)
    run = Run(form, adjacency)
    with pytest.raises(RuntimeError, match="release 'threshold' left without being counted"):
        run(run.rows(np.ones((run.n, run.d)), np.resize([1.0, -1.0], run.n)))


@every_adjacency
def test_sizes_of_rows_that_are_not_clipped_are_caught(adjacency, monkeypatch):
    monkeypatch.setattr(text, "_bounded", lambda radius, norms: np.full_like(norms, 1.0 / radius))
    run = Run("steps", adjacency)
    Z = np.ones((run.n, run.d))
    other = Z.copy()
    Z[0], other[0] = [40.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 40.0]
    targets = np.resize([1.0, -1.0], run.n)
    pairs = two_worlds(run, run.rows(Z, targets), run.rows(other, targets))
    assert {step.name for step, twin in pairs if step.moved(twin) > 1.5} >= {"column sizes"}


@every_adjacency
@pytest.mark.parametrize("clipped", [True, False], ids=["clipped", "not clipped"])
def test_a_residual_that_is_not_clipped_is_caught(adjacency, clipped, monkeypatch):
    """A row among those of the other class, of which the model grows sure, has a residual of 1; c is one half."""
    if not clipped:
        residuals = text.UnitRows.residuals
        monkeypatch.setattr(
            text.UnitRows, "residuals", lambda self, factors, fit: residuals(self, factors, fit._replace(clip=1.0))
        )
    run = Run("steps", adjacency, epsilon=300.0, n=400)
    Z, targets = np.zeros((run.n, run.d)), np.resize([1.0, -1.0], run.n)
    Z[targets < 0, :2] = Z[targets > 0, 2:] = 3.0
    Z[0] = [3.0, 3.0, 0.0, 0.0]
    other, labels = Z.copy(), targets.copy()
    if adjacency == "add-remove":
        other[0] = NOTHING
    else:  # the same among those of its other class
        other[0], labels[0] = [0.0, 0.0, 3.0, 3.0], -1.0
    moved = [step.moved(twin) for step, twin in two_worlds(run, run.rows(Z, targets), run.rows(other, labels))]
    assert max(moved) <= ROUNDING if clipped else max(moved) > 1.3
