"""The DP-SCD benchmark on tiny problems: what it tunes, runs, keeps and writes."""

import math

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from benchmarks.dp_scd import methods, problems
from benchmarks.dp_scd.__main__ import BENCHMARK, budget_of
from benchmarks.dp_scd.page import DualPage
from benchmarks.frame import dp_sgd
from benchmarks.frame.records import Record
from benchmarks.frame.tuning import Point, tune
from tacit.privacy import Budget

RIDGE, LOGISTIC, SVM = "Ridge, california_housing", "Logistic, phishing", "SVM, adult"


def table():
    """240 rows of four columns on different scales, and a linear target."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(240, 4)) * [1.0, 5.0, 0.2, 1.0]
    return X, X @ [2.0, -0.3, 5.0, 0.0] + 0.1 * rng.standard_normal(240) + 7.0


def small(name=RIDGE, strength=1e-2):
    """A problem with the loss of that name."""
    X, y = table()
    loss = problems.CASES[name][1]
    return problems.normalised(name, loss, X, y if loss == "squared" else y > 7.0, strength)


@pytest.fixture
def tiny(monkeypatch):
    """Small problems in place of the paper's, and hardly any effort."""
    found = {name: small(name) for name in (RIDGE, LOGISTIC)}
    monkeypatch.setattr(problems, "problem", lambda name, _: found[name])
    effort = BENCHMARK.full.but(epsilons=[0.5, 1.0], kept=2, runs=2, seeds=2, traces=2, cells=1, trace_epsilons=[1.0])
    small_grid = {"apart": 9, "grid_batches": [30, 100], "grid_clips": [0.5, 1.0]}
    monkeypatch.setattr(BENCHMARK, "full", effort.but(rounds=2, timed_size=[300, 5], **small_grid))


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
def test_a_run_measures_every_method_and_writes_the_page(run):
    records = run(BENCHMARK, "--parts", *BENCHMARK.parts, "--sets", RIDGE, LOGISTIC, *methods.TIMED)
    names = set(methods.METHODS)
    assert {r.model for r in records if (r.table, r.set) == ("utility, 1e-3", RIDGE)} == names
    assert {r.model for r in records if (r.table, r.set) == ("utility, n^-1.5", RIDGE)} == names - {
        "sequential",
        "primal",
    }
    assert {r.set for r in records if r.table == "utility, n^-2"} == {LOGISTIC}
    assert {r.model for r in records if r.table.startswith("tuning")} == names - {"fit", "rule"}
    assert {r.model for r in records if r.table == "convergence"} == {"tuned", "published", "sgd", "noiseless 1"}
    assert {r.set for r in records if r.table == "timing"} == set(methods.TIMED)
    assert all(np.isfinite(r.scores["score"]).all() for r in records if r.table.startswith(("utility", "grid")))
    page = run.page("dp_scd")
    assert "| Ridge, california_housing, epsilon = 1, delta = 1e-3 | MSE at most 2% above not private |" in page
    assert "| one epoch, dense, hinge | at most 2.5 times the two products |" in page
    assert "| DP-SGD, tail average, tuned | batch, clip, step |" in page
    assert "CSR, logistic" in page
    assert "| Logistic, phishing | ours, tuned | " in page.partition("### Ours against the others")[2]
    assert run.drawn(*(f"dp_scd_figure_{place}" for place in (1, 2, 3)))


@pytest.mark.usefixtures("tiny")
def test_a_run_goes_on_where_it_stopped_and_repeats_only_what_is_asked_for(run):
    few = ("--parts", "utility", "--sets", RIDGE, LOGISTIC, "--methods", "rule", "published")
    run.goes_on(BENCHMARK, few, (*few[:-2], "published"))
    assert run.measured == [f"utility, {RIDGE} published", f"utility, {LOGISTIC} published"]


def test_rows_are_the_papers_in_other_units():
    X, y = table()
    problem = small(strength=0.03)
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


def test_the_test_score_is_in_the_labels_units():
    split = small().split(0)
    _, y = table()
    held = np.random.default_rng(0).permutation(240)[180:]
    assert split.score(np.zeros(4)) == pytest.approx(np.mean((y[held] - y.mean()) ** 2))
    signs = small(SVM).split(0)
    assert signs.score_of_margins(signs.y_test) == 0.0
    assert signs.score_of_margins(-signs.y_test) == 1.0


@pytest.mark.parametrize("name", [RIDGE, LOGISTIC, SVM])
def test_the_solver_finds_the_optimum_without_noise(name):
    split = small(name).split(0)
    rule = methods.METHODS["rule"]
    w = rule.weights(split, Budget(math.inf, 1e-3), Point(), 0)
    assert split.objective(w) == pytest.approx(split.objective(split.solution), rel=1e-3)


@pytest.mark.parametrize("name", ["tuned", "published", "sgd"])
def test_a_trace_has_the_noise_of_the_whole_run_and_ends_where_it_does(name):
    split, budget, method = small().split(0), Budget(1.0, 1e-3), methods.METHODS[name]
    point = Point(60, 1.0, 0.3)
    early, end = method.objectives(split, budget, point, 3, [2, 10])
    if name == "sgd":
        (last,) = methods._descents(split, budget, (point,), 3).last
        assert end == split.objective(last[:, 0])
        return
    assert end == split.objective(method.weights(split, budget, point, 3))
    short = methods.Dual("short", "C0", method.variant, passes=2)
    assert early != split.objective(short.weights(split, budget, point, 3))  # which has less noise


def test_the_tail_average_is_the_mean_of_the_second_half():
    split, budget = small().split(0), Budget(1.0, 1e-3)
    points = (Point(60, 1.0, 0.3), Point(180, 0.3, 1.0))
    tail = methods._descents(split, budget, points, 0).tail
    unit = split.largest_slope * 2.0
    multiplier = dp_sgd.noise_multiplier(180, 60, 1.0, 1e-3, 30)
    steps = np.array([0.3]) / split.global_smoothness
    descent = dp_sgd.Descent(split, 60, steps, np.array([unit]), multiplier, 0)
    iterates = []
    for _ in range(30):
        descent.step()
        iterates.append(descent.weights[:, 0].copy())
    np.testing.assert_allclose(tail[:, 0], np.mean(iterates[15:], axis=0))


def test_tuning_takes_the_best_point_and_no_reported_split():
    seen, effort = set(), BENCHMARK.full

    def bowl(points, seed):
        seen.add(seed)
        return [(p.batch - 2) ** 2 + math.log(p.clip) ** 2 + 0.5 for p in points]

    grid = [Point(batch, clip) for batch in (1, 2, 3) for clip in (0.5, 1.0, 2.0)]
    point, mean, tried = tune([grid], bowl, effort)
    assert (point.batch, point.clip, mean, tried) == (2, 1.0, 0.5, 9)
    assert len(seen) == effort.runs
    assert not seen & set(range(effort.seeds))


def test_deltas_are_powers_of_the_training_rows():
    problem = small()
    found = [budget_of(problem, 1.0, name).delta for name in ("1e-3", "n^-1.5", "n^-2")]
    assert found == pytest.approx([1e-3, 180**-1.5, 180**-2.0])


@pytest.mark.parametrize(("score", "told"), [(0.1699, "| reached |"), (0.1701, "| **not reached** |")])
def test_a_verdict_says_what_is_not_reached(score, told):
    def record(table, model, epsilon, value):
        return Record(table, SVM, model, epsilon, 0, {"score": [value]}, [1.0], size=(3, 4))

    rows = [record("utility, 1e-3", "rule", 0.1, score), record("plain", "optimum", None, 0.15)]
    assert told in next(
        line for line in str(DualPage(rows, BENCHMARK.full)).splitlines() if line.startswith(f"| {SVM}")
    )
