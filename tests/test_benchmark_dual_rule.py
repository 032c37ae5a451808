"""The benchmark of the dual solver's rule, on tiny sets: what it tunes, keeps apart and writes."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.fixture
def rule(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    module = importlib.import_module("dual_rule")
    X = np.random.default_rng(0).normal(size=(400, 3))
    targets = {"line": X[:, 0] + 0.5 * X[:, 1], "two": np.where(X[:, 0] > 0, "yes", "no")}

    def load(name):
        if name not in targets:
            raise module.sets.MissingSetError("not here")
        return X, targets[name], "regression" if name == "line" else "classification"

    monkeypatch.setattr(module.sets, "load", load)
    monkeypatch.setattr(module, "CHOSE", ("two",))
    monkeypatch.setattr(module, "EPSILONS", (1.0,))
    yield module
    sys.modules.pop("dual_rule")


def test_excess_is_between_the_minimum_and_the_zero_model(rule):
    for problem in (*rule.Problem.all_of("line", 400), *rule.Problem.all_of("two", 400)):
        assert problem.excess(np.zeros(4)) == pytest.approx(1.0)
        found, spread = problem.run(float("inf"), range(1))
        assert -1e-6 <= found < 2e-3
        assert spread == 0.0


def test_slopes_are_those_of_the_objective(rule):
    w = np.array([0.3, -0.2, 0.1, 0.05])
    for problem in (*rule.Problem.all_of("line", 400), *rule.Problem.all_of("two", 400)):
        value, slope = problem.objective(w, 0.3)
        for j in range(4):
            moved = w + 1e-6 * np.eye(4)[j]
            assert (problem.objective(moved, 0.3)[0] - value) / 1e-6 == pytest.approx(slope[j], abs=1e-4)


def test_tuning_is_over_the_grid_on_seeds_of_its_own(rule):
    (problem,) = rule.Problem.all_of("line", 400)
    grid = {"batch_size": (100,), "n_passes": (10,), "clip": (1e-6, 1.0)}
    row = rule.measure(problem, 10.0, grid, 1, 2)
    assert row.best["clip"] == 1.0  # the other leaves the weights where they are
    assert row.ratio == row.ours[0] / row.tuned[0]


def test_the_page_tells_sets_that_chose_from_those_that_judge(rule, tmp_path, capsys):
    rule.main(["--quick", "--sets", "line", "two", "absent", "--out", str(tmp_path)])
    judged, chose = (tmp_path / "dual_rule.md").read_text(encoding="utf8").split("## Sets that chose")
    assert judged.count("| line |") == 1
    assert chose.count("| two |") == 3
    assert "absent: skipped" in capsys.readouterr().out
