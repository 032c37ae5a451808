"""The benchmark of small budgets on tiny sets: what it measures, and what it says of numbers that were asked for."""

import numpy as np
import pytest

from benchmarks.frame import sets
from benchmarks.frame.dp_sgd import descents
from benchmarks.frame.made import MADE
from benchmarks.frame.records import Record
from benchmarks.frame.tuning import Point
from benchmarks.small import __main__ as small
from benchmarks.small import oracle
from benchmarks.small.page import CONSTANT, DP_SGD, ORACLE, OURS, SmallPage, is_level, role, told
from tacit.privacy import Budget
from tacit.solvers import classes

X = np.random.default_rng(0).normal(size=(400, 3))
TARGETS = {"line": X[:, 0], "two": np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")}


@pytest.fixture
def tiny(monkeypatch):
    """Two sets, and one of them with few rows of its second class."""
    kinds = {"line": "regression", "two": "classification"}
    monkeypatch.setattr(sets, "load", lambda name: (X, TARGETS[name], kinds[name]))
    asked = {
        "two": {"score": "accuracy", "asked": [0.1]},
        "two, 5% positives": {"score": "auc", "above": [-1.0]},
        "line": {"score": "r2", "asked": [2.0]},
    }
    few = small.BENCHMARK.full.but(sets=asked, told_at=[1.0], epsilons=[1.0, 2.0], seeds=2, told_seeds=2)
    monkeypatch.setattr(small.BENCHMARK, "full", few)


@pytest.mark.usefixtures("tiny")
def test_what_was_asked_stands_next_to_what_is_found(tmp_path):
    enough = classes.ENOUGH
    small.BENCHMARK.main(["--out", str(tmp_path)])
    assert enough == classes.ENOUGH
    page = (tmp_path / "small.md").read_text()
    told_of = {
        name: [line.split(" | ") for line in page.splitlines() if line.startswith(f"| {name} |")]
        for name in small.BENCHMARK.full.sets
    }
    assert [len(rows) for rows in told_of.values()] == [
        4,
        4,
        2,
    ]  # two tables of classes at two epsilons, one of numbers
    verdicts = {name: [row[-1].strip(" |") for row in rows] for name, rows in told_of.items()}
    assert verdicts["two"][:2] == ["reached", "-"]  # nothing was asked for at the second epsilon
    assert verdicts["two, 5% positives"][0] == "reached"
    assert verdicts["line"][0] == "**not reached**"
    # The oracle is run at the first epsilon alone; scores are where they are looked for.
    (ours, oracle, covered), (_, none, _) = ([row[k] for k in (8, 10, 11)] for row in told_of["two"][:2])
    share = (float(ours.split()[0]) - float(told_of["two"][0][6])) / (float(oracle.split()[0]) - 0.5)
    assert none == "-"
    assert float(covered) == pytest.approx(share, abs=0.15)


def test_the_slope_undoes_a_factor_on_margins():
    margins = np.random.default_rng(1).normal(size=(50_000, 3))
    right = np.exp(margins) / np.exp(margins).sum(axis=1, keepdims=True)
    numbers = (right.cumsum(axis=1) < np.random.default_rng(2).uniform(size=(50_000, 1))).sum(axis=1)
    sure = np.exp(2 * margins) / np.exp(2 * margins).sum(axis=1, keepdims=True)
    assert small.calibration_slope(right, numbers) == pytest.approx(1.0, abs=0.03)
    assert small.calibration_slope(sure, numbers) == pytest.approx(0.5, abs=0.015)


def test_one_in_twenty_rows_stays_positive(monkeypatch):
    monkeypatch.setattr(sets, "load", lambda name: (X, TARGETS[name], "classification"))
    _, y, _ = small.load("two" + small.RARE)
    assert np.mean(y == "yes") == pytest.approx(0.05, abs=0.005)
    assert np.sum(y == "no") == np.sum(TARGETS["two"] == "no")


def test_a_classifier_far_behind_the_majority_is_named():
    def record(model, epsilon, seed, accuracy):
        scores = {"accuracy": [accuracy], "auc": [0.5], "log_loss": [1.0], "slope": [1.0]}
        return Record(
            table="small",
            set="two",
            model=model,
            epsilon=epsilon,
            seed=seed,
            scores=scores,
            seconds=[1.0],
            size=(400, 3, 2),
        )

    effort = small.BENCHMARK.full.but(sets={"two": {"score": "accuracy"}}, told_at=[])
    records = [record(CONSTANT, None, seed, 0.6) for seed in range(2)]
    good, bad = ([record(OURS, 1.0, seed, value) for seed in range(2)] for value in (0.6, 0.5))
    assert "on no set" in str(SmallPage(records + good, effort))
    assert "two at 1 (-0.100 ± 0.000)" in str(SmallPage(records + bad, effort))
    assert told([0.5]) == "0.500 ± 0.000"


def cut(labels):
    """300 rows train, the others test."""
    return oracle.told([X[:300], X[300:], labels[:300], labels[300:]], "classification")


def test_slopes_of_several_classes_are_held_together():
    labels = np.digitize(X[:, 0], [-0.5, 0.5])
    problem = cut(labels)
    margins = np.random.default_rng(1).normal(size=(300, 3 * 2))  # of two settings
    limits = np.tile([0.1, 1e9], (300, 1))
    held = problem.clipped_slopes(margins, problem.y[:, None], limits).reshape(300, 3, 2)
    chance = np.exp(margins.reshape(300, 3, 2)) / np.exp(margins.reshape(300, 3, 2)).sum(axis=1, keepdims=True)
    plain = chance - np.eye(3)[labels[:300]][:, :, None]
    np.testing.assert_allclose(held[:, :, 1], plain[:, :, 1], atol=1e-12)
    norms = np.linalg.norm(plain[:, :, 0], axis=1)
    np.testing.assert_allclose(np.linalg.norm(held[:, :, 0], axis=1), np.minimum(norms, 0.1))


def test_without_noise_dp_sgd_of_several_classes_finds_them():
    problem = cut(np.digitize(X[:, 0], [-0.5, 0.5]))
    tail = descents(problem, Budget(np.inf, 1e-5), [Point(100, 100.0, 1.0)], seed=0, passes=300).tail
    assert problem.score("accuracy", tail[:, 0].reshape(4, 3)) > 0.95


def test_the_oracle_is_told_true_units():
    far = X * [1e-6, 1.0, 1e6] + [0.0, 1e3, 0.0]
    near, wide = (oracle.told([table[:300], table[300:], X[:300, 0], X[300:, 0]], "regression") for table in (X, far))
    np.testing.assert_allclose(wide.X, near.X, atol=1e-6)
    assert max(oracle.oracle(wide, 3.0, "r2", 0)) > 0.5


def record_of(model, epsilon, seed, scores):
    return Record("small", "two", model, epsilon, seed, {"auc": scores}, [1.0], size=(400, 3, 0))


def test_the_best_setting_on_average_counts_and_the_better_of_both_is_the_oracle():
    effort = small.BENCHMARK.full.but(sets={"two": {"score": "auc"}}, told_at=[1.0])
    records = [record_of(CONSTANT, None, seed, [0.5]) for seed in range(2)]
    records += [record_of(OURS, 1.0, seed, [0.65]) for seed in range(2)]
    records += [record_of(ORACLE, 1.0, seed, [0.9 * seed, 0.6]) for seed in range(2)]
    records += [record_of(DP_SGD, 1.0, seed, [0.1, 0.7 + 0.1 * seed]) for seed in range(2)]
    page = SmallPage(records, effort)
    (row,) = page.told_of
    assert page.best("auc", "two", ORACLE, 1.0) == [0.6, 0.6]
    assert row["oracle"] == row["peer"] == told([0.7, 0.8])
    assert row["covered"] == "0.60"
    assert row["level"] is False
    (short,) = page.summary()
    assert (short["role"], short["half"], short["level"]) == ("judges", "1 of 1", "0 of 1")


def test_a_standard_error_of_the_difference_is_allowed():
    assert is_level([0.5, 0.7], [0.6, 0.8])
    assert not is_level([0.50, 0.52], [0.60, 0.62])


def test_fresh_sets_only_judge_and_are_the_same_every_time():
    assert {role(name) for name in sets.FRESH} == {"fresh"}
    assert not any(entry.chose for entry in sets.FRESH.values())
    assert (role("adult, 5% positives"), role("mnist")) == ("chose", "judges")
    assert set(MADE) < set(sets.FRESH)
    for name, made in MADE.items():
        (Z, target), (_, again) = made(), made()
        assert len(Z) == len(target)
        assert np.array_equal(target, again)
        assert sets.load(name)[2] == sets.FRESH[name].kind
    assert np.mean(MADE["rare_events"]()[1]) == pytest.approx(1 / 70, abs=0.002)
