"""The benchmark of small budgets on tiny sets: what it measures, and what it says of numbers that were asked for."""

import numpy as np
import pytest

from benchmarks.frame import sets
from benchmarks.frame.records import Record
from benchmarks.small import __main__ as small
from benchmarks.small.page import CONSTANT, OURS, SmallPage, told
from tacit.solvers import classes

X = np.random.default_rng(0).normal(size=(400, 3))
TARGETS = {"line": X[:, 0], "two": np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")}


@pytest.fixture
def tiny(monkeypatch):
    """Two sets, and one of them with few rows of its second class."""
    kinds = {"line": "regression", "two": "classification"}
    monkeypatch.setattr(sets, "load", lambda name: (X, TARGETS[name], kinds[name]))
    asked = {
        "two": {"score": "accuracy", "asked": [0.1], "oracle": [1.0]},
        "two, 5% positives": {"score": "auc", "above": [-1.0]},
        "line": {"score": "r2", "asked": [2.0]},
    }
    few = small.BENCHMARK.full.but(sets=asked, told_at=[1.0], epsilons=[1.0, 2.0], seeds=2)
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
    assert "reached" in told_of["two"][0]
    assert "reached" in told_of["two, 5% positives"][0]
    assert "**not reached**" in told_of["line"][0]
    assert "reached" not in " ".join(told_of["two"][1])  # nothing was asked for at the second epsilon


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
