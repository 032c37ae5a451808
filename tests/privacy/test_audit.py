"""Audits must find what is there, and must not find more than is there.

Seeds are fixed, so a test passes always or never; the comments say how often it would fail with a fresh seed.
The simulated mechanisms use NumPy's generator and batch form where runs are many: `Outputs` from two arrays.
"""

import os

import numpy as np
import pytest

from tacit.privacy import audit


def gaussian_outputs(rng, mu, trials, d=1, noise=1.0):
    """Shift mu along a random direction, noise of standard deviation `noise` in every column."""
    direction = rng.normal(size=d)
    direction /= np.linalg.norm(direction)
    return audit.Outputs(mu * direction + noise * rng.normal(size=(trials, d)), noise * rng.normal(size=(trials, d)))


def randomised_response(rng, epsilon, trials):
    honest = np.exp(epsilon) / (1 + np.exp(epsilon))
    return audit.Outputs((rng.random(trials) < honest).astype(int), (rng.random(trials) >= honest).astype(int))


def laplace_outputs(rng, epsilon, trials):
    return audit.Outputs(epsilon + rng.laplace(size=trials), rng.laplace(size=trials))


def fresh_gaussian(value):
    """One Gaussian release at mu = 3, its generator made inside the call, as runs in processes need it."""
    return value + np.random.default_rng().normal()


def low_bit(world):
    """The exponent of the lowest set bit: how fine a grid the float lies on."""
    mantissa, exponent = np.frexp(world[:, 0])
    digits = (mantissa * 2.0**53).astype(np.int64)
    return exponent + np.log2((digits & -digits).astype(float))


# Power: what is there is found.


# A fresh seed would fall below mu/2 in up to 5% of draws for mu = 0.5 and in under 1% for the others; by the
# guarantee it would exceed mu in at most 5%.
@pytest.mark.parametrize("mu", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("d", [1, 20])
def test_reaches_half_of_mu_and_does_not_exceed_it(mu, d):
    bound = audit.mu_lower_bound(gaussian_outputs(np.random.default_rng(11), mu, 5_000, d))
    assert mu / 2 <= bound <= mu


def test_half_the_noise_is_flagged_and_the_right_noise_is_not():
    claimed_mu = 1.0
    for d in (1, 20):
        rng = np.random.default_rng(12)
        honest = audit.mu_lower_bound(gaussian_outputs(rng, claimed_mu, 5_000, d))
        cheat = audit.mu_lower_bound(gaussian_outputs(rng, claimed_mu, 5_000, d, noise=0.5))
        assert honest <= claimed_mu < cheat


# The least of 100 draws was 79%, 89% and 91% of epsilon. Above epsilon in at most 5%.
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_randomised_response_reaches_most_of_epsilon(epsilon):
    bound = audit.epsilon_lower_bound(randomised_response(np.random.default_rng(13), epsilon, 10_000), 0.0)
    assert 0.7 * epsilon <= bound <= epsilon


@pytest.mark.parametrize("as_label", [str, bool, lambda bit: ("answer", bit), lambda bit: bit or None])
def test_categories_of_any_hashable_kind(as_label):
    counts = randomised_response(np.random.default_rng(14), 1.0, 5_000)
    worlds = (
        np.fromiter((as_label(int(bit)) for bit in world), dtype=object, count=len(world))
        for world in (counts.present, counts.absent)
    )
    assert 0.7 <= audit.epsilon_lower_bound(audit.Outputs(*worlds), 0.0) <= 1.0


def test_laplace_reaches_most_of_epsilon():
    # Below 0.7 in 2% of draws.
    bound = audit.epsilon_lower_bound(laplace_outputs(np.random.default_rng(15), 1.0, 10_000), 0.0)
    assert 0.7 <= bound <= 1.0


@pytest.mark.parametrize("d", [1, 5])
def test_rare_release_of_the_data_is_flagged(d):
    # Wide noise (mu = 0.1), but the exact data in 2% of the calls: far more than delta = 1e-6 allows.
    rng = np.random.default_rng(16)

    def mechanism(data):
        return data if rng.random() < 0.02 else data + 10 * np.sqrt(d) * rng.normal(size=d)

    result = audit.audit(mechanism, np.zeros(d), np.ones(d), delta=1e-6, trials=5_000)
    assert result.contradicts(claimed_epsilon=1.0)


def test_disjoint_float_grids_are_flagged():
    # Noise on a grid of thirds, added to values off that grid: every output names its world.
    rng = np.random.default_rng(17)
    noise = np.rint(20 * rng.normal(size=(2, 4_000))) / 3
    bound = audit.epsilon_lower_bound(audit.Outputs(noise[0], noise[1] + 0.1), 1e-6)
    assert bound > 4


def test_change_of_spread_is_flagged():
    rng = np.random.default_rng(18)
    for shape in ((2_000,), (2_000, 5)):
        outputs = audit.Outputs(rng.normal(size=shape), 2 * rng.normal(size=shape))
        assert audit.epsilon_lower_bound(outputs, 1e-6) > 1


def test_correlated_noise_does_not_hide_a_shift():
    # The common noise is 30 times the shift; the direction that cancels it has mu = 2.
    rng = np.random.default_rng(19)
    common = 30 * rng.normal(size=(2, 5_000, 1))
    own = rng.normal(size=(2, 5_000, 2))
    worlds = common * [1, 1] + own + np.array([[[1, -1]], [[0, 0]]]) * np.sqrt(2)
    assert 1.0 <= audit.mu_lower_bound(audit.Outputs(worlds[0], worlds[1])) <= 2.0


def test_many_columns():
    rng = np.random.default_rng(20)
    outputs = audit.Outputs(rng.normal(size=(400, 600)) + 0.2, rng.normal(size=(400, 600)))
    assert 1.0 <= audit.mu_lower_bound(outputs) <= 0.2 * np.sqrt(600)


def test_nan_infinity_and_huge_values_are_outputs_too():
    rng = np.random.default_rng(21)
    present, absent = rng.normal(size=(2, 2_000, 3))
    absent[rng.random(2_000) < 0.1, 1] = np.nan
    present[3], present[4], absent[5] = -np.inf, 1e300, -1e300
    assert audit.epsilon_lower_bound(audit.Outputs(present, absent), 1e-6) > 1


# Soundness: no more than is there is found.


@pytest.mark.slow
def test_bounds_exceed_the_truth_no_more_often_than_stated():
    # 500 audits of each mechanism at 80% confidence: 100 violations are permitted. Two independent errors of
    # 10% each rarely add up: the rate to expect is 3.5%, and then 40 violations have probability 2e-6.
    # Choosing and counting on the same runs would give 60 to 75.
    rng = np.random.default_rng(22)
    audits = {
        "gaussian": lambda: audit.mu_lower_bound(gaussian_outputs(rng, 1.0, 400), confidence=0.8),
        "response": lambda: audit.epsilon_lower_bound(randomised_response(rng, 1.0, 400), 0.0, confidence=0.8),
        "laplace": lambda: audit.epsilon_lower_bound(laplace_outputs(rng, 1.0, 400), 0.0, confidence=0.8),
    }
    for name, bound in audits.items():
        violations = sum(bound() > 1.0 for _ in range(500))
        assert violations < 40, (name, violations)


def test_gaussian_epsilon_stays_below_its_exact_curve():
    # mu = 1 is exactly (4.3772, 1e-5)-DP. A violation has probability at most 5% a draw, in fact far less.
    for seed in range(5):
        outputs = gaussian_outputs(np.random.default_rng(seed), 1.0, 5_000)
        assert 1.0 < audit.epsilon_lower_bound(outputs, 1e-5) < 4.3772


@pytest.mark.parametrize("shape", [(2_000,), (2_000, 5)])
def test_equal_worlds_show_nothing(shape):
    # Each of these may exceed 0 with probability at most 5%.
    rng = np.random.default_rng(23)
    for draw in (rng.normal, rng.laplace, lambda size: rng.integers(3, size=size)):
        outputs = audit.Outputs(draw(size=shape), draw(size=shape))
        assert audit.mu_lower_bound(outputs) < 0.02
        assert audit.epsilon_lower_bound(outputs, 1e-5) < 0.05


def test_constant_and_never_repeated_outputs_show_nothing():
    constant = audit.Outputs(np.zeros((100, 3)), np.zeros((100, 3)))
    unique = audit.Outputs(np.array([f"a{i}" for i in range(100)]), np.array([f"b{i}" for i in range(100)]))
    for outputs in (constant, unique):
        assert audit.mu_lower_bound(outputs) == 0
        assert audit.epsilon_lower_bound(outputs, 0.0) == 0


def test_perfect_separation_stays_finite():
    for trials in (20, 21, 1_000):
        outputs = audit.Outputs(np.zeros((trials, 2)), np.ones((trials, 2)))
        # n held-out runs: log(P_low / Q_high), P_low = 0.025^(1/n), Q_high = 1 - P_low.
        low = 0.025 ** (1 / (trials - trials // 2))
        assert audit.epsilon_lower_bound(outputs, 0.0) == pytest.approx(np.log(low / (1 - low)))
        assert 0 < audit.mu_lower_bound(outputs) < 10


def test_bounds_fall_with_delta_and_with_confidence():
    outputs = laplace_outputs(np.random.default_rng(24), 2.0, 2_000)
    by_delta = [audit.epsilon_lower_bound(outputs, delta) for delta in (0.0, 0.1, 0.5, 0.99)]
    by_confidence = [audit.epsilon_lower_bound(outputs, 0.0, confidence=c) for c in (0.5, 0.9, 0.999)]
    assert by_delta == sorted(by_delta, reverse=True)
    assert by_delta[-1] == 0
    assert by_confidence == sorted(by_confidence, reverse=True)


def test_a_leak_in_one_world_is_found_in_either_order():
    # Only the second world ever says "yes": 0.3 over 0 shows a large epsilon, 1 over 0.7 ("no") a small one.
    said_yes = np.random.default_rng(25).random(2_000) < 0.3
    worlds = np.full(2_000, "no"), np.where(said_yes, "yes", "no")
    bound = audit.epsilon_lower_bound(audit.Outputs(*worlds), 1e-6)
    assert bound > 4
    assert bound == audit.epsilon_lower_bound(audit.Outputs(*worlds[::-1]), 1e-6)


# A custom score.


def test_custom_score_finds_the_low_bits_of_naive_noise():
    # In float64, 1 + normal() lies on a coarser grid than normal(). The learned scores do not look there.
    rng = np.random.default_rng(26)
    outputs = audit.Outputs(0.0 + rng.normal(size=8_000), 1.0 + rng.normal(size=8_000))
    assert audit.epsilon_lower_bound(outputs, 1e-6, score=low_bit) > 4.887  # of the exact Gaussian
    assert audit.mu_lower_bound(outputs, score=low_bit) > 1.5
    assert audit.mu_lower_bound(outputs) <= 1.0


def test_custom_score_gets_one_world_and_must_return_a_number_a_run():
    outputs = gaussian_outputs(np.random.default_rng(27), 2.0, 1_000, d=3)
    assert 1.0 <= audit.mu_lower_bound(outputs, score=lambda world: world @ (outputs.present.mean(axis=0))) <= 2.0
    with pytest.raises(ValueError, match=r"score must return shape \(500,\).*got shape \(500, 3\)"):
        audit.mu_lower_bound(outputs, score=lambda world: world)
    with pytest.raises(ValueError, match="without NaN"):
        audit.mu_lower_bound(outputs, score=lambda world: world[:, 0] * np.nan)


# Running a mechanism.


def test_run_takes_turns():
    calls = []
    outputs = audit.run(lambda data: calls.append(data) or float(len(calls)), "data", "neighbour", 30)
    assert calls == ["data", "neighbour"] * 30
    assert outputs.present.shape == outputs.absent.shape == (30, 1)
    assert np.all(outputs.absent - outputs.present == 1)


@pytest.mark.parametrize(
    ("output", "shape", "kind"),
    [
        (1.5, (20, 1), "f"),
        (np.float32(1.5), (20, 1), "f"),
        (np.ones((2, 3)), (20, 6), "f"),
        ((0.5, 1.5), (20, 2), "f"),
        (np.arange(4), (20, 4), "i"),
        (7, (20,), "i"),
        (True, (20,), "b"),
        ("yes", (20,), "O"),
        (None, (20,), "O"),
        ((1, "yes"), (20,), "O"),
        (("yes", (1, 2)), (20,), "O"),
    ],
)
def test_run_shapes_outputs(output, shape, kind):
    outputs = audit.run(lambda _: output, 0, 1, 20)
    assert outputs.present.shape == outputs.absent.shape == shape
    assert outputs.present.dtype.kind == outputs.absent.dtype.kind == kind


def test_run_copies_a_reused_buffer():
    buffer = np.zeros(2)

    def mechanism(step):
        buffer[:] += step
        return buffer

    assert audit.run(mechanism, 1.0, 0.0, 20).present[:, 0].tolist() == list(range(1, 21))


def test_run_lets_exceptions_through():
    with pytest.raises(ZeroDivisionError):
        audit.run(lambda data: 1 / data, 1, 0, 20)


def test_caught_exception_counts_as_an_output():
    def mechanism(data):
        try:
            return 1.0 / data
        except ZeroDivisionError:
            return "undefined"

    assert audit.audit(mechanism, 1, 0, delta=0.0, trials=400).contradicts(claimed_epsilon=2.0)


def test_run_in_processes():
    result = audit.audit(fresh_gaussian, 0.0, 3.0, delta=1e-5, trials=1_001, n_jobs=2)
    # The one test with fresh noise: over 300 draws the bound was 2.62 on average, standard deviation 0.11.
    assert 1.5 <= result.mu <= 4.0
    assert result.trials == 1_001


def test_run_in_processes_uses_processes():
    outputs = audit.run(lambda _: os.getpid(), 0, 0, 40, n_jobs=2)
    assert os.getpid() not in outputs.present


def test_noise_copied_into_processes_is_refused():
    rng = np.random.default_rng(28)
    with pytest.raises(ValueError, match="make its generator inside the call"):
        audit.run(lambda value: value + rng.normal(), 0.0, 1.0, 101, n_jobs=2)


# Results and bad input.


def test_result_reads_as_a_sentence():
    result = audit.AuditResult(epsilon=0.6199, mu=0.8, delta=1e-5, confidence=0.95, trials=5_000)
    assert str(result) == (
        "with 95% confidence epsilon >= 0.619 at delta = 1e-05 and mu >= 0.8 if Gaussian, from 2 x 5,000 runs"
    )


def test_contradicts():
    result = audit.AuditResult(epsilon=0.6, mu=0.8, delta=1e-5, confidence=0.95, trials=5_000)
    assert result.contradicts(claimed_epsilon=0.5)
    assert not result.contradicts(claimed_epsilon=0.6)
    assert result.contradicts(claimed_mu=0.7)
    assert not result.contradicts(claimed_mu=0.9)
    assert result.contradicts(claimed_epsilon=1.0, claimed_mu=0.7)
    with pytest.raises(ValueError, match="both None"):
        result.contradicts()
    with pytest.raises(ValueError, match="claimed_mu must be a number, got NaN"):
        result.contradicts(claimed_mu=float("nan"))


def test_audit_agrees_with_its_parts():
    rng = np.random.default_rng(29)
    result = audit.audit(lambda value: value + rng.normal(), 0.0, 2.0, delta=1e-5, confidence=0.9)
    rng = np.random.default_rng(29)
    outputs = audit.run(lambda value: value + rng.normal(), 0.0, 2.0, 2_000)
    assert result == audit.AuditResult(
        epsilon=audit.epsilon_lower_bound(outputs, 1e-5, confidence=0.9),
        mu=audit.mu_lower_bound(outputs, confidence=0.9),
        delta=1e-5,
        confidence=0.9,
        trials=2_000,
    )


@pytest.mark.parametrize("delta", [-0.1, 1.0, 1.5, float("nan")])
def test_bad_delta(delta):
    outputs = audit.Outputs(np.zeros(20), np.zeros(20))
    with pytest.raises(ValueError, match="delta must"):
        audit.epsilon_lower_bound(outputs, delta)
    with pytest.raises(ValueError, match="delta must"):
        audit.audit(lambda _: pytest.fail("ran before the check"), 0, 1, delta)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, float("nan")])
def test_bad_confidence(confidence):
    outputs = audit.Outputs(np.zeros(20), np.zeros(20))
    for bound in (
        audit.mu_lower_bound,
        lambda *args, **kwargs: audit.epsilon_lower_bound(*args, 0.1, **kwargs),
    ):
        with pytest.raises(ValueError, match="confidence must"):
            bound(outputs, confidence=confidence)
    with pytest.raises(ValueError, match="confidence must"):
        audit.audit(lambda _: pytest.fail("ran before the check"), 0, 1, 0.1, confidence=confidence)


def test_bad_trials_and_shapes():
    with pytest.raises(ValueError, match="trials must be at least 20, got 19"):
        audit.run(lambda _: 0.0, 0, 1, 19)
    with pytest.raises(TypeError, match=r"trials must be an integer, got 20\.5"):
        audit.run(lambda _: 0.0, 0, 1, 20.5)
    with pytest.raises(ValueError, match="trials must be at least 20, got 3"):
        audit.Outputs(np.zeros(3), np.zeros(3))
    with pytest.raises(ValueError, match=r"one shape, got \(20,\) and \(21,\)"):
        audit.Outputs(np.zeros(20), np.zeros(21))
    with pytest.raises(ValueError, match=r"one shape, got \(\) and \(\)"):
        audit.Outputs(np.float64(0), np.float64(0))


@pytest.mark.parametrize(
    "mechanism",
    [
        lambda data: np.zeros(2 + data),  # several shapes
        lambda _: object(),  # hashes by identity
        lambda _: {"coef": 1.0},
        lambda _: ["yes", "no"],
        lambda _: np.array(["yes", "no"]),
        lambda _: np.array([1j, 2j]),
    ],
)
def test_outputs_that_cannot_be_compared_are_refused(mechanism):
    with pytest.raises(TypeError, match="outputs must be numbers, real arrays of one shape, or values"):
        audit.run(mechanism, 0, 1, 20)
