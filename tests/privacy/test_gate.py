"""The gate lets through what was planned, exactly as often as planned, and nothing else."""

import copy
import math
import pickle
from collections import Counter
from contextlib import suppress

import numpy as np
import pytest

from tacit.privacy import Budget, Gate, NoiseSource, Plan, PlanViolationError, Release, Unit
from tacit.privacy.gate import Grant
from tacit.privacy.mechanisms import GaussianVector, LaplaceVector, Selection, Sensitivity
from tests.units import ROWS

PLAN = Plan(
    Release("sums", "gaussian", share=1.0, count=3),
    Release("pick", "exponential", share=1.0),
    Release("count", "laplace", share=1.0),
)
SAMPLED = Plan(Release("steps", "gaussian", share=1.0, count=3, sampling=0.25), Release("sum", "gaussian", share=1.0))

GAUSSIAN = GaussianVector(Sensitivity.vector(1.0))
LAPLACE = LaplaceVector(Sensitivity.vector(1.0))
SELECT = Selection(Sensitivity(1.0, 2.0))


def open_gate(plan=PLAN, seed=0, n=1_000, **kwargs):
    return Gate(plan.calibrate(Budget(1.0, 1e-6), Unit("row", n), "test"), NoiseSource(seed), **kwargs)


def make_all(gate):
    for _ in range(3):
        gate.release("sums", GAUSSIAN, [1.0, 2.0])
    gate.release("pick", SELECT, [1.0, 2.0])
    gate.release("count", LAPLACE, 3.0)


def test_the_plan_and_nothing_but_the_plan():
    gate = open_gate()
    assert [gate.left(name) for name in ("sums", "pick", "count")] == [3, 1, 1]
    make_all(gate)
    assert [gate.left(name) for name in ("sums", "pick", "count")] == [0, 0, 0]
    gate.finish()


@pytest.mark.parametrize(
    ("name", "again"),
    [
        ("sums", lambda m: m.release("sums", GAUSSIAN, [1.0])),
        ("pick", lambda m: m.release("pick", SELECT, [1.0, 2.0])),
        ("count", lambda m: m.release("count", LAPLACE, 1.0)),
    ],
)
def test_one_release_too_many(name, again):
    gate = open_gate()
    make_all(gate)
    with pytest.raises(PlanViolationError, match=f"release '{name}' is planned . times, of which 0 are left"):
        again(gate)
    assert gate.left(name) == 0


def test_one_release_too_few():
    gate = open_gate()
    gate.release("sums", GAUSSIAN, [1.0])
    with pytest.raises(PlanViolationError, match=r"neither released nor skipped: 'sums' \(2 of 3\), 'pick' \(1 of 1\)"):
        gate.finish()


def test_another_kind():
    gate = open_gate()
    with pytest.raises(PlanViolationError, match="release 'sums' is planned as gaussian, not as laplace"):
        gate.release("sums", LAPLACE, 1.0)
    with pytest.raises(PlanViolationError, match="release 'pick' is planned as exponential, not as gaussian"):
        gate.release("pick", GAUSSIAN, 1.0)
    with pytest.raises(PlanViolationError, match="release 'count' is planned as laplace, not as exponential"):
        gate.release("count", SELECT, [1.0])
    assert gate.left("sums") == 3  # what was refused was not counted


def test_another_name():
    gate = open_gate()
    for call in (
        lambda: gate.release("mean", GAUSSIAN, 1.0),
        lambda: gate.left("mean"),
        lambda: gate.skip("mean"),
        lambda: gate.sample("mean"),
        lambda: gate.multiplier("mean"),
    ):
        with pytest.raises(PlanViolationError, match="release 'mean' is not in the plan, which has 'sums', 'pick'"):
            call()


def test_skipping_is_explicit_and_counted():
    gate = open_gate()
    gate.skip("sums", 2)
    gate.release("sums", GAUSSIAN, [1.0])
    with pytest.raises(PlanViolationError, match="of which 0 are left"):
        gate.release("sums", GAUSSIAN, [1.0])
    gate.skip("pick")
    gate.skip("count")
    gate.finish()


@pytest.mark.parametrize(
    ("count", "error"),
    [(4, PlanViolationError), (0, ValueError), (-1, ValueError), (0.5, TypeError), (math.nan, TypeError)],
)
def test_skipping_more_or_less_than_planned(count, error):
    # A negative count would buy further releases.
    gate = open_gate()
    with pytest.raises(error):
        gate.skip("sums", count)
    assert gate.left("sums") == 3


def test_a_sampled_release_needs_a_fresh_sample_each_time():
    gate = open_gate(SAMPLED)
    with pytest.raises(PlanViolationError, match="planned on a fresh sample of the rows; call sample"):
        gate.release("steps", GAUSSIAN, [1.0])
    gate = open_gate(SAMPLED)
    gate.sample("steps")
    gate.release("steps", GAUSSIAN, [1.0])
    with pytest.raises(PlanViolationError, match="call sample"):
        gate.release("steps", GAUSSIAN, [1.0])


def test_a_release_on_all_rows_may_ask_for_them_each_time():
    """A solver need not know whether its sample is a true one: with the certain coin it gets every row."""
    gate = open_gate(Plan(Release("steps", "gaussian", share=1.0, count=2, sampling=1.0)), n=4)
    for _ in range(2):
        np.testing.assert_array_equal(gate.sample("steps"), np.arange(4))
        with pytest.raises(PlanViolationError, match="has its sample"):
            gate.sample("steps")
        gate.release("steps", GAUSSIAN, [1.0])
    gate.finish()


def test_a_sample_that_was_refused_is_no_sample():
    gate = open_gate(SAMPLED)
    with pytest.raises(ValueError, match="count must be at least 1"):
        gate.samples("steps", 0)
    with pytest.raises(PlanViolationError, match="call sample"):
        gate.release("steps", GAUSSIAN, [1.0])


def test_a_sample_is_not_carried_over_a_skip_or_to_another_name():
    gate = open_gate(SAMPLED)
    gate.sample("steps")
    gate.skip("steps")
    with pytest.raises(PlanViolationError, match="call sample"):
        gate.release("steps", GAUSSIAN, [1.0])
    gate = open_gate(SAMPLED)
    gate.sample("sum")
    with pytest.raises(PlanViolationError, match="call sample"):
        gate.release("steps", GAUSSIAN, [1.0])


def test_samples_use_the_planned_coin():
    # 100,000 coins of 1/4: a standard deviation is 137. Beyond 5.5 of them once in 3e7 seeds.
    rows = open_gate(SAMPLED, seed=1, n=100_000).sample("steps")
    assert abs(len(rows) - 25_000) < 5.5 * 137
    assert rows.dtype == np.int64
    assert np.all(np.diff(rows) > 0)
    assert (rows.min(), rows.max()) >= (0, 99_900)
    assert rows.max() < 100_000
    np.testing.assert_array_equal(open_gate(SAMPLED, n=5).sample("sum"), np.arange(5))


def test_samples_are_independent():
    gate = open_gate(SAMPLED, seed=2, n=10_000)
    first = set(gate.sample("steps"))
    gate.skip("steps")
    second = set(gate.sample("steps"))
    # Both coins: 625 of 10,000 rows, standard deviation 24; beyond 5.5 of them once in 3e7 seeds.
    assert abs(len(first & second) - 625) < 5.5 * 24.3


def test_a_second_sample_to_choose_from_is_refused():
    gate = open_gate(SAMPLED)
    gate.sample("steps")
    with pytest.raises(PlanViolationError, match="has its sample"):
        gate.sample("steps")


def test_the_context_finishes_on_success():
    with open_gate() as gate:
        make_all(gate)
    with pytest.raises(PlanViolationError, match="neither released nor skipped"), open_gate() as gate:
        gate.release("sums", GAUSSIAN, [1.0])


def test_the_context_lets_exceptions_through():
    # What went wrong is told, not that releases are missing because of it.
    with pytest.raises(ZeroDivisionError), open_gate() as gate:
        gate.skip("sums", 1 // 0)


@pytest.mark.parametrize("attempt", [pickle.dumps, copy.copy, copy.deepcopy], ids=lambda f: f.__name__)
def test_no_copies(attempt):
    with pytest.raises(TypeError, match="cannot be pickled or copied"):
        attempt(open_gate())


def test_properties_of_the_budget_and_the_source():
    calibrated = Plan(Release("a", "gaussian", share=1.0)).calibrate(Budget(1.0, 1e-6, "replace-one"), ROWS, "test")
    gate = Gate(calibrated, NoiseSource(0))
    assert (gate.adjacency, gate.guarantee.seeded) == ("replace-one", True)
    assert Gate(calibrated, NoiseSource()).guarantee.seeded is False
    assert gate.multiplier("a") == calibrated.multiplier("a")


class Watched:
    """A mechanism that does as it is told with its grant."""

    kind = "gaussian"

    def draw(self, grant, act):
        return act(grant)


def test_a_grant_gives_what_was_planned_and_the_noise_of_the_gate():
    promise = PLAN.calibrate(Budget(1.0, 1e-6, "replace-one"), ROWS, "test")
    gate = Gate(promise, NoiseSource(4))
    told = gate.release("sums", Watched(), lambda g: (g.name, g.multiplier, g.adjacency, g.take().word()))
    assert told == ("sums", promise.multiplier("sums"), "replace-one", NoiseSource(4).word())
    assert gate.noise("sums", Sensitivity(2.0, 3.0)) == promise.multiplier("sums") * 3.0


def test_a_release_that_takes_no_grant_does_not_leave():
    gate = open_gate()
    with pytest.raises(PlanViolationError, match="release 'sums' left without being counted"):
        gate.release("sums", Watched(), lambda _: 1.0)
    assert gate.left("sums") == 3


def test_a_release_inside_another_does_not_count_for_it():
    gate = open_gate()
    with pytest.raises(PlanViolationError, match="release 'sums' left without being counted"):
        gate.release("sums", Watched(), lambda _: (gate.release("sums", GAUSSIAN, [1.0]), 1.0)[1])
    assert gate.left("sums") == 2


def test_a_grant_ends_with_its_release():
    gate, kept = open_gate(), []
    gate.release("sums", Watched(), lambda grant: (kept.append(grant), grant.take())[1])
    with pytest.raises(PlanViolationError, match="the grant of release 'sums' ended"):
        kept[0].take()
    with pytest.raises(ZeroDivisionError):
        gate.release("sums", Watched(), lambda grant: kept.append(grant) or 1 / 0)
    with pytest.raises(PlanViolationError, match="ended"):
        kept[1].take()
    assert gate.left("sums") == 2


def test_a_grant_is_for_the_kind_that_was_planned():
    gate = open_gate()
    with pytest.raises(PlanViolationError, match="release 'pick' is planned as exponential, not as gaussian"):
        GAUSSIAN.draw(Grant(gate, "pick", "gaussian"), [1.0])
    assert gate.left("pick") == 1


def test_a_grant_is_for_one_name_and_no_more_than_planned():
    gate = open_gate()
    with pytest.raises(PlanViolationError, match="of which 3 are left; asked for 4"):
        gate.release("sums", Watched(), lambda grant: grant.take(4))
    gate.release("sums", Watched(), lambda grant: grant.take(3))
    assert gate.made == {"sums": 3, "pick": 0, "count": 0}


def test_the_guarantee_is_read_off_the_promise_and_the_source():
    budget, unit = Budget(1.0, 1e-6, "replace-one"), Unit("row", 700)
    promise = PLAN.calibrate(budget, unit, "trial")
    for source in (NoiseSource(0), NoiseSource()):
        said = Gate(promise, source).guarantee
        assert (said.epsilon, said.delta, said.adjacency, said.solver) == (1.0, 1e-6, "replace-one", "trial")
        assert (said.unit, said.n_units, said.n_rows, said.seeded) == ("row", 700, 700, source.seeded)
        assert said.event == promise.event


def test_a_gate_is_opened_with_a_seed_a_key_or_nothing():
    promise = PLAN.calibrate(Budget(1.0, 1e-6), ROWS, "test")
    with pytest.warns(UserWarning, match="random_state is set") as caught:
        seeded = Gate.open(promise, seed=3, stacklevel=2)
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(seeded.publicly(50), Gate(promise, NoiseSource(3)).publicly(50))
    first, again, other = (Gate.open(promise, key=bytes([k] * 32)) for k in (1, 1, 2))
    orders = [gate.publicly(50).tolist() for gate in (first, again, other, Gate.open(promise))]
    assert orders[0] == orders[1] != orders[2] != orders[3]
    assert [seeded.guarantee.seeded, first.guarantee.seeded] == [True, False]
    assert Gate.open(promise, key=bytes(32), seeded=True).guarantee.seeded
    with pytest.raises(TypeError, match="a seed or a key, not both"):
        Gate.open(promise, seed=3, key=bytes(32))


def test_progress_tells_the_plan_and_not_the_data():
    seen = []
    gate = open_gate(progress=lambda *step: seen.append(step))
    make_all(gate)
    assert seen == [("sums", 1, 5), ("sums", 2, 5), ("sums", 3, 5), ("pick", 4, 5), ("count", 5, 5)]


def test_gates_count_apart():
    calibrated = PLAN.calibrate(Budget(1.0, 1e-6), ROWS, "test")
    first, second = Gate(calibrated, NoiseSource(0)), Gate(calibrated, NoiseSource(0))
    first.skip("sums", 3)
    assert (first.left("sums"), second.left("sums")) == (0, 3)


# Choices that see no data.


def test_public_choices_follow_the_source():
    first, again, other = (open_gate(seed=seed).publicly(40).tolist() for seed in (1, 1, 2))
    assert first == again != other
    assert sorted(first) == list(range(40))
    draws, same, others = (open_gate(seed=seed).publicly(7, 100) for seed in (1, 1, 2))
    np.testing.assert_array_equal(draws, same)
    assert np.any(draws != others)
    assert set(draws.tolist()) == set(range(7))


def test_fresh_sources_make_different_public_choices():
    calibrated = PLAN.calibrate(Budget(1.0, 1e-6), ROWS, "test")
    one, other = (Gate(calibrated, NoiseSource()).publicly(100).tolist() for _ in range(2))
    assert one != other


def test_public_choices_differ_and_use_no_release():
    gate = open_gate()
    assert gate.publicly(100).tolist() != gate.publicly(100).tolist()
    assert [gate.left(name) for name in ("sums", "pick", "count")] == [3, 1, 1]


def test_every_order_is_as_likely():
    """A chi-square test of 6,000 orders of three: five degrees of freedom, so 25 is exceeded once in 7,000 times."""
    gate = open_gate(seed=5)
    orders = Counter(tuple(gate.publicly(3).tolist()) for _ in range(6_000))
    assert len(orders) == 6
    assert sum((count - 1_000) ** 2 / 1_000 for count in orders.values()) < 25


def test_several_releases_at_once_are_counted_and_have_a_sample_each():
    gate = open_gate(SAMPLED, n=50)
    planned = gate.left("steps")
    rows, starts = gate.samples("steps", 3)
    assert starts.tolist()[0] == 0
    assert starts[-1] == len(rows)
    assert np.all((rows >= 0) & (rows < 50))
    for t in range(3):
        assert np.all(np.diff(rows[starts[t] : starts[t + 1]]) > 0)
    with pytest.raises(PlanViolationError, match="fresh sample"):
        open_gate(SAMPLED).release("steps", Watched(), lambda grant: grant.take(2))
    gate.release("steps", Watched(), lambda grant: grant.take(3))
    assert gate.left("steps") == planned - 3


def test_as_many_releases_are_granted_as_samples_were_drawn():
    for granted in (1, 3):
        gate = open_gate(SAMPLED)
        gate.samples("steps", 2)
        with pytest.raises(PlanViolationError):
            gate.release("steps", Watched(), lambda grant, granted=granted: grant.take(granted))


def test_samples_drawn_at_once_are_those_drawn_one_after_the_other():
    gate, other = (open_gate(SAMPLED, seed=3, n=10_000) for _ in range(2))
    rows, starts = gate.samples("steps", 3)
    sizes = np.diff(starts)
    one = other.sample("steps")
    np.testing.assert_array_equal(rows[: starts[1]], one)
    assert len({tuple(rows[starts[t] : starts[t + 1]].tolist()) for t in range(3)}) == 3
    assert sizes.min() > 0


def test_releases_made_before_count():
    gate = open_gate(made={"sums": 2, "pick": 1, "count": 0})
    assert [gate.left(name) for name in ("sums", "pick", "count")] == [1, 0, 1]
    gate.release("sums", GAUSSIAN, [1.0, 2.0])
    for name, again in (("sums", GAUSSIAN), ("pick", SELECT)):
        with pytest.raises(PlanViolationError, match="of which 0 are left"):
            gate.release(name, again, [1.0, 2.0])
    gate.release("count", LAPLACE, 3.0)
    gate.finish()


@pytest.mark.parametrize(
    ("made", "error"),
    [({"sums": 4}, PlanViolationError), ({"others": 1}, PlanViolationError), ({"sums": -1}, ValueError)],
)
def test_a_ledger_that_does_not_fit_the_plan_is_refused(made, error):
    with pytest.raises(error):
        open_gate(made=made)


def test_arithmetic_is_quiet_inside_and_as_it_was_after():
    with np.errstate(all="raise"):
        before = np.geterr()
        for error in (False, True):
            with suppress(KeyError), open_gate() as gate:
                np.float64(1e308) * np.float64(1e308), np.float64(5e-324) * np.float64(0.1)
                make_all(gate)
                if error:
                    raise KeyError
            assert np.geterr() == before
