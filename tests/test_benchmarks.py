"""The harness of the dense benchmark, on a tiny set: what it measures, keeps, skips and writes."""

import importlib
import math
import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, log_loss, r2_score, roc_auc_score

from tacit.solvers import SOLVERS

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
MODULES = ("dense", "peer_runs", "records", "render", "scores", "sets", "tables")


@pytest.fixture(scope="module")
def bench():
    """The modules of the benchmark."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        modules = {name: importlib.import_module(name) for name in MODULES}
        peers = {name: importlib.import_module(f"peers.{name}") for name in ("grids", "problem", "setup")}
    finally:
        sys.path.remove(str(BENCHMARKS))
    return Namespace(**modules, **peers)


@pytest.fixture
def tiny(bench, monkeypatch):
    """Two sets of 60 rows in place of the real ones, and no peers."""
    entry = bench.sets.Entry
    entries = {"two": entry("classification", "folder", True), "line": entry("regression", "folder", False)}
    monkeypatch.setattr(bench.sets, "SETS", entries)
    monkeypatch.setattr(bench.sets, "PUBLIC", {"two": "classification", "line": "regression"})
    monkeypatch.setattr(bench.setup, "python", lambda _: BENCHMARKS / "no such interpreter")
    X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(60, 3))
    targets = {"two": (X[:, 0] > 0).astype(int), "line": X[:, 0]}

    def load(name):
        if name not in targets:
            raise bench.sets.MissingSetError("not here")
        return X, targets[name], entries[name].kind

    monkeypatch.setattr(bench.sets, "load", load)
    monkeypatch.setattr(bench.sets, "public", lambda name: load(name)[:2])
    bench.dense.data.cache_clear()
    yield bench
    bench.dense.data.cache_clear()


def run(bench, folder, *options):
    bench.dense.main(["--seeds", "1", "--epsilons", "1", "--parts", "raw", "public", "--out", str(folder), *options])
    return {record.key: record for record in bench.records.Store(folder / "dense.jsonl")}


def test_a_run_measures_every_solver_and_writes_the_pages(tiny, tmp_path, capsys):
    found = run(tiny, tmp_path)
    for name, loss in (("two", "logistic"), ("line", "squared")):
        able = [solver for solver in SOLVERS if loss in SOLVERS[solver].losses]
        for part in ("raw", "public"):
            models = {model for table, set_, model, _, _ in found if (table, set_) == (part, name)}
            assert models == {"not private", "auto", *able}
    assert all(record.scores and record.seconds for record in found.values())
    assert {record.note for record in found.values() if record.model == "sgd"} <= {"sgd"}
    page = (tmp_path / "dense.md").read_text()
    assert "| two | 60 x 3 | chose |" in page
    assert "| line | 60 x 3 | judges |" in page
    assert "pure epsilon" in page
    assert "under-noises" in page
    told = capsys.readouterr().out
    for peer in ("diffprivlib", "opacus"):
        assert f"skipped: {peer} (not set up" in page
        assert f"skipped: {peer} (not set up" in told
    assert (tmp_path / "dense.png").stat().st_size > 1_000
    assert "Log-loss" in (tmp_path / "dense_details.md").read_text()


def test_a_run_goes_on_where_it_stopped_and_repeats_only_what_is_asked_for(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(tiny.render, "plot", lambda *_: None)
    only = ("--models", "not private", "gradient", "auto")
    before = run(tiny, tmp_path, *only)
    calls = []
    measured = tiny.scores.record
    monkeypatch.setattr(tiny.scores, "record", lambda *args: calls.append(args[:5]) or measured(*args))
    assert run(tiny, tmp_path, "--resume", *only) == before
    run(tiny, tmp_path, "--render-only")
    assert calls == []
    after = run(tiny, tmp_path, "--models", "auto", "--sets", "two")
    assert {call[1:3] for call in calls} == {("two", "auto")}
    assert after.keys() == before.keys()
    assert len((tmp_path / "dense.jsonl").read_text().splitlines()) == len(after)


def test_a_missing_set_and_a_refusal_are_named(tiny, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(tiny.sets.SETS, "gone", tiny.sets.Entry("regression", "folder", False))

    def refuse(*_, **__):
        raise ValueError("not for this")

    monkeypatch.setattr(tiny.scores, "measure", refuse)
    run(tiny, tmp_path, "--models", "gradient")
    told = capsys.readouterr().out
    assert "skipped: gone (not here)" in told
    assert "refused: gradient on two: not for this" in told
    assert "- gradient on two: not for this" in (tmp_path / "dense.md").read_text()


def test_a_peer_answers_through_its_own_interpreter(tiny, tmp_path, monkeypatch):
    (tmp_path / "opacus_runner.py").write_text(
        f"import sys; sys.path.insert(0, {str(BENCHMARKS / 'peers')!r})\n"
        "import problem\n"
        "def fit(arrays, settings, epsilon, point):\n"
        "    guess = arrays['X_test'][:, 0] + 0.5\n"
        "    return {**problem.classification(arrays['y_test'], guess), 'seconds': epsilon * point['clip']}\n"
        "problem.run(fit)\n"
    )
    monkeypatch.setattr(tiny.setup, "HERE", tmp_path)
    monkeypatch.setattr(tiny.setup, "PEERS", ("opacus",))
    monkeypatch.setattr(tiny.setup, "python", lambda _: Path(sys.executable))
    monkeypatch.setattr(tiny.setup, "why_missing", lambda _: "")
    store = tiny.records.Store(tmp_path / "peers.jsonl")
    X, y, kind = tiny.sets.load("two")
    parts = tiny.scores.split(X, y, kind, 0)
    assert tiny.peer_runs.run(store, "two", kind, 0, parts, (0.5, 2.0)) == []
    rows = list(store)
    assert [row.epsilon for row in rows] == [0.5, 2.0]
    assert rows[0].scores["accuracy"] == [1.0] * len(tiny.grids.points("opacus", kind))
    assert rows[1].seconds == [2.0 * point["clip"] for point in tiny.grids.points("opacus", kind)]
    (tmp_path / "opacus_runner.py").write_text("raise SystemExit(1)")  # what is known is not asked again
    assert tiny.peer_runs.run(store, "two", kind, 0, parts, (0.5, 2.0)) == []


def test_a_cell_is_the_best_point_of_a_grid_by_its_mean(bench):
    def records(metric, *rows):
        return [bench.records.Record("public", "s", "m", 1.0, k, {metric: row}, [1.0]) for k, row in enumerate(rows)]

    best = bench.tables.cell(records("accuracy", [0.9, 0.7], [0.5, 0.8]), "accuracy")
    assert (best.mean, best.spread) == pytest.approx((0.75, 0.05))
    assert bench.tables.cell(records("log_loss", [0.9, 0.7], [0.5, 0.8]), "log_loss").mean == pytest.approx(0.7)
    assert bench.tables.cell(records("r2", [math.nan, -3.0], [0.9, -2.0]), "r2").mean == pytest.approx(-2.5)
    assert str(bench.tables.cell(records("r2", [-math.inf]), "r2")) == "below -1"


def test_the_verdict_counts_where_the_default_is_behind_the_better_peer(bench):
    def record(model, epsilon, *accuracies):
        scored = {"accuracy": list(accuracies)}
        return bench.records.Record("public", "adult", model, epsilon, 0, scored, [1.0] * len(accuracies))

    rows = [record("auto", 0.1, 0.7), record("diffprivlib", 0.1, 0.6, 0.7), record("opacus", 0.1, 0.5)]
    rows += [record("auto", 1.0, 0.8), record("diffprivlib", 1.0, 0.7), record("opacus", 1.0, 0.6, 0.81)]
    (line, _) = bench.render.verdict(bench.tables.Part("public", rows))
    assert "in 1 of 2; behind on adult at 1 (0.800 against 0.810)" in line


def test_the_peers_are_scored_as_we_are(bench):
    rng = np.random.default_rng(1)
    y, p = rng.integers(0, 2, 200), rng.uniform(size=200).round(1)
    got = bench.problem.classification(y, p)
    assert got == pytest.approx(
        {"accuracy": accuracy_score(y, p > 0.5), "auc": roc_auc_score(y, p), "log_loss": log_loss(y, p)}
    )
    assert bench.problem.regression(p, p**2)["r2"] == pytest.approx(r2_score(p, p**2))


@pytest.mark.parametrize("name", ["breast_cancer", "digits_even_odd", "diabetes"])
def test_public_bounds_hold_for_every_row(bench, name):
    X, y = bench.sets.public(name)
    if bench.sets.PUBLIC[name] == "regression":
        assert np.abs(X).max() <= 1.0
        assert np.abs(y).max() <= 1.0
    else:
        np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1.0)
        assert set(y) == {0, 1}


def test_results_in_the_repository_can_be_read(bench):
    for path in sorted((BENCHMARKS / "results").glob("dense*.jsonl")):
        assert all(record.seconds or record.refused for record in bench.records.Store(path))
