"""The dense benchmark on a tiny set: what it measures, keeps, skips and writes."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, log_loss, r2_score, roc_auc_score

from benchmarks.dense import __main__ as dense
from benchmarks.dense import methods, peer_runs
from benchmarks.dense.page import DensePage, cell, shown
from benchmarks.dense.peers import grids, problem, setup
from benchmarks.frame import sets
from benchmarks.frame.command import RESULTS
from benchmarks.frame.records import Record, Store
from tacit.problems import LOGISTIC, SQUARED
from tacit.solvers import SOLVERS

PEERS = setup.HERE


@pytest.fixture
def tiny(monkeypatch):
    """Two sets of 60 rows in place of the real ones, and no peers."""
    entry = sets.Entry
    entries = {"two": entry("classification", True), "line": entry("regression", False)}
    for known, told in (
        (sets.SETS, entries),
        (sets.PUBLIC, {name: {"kind": entry.kind} for name, entry in entries.items()}),
    ):
        for name in list(known):
            monkeypatch.delitem(known, name)
        for name, of in told.items():
            monkeypatch.setitem(known, name, of)
    monkeypatch.setattr(setup, "python", lambda _: PEERS / "no such interpreter")
    X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(60, 3))
    targets = {"two": (X[:, 0] > 0).astype(int), "line": X[:, 0]}

    def load(name):
        if name not in targets:
            raise sets.MissingSetError("not here")
        return X, targets[name], entries[name].kind

    monkeypatch.setattr(sets, "load", load)
    monkeypatch.setattr(sets, "public", lambda name: load(name)[:2])
    monkeypatch.setattr(dense.BENCHMARK, "full", dense.BENCHMARK.full.but(seeds=1, epsilons=[1.0]))
    dense.data.cache_clear()
    yield
    dense.data.cache_clear()


def measured(folder, *options):
    dense.BENCHMARK.main(["--parts", "raw", "public", "peers", "--out", str(folder), *options])
    return {record.key: record for record in Store(folder / "dense.jsonl")}


@pytest.mark.usefixtures("tiny")
def test_a_run_measures_every_solver_and_writes_the_pages(tmp_path, capsys):
    found = measured(tmp_path)
    for name, loss in (("two", LOGISTIC), ("line", SQUARED)):
        able = [
            solver for solver, kind in SOLVERS.items() if loss in kind.serves.losses and not kind.serves.sparse_only
        ]
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


@pytest.mark.usefixtures("tiny")
def test_a_run_goes_on_where_it_stopped_and_repeats_only_what_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(DensePage, "figures", lambda *_: None)
    only = ("--methods", "not private", "gradient", "auto")
    before = measured(tmp_path, *only)
    calls = []
    estimator = methods.estimator
    monkeypatch.setattr(methods, "estimator", lambda *args: calls.append(args[0]) or estimator(*args))
    assert measured(tmp_path, "--resume", *only) == before
    measured(tmp_path, "--render-only")
    assert calls == []
    after = measured(tmp_path, "--methods", "auto", "--sets", "two")
    assert calls == ["auto", "auto"]  # raw and public
    assert {key[1] for key in after if after[key] != before[key]} <= {"two"}  # a clock may show the same twice
    assert after.keys() == before.keys()
    assert len((tmp_path / "dense.jsonl").read_text().splitlines()) == len(after)


@pytest.mark.usefixtures("tiny")
def test_a_missing_set_and_a_refusal_are_named(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sets.SETS, "gone", sets.Entry("regression", False))

    def refuse(*_, **__):
        raise ValueError("not for this")

    monkeypatch.setattr(methods, "measure", refuse)
    measured(tmp_path, "--methods", "gradient")
    told = capsys.readouterr().out
    assert "skipped: raw, gone (not here)" in told
    assert "refused: gradient on two: not for this" in told
    assert "- gradient on two: not for this" in (tmp_path / "dense.md").read_text()


@pytest.mark.usefixtures("tiny")
def test_a_peer_answers_through_its_own_interpreter(tmp_path, monkeypatch):
    (tmp_path / "opacus_runner.py").write_text(
        f"import sys; sys.path.insert(0, {str(PEERS)!r})\n"
        "import problem\n"
        "def fit(arrays, settings, epsilon, point):\n"
        "    guess = arrays['X_test'][:, 0] + 0.5\n"
        "    return {**problem.classification(arrays['y_test'], guess), 'seconds': epsilon * point['clip']}\n"
        "problem.run(fit)\n"
    )
    monkeypatch.setattr(setup, "HERE", tmp_path)
    monkeypatch.setattr(setup, "PEERS", ("opacus",))
    monkeypatch.setattr(setup, "python", lambda _: Path(sys.executable))
    monkeypatch.setattr(setup, "why_missing", lambda _: "")
    store = Store(tmp_path / "peers.jsonl")
    X, y, kind = sets.load("two")
    parts = methods.split(X, y, kind, 0)
    assert peer_runs.run(store, "two", kind, 0, parts, (0.5, 2.0)) == []
    rows = list(store)
    assert [row.epsilon for row in rows] == [0.5, 2.0]
    assert rows[0].scores["accuracy"] == [1.0] * len(grids.points("opacus", kind))
    assert rows[1].seconds == [2.0 * point["clip"] for point in grids.points("opacus", kind)]
    (tmp_path / "opacus_runner.py").write_text("raise SystemExit(1)")  # what is known is not asked again
    assert peer_runs.run(store, "two", kind, 0, parts, (0.5, 2.0)) == []


def test_a_cell_is_the_best_point_of_a_grid_by_its_mean():
    def records(metric, *rows):
        return [Record("public", "s", "m", 1.0, k, {metric: row}, [1.0]) for k, row in enumerate(rows)]

    best = cell(records("accuracy", [0.9, 0.7], [0.5, 0.8]), "accuracy")
    assert best == pytest.approx((0.75, 0.05))
    assert cell(records("log_loss", [0.9, 0.7], [0.5, 0.8]), "log_loss")[0] == pytest.approx(0.7)
    assert cell(records("r2", [math.nan, -3.0], [0.9, -2.0]), "r2")[0] == pytest.approx(-2.5)
    assert shown(cell(records("r2", [-math.inf]), "r2"), "r2") == "below -1"


def test_the_verdict_counts_where_the_default_is_behind_the_better_peer():
    def record(model, epsilon, *accuracies):
        scored = {"accuracy": list(accuracies)}
        return Record("public", "adult", model, epsilon, 0, scored, [1.0] * len(accuracies))

    rows = [record("auto", 0.1, 0.7), record("diffprivlib", 0.1, 0.6, 0.7), record("opacus", 0.1, 0.5)]
    rows += [record("auto", 1.0, 0.8), record("diffprivlib", 1.0, 0.7), record("opacus", 1.0, 0.6, 0.81)]
    line = DensePage(rows).verdict()
    assert "in 1 of 2; behind on adult at 1 (0.800 against 0.810)" in line


def test_a_small_lead_of_a_peer_counts_only_beyond_the_standard_error():
    def rows(model, *accuracies):
        return [
            Record("public", "adult", model, 1.0, seed, {"accuracy": [value]}, [1.0])
            for seed, value in enumerate(accuracies)
        ]

    ours = rows("auto", 0.78, 0.80, 0.82)
    assert "in 1 of 1." in DensePage(ours + rows("opacus", 0.80, 0.81, 0.80)).verdict()
    assert "in 0 of 1; behind" in DensePage(ours + rows("opacus", 0.84, 0.85, 0.84)).verdict()


def test_the_solver_that_auto_took_has_no_second_row():
    def rows(model, note):
        return [Record("raw", "two", model, 1.0, 0, {"accuracy": [0.7]}, [1.0], note)]

    found = rows("gradient", "gradient") + rows("sgd", "sgd")
    assert DensePage(found + rows("auto", "gradient")).models("raw", "two") == ["auto", "sgd"]
    assert DensePage(found + rows("auto", "text")).models("raw", "two") == ["auto", "gradient", "sgd"]


def test_the_peers_are_scored_as_we_are():
    rng = np.random.default_rng(1)
    y, p = rng.integers(0, 2, 200), rng.uniform(size=200).round(1)
    got = problem.classification(y, p)
    assert got == pytest.approx(
        {"accuracy": accuracy_score(y, p > 0.5), "auc": roc_auc_score(y, p), "log_loss": log_loss(y, p)}
    )
    assert problem.regression(p, p**2)["r2"] == pytest.approx(r2_score(p, p**2))


@pytest.mark.parametrize("name", ["breast_cancer", "digits_even_odd", "diabetes"])
def test_public_bounds_hold_for_every_row(name):
    X, y = sets.public(name)
    if sets.PUBLIC[name]["kind"] == "regression":
        assert np.abs(X).max() <= 1.0
        assert np.abs(y).max() <= 1.0
    else:
        np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1.0)
        assert set(y) == {0, 1}


def test_results_in_the_repository_can_be_read():
    for path in sorted(RESULTS.glob("dense*.jsonl")):
        assert all(record.seconds or record.refused for record in Store(path))
