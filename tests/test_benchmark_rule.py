"""The benchmark of the coordinate solvers' rules, on tiny sets: what it tunes, keeps apart and writes."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.fixture
def rule(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    module = importlib.import_module("coordinate_rule")
    X = np.random.default_rng(0).normal(size=(300, 3))
    targets = {"line": X[:, 0] + 0.5 * X[:, 1], "two": np.where(X[:, 0] > 0, "yes", "no")}

    def load(name):
        if name not in targets:
            raise module.sets.MissingSetError("not here")
        return X, targets[name], "regression" if name == "line" else "classification"

    monkeypatch.setattr(module.sets, "load", load)
    monkeypatch.setattr(module, "CHOSE", ("two",))
    monkeypatch.setattr(module, "SPARSE_TRUTHS", {True: ((200, 30, 2),), False: ((300, 20, 2),)})
    yield module
    sys.modules.pop("coordinate_rule")


def test_excess_is_between_the_minimum_and_the_zero_model(rule):
    for name in ("line", "two"):
        problem = rule.Problem.of(name, 300)
        assert problem.excess(np.zeros(4)) == pytest.approx(1.0)
        assert problem.run("coordinate", float("inf"), 0) == pytest.approx(0.0, abs=1e-4)


def test_tuning_is_over_the_grid_and_never_worse_on_its_own_seeds(rule):
    problem = rule.Problem.of("line", 300)
    grid = {"n_passes": (1, 8), "step": (1.0,), "clip": (1e-6, 1.0), "averaging": ("tail", "last")}
    row = rule.measure(problem, 10.0, grid, 2, 2)
    assert row.best.startswith("8 passes, clip 1 ")  # the other clip leaves the weights where they are
    assert row.tuned[0] < 0.5
    assert row.ratio == row.ours[0] / row.tuned[0]


def test_the_pages_tell_sets_that_chose_from_those_that_judge(rule, tmp_path, capsys):
    rule.main(["--quick", "--sets", "line", "two", "absent", "--out", str(tmp_path)])
    page = (tmp_path / "coordinate_rule.md").read_text(encoding="utf8")
    judged, chose = page.split("## Sets that chose")
    assert judged.count("| line |") == 3
    assert chose.count("| two |") == 3
    assert "absent: skipped" in capsys.readouterr().out
    sparse = (tmp_path / "greedy_rule.md").read_text(encoding="utf8")
    assert sparse.index("| 2 of 20 |") < sparse.index("## Chose") < sparse.index("| 2 of 30 |")
