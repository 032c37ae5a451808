"""Every mechanism keeps its promise under attack, and the attacks would notice if it did not.

One list, `CASES`, holds each mechanism with its worst pair of neighbours for both adjacencies; a mechanism that is
exported without a case fails `test_every_mechanism_has_a_case`. For each of them: the audit finds no more than was
planned; halved noise, or a sensitivity that forgets the adjacency, is found; and what runs is what was planned.

Seeds are fixed. An honest mechanism would be flagged by a fresh seed with probability below 1e-6 (the confidence of the
audit). The mutants are caught with margin: their bounds lie several standard errors above the claim.
"""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from tacit.privacy import (
    Budget,
    Gate,
    Guarantee,
    NoiseSource,
    Plan,
    PlanViolationError,
    Release,
    Unit,
    audit,
    epsilon_of,
    mechanisms,
)
from tacit.privacy.mechanisms import (
    GaussianMatrix,
    GaussianSequence,
    GaussianVector,
    Histogram,
    LaplaceVector,
    Quantile,
    Selection,
    Sensitivity,
    SignedVertex,
    Threshold,
    TopK,
)
from tacit.privacy.noise.kernels import release_one
from tests.units import ROWS

from .worlds import half_of_every_grant

HONEST = 1 - 1e-6  # confidence: how often an honest mechanism is not flagged
ADJACENCIES = ("add-remove", "replace-one")
NAN = math.nan


@dataclass(frozen=True, eq=False)
class Case:
    """A mechanism and, for each adjacency, the arguments of `release` in two worlds that differ in one row."""

    mechanism: object
    add_remove: tuple
    replace_one: tuple
    count: int = 1  # of releases in one call
    trials: int = 4_000

    @property
    def kind(self):
        return self.mechanism.kind

    def worlds(self, adjacency):
        return self.add_remove if adjacency == "add-remove" else self.replace_one

    @property
    def claim(self):
        """For all `count` releases of a call: mu = 2 of a Gaussian, epsilon = 2 of the others."""
        return 2.0

    @property
    def multiplier(self):
        return math.sqrt(self.count) / self.claim if self.kind == "gaussian" else self.count / self.claim

    def plan(self, **fixed):
        return Plan(Release("r", self.kind, count=self.count, **(fixed or {"multiplier": self.multiplier})))

    def runner(self, adjacency, seed, mechanism=None):
        """The mechanism as the audit sees it: data in, output out, a fresh gate for every call."""
        calibrated = self.plan().calibrate(Budget(math.inf, 1e-6, adjacency), ROWS, "test")
        source = NoiseSource(seed)
        drawn = mechanism or self.mechanism

        def run(data):
            out = Gate(calibrated, source).release("r", drawn, *data)
            if not isinstance(out, np.ndarray):
                return out
            return str(out) if out.dtype.kind == "i" else np.ravel(out)  # indices together are one category

        return run

    def attack(self, adjacency, seed=0, confidence=HONEST, mechanism=None):
        """The lower bound on what is claimed: mu of a Gaussian, epsilon of the others."""
        outputs = audit.run(self.runner(adjacency, seed, mechanism), *self.worlds(adjacency), self.trials)
        if self.kind == "gaussian":
            return audit.mu_lower_bound(outputs, confidence=confidence)
        return audit.epsilon_lower_bound(outputs, 0.0, confidence=confidence)


def outer(*x):
    return np.outer(x, x)


def walk(*row):
    """Three values, each with the row's own part, and with half of what was released before."""

    def values(tape):
        out = [0.0]
        for part, noise in zip(row, tape.noise, strict=True):
            out.append(release_one(1.0 + part + 0.5 * out[-1], noise, tape.step, tape.bound))
        return np.array(out[1:])

    return 3, values


OTHERS = np.array([[0.5, 2.5], [1.5, 1.5], [2.5, 0.5]])  # rows that both worlds share
# Four at or below 0, two in (0, 1], three above: adding a row at 0 moves the difference of the two scores from 0 to 2.
RANKED = [-1.0, -1.0, 0.0, 0.0, 0.5, 1.0, 3.0, 3.0, 3.0]

CASES = [
    Case(
        GaussianVector(Sensitivity.vector(3.0), bound=100.0),
        add_remove=(([5.0, -1.0, 2.0],), ([7.0, 1.0, 1.0],)),  # a row (2, 2, -1) of norm 3
        replace_one=(([7.0, 1.0, 1.0],), ([3.0, -3.0, 3.0],)),  # by its opposite
    ),
    Case(
        GaussianMatrix(Sensitivity.outer_product(2.0), bound=100.0),
        add_remove=((np.eye(2),), (np.eye(2) + outer(math.sqrt(2), -math.sqrt(2)),)),
        replace_one=((np.eye(2) + outer(2.0, 0.0),), (np.eye(2) + outer(0.0, 2.0),)),
    ),
    Case(
        GaussianSequence(Sensitivity.vector(3.0), bound=100.0),
        add_remove=(walk(0.0, 0.0, 0.0), walk(2.0, 2.0, -1.0)),
        replace_one=(walk(2.0, 2.0, -1.0), walk(-2.0, -2.0, 1.0)),
    ),
    Case(
        Histogram([0.0, 1.0, 2.0, 3.0], columns=2),
        add_remove=((np.vstack([OTHERS, [[0.5, 0.5]]]),), (np.vstack([OTHERS, [[NAN, NAN]]]),)),
        replace_one=((np.vstack([OTHERS, [[0.5, 0.5]]]),), (np.vstack([OTHERS, [[9.0, 1.5]]]),)),
    ),
    Case(
        LaplaceVector(Sensitivity.vector(3.0), bound=100.0),
        add_remove=(([1.0, 2.0],), ([1.0, 5.0],)),
        replace_one=(([1.0, -1.0],), ([1.0, 5.0],)),
    ),
    Case(
        Selection(Sensitivity(1.5, 3.0)),
        add_remove=(([0.0, 0.0],), ([1.5, 0.0],)),
        replace_one=(([0.0, 0.0],), ([1.5, -1.5],)),
    ),
    Case(
        SignedVertex(Sensitivity.vector(0.7)),
        add_remove=(([0.0],), ([0.7],)),
        replace_one=(([0.0],), ([1.4],)),
    ),
    Case(
        TopK(2, Sensitivity(1.0, 2.0)),
        add_remove=(([0.35, 0.0, 0.0],), ([1.35, 0.0, 0.0],)),
        replace_one=(([0.7, 0.0, 0.0],), ([1.7, -1.0, -1.0],)),
        count=2,
        trials=8_000,
    ),
    Case(
        # Margin 0.5: a positive is right at threshold 0 only, a negative at 1 only.
        Threshold([0.0, 1.0]),
        add_remove=(([-5.0, NAN], [False, True]), ([-5.0, 0.5], [False, True])),
        replace_one=(([0.5, 0.5], [True, True]), ([0.5, 0.5], [True, False])),
    ),
    Case(
        Quantile(0.5, [0.0, 1.0]),
        add_remove=(([*RANKED, NAN],), ([*RANKED, 0.0],)),
        replace_one=(([*RANKED, 3.0],), ([*RANKED, 0.0],)),
    ),
    Case(
        Quantile(0.5, [0.0, 1.0], steepness=0.3),
        add_remove=(([*RANKED, NAN],), ([*RANKED, 0.0],)),
        replace_one=(([*RANKED, 3.0],), ([*RANKED, 0.0],)),
    ),
]
every_case = pytest.mark.parametrize("case", CASES, ids=[type(case.mechanism).__name__ for case in CASES])
every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)


def test_every_mechanism_has_a_case():
    exported = {name for name in mechanisms.__all__ if hasattr(getattr(mechanisms, name), "kind")}
    # Steps on samples and vertices are audited with the solvers that walk: test_dual.py, test_frank_wolfe.py. The best
    # vertex is for the non-private limit.
    walked = {"SampledSteps", "Vertices", "VertexWalk", "BestVertex"}
    # Objective perturbation releases nothing by itself: tests/guarantees/test_objective.py audits it with its search.
    # Thresholded counts have a delta of their own: tests/guarantees/test_thresholded.py. Words are shares of sums that
    # several parties add noise to: tests/federated/protocols/test_masked.py.
    elsewhere = {"ObjectivePerturbation", "Choice", "ThresholdedCounts", "GaussianWords"}
    assert {type(case.mechanism).__name__ for case in CASES} == exported - walked - elsewhere
    others = {"Batches", "Sensitivity", "Tape", "VertexSampler", "contribution_units"}
    assert set(mechanisms.__all__) - exported == others


# Honest mechanisms.


@pytest.mark.parametrize("adjacency", ["add-remove", pytest.param("replace-one", marks=pytest.mark.slow)])
@every_case
def test_the_audit_finds_no_more_than_was_planned(case, adjacency):
    bound = case.attack(adjacency)
    assert bound <= case.claim
    # And it does look: half of mu for Gaussians (whose worst pair is known exactly), a good part of epsilon for others.
    assert bound >= (0.5 if case.kind == "gaussian" else 0.25) * case.claim


@every_adjacency
@every_case
def test_the_plan_is_what_runs(case, adjacency):
    budget = Budget(1.0, 1e-6, adjacency)
    calibrated = case.plan(share=1.0).calibrate(budget, ROWS, "test")
    with Gate(calibrated, NoiseSource(0)) as gate:
        gate.release("r", case.mechanism, *case.worlds(adjacency)[0])
        assert gate.left("r") == 0
        with pytest.raises(PlanViolationError):
            gate.release("r", case.mechanism, *case.worlds(adjacency)[0])
    guarantee = Guarantee(budget.epsilon, budget.delta, adjacency, "test", calibrated.event, n_rows=10)
    assert 0.99 <= guarantee.recompute() <= 1.0


@every_case
def test_a_kind_that_was_not_planned_is_refused(case):
    for kind in {"gaussian", "laplace", "exponential"} - {case.kind}:
        plan = Plan(Release("r", kind, share=1.0, count=case.count))
        gate = Gate(plan.calibrate(Budget(1.0, 1e-6), ROWS, "test"), NoiseSource(0))
        with pytest.raises(PlanViolationError, match=f"planned as {kind}, not as {case.kind}"):
            gate.release("r", case.mechanism, *case.add_remove[0])


@every_adjacency
@every_case
def test_the_same_seed_gives_the_same_release_and_another_seed_another(case, adjacency):
    data = case.worlds(adjacency)[0]

    def releases(seed):
        run = case.runner(adjacency, seed)
        return [np.asarray(run(data)).tolist() for _ in range(64)]

    assert releases(1) == releases(1)
    assert releases(1) != releases(2)


# Mutants.


@pytest.mark.parametrize("adjacency", ["add-remove", pytest.param("replace-one", marks=pytest.mark.slow)])
@every_case
def test_half_the_noise_is_flagged(case, adjacency):
    with half_of_every_grant():
        assert case.attack(adjacency, confidence=0.99) > case.claim


@pytest.mark.slow
@every_case
def test_a_sensitivity_that_forgets_the_adjacency_is_flagged(case, monkeypatch):
    if isinstance(case.mechanism, Quantile):
        pytest.skip("a quantile's spread is 2 under both adjacencies")
    monkeypatch.setattr(Sensitivity, "under", lambda self, _: self.add_remove)
    assert case.attack("replace-one", confidence=0.99) > case.claim


def test_a_quantile_with_spread_one_is_flagged(monkeypatch):
    case = next(case for case in CASES if isinstance(case.mechanism, Quantile))
    monkeypatch.setattr(Quantile, "spread", Sensitivity(1.0, 1.0))
    for adjacency in ADJACENCIES:
        assert case.attack(adjacency, confidence=0.99) > case.claim


class LeakySignedVertex:
    """The published Frank-Wolfe step: the index is private, the sign is exact."""

    kind = "exponential"

    def __init__(self, entry):
        self.entry = entry

    def draw(self, grant, gradient):
        j = Selection(self.entry).draw(grant, np.abs(gradient))
        return j, -int(np.sign(gradient[j]))


@every_adjacency
def test_a_leaked_sign_is_flagged(adjacency):
    # One row flips the sign of an entry: -B/2 to B/2.
    case = Case(
        SignedVertex(Sensitivity.vector(1.0)),
        add_remove=(([-0.5, 0.1],), ([0.5, 0.1],)),
        replace_one=(([-1.0, 0.1],), ([1.0, 0.1],)),
    )
    assert case.attack(adjacency) <= case.claim
    assert case.attack(adjacency, mechanism=LeakySignedVertex(Sensitivity.vector(1.0))) > 2 * case.claim


def test_noise_on_the_lower_triangle_alone_is_flagged():
    # A matrix whose halves are noised apart gives two looks at each entry: isotropic noise must be symmetric.
    class TwoLooks:
        kind = "gaussian"

        def draw(self, grant, value):
            source, size = grant.take(), Sensitivity.outer_product(2.0).under(grant.adjacency)
            words = [gaussian_noise(source) for _ in range(np.size(value))]
            return value + grant.multiplier * size / math.sqrt(2) * np.reshape(words, np.shape(value))

    def gaussian_noise(source):
        from tacit.privacy import gaussian

        return gaussian(0.0, 1.0, 1.0, source).item()

    case = next(case for case in CASES if isinstance(case.mechanism, GaussianMatrix))
    assert case.attack("add-remove", confidence=0.99, mechanism=TwoLooks()) > case.claim


# Sampling.


def sampled_sum(q, multiplier, *, honest):
    """A noisy sum over a Poisson sample; the mutant draws the sample and then sums all rows."""
    plan = Plan(Release("sum", "gaussian", multiplier=multiplier, sampling=q))
    calibrated = plan.calibrate(Budget(math.inf, 1e-6), Unit("row", 3), "test")
    source = NoiseSource(5)
    mechanism = GaussianVector(Sensitivity.vector(1.0), bound=10.0)

    def run(rows):
        gate = Gate(calibrated, source)
        taken = gate.sample("sum")
        return gate.release("sum", mechanism, rows[taken].sum() if honest else rows.sum())

    return calibrated.event, run


def test_sampling_amplifies_as_much_as_accounted_and_no_more():
    delta = 0.05
    present, absent = np.array([1.0, 0.0, 0.0]), np.zeros(3)
    bounds = {}
    for honest in (True, False):
        event, run = sampled_sum(0.2, 0.4, honest=honest)
        outputs = audit.run(run, present, absent, 4_000)
        bounds[honest] = audit.epsilon_lower_bound(outputs, delta, confidence=HONEST if honest else 0.99)
    claimed = epsilon_of(event, delta)
    assert 0.0 < bounds[True] <= claimed < bounds[False]


# Composition: a whole plan, attacked as one.


@pytest.mark.slow
@every_adjacency
def test_a_plan_of_several_releases_is_attacked_as_one(adjacency):
    plan = Plan(
        Release("sum", "gaussian", share=1.0, count=3),
        Release("counts", "gaussian", share=1.0),
        Release("matrix", "gaussian", share=2.0),
    )
    mu = 2.0
    calibrated = plan.calibrate(Budget.from_mu(mu, 1e-6, adjacency), ROWS, "test")
    source = NoiseSource(6)
    vector = GaussianVector(Sensitivity.vector(1.0), bound=10.0)
    matrix = GaussianMatrix(Sensitivity.outer_product(1.0), bound=10.0)
    histogram = Histogram([-2.0, 0.0, 2.0])

    def run(row):  # NaN: zeroed out
        known = np.nan_to_num(row)
        with Gate(calibrated, source) as gate:
            sums = [gate.release("sum", vector, known) for _ in range(3)]
            counts = gate.release("counts", histogram, row[:1])
            second = gate.release("matrix", matrix, np.outer(known, known))
        return np.concatenate([*sums, counts, second[np.triu_indices(2)]])

    # A row and its opposite have the same outer product: against them the matrix, half of mu^2, shows nothing.
    row = np.array([1.0, 0.0])
    neighbour, reachable = (NAN * row, mu) if adjacency == "add-remove" else (-row, mu * math.sqrt(0.5))
    bound = audit.mu_lower_bound(audit.run(run, row, neighbour, 3_000), confidence=HONEST)
    assert 0.5 * reachable <= bound <= mu
