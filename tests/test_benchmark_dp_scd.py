"""The harness of the DP-SCD benchmark, on tiny problems: what it tunes, runs, keeps and writes."""

import importlib
import math
import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from tacit.privacy import Budget

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
MODULES = ("dp_scd", "dp_scd_methods", "dp_scd_problems", "dp_scd_render", "dp_scd_timing", "dp_sgd")
RIDGE, LOGISTIC, SVM = "Ridge, california_housing", "Logistic, phishing", "SVM, adult"


@pytest.fixture(scope="module")
def bench():
    """The modules of the benchmark."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        modules = {name.removeprefix("dp_scd_"): importlib.import_module(name) for name in (*MODULES, "records")}
    finally:
        sys.path.remove(str(BENCHMARKS))
    return Namespace(**modules)


def table():
    """240 rows of four columns on different scales, and a linear target."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(240, 4)) * [1.0, 5.0, 0.2, 1.0]
    return X, X @ [2.0, -0.3, 5.0, 0.0] + 0.1 * rng.standard_normal(240) + 7.0


def small(bench, name=RIDGE, strength=1e-2):
    """A problem with the loss of that name."""
    X, y = table()
    loss = bench.problems.CASES[name][1]
    return bench.problems.normalised(name, loss, X, y if loss == "squared" else y > 7.0, strength)


@pytest.fixture
def tiny(bench, monkeypatch):
    """Small problems in place of the paper's, and hardly any effort."""
    found = {name: small(bench, name) for name in (RIDGE, LOGISTIC)}
    monkeypatch.setattr(bench.problems, "problem", lambda name, _: found[name])
    monkeypatch.setattr(bench.timing, "SIZE", (300, 5))
    monkeypatch.setattr(bench.dp_scd, "GRID_BATCHES", (30, 100))
    monkeypatch.setattr(bench.dp_scd, "GRID_CLIPS", (0.5, 1.0))
    effort = bench.dp_scd.Effort((0.5, 1.0), ("1e-3", "n^-1.5"), 2, 2, 2, 2, 1, (1.0,), None, 9, 2)
    monkeypatch.setattr(bench.dp_scd, "FULL", effort)
    return bench


def run(bench, folder, *options):
    bench.dp_scd.main(["--problems", RIDGE, LOGISTIC, "--out", str(folder), *options])
    return list(bench.records.Store(folder / "dp_scd.jsonl"))


@pytest.mark.slow
def test_a_run_measures_every_method_and_writes_the_page(tiny, tmp_path):
    records = run(tiny, tmp_path, "--parts", "utility", "convergence", "grid", "timing")
    methods = set(tiny.methods.METHODS)
    assert {r.model for r in records if (r.table, r.set) == ("utility, 1e-3", RIDGE)} == methods
    assert {r.model for r in records if (r.table, r.set) == ("utility, n^-1.5", RIDGE)} == methods - {
        "sequential",
        "primal",
    }
    assert {r.set for r in records if r.table == "utility, n^-2"} == {LOGISTIC}
    assert {r.model for r in records if r.table.startswith("tuning")} == methods - {"fit", "rule"}
    assert {r.model for r in records if r.table == "convergence"} == {"tuned", "published", "sgd", "noiseless 1"}
    assert {r.set for r in records if r.table == "timing"} == set(tiny.timing.NAMES)
    assert all(np.isfinite(r.scores["score"]).all() for r in records if r.table.startswith(("utility", "grid")))
    page = (tmp_path / "dp_scd.md").read_text()
    assert "| Ridge, california_housing, epsilon = 1, delta = 1e-3 | MSE at most 2% above not private |" in page
    assert "| one epoch, dense, hinge | at most 2.5 times the two products |" in page
    assert "| DP-SGD, tail average, tuned | batch, clip, step |" in page
    assert "CSR, logistic" in page
    assert "| Logistic, phishing | ours, tuned | " in page.partition("### Ours against the others")[2]
    for number in (1, 2, 3):
        assert (tmp_path / f"dp_scd_figure_{number}.png").stat().st_size > 1_000


def test_a_run_goes_on_where_it_stopped_and_repeats_only_what_is_asked_for(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(tiny.render, "figures", lambda *_: None)
    few = ("--parts", "utility", "--methods", "rule", "published")
    before = run(tiny, tmp_path, *few)
    calls = []
    tune = tiny.dp_scd.tune
    monkeypatch.setattr(tiny.dp_scd, "tune", lambda *args: calls.append(args[0].label) or tune(*args))
    assert run(tiny, tmp_path, *few, "--resume") == before
    assert run(tiny, tmp_path, "--render-only") == before
    assert calls == []
    after = run(tiny, tmp_path, "--parts", "utility", "--methods", "published")
    assert set(calls) == {tiny.methods.METHODS["published"].label}
    assert sorted(r.key for r in after) == sorted(r.key for r in before)


def test_rows_are_the_papers_in_other_units(bench):
    X, y = table()
    problem = small(bench, strength=0.03)
    split = problem.split(0)
    order = np.random.default_rng(0).permutation(240)[:180]
    rows = X / np.abs(X).max(axis=0)
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True))[order]
    labels = ((y - y.mean()) / y.std())[order]
    np.testing.assert_allclose(split.unit_rows[0], rows)
    np.testing.assert_allclose(split.y, np.clip(labels, -3, 3))
    w = np.ravel(Ridge(alpha=0.03 * 180, fit_intercept=False).fit(rows, split.y).coef_)
    np.testing.assert_allclose(split.solution * 2.0, w)  # 2 = sqrt(d)
    mean = np.mean((rows @ w - split.y) ** 2) / 2
    assert split.objective(split.solution) == pytest.approx(mean + 0.03 / 2 * (w @ w))


def test_the_test_score_is_in_the_labels_units(bench):
    split = small(bench).split(0)
    _, y = table()
    held = np.random.default_rng(0).permutation(240)[180:]
    assert split.score(np.zeros(4)) == pytest.approx(np.mean((y[held] - y.mean()) ** 2))
    signs = small(bench, SVM).split(0)
    assert signs.score_of_margins(signs.y_test) == 0.0
    assert signs.score_of_margins(-signs.y_test) == 1.0


@pytest.mark.parametrize("name", [RIDGE, LOGISTIC, SVM])
def test_the_solver_finds_the_optimum_without_noise(bench, name):
    split = small(bench, name).split(0)
    rule = bench.methods.METHODS["rule"]
    w = rule.weights(split, Budget(math.inf, 1e-3), bench.methods.Point(), 0)
    assert split.objective(w) == pytest.approx(split.objective(split.solution), rel=1e-3)


@pytest.mark.parametrize("name", ["tuned", "published", "sgd"])
def test_a_trace_has_the_noise_of_the_whole_run_and_ends_where_it_does(bench, name):
    split, budget, method = small(bench).split(0), Budget(1.0, 1e-3), bench.methods.METHODS[name]
    point = bench.methods.Point(60, 1.0, 0.3)
    early, end = method.objectives(split, budget, point, 3, [2, 10])
    if name == "sgd":
        (last,), _ = bench.methods._descents(split, budget, (point,), 3, (10,))
        assert end == split.objective(last[:, 0])
        return
    assert end == split.objective(method.weights(split, budget, point, 3))
    short = bench.methods.Dual("short", method.variant, passes=2)
    assert early != split.objective(short.weights(split, budget, point, 3))  # which has less noise


def test_the_tail_average_is_the_mean_of_the_second_half(bench):
    split, budget = small(bench).split(0), Budget(1.0, 1e-3)
    points = (bench.methods.Point(60, 1.0, 0.3), bench.methods.Point(180, 0.3, 1.0))
    _, tail = bench.methods._descents(split, budget, points, 0, (10,))
    unit = split.largest_slope * 2.0
    multiplier = bench.dp_sgd.noise_multiplier(180, 60, 1.0, 1e-3, 30)
    steps = np.array([0.3]) / split.global_smoothness
    descent = bench.dp_sgd.Descent(split, 60, steps, np.array([unit]), multiplier, 0)
    iterates = []
    for _ in range(30):
        descent.step()
        iterates.append(descent.weights[:, 0].copy())
    np.testing.assert_allclose(tail[:, 0], np.mean(iterates[15:], axis=0))


def test_tuning_takes_the_best_point_and_no_reported_split(bench):
    class Bowl:
        label = "bowl"
        grid = tuple(bench.methods.Point(batch, clip) for batch in (1, 2, 3) for clip in (0.5, 1.0, 2.0))

        def __init__(self):
            self.seeds = set()

        def scores(self, _, budget, points, seed):
            self.seeds.add(seed)
            return [(p.batch - 2) ** 2 + math.log(p.clip) ** 2 + budget.epsilon for p in points]

    bowl, effort = Bowl(), bench.dp_scd.FULL
    point, mean, tried = bench.dp_scd.tune(bowl, small(bench), Budget(0.5, 1e-3), effort)
    assert (point.batch, point.clip, mean, tried) == (2, 1.0, 0.5, 9)
    assert len(bowl.seeds) == effort.runs
    assert not bowl.seeds & set(range(effort.seeds))


def test_deltas_are_powers_of_the_training_rows(bench):
    problem = small(bench)
    found = [bench.dp_scd.budget_of(problem, 1.0, name).delta for name in ("1e-3", "n^-1.5", "n^-2")]
    assert found == pytest.approx([1e-3, 180**-1.5, 180**-2.0])


@pytest.mark.parametrize(("score", "told"), [(0.1699, "| reached |"), (0.1701, "| **not reached** |")])
def test_a_verdict_says_what_is_not_reached(bench, score, told):
    def record(table, model, epsilon, value):
        return bench.records.Record(table, SVM, model, epsilon, 0, {"score": [value]}, [1.0])

    rows = [record("utility, 1e-3", "rule", 0.1, score), record("plain", "optimum", None, 0.15)]
    assert told in bench.render.targets(bench.render.Results(rows))[-2]


def test_results_in_the_repository_can_be_read(bench):
    records = list(bench.records.Store(BENCHMARKS / "results" / "dp_scd.jsonl"))
    assert records
    assert all(record.seconds for record in records)
    tables = {record.table.split(",")[0] for record in records}
    assert tables <= {"tuning", "utility", "plain", "convergence", "grid", "timing"}
