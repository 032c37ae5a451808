"""The meter lets through what was planned, exactly as often as planned, and nothing else."""

import copy
import math
import pickle
from collections import Counter

import numpy as np
import pytest

from tacit.privacy import Budget, Meter, NoiseSource, Plan, PlanViolationError, Release
from tacit.privacy.mechanisms import GaussianVector, LaplaceVector, Selection, Sensitivity

PLAN = Plan(
    Release("sums", "gaussian", share=1.0, count=3),
    Release("pick", "exponential", share=1.0),
    Release("count", "laplace", share=1.0),
)
SAMPLED = Plan(Release("steps", "gaussian", share=1.0, count=3, sampling=0.25), Release("sum", "gaussian", share=1.0))

GAUSSIAN = GaussianVector(Sensitivity.vector(1.0))
LAPLACE = LaplaceVector(Sensitivity.vector(1.0))
SELECT = Selection(Sensitivity(1.0, 2.0))


def open_meter(plan=PLAN, seed=0, **kwargs):
    return plan.calibrate(Budget(1.0, 1e-6)).meter(NoiseSource(seed), **kwargs)


def make_all(meter):
    for _ in range(3):
        GAUSSIAN.release(meter, "sums", [1.0, 2.0])
    SELECT.release(meter, "pick", [1.0, 2.0])
    LAPLACE.release(meter, "count", 3.0)


def test_the_plan_and_nothing_but_the_plan():
    meter = open_meter()
    assert [meter.left(name) for name in ("sums", "pick", "count")] == [3, 1, 1]
    make_all(meter)
    assert [meter.left(name) for name in ("sums", "pick", "count")] == [0, 0, 0]
    meter.finish()


@pytest.mark.parametrize(
    ("name", "again"),
    [
        ("sums", lambda m: GAUSSIAN.release(m, "sums", [1.0])),
        ("pick", lambda m: SELECT.release(m, "pick", [1.0, 2.0])),
        ("count", lambda m: LAPLACE.release(m, "count", 1.0)),
    ],
)
def test_one_release_too_many(name, again):
    meter = open_meter()
    make_all(meter)
    with pytest.raises(PlanViolationError, match=f"release '{name}' is planned . times, of which 0 are left"):
        again(meter)
    assert meter.left(name) == 0


def test_one_release_too_few():
    meter = open_meter()
    GAUSSIAN.release(meter, "sums", [1.0])
    with pytest.raises(PlanViolationError, match=r"neither released nor skipped: 'sums' \(2 of 3\), 'pick' \(1 of 1\)"):
        meter.finish()


def test_another_kind():
    meter = open_meter()
    with pytest.raises(PlanViolationError, match="release 'sums' is planned as gaussian, not as laplace"):
        LAPLACE.release(meter, "sums", 1.0)
    with pytest.raises(PlanViolationError, match="release 'pick' is planned as exponential, not as gaussian"):
        GAUSSIAN.release(meter, "pick", 1.0)
    with pytest.raises(PlanViolationError, match="release 'count' is planned as laplace, not as exponential"):
        SELECT.release(meter, "count", [1.0])
    assert meter.left("sums") == 3  # what was refused was not counted


def test_another_name():
    meter = open_meter()
    for call in (
        lambda: GAUSSIAN.release(meter, "mean", 1.0),
        lambda: meter.left("mean"),
        lambda: meter.skip("mean"),
        lambda: meter.sample("mean", 10),
        lambda: meter.multiplier("mean"),
    ):
        with pytest.raises(PlanViolationError, match="release 'mean' is not in the plan, which has 'sums', 'pick'"):
            call()


def test_skipping_is_explicit_and_counted():
    meter = open_meter()
    meter.skip("sums", 2)
    GAUSSIAN.release(meter, "sums", [1.0])
    with pytest.raises(PlanViolationError, match="of which 0 are left"):
        GAUSSIAN.release(meter, "sums", [1.0])
    meter.skip("pick")
    meter.skip("count")
    meter.finish()


@pytest.mark.parametrize(
    ("count", "error"),
    [(4, PlanViolationError), (0, ValueError), (-1, ValueError), (0.5, TypeError), (math.nan, TypeError)],
)
def test_skipping_more_or_less_than_planned(count, error):
    # A negative count would buy further releases.
    meter = open_meter()
    with pytest.raises(error):
        meter.skip("sums", count)
    assert meter.left("sums") == 3


def test_a_sampled_release_needs_a_fresh_sample_each_time():
    meter = open_meter(SAMPLED)
    with pytest.raises(PlanViolationError, match="planned on a fresh sample of the rows; call sample"):
        GAUSSIAN.release(meter, "steps", [1.0])
    meter = open_meter(SAMPLED)
    meter.sample("steps", 100)
    GAUSSIAN.release(meter, "steps", [1.0])
    with pytest.raises(PlanViolationError, match="call sample"):
        GAUSSIAN.release(meter, "steps", [1.0])


def test_a_release_on_all_rows_may_ask_for_them_each_time():
    """A solver need not know whether its sample is a true one: with the certain coin it gets every row."""
    meter = open_meter(Plan(Release("steps", "gaussian", share=1.0, count=2, sampling=1.0)))
    for _ in range(2):
        np.testing.assert_array_equal(meter.sample("steps", 4), np.arange(4))
        with pytest.raises(PlanViolationError, match="has its sample"):
            meter.sample("steps", 4)
        GAUSSIAN.release(meter, "steps", [1.0])
    meter.finish()


def test_a_sample_that_was_refused_is_no_sample():
    meter = open_meter(SAMPLED)
    with pytest.raises(ValueError, match="n must be at least 0"):
        meter.sample("steps", -1)
    with pytest.raises(PlanViolationError, match="call sample"):
        GAUSSIAN.release(meter, "steps", [1.0])


def test_a_sample_is_not_carried_over_a_skip_or_to_another_name():
    meter = open_meter(SAMPLED)
    meter.sample("steps", 100)
    meter.skip("steps")
    with pytest.raises(PlanViolationError, match="call sample"):
        GAUSSIAN.release(meter, "steps", [1.0])
    meter = open_meter(SAMPLED)
    meter.sample("sum", 100)
    with pytest.raises(PlanViolationError, match="call sample"):
        GAUSSIAN.release(meter, "steps", [1.0])


def test_samples_use_the_planned_coin():
    # 100,000 coins of 1/4: a standard deviation is 137. Beyond 5.5 of them once in 3e7 seeds.
    rows = open_meter(SAMPLED, seed=1).sample("steps", 100_000)
    assert abs(len(rows) - 25_000) < 5.5 * 137
    assert rows.dtype == np.int64
    assert np.all(np.diff(rows) > 0)
    assert (rows.min(), rows.max()) >= (0, 99_900)
    assert rows.max() < 100_000
    np.testing.assert_array_equal(open_meter(SAMPLED).sample("sum", 5), np.arange(5))


def test_samples_are_independent():
    meter = open_meter(SAMPLED, seed=2)
    first = set(meter.sample("steps", 10_000))
    meter.skip("steps")
    second = set(meter.sample("steps", 10_000))
    # Both coins: 625 of 10,000 rows, standard deviation 24; beyond 5.5 of them once in 3e7 seeds.
    assert abs(len(first & second) - 625) < 5.5 * 24.3


def test_a_second_sample_to_choose_from_is_refused():
    meter = open_meter(SAMPLED)
    meter.sample("steps", 10)
    with pytest.raises(PlanViolationError, match="has its sample"):
        meter.sample("steps", 10)


def test_the_context_finishes_on_success():
    with open_meter() as meter:
        make_all(meter)
    with pytest.raises(PlanViolationError, match="neither released nor skipped"), open_meter() as meter:
        GAUSSIAN.release(meter, "sums", [1.0])


def test_the_context_lets_exceptions_through():
    # What went wrong is told, not that releases are missing because of it.
    with pytest.raises(ZeroDivisionError), open_meter() as meter:
        meter.skip("sums", 1 // 0)


@pytest.mark.parametrize("attempt", [pickle.dumps, copy.copy, copy.deepcopy], ids=lambda f: f.__name__)
def test_no_copies(attempt):
    with pytest.raises(TypeError, match="cannot be pickled or copied"):
        attempt(open_meter())


def test_properties_of_the_budget_and_the_source():
    calibrated = Plan(Release("a", "gaussian", share=1.0)).calibrate(Budget(1.0, 1e-6, "replace-one"))
    meter = calibrated.meter(NoiseSource(0))
    assert (meter.adjacency, meter.seeded) == ("replace-one", True)
    assert calibrated.meter(NoiseSource()).seeded is False
    assert meter.multiplier("a") == calibrated.multiplier("a")


def test_a_grant_gives_the_planned_multiplier():
    meter = open_meter()
    calibrated = PLAN.calibrate(Budget(1.0, 1e-6))
    assert meter.grant("sums", "gaussian").multiplier == calibrated.multiplier("sums")
    assert meter.grant("pick", "exponential").multiplier == calibrated.multiplier("pick")


def test_progress_tells_the_plan_and_not_the_data():
    seen = []
    meter = open_meter(progress=lambda *step: seen.append(step))
    make_all(meter)
    assert seen == [("sums", 1, 5), ("sums", 2, 5), ("sums", 3, 5), ("pick", 4, 5), ("count", 5, 5)]


def test_meters_count_apart():
    calibrated = PLAN.calibrate(Budget(1.0, 1e-6))
    first, second = Meter(calibrated, NoiseSource(0)), Meter(calibrated, NoiseSource(0))
    first.skip("sums", 3)
    assert (first.left("sums"), second.left("sums")) == (0, 3)


# Choices that see no data.


def test_public_choices_follow_the_source():
    first, again, other = (open_meter(seed=seed).public_order(40).tolist() for seed in (1, 1, 2))
    assert first == again != other
    assert sorted(first) == list(range(40))
    draws, same, others = (open_meter(seed=seed).public_draws(7, 100) for seed in (1, 1, 2))
    np.testing.assert_array_equal(draws, same)
    assert np.any(draws != others)
    assert set(draws.tolist()) == set(range(7))


def test_fresh_sources_make_different_public_choices():
    calibrated = PLAN.calibrate(Budget(1.0, 1e-6))
    one, other = (calibrated.meter(NoiseSource()).public_order(100).tolist() for _ in range(2))
    assert one != other


def test_public_choices_differ_and_use_no_release():
    meter = open_meter()
    assert meter.public_order(100).tolist() != meter.public_order(100).tolist()
    assert [meter.left(name) for name in ("sums", "pick", "count")] == [3, 1, 1]


def test_every_order_is_as_likely():
    """A chi-square test of 6,000 orders of three: five degrees of freedom, so 25 is exceeded once in 7,000 times."""
    meter = open_meter(seed=5)
    orders = Counter(tuple(meter.public_order(3).tolist()) for _ in range(6_000))
    assert len(orders) == 6
    assert sum((count - 1_000) ** 2 / 1_000 for count in orders.values()) < 25


def test_several_releases_at_once_are_counted_and_have_a_sample_each():
    meter = open_meter(SAMPLED)
    planned = meter.left("steps")
    rows, starts = meter.samples("steps", 50, 3)
    assert starts.tolist()[0] == 0
    assert starts[-1] == len(rows)
    assert np.all((rows >= 0) & (rows < 50))
    for t in range(3):
        assert np.all(np.diff(rows[starts[t] : starts[t + 1]]) > 0)
    with pytest.raises(PlanViolationError, match="fresh sample"):
        open_meter(SAMPLED).grant("steps", "gaussian", 2)
    meter.grant("steps", "gaussian", 3)
    assert meter.left("steps") == planned - 3


def test_as_many_releases_are_granted_as_samples_were_drawn():
    for granted in (1, 3):
        meter = open_meter(SAMPLED)
        meter.samples("steps", 50, 2)
        with pytest.raises(PlanViolationError):
            meter.grant("steps", "gaussian", granted)


def test_samples_drawn_at_once_are_those_drawn_one_after_the_other():
    meter, other = open_meter(SAMPLED, seed=3), open_meter(SAMPLED, seed=3)
    rows, starts = meter.samples("steps", 10_000, 3)
    sizes = np.diff(starts)
    one = other.sample("steps", 10_000)
    np.testing.assert_array_equal(rows[: starts[1]], one)
    assert len({tuple(rows[starts[t] : starts[t + 1]].tolist()) for t in range(3)}) == 3
    assert sizes.min() > 0


def test_releases_made_before_count():
    meter = open_meter(made={"sums": 2, "pick": 1, "count": 0})
    assert [meter.left(name) for name in ("sums", "pick", "count")] == [1, 0, 1]
    GAUSSIAN.release(meter, "sums", [1.0, 2.0])
    for name, again in (("sums", GAUSSIAN), ("pick", SELECT)):
        with pytest.raises(PlanViolationError, match="of which 0 are left"):
            again.release(meter, name, [1.0, 2.0])
    LAPLACE.release(meter, "count", 3.0)
    meter.finish()


@pytest.mark.parametrize(
    ("made", "error"),
    [({"sums": 4}, PlanViolationError), ({"others": 1}, PlanViolationError), ({"sums": -1}, ValueError)],
)
def test_a_ledger_that_does_not_fit_the_plan_is_refused(made, error):
    with pytest.raises(error):
        open_meter(made=made)
