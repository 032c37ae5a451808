"""The DP-SCD benchmark on tiny problems: what it tunes, runs, keeps and writes."""

import math

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file
from sklearn.linear_model import Ridge

from benchmarks.dp_scd import methods, problems
from benchmarks.dp_scd.__main__ import BENCHMARK, COMPARED, ONE_DELTA, SMALLER, budget_of
from benchmarks.dp_scd.page import PLAIN, TRACED, DualPage
from benchmarks.frame import dp_sgd, sets
from benchmarks.frame.records import Record
from benchmarks.frame.tuning import Point, tune
from tacit.privacy import Budget

RIDGE, LOGISTIC, SVM = "Ridge, california_housing", "Logistic, phishing", "SVM, adult"
MSD = "Ridge, year_prediction_msd"


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
    monkeypatch.setattr(problems, "problem", lambda name, _, paper=True: found[name])  # noqa: ARG005
    effort = BENCHMARK.full.but(
        epsilons=[0.5, 1.0], smaller_epsilons=[0.5], kept=2, runs=2, seeds=2, traces=2, cells=1, trace_epsilons=[1.0]
    )
    small_grid = {"apart": 9, "grid_batches": [30, 100], "grid_clips": [0.5, 1.0]}
    monkeypatch.setattr(BENCHMARK, "full", effort.but(rounds=2, timed_size=[300, 5], **small_grid))


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
def test_a_run_measures_every_method_and_writes_the_page(run):
    records = run(BENCHMARK, "--parts", *BENCHMARK.parts, "--sets", RIDGE, LOGISTIC, *methods.TIMED)
    assert {r.model for r in records if r.table == f"tuning, {SMALLER}"} <= set(COMPARED)
    assert {(r.set, r.model) for r in records if r.table == "limits"} == {
        (LOGISTIC, model) for model in ("fit", "rule", "optimum")
    }
    assert {r.model for r in records if r.table == "noiseless"} == {"scd", "sgd"}
    names = set(methods.METHODS)
    assert {r.model for r in records if (r.table, r.set) == ("utility, 1e-3", LOGISTIC)} == names
    assert {r.model for r in records if (r.table, r.set) == ("utility, 1e-3", RIDGE)} == names - {"newton"}
    assert {r.model for r in records if (r.table, r.set) == ("utility, n^-1.5", RIDGE)} == names - set(ONE_DELTA)
    assert {r.set for r in records if r.table == "utility, n^-2"} == {LOGISTIC}
    assert {r.model for r in records if r.table.startswith("tuning")} == names - {"fit", "rule", "authors"}
    traced = {*TRACED, *(f"{words} 1" for words in PLAIN.values())}
    assert {r.model for r in records if r.table == "convergence"} == traced
    assert {r.set for r in records if r.table == "timing"} == set(methods.TIMED)
    assert all(np.isfinite(r.scores["score"]).all() for r in records if r.table.startswith(("utility", "grid")))
    page = run.page("dp_scd")
    assert "| Ridge, california_housing, epsilon = 1, delta = 1e-3 | MSE at most 2% above not private |" in page
    assert "| one epoch, dense, hinge | at most 2.5 times the two products |" in page
    assert "| DP-SGD, tail average, tuned | batch, clip, step |" in page
    assert "CSR, logistic" in page
    assert "| Logistic, phishing | ours, tail average, tuned | " in page.partition("### Ours against the others")[2]
    assert "| delta = 1e-3, lambda = 0.0001 |" in page
    assert "| ours, tail average, tuned | DP-SGD, tail average, tuned | 4 |" in page
    assert run.drawn(*(f"dp_scd_figure_{place}" for place in (1, 2, 3)))


@pytest.fixture
def songs(monkeypatch, tmp_path):
    """A folder with small files in the format of YearPredictionMSD's; returns the years of its test rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 90)) * rng.uniform(1.0, 500.0, 90)
    years = np.round(1998.0 + 8.0 * np.tanh(X[:, 0] / 300.0) + rng.normal(size=400))
    dump_svmlight_file(X[:300], years[:300], str(tmp_path / "YearPredictionMSD"), zero_based=False)
    dump_svmlight_file(X[300:], years[300:], str(tmp_path / "YearPredictionMSD.t"), zero_based=False)
    monkeypatch.setattr(sets, "FOLDER", tmp_path)
    problems.problem.cache_clear()
    yield years[300:]
    problems.problem.cache_clear()


def test_the_papers_own_set_runs_where_its_files_are(run, songs):
    few = ("--parts", "utility", "plain", "--sets", MSD, "--methods", "rule", "authors")
    records = run(BENCHMARK, "--quick", *few)
    assert {r.model for r in records if r.table == "utility, 1e-3"} == {"rule", "authors"}
    assert {r.epsilon for r in records if r.table == "utility, 1e-3"} == {0.1, 1.0}
    assert all(r.size == (400, 90) and np.isfinite(r.scores["score"]).all() for r in records)
    found = problems.problem(MSD)
    assert (found.strength, found.epochs, found.train_rows) == (pytest.approx(1e-4), 50, 225)
    split = found.split(0)
    years = np.sort(split.y_test * found.unit)
    np.testing.assert_allclose(years - years[0], np.sort(songs) - songs.min(), atol=1e-6)  # the published test rows
    authors = methods.METHODS["authors"]
    solver = authors.run(split, Budget(0.1, 1e-3), *authors.grid).solver
    assert (solver.batch_size, solver.n_passes, solver.variant) == (225, 50, "published")  # lots of 1,000, if there are


@pytest.mark.slow
@pytest.mark.usefixtures("songs")
def test_figures_of_the_papers_own_set_go_to_its_fifty_epochs(run):
    few = ("--parts", "utility", "plain", "noiseless", "convergence", "grid", "--sets", MSD)
    records = run(BENCHMARK, "--quick", *few)
    assert {r.scores["epochs"][-1] for r in records if r.table == "convergence"} == {50.0}
    assert "### Ridge, year_prediction_msd" in run.page("dp_scd")


def test_limits_are_on_other_test_rows_for_each_seed():
    problem = small(LOGISTIC)
    first, second = problem.anew(0), problem.anew(1)
    assert (len(first.y), len(first.y_test)) == (180, 60)
    rows = [set(map(tuple, np.vstack([split.X, split.X_test]))) for split in (first, second)]
    assert rows[0] == rows[1] == set(map(tuple, problem.X))
    assert set(map(tuple, first.X_test)) != set(map(tuple, second.X_test))


@pytest.mark.usefixtures("tiny")
def test_a_run_goes_on_where_it_stopped_and_repeats_only_what_is_asked_for(run):
    few = ("--parts", "utility", "--sets", RIDGE, LOGISTIC, "--methods", "rule", "published")
    run.goes_on(BENCHMARK, few, (*few[:-2], "published"))
    assert run.measured == [f"utility, {RIDGE} published", f"utility, {LOGISTIC} published"]


def test_rows_are_the_papers_in_other_units():
    X, y = table()
    problem = small(strength=0.03)
    split = problem.split(0)
    assert problem.strength == pytest.approx(0.03)
    order = np.random.default_rng(0).permutation(np.flatnonzero(~problem.is_test))[:135]
    rows = X / np.abs(X).max(axis=0)
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True))[order]
    labels = ((y - y.mean()) / y.std())[order]
    np.testing.assert_allclose(split.unit_rows[0], rows)
    np.testing.assert_allclose(split.y, np.clip(labels, -3, 3))
    w = np.ravel(Ridge(alpha=0.03 * 135, fit_intercept=False).fit(rows, split.y).coef_)
    np.testing.assert_allclose(split.solution * 2.0, w)  # 2 = sqrt(d)
    mean = np.mean((rows @ w - split.y) ** 2) / 2
    assert split.objective(split.solution) == pytest.approx(mean + 0.03 / 2 * (w @ w))


def test_the_test_score_is_in_the_labels_units():
    split = small().split(0)
    _, y = table()
    held = np.random.default_rng(1).permutation(240) >= 180
    assert split.score(np.zeros(4)) == pytest.approx(np.mean((y[held] - y.mean()) ** 2))
    signs = small(SVM).split(0)
    assert signs.score_of_margins(signs.y_test) == 0.0
    assert signs.score_of_margins(-signs.y_test) == 1.0


def test_tuning_sees_no_test_row_and_trains_on_as_many():
    problem = small()
    final, tuning = problem.split(1), problem.split(1, tuning=True)
    np.testing.assert_array_equal(final.X, tuning.X)
    tests, tunes = (set(map(tuple, split.X_test)) for split in (final, tuning))
    assert (len(final.X), len(tests), len(tunes)) == (135, 60, 45)
    assert not tests & tunes
    assert not set(map(tuple, final.X)) & (tests | tunes)
    assert tests == set(map(tuple, problem.split(2).X_test))  # the same for all seeds
    published = np.arange(240) >= 200
    X, y = table()
    own = problems.normalised(RIDGE, "squared", X, y, 1e-2, published)
    np.testing.assert_array_equal(own.split(0).X_test, own.X[200:])


def test_lambda_is_the_papers_where_a_method_is_tuned_and_the_rules_where_not():
    split, budget = small(strength=1e-6).split(0), Budget(1.0, 1e-3)
    tuned, rule = (methods.METHODS[name] for name in ("tuned", "rule"))
    assert tuned.strength(split, budget, Point(60, 1.0, 3.0)) == pytest.approx(1e-6)
    assert rule.strength(split, budget, Point()) > 1e-5


def test_steps_are_one_over_the_damping_and_the_authors_clip_is_in_the_labels_units():
    split, budget = small().split(0), Budget(1.0, 1e-3)
    solver = methods.METHODS["tuned"].run(split, budget, Point(60, 1.0, 3.0)).solver
    assert (solver.batch_size, solver.damping, solver.least_penalty) == (60, pytest.approx(1 / 3), 0.0)
    assert solver.clip == pytest.approx(split.clip_unit / (1 + 20 * 4 / (135 * split.l2)))
    authors = methods.METHODS["authors"]
    solver = authors.run(split, budget, *authors.grid).solver
    assert (solver.batch_size, solver.variant) == (135, "published")
    assert solver.clip * split.unit == pytest.approx(0.1 * 2.0)  # rows are sqrt(d) long


@pytest.mark.parametrize("name", [RIDGE, LOGISTIC, SVM])
def test_the_solver_finds_the_optimum_without_noise(name):
    split = small(name).split(0)
    rule = methods.METHODS["rule"]
    w = rule.weights(split, Budget(math.inf, 1e-3), Point(), 0)
    assert split.objective(w) == pytest.approx(split.objective(split.solution), rel=1e-3)


@pytest.mark.parametrize("name", ["tuned", "published", "sgd"])
def test_a_trace_has_the_noise_of_the_whole_run_and_ends_where_it_does(name):
    split, budget, method = small().split(0), Budget(1.0, 1e-3), methods.METHODS[name]
    point = Point(60, 1.0, 0.3 if name == "sgd" else 3.0)
    early, end = method.objectives(split, budget, point, 3, [2, 10])
    if name == "sgd":
        (last,) = methods._descents(split, budget, (point,), 3).last
        assert end == split.objective(last[:, 0])
        return
    assert end == split.objective(method.weights(split, budget, point, 3))
    short = methods.Dual("short", "C0", method.variant, passes=2, options=method.options)
    assert early != split.objective(short.weights(split, budget, point, 3))  # which has less noise


def test_the_tail_average_is_the_mean_of_the_second_half():
    split, budget = small().split(0), Budget(1.0, 1e-3)
    points = (Point(60, 1.0, 0.3), Point(180, 0.3, 1.0))
    tail = methods._descents(split, budget, points, 0).tail
    unit = split.largest_slope * 2.0
    multiplier = dp_sgd.noise_multiplier(135, 60, 1.0, 1e-3, 22)
    steps = np.array([0.3]) / split.global_smoothness
    descent = dp_sgd.Descent(split, 60, steps, np.array([unit]), multiplier, 0)
    iterates = []
    for _ in range(22):
        descent.step()
        iterates.append(descent.weights[:, 0].copy())
    np.testing.assert_allclose(tail[:, 0], np.mean(iterates[11:], axis=0))


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
    found = [budget_of(problem.train_rows, 1.0, name).delta for name in ("1e-3", "n^-1.5", "n^-2")]
    assert found == pytest.approx([1e-3, 135**-1.5, 135**-2.0])


@pytest.mark.parametrize(("score", "told"), [(0.1699, "| reached |"), (0.1701, "| **not reached** |")])
def test_a_verdict_says_what_is_not_reached(score, told):
    def record(table, model, epsilon, value):
        return Record(table, SVM, model, epsilon, 0, {"score": [value]}, [1.0], size=(3, 4))

    rows = [record("utility, 1e-3", "rule", 0.1, score), record("plain", "optimum", None, 0.15)]
    assert told in next(
        line for line in str(DualPage(rows, BENCHMARK.full)).splitlines() if line.startswith(f"| {SVM}")
    )
