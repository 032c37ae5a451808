"""The DP Frank-Wolfe benchmark on tiny data: what it makes, runs, keeps and writes."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array, hstack, random_array

from benchmarks.dp_fw import methods, paper, problems, timing
from benchmarks.dp_fw.__main__ import BENCHMARK
from benchmarks.dp_fw.heap import Heap
from benchmarks.dp_fw.page import FrankWolfePage
from benchmarks.frame import sets
from benchmarks.frame.records import Record
from tacit.privacy import Budget
from tacit.problems import LOGISTIC, SQUARED
from tacit.solvers.frank_wolfe.path import Path
from tacit.solvers.frank_wolfe.plain import PlainScores
from tacit.solvers.frank_wolfe.rows import Scoring


def words(rows=400, columns=1_200):
    """Sparse rows of norm 1 and classes that two columns give away."""
    rng = np.random.default_rng(0)
    X = random_array((rows, columns), density=0.02, rng=rng, format="csr").astype(np.float32)
    X = csr_array(
        X + csr_array((np.ones(rows, dtype=np.float32), (np.arange(rows), rng.integers(0, 2, rows))), X.shape)
    )
    y = np.where(X[:, [0]].toarray()[:, 0] > 0.5, 1.0, -1.0)
    X = csr_array(X.multiply(1.0 / np.sqrt(X.multiply(X).sum(axis=1))[:, None]))
    return csr_array((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape), y  # as sets are


@pytest.fixture
def tiny(monkeypatch):
    """One small set in place of the real ones, small shapes, and hardly any effort."""
    monkeypatch.setattr(problems, "SHAPES", {name: problems.Shape(300, 1_000, 12) for name in ("RCV1", "KDDA")})
    monkeypatch.setattr(problems, "TEST_ROWS", 200)
    monkeypatch.setattr(problems, "real", lambda *_: words())
    make = problems.few_of_many
    monkeypatch.setattr(problems, "few_of_many", lambda seed, *size: make(seed, *(size or (60, 30))))
    effort = BENCHMARK.full.but(epsilons=[1.0], seeds=2, rounds=2, at_least=0.0, iterations=12)
    monkeypatch.setattr(BENCHMARK, "full", effort.but(columns=[100, 10**5], kdda_iterations=3, counts=[5]))
    monkeypatch.setattr(problems, "INPUTS", {"a tenth": (300, 200, 20)})
    monkeypatch.setattr(problems, "WIDE_SIGNS", {"60 x 30, 5 matter": (60, 30, 5)})
    wide = replace(BENCHMARK.parts["auto"], sets=tuple(problems.WIDE_SIGNS))
    monkeypatch.setitem(BENCHMARK.parts, "auto", wide)


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
def test_a_run_measures_everything_and_writes_the_page(run):
    records = run(BENCHMARK, "--sets", "RCV1", "news20", "signs", "100", "100000", "a tenth", "60 x 30, 5 matter")
    assert {r.model for r in records if r.table == "accuracy"} == {*methods.METHODS, "not private", "majority"}
    assert {r.model for r in records if r.table == "speed"} == set(timing.LADDER)
    assert {r.model for r in records if r.table == "trace"} == set(timing.TRACED)
    assert {r.set for r in records if r.table == "table 4"} == {"RCV1", "news20"}
    assert {(r.table, r.set) for r in records if r.table in ("draws", "growth")} == {
        ("draws", "100"),
        ("draws", "100000"),
        ("growth", "100000"),
    }
    scored = [r for r in records if "accuracy" in r.scores and r.table != "trace"]
    assert all(0.0 <= r.scores[key][0] <= 1.0 for r in scored for key in ("accuracy", "auc", "sparsity"))
    page = run.page("dp_fw")
    assert (
        "| news20, epsilon = 1, the solver's rules: times faster than Algorithm 1, and AUC | at least 5, 0.74 |" in page
    )
    assert "| 4 inputs, logistic loss, by the solver's rules: fewest times faster" in page
    assert "| news20 | 1 | squared |" in page
    assert "**not private**: the same T and lambda with exact signs" in page
    assert "infinite |" in page
    assert "| shape of RCV1, 300 x 1,000, 12 a row | 0.1 |" in page
    assert "printed, not private | 0.905 | 0.973 | 0.058 |" in page
    assert "| news20, epsilon = 1, auto: accuracy | at least 0.89 |" in page
    assert "| the +-1 problem, epsilon = 1, Frank-Wolfe: accuracy | at least 0.78 |" in page
    assert "quick run" not in page
    assert run.drawn(*(f"dp_fw_{name}" for name in ("figure_1", "figure_2", "figure_3", "figure_4", "accuracy")))


@pytest.mark.usefixtures("tiny")
def test_a_run_goes_on_where_it_stopped_and_repeats_only_what_is_asked_for(run, monkeypatch):
    monkeypatch.setattr(methods, "METHODS", {"one-shot": methods.METHODS["one-shot"]})
    few = ("--parts", "accuracy", "trace", "--sets", "news20")
    run.goes_on(BENCHMARK, few, ("--parts", "trace", "--sets", "news20"))
    assert run.measured == ["trace, news20 "]


def test_rows_have_the_shape_and_the_law_that_is_asked_for():
    X, y = problems.generate(2_000, 5_000, 40)
    assert X.shape == (2_000, 5_000)
    assert (X.dtype, X.indices.dtype) == (np.float32, np.int32)
    assert X.has_canonical_format
    assert set(np.diff(X.indptr)) == {40}
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    assert 0.999 < norms.min() <= norms.max() <= 1.0
    counts = np.sort(np.bincount(X.indices, minlength=5_000))[::-1]
    # A word of rank r is in a row with probability near 1 - (1 - 1 / (r ln D))^40, and more, as words are not repeated.
    for rank in (100, 1_000):
        expected = 2_000 * 40 / (rank * math.log(5_001))
        assert 0.8 * expected < counts[rank - 10 : rank + 10].mean() < 1.8 * expected
    assert abs(y.mean()) < 0.1
    again, _ = problems.generate(2_000, 5_000, 40)
    assert (again != X).nnz == 0


def test_all_columns_alike():
    X, _ = problems.generate(1_000, 100, 30, even=True)
    counts = np.bincount(X.indices, minlength=100)
    assert abs(counts - 300).max() < 6 * math.sqrt(300 * 0.7)


def test_the_gap_is_that_of_the_definition():
    X, y = words(50, 30)
    w = np.zeros(30)
    w[[2, 7]] = 1.5, -0.5
    dense = np.clip(X.toarray().astype(np.float64), -0.3, 0.3)
    alpha = dense.T @ (-y / (1.0 + np.exp(y * (dense @ w)))) / 50
    vertices = [sign * 4.0 * np.eye(30)[j] for j in range(30) for sign in (1, -1)]
    expected = max(float(alpha @ (w - vertex)) for vertex in vertices)
    assert methods.gap(X, y, w, 4.0, 0.3) == pytest.approx(expected)


def test_without_noise_the_forms_agree_but_for_what_goes_out_of_date():
    split = problems.Split(*words(), *words())
    found = {form: timing.trace(split, form, 150) for form in timing.TRACED}
    for key in ("gap", "tracked"):  # all along; slopes may be off by the tolerance, which shows where gaps are tiny
        np.testing.assert_allclose(found["ours"][key], found["algorithm 1"][key], rtol=0.05, atol=2e-4)
    np.testing.assert_allclose(found["algorithm 1"]["tracked"], found["algorithm 1"]["gap"], rtol=1e-4, atol=1e-9)
    assert found["printed"]["gap"][-1] > 2.0 * found["ours"]["gap"][-1]
    assert found["algorithm 1"]["operations"][-1] > found["ours"]["operations"][-1]


def test_the_baselines_find_a_clear_difference_and_the_majority_is_found():
    split = problems.Split(*words(), *words())
    budget = Budget(20.0, 1e-4)
    for name in ("mean difference", "top-k"):
        scores, _, _ = methods.METHODS[name].measure(split, budget, 0)
        assert scores["accuracy"] > 0.9
    scores, _, _ = methods.METHODS["top-k"].measure(split, Budget(1.0, 1e-4), 0)
    kept = round(400 * Budget(1.0, 1e-4).mu)
    assert 50 < kept < 200
    assert (1.0 - scores["sparsity"]) * 1_200 == pytest.approx(kept)
    share = np.mean(split.y > 0)
    assert methods.majority(split)["accuracy"] == pytest.approx(max(share, 1 - share))


def test_a_whole_fit_and_a_partial_one_are_the_same_run():
    split, budget = problems.Split(*words(), *words()), Budget(1.0, 1e-4)
    method = methods.FrankWolfe(20)
    weights, _, _ = method.fit(split, budget, 3)
    assert 0 < np.count_nonzero(weights) <= 20
    assert np.abs(weights).sum() <= method.radius * (1 + 1e-9)
    _, _, made = methods.partial_seconds(method, timing.SteppedScores, split, budget, 1e9)
    assert made == 20  # all that were planned, in one loop


@pytest.mark.parametrize("loss", [LOGISTIC, SQUARED], ids=lambda loss: loss.name)
def test_algorithm_one_by_scipy_makes_the_steps_of_the_library_where_there_is_no_noise(loss):
    split = problems.Split(*words(), *words())
    one, path = paper.AlgorithmOne(split, 4.0, 0.3, scale=0.0, loss=loss.name), Path(40, 4.0)
    rule = Scoring(loss.code, 0.3, 10.0, loss.curvature, 1)
    plain = PlainScores(split.X.astype(np.float64), split.y, rule, path)
    for t in range(1, 40):
        best = plain.best()
        assert one.step(t) == best
        plain.step(t, *best)


@pytest.mark.slow
def test_the_papers_own_sets_are_measured_where_the_folder_has_them(run, monkeypatch, tmp_path):
    rows = "".join(f"{(-1) ** place} {place + 1}:2 {place + 50}:1\n" for place in range(40))
    (tmp_path / "url_combined").write_text(rows, encoding="ascii")
    monkeypatch.setattr(sets, "FOLDER", tmp_path)
    problems.real.cache_clear()
    monkeypatch.setattr(BENCHMARK, "full", BENCHMARK.full.but(iterations=3))
    monkeypatch.setattr(FrankWolfePage, "figures", lambda *_: None)
    records = run(BENCHMARK, "--parts", "table 4", "--sets", "url", "webspam")
    assert run.measured == ["table 4, url "]  # the other is not there
    assert {r.model for r in records} == {"leaky", "long", "short", "frank-wolfe", "auto", "not private", "majority"}
    assert {(r.seed, r.size) for r in records} == {(0, (30, 3_231_961, 60))}
    X, y = problems.real("url")
    np.testing.assert_allclose(X.multiply(X).sum(axis=1), 1.0, rtol=1e-6)
    assert set(y) == {-1.0, 1.0}
    assert "| url, 30 x 3,231,961, 2 a row | printed, not private | 0.732 | 0.826 | 0.894 |" in run.page("dp_fw")
    problems.real.cache_clear()


def test_brute_force_runs_once_on_shapes_with_fewer_rows_than_the_papers(run, monkeypatch, tiny):  # noqa: ARG001
    monkeypatch.setattr(problems, "SHAPES", {"URL": problems.Shape(600, 1_000, 12, 0.5)})
    records = run(BENCHMARK, "--parts", "speed", "table 4", "--sets", "URL")
    made = Counter((r.model, r.epsilon) for r in records if r.table == "speed")
    assert made == {(rung, e): 1 if rung in timing.BRUTE else 2 for rung in timing.LADDER for e in (1.0, 0.1)}
    assert {(r.seed, r.size[0]) for r in records} == {(0, 300), (1, 300)}
    assert {r.seed for r in records if r.table == "table 4"} == {0}
    assert "(0.5 of the paper's rows)" in run.page("dp_fw")


def test_a_plain_model_of_the_columns_with_entries_is_that_of_all():
    X, y = words()
    empty = csr_array((400, 50), dtype=np.float32)
    wide = csr_array(hstack([X, empty]))
    found, _, _ = methods.plain(problems.Split(wide, y, wide, y))
    alone, _, _ = methods.plain(problems.Split(X, y, X, y))
    assert (found["accuracy"], found["auc"]) == (alone["accuracy"], alone["auc"])
    assert (1.0 - found["sparsity"]) * 1_250 == pytest.approx((1.0 - alone["sparsity"]) * 1_200)


def test_the_noisy_maximum_has_a_drawn_sign_and_the_printed_one_has_not():
    """One row with one entry: the sign of the exact gradient is the label's; that of a noisy one hardly is."""
    X = csr_array(np.array([[1.0]]))
    for sign, share in (("exact", 1.0), ("drawn", 0.5)):
        found = []
        for seed in range(200):
            one = paper.AlgorithmOne(problems.Split(X, np.ones(1), X, np.ones(1)), 1.0, 1.0, 50.0, sign, seed)
            found.append(one.step(1)[1])
        assert abs(np.mean(np.array(found) == 1) - share) < 0.15


def test_the_printed_noise_costs_more_than_it_says():
    assert methods.printed_epsilon(14_134, 4_000, 50.0, 1.0, 1e-6) > 100.0
    zcdp = 4_000 * (2.0 * 14_134 / (50.0 * math.sqrt(8 * 4_000 * math.log(1e6)))) ** 2 / 8.0
    assert methods.printed_epsilon(14_134, 4_000, 50.0, 1.0, 1e-6) < zcdp + 2.0 * math.sqrt(zcdp * math.log(1e6))


def test_the_heap_finds_the_largest_after_every_change():
    rng = np.random.default_rng(7)
    scores = rng.integers(-100, 100, 57)
    found = Heap(scores)
    for looks in range(1, 500):
        places = rng.integers(0, 57, rng.integers(1, 8))
        scores[places] = rng.integers(-100, 100, len(places)) // rng.choice([1, 10, 100])
        found.changed(places)
        j, sign = found.best()
        assert -sign * scores[j] == np.abs(scores).max()
        assert found.pops >= looks


@pytest.mark.slow
def test_memory_is_measured_in_a_process_of_its_own():
    found = timing.fit_apart(problems.Shape(300, 1_000, 12), 3)
    assert found["bytes"] == 300 * 12 * 8 + 301 * 4
    assert found["peak"] >= found["data peak"] > found["bytes"]


@pytest.mark.parametrize(("seconds", "told"), [(0.2, "| reached |"), (0.4, "| **not reached** |")])
def test_a_verdict_says_what_is_not_reached(seconds, told):
    def record(model, took):
        return Record("speed", "KDDA", model, 0.1, 0, {"accuracy": [0.5], "auc": [0.5]}, [took], size=(2, 3, 4))

    page = FrankWolfePage([record("algorithm 1", 600.0), record("bucket", seconds)])
    assert told in page.section("## Numbers to reach").splitlines()[-1]
