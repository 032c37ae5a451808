"""The harness of the DP Frank-Wolfe benchmark, on tiny data: what it makes, runs, keeps and writes."""

import importlib
import math
import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from tacit.privacy import Budget

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
PARTS = ("figures", "kdda", "methods", "problems", "render", "timing")


@pytest.fixture(scope="module")
def bench():
    """The modules of the benchmark."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        modules = {name: importlib.import_module(f"dp_fw_{name}") for name in PARTS}
        modules |= {name: importlib.import_module(name) for name in ("dp_fw", "records")}
    finally:
        sys.path.remove(str(BENCHMARKS))
    return Namespace(**modules)


def words(rows=400, columns=1_200):
    """Sparse rows of norm 1 and classes that two columns give away."""
    rng = np.random.default_rng(0)
    X = random_array((rows, columns), density=0.02, rng=rng, format="csr").astype(np.float32)
    X = csr_array(
        X + csr_array((np.ones(rows, dtype=np.float32), (np.arange(rows), rng.integers(0, 2, rows))), X.shape)
    )
    y = np.where(X[:, [0]].toarray()[:, 0] > 0.5, 1.0, -1.0)
    return csr_array(X.multiply(1.0 / np.sqrt(X.multiply(X).sum(axis=1))[:, None])), y


@pytest.fixture
def tiny(bench, monkeypatch):
    """One small set in place of the real ones, small shapes, and hardly any effort."""
    shapes = {name: bench.problems.Shape(300, 1_000, 12) for name in ("RCV1", "KDDA")}
    monkeypatch.setattr(bench.problems, "SHAPES", shapes)
    monkeypatch.setattr(bench.problems, "TEST_ROWS", 200)
    monkeypatch.setattr(bench.problems, "real", lambda *_: words())
    monkeypatch.setattr(bench.problems, "few_of_many", lambda seed, make=bench.problems.few_of_many: make(seed, 60, 30))
    effort = bench.dp_fw.Effort((1.0,), 2, 2, 0.0, 12, None, None, (100, 10**5), 3)
    monkeypatch.setattr(bench.dp_fw, "FULL", effort)
    return bench


def run(bench, folder, *options):
    bench.dp_fw.main(["--out", str(folder), *options])
    return list(bench.records.Store(folder / "dp_fw.jsonl"))


@pytest.mark.slow
def test_a_run_measures_everything_and_writes_the_page(tiny, tmp_path):
    sets = ("--sets", "RCV1", "news20", "signs", "draws", "growth")
    records = run(tiny, tmp_path, *sets)
    methods = set(tiny.methods.METHODS)
    assert {r.model for r in records if r.table == "accuracy"} == methods | {"not private", "majority"}
    assert {r.model for r in records if r.table == "speed"} == set(tiny.timing.LADDER)
    assert {r.model for r in records if r.table == "trace"} == set(tiny.figures.TRACED)
    assert {r.set for r in records if r.table == "table 4"} == {"RCV1", "news20"}
    assert {(r.table, r.set) for r in records if r.table in ("draws", "growth")} == {
        ("draws", "100"),
        ("draws", "100000"),
        ("growth", "100000"),
    }
    scored = [r for r in records if "accuracy" in r.scores]
    assert all(0.0 <= r.scores[key][0] <= 1.0 for r in scored for key in ("accuracy", "auc", "sparsity"))
    page = (tmp_path / "dp_fw.md").read_text()
    assert "| shape of RCV1, epsilon = 1: times faster than Algorithm 1 | at least 150 |" in page
    assert "| shape of RCV1, 300 x 1,000, 12 a row | 0.1 |" in page
    assert "printed, not private | 0.905 | 0.973 | 0.058 |" in page
    assert "| news20, epsilon = 1, auto: accuracy | at least 0.89 |" in page
    assert "| the +-1 problem, epsilon = 1, Frank-Wolfe: accuracy | at least 0.78 |" in page
    assert "quick run" not in page
    for name in ("figure_1", "figure_2", "figure_4", "accuracy"):
        assert (tmp_path / f"dp_fw_{name}.png").stat().st_size > 1_000


def test_a_run_goes_on_where_it_stopped_and_repeats_only_what_is_asked_for(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(tiny.render, "figures", lambda *_: None)
    monkeypatch.setattr(tiny.methods, "METHODS", {"one-shot": tiny.methods.METHODS["one-shot"]})
    few = ("--parts", "accuracy", "figures", "--sets", "news20")
    before = run(tiny, tmp_path, *few)
    calls = []
    for name in ("run_accuracy", "run_figures"):
        kept = getattr(tiny.dp_fw, name)
        monkeypatch.setattr(tiny.dp_fw, name, lambda *args, kept=kept, name=name: calls.append(name) or kept(*args))
    assert run(tiny, tmp_path, *few, "--resume") == before
    assert run(tiny, tmp_path, "--render-only") == before
    assert calls == []
    after = run(tiny, tmp_path, "--parts", "figures", "--sets", "news20")
    assert calls == ["run_figures"]
    assert sorted(r.key for r in after) == sorted(r.key for r in before)


def test_rows_have_the_shape_and_the_law_that_is_asked_for(bench):
    X, y = bench.problems.generate(2_000, 5_000, 40)
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
    again, _ = bench.problems.generate(2_000, 5_000, 40)
    assert (again != X).nnz == 0


def test_all_columns_alike(bench):
    X, _ = bench.problems.generate(1_000, 100, 30, even=True)
    counts = np.bincount(X.indices, minlength=100)
    assert abs(counts - 300).max() < 6 * math.sqrt(300 * 0.7)


def test_the_gap_is_that_of_the_definition(bench):
    X, y = words(50, 30)
    w = np.zeros(30)
    w[[2, 7]] = 1.5, -0.5
    dense = np.clip(X.toarray().astype(np.float64), -0.3, 0.3)
    alpha = dense.T @ (-y / (1.0 + np.exp(y * (dense @ w)))) / 50
    vertices = [sign * 4.0 * np.eye(30)[j] for j in range(30) for sign in (1, -1)]
    expected = max(float(alpha @ (w - vertex)) for vertex in vertices)
    assert bench.methods.gap(X, y, w, 4.0, 0.3) == pytest.approx(expected)


def test_without_noise_the_forms_agree_but_for_what_goes_out_of_date(bench):
    split = bench.problems.Split(*words(), *words())
    found = {form: bench.figures.trace(split, form, 150) for form in bench.figures.TRACED}
    for key in ("gap", "tracked"):  # all along; slopes may be off by the tolerance, which shows where gaps are tiny
        np.testing.assert_allclose(found["ours"][key], found["algorithm 1"][key], rtol=0.05, atol=2e-4)
    np.testing.assert_allclose(found["algorithm 1"]["tracked"], found["algorithm 1"]["gap"], rtol=1e-4, atol=1e-9)
    assert found["printed"]["gap"][-1] > 2.0 * found["ours"]["gap"][-1]
    assert found["algorithm 1"]["operations"][-1] > found["ours"]["operations"][-1]


def test_the_baselines_find_a_clear_difference_and_the_majority_is_found(bench):
    split = bench.problems.Split(*words(), *words())
    budget = Budget(20.0, 1e-4)
    for name in ("mean difference", "top-k"):
        scores, _, _ = bench.methods.METHODS[name].measure(split, budget, 0)
        assert scores["accuracy"][0] > 0.9
    scores, _, _ = bench.methods.METHODS["top-k"].measure(split, Budget(1.0, 1e-4), 0)
    kept = round(400 * Budget(1.0, 1e-4).mu)
    assert 50 < kept < 200
    assert (1.0 - scores["sparsity"][0]) * 1_200 == pytest.approx(kept)
    share = np.mean(split.y > 0)
    assert bench.methods.majority(split) == pytest.approx(max(share, 1 - share))


def test_a_whole_fit_and_a_partial_one_are_the_same_run(bench):
    split, budget = bench.problems.Split(*words(), *words()), Budget(1.0, 1e-4)
    method = bench.methods.FrankWolfe(20)
    weights, _, _ = method.fit(split.X, split.y, budget, 3)
    assert 0 < np.count_nonzero(weights) <= 20
    assert np.abs(weights).sum() <= method.radius * (1 + 1e-9)
    _, _, made = bench.methods.partial_seconds(method, bench.timing.SparseGradient, split, budget, 1e9)
    assert made == 20  # all that were planned, in one loop


@pytest.mark.slow
def test_memory_is_measured_in_a_process_of_its_own(bench):
    found = bench.kdda.measure(bench.problems.Shape(300, 1_000, 12), 3)
    assert found["bytes"] == 300 * 12 * 8 + 301 * 4
    assert found["peak"] >= found["data peak"] > found["bytes"]


@pytest.mark.parametrize(("seconds", "told"), [(0.2, "| reached |"), (0.4, "| **not reached** |")])
def test_a_verdict_says_what_is_not_reached(bench, seconds, told):
    def record(model, took):
        return bench.records.Record("speed", "RCV1", model, 1.0, 0, {"accuracy": [0.5]}, [took], size=(2, 3, 4))

    results = bench.render.Results([record("algorithm 1", 40.0), record("bucket", seconds)])
    assert told in bench.render.targets(results)[-2]
