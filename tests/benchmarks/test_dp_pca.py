"""The PCA benchmark on tiny data: what it runs, keeps and writes."""

import math

import numpy as np
import pytest
from scipy.sparse import csr_array

from benchmarks.dp_pca import methods, paper, printed, problems
from benchmarks.dp_pca.__main__ import BENCHMARK
from benchmarks.dp_pca.page import PcaPage
from benchmarks.frame.records import Record
from tacit.metrics import principal_angles
from tacit.solvers.pca import VarianceReduced


def table(n=400, d=24, seed=0):
    """Rows of norm 1 off the origin, whose first column tells the class."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.geomspace(1.0, 0.05, d) + 0.2
    return X / np.linalg.norm(X, axis=1)[:, None], (X[:, 0] > 0.2).astype(int)


@pytest.fixture
def tiny(monkeypatch):
    """Small rows in place of every set, and hardly any effort."""

    def rows(name, *_):
        X, y = table()
        return (csr_array(X), y) if name == "news20" else (X, y)

    monkeypatch.setattr(problems, "rows", rows)
    monkeypatch.setattr(problems, "raw", lambda *_: 5.0 * table()[0])
    monkeypatch.setattr(paper, "true_epsilon", lambda n, multiplier, steps: n / steps / multiplier)
    effort = BENCHMARK.full.but(epsilons=[1.0], seeds=1, target_seeds=2, rule_epsilons=[1.0], rule_seeds=1)
    effort = effort.but(ranks=[1, 3], arrangements=2, repetitions=2)
    monkeypatch.setattr(BENCHMARK, "full", effort.but(rounds=1, wide=[], wide_epsilons=[1.0]))
    monkeypatch.setattr(
        methods, "SETTINGS", {"`VarianceReduced(n_inner=0)`": VarianceReduced(n_snapshots=2, n_inner=0)}
    )


@pytest.mark.usefixtures("tiny")
def test_a_run_measures_everything_and_writes_the_page(run):
    records = run(BENCHMARK, "--sets", "a9a", "MNIST", "digits", "phishing", "wine")
    assert {r.table for r in records} == set(BENCHMARK.parts)
    assert {r.model for r in records if r.table == "figure"} == {*methods.SOLVERS, "random"}
    tabled = [r for r in records if r.table == "table"]
    assert {r.model for r in tabled} == {*methods.SOLVERS, "random", "not private", "all columns"}
    assert {r.seed for r in tabled} == {0, 1, 2, 3}  # two arrangements, two repetitions each
    assert {r.model for r in records if r.table == "ranks"} == {
        f"{s}, k = {k}" for s in methods.SOLVERS for k in (1, 3)
    }
    captured = [r.scores["captured"][0] for r in records if "captured" in r.scores]
    assert all(0.0 < value <= 1.0 + 1e-9 for value in captured)
    page = run.page("dp_pca")
    assert "| a9a, 400 x 24, k = 10, epsilon = 0.1 | at least 0.985 |" in page
    assert "| diffprivlib .21 |" in page
    assert "| `stochastic` (DP-SPCA) |" in page
    assert "| captured | k = 1 | k = 3 |" in page
    assert "| MNIST, n = 400 | DP-VRPCA, Algorithm 2 |" in page
    assert "| all columns, not private |" in page
    assert "| a9a, n = 32,561 | DP-VRPCA | 0.1 | 0.146 |" in page
    assert "| MNIST: a fit with `gauss` over the plain products, time | at most 1.3 |" in page
    assert "quick run" not in page
    assert run.drawn("dp_pca_figure_1")


@pytest.mark.usefixtures("tiny")
def test_a_run_goes_on_where_it_stopped_and_repeats_only_what_is_asked_for(run):
    few = ("--parts", "targets", "noise", "--sets", "a9a", "MNIST")
    run.goes_on(BENCHMARK, few, ("--parts", "targets", "--sets", "a9a"))
    assert run.measured == ["targets, a9a "]


def test_scores_are_those_of_the_definitions():
    X, _ = table()
    for center in (False, True):
        problem = problems.problem(X, 3, center)
        Z = X - X.mean(axis=0) if center else X
        exact = np.linalg.svd(Z, full_matrices=False)[2]
        scores = problem.scores(exact[[0, 1, 5]])
        variances = np.sum((Z @ exact.T) ** 2, axis=0)
        assert scores["captured"] == pytest.approx(variances[[0, 1, 5]].sum() / variances[:3].sum())
        assert scores["error"] == pytest.approx(1.0)
        assert scores["distance"] == pytest.approx(1.0)
        assert max(problem.scores(exact[:3])["error"], 0.0) < 1e-9


def test_the_printed_algorithms_are_those_of_the_paper():
    X, _ = table(300)
    for name, algorithm in printed.ALGORITHMS.items():
        V = algorithm(X, 2, None, 0).T
        np.testing.assert_allclose(V.T @ V, np.eye(2), atol=1e-9, err_msg=name)
        assert not np.allclose(algorithm(X, 2, 0.1, 0).T, V)
    # Steps of 1 / (2n) over n rows of norm 1 hardly move: nothing is found, even without noise.
    start = methods.random_components(24, 2, 0)
    moved = [principal_angles(start, algorithm(X, 2, None, 0)).max() for algorithm in printed.ALGORITHMS.values()]
    assert max(moved) < 0.6


def test_the_paper_adds_this_noise():
    n, epsilon = 60_000, 0.1
    order = math.log(1e3) / (0.5 * epsilon) + 1.0
    assert paper.spca_multiplier(n, epsilon) == pytest.approx(math.sqrt(20 * order / (n * epsilon * 0.5)))
    assert paper.vrpca_multiplier(n, epsilon) == pytest.approx(math.sqrt(math.log(1e3) / n) / epsilon)
    # A step that always sees the row is a plain Gaussian release: delta = 1e-3 is met at epsilon 2.97 for multiplier 1.
    plain = paper.true_epsilon(1, 1.0, 1)
    tail = 0.5 * math.erfc((plain - 0.5) / math.sqrt(2.0)), 0.5 * math.erfc((plain + 0.5) / math.sqrt(2.0))
    assert tail[0] - math.exp(plain) * tail[1] == pytest.approx(1e-3, rel=0.02)


def test_the_svm_sees_what_the_components_keep():
    X, y = table(2_000)
    kept, lost = np.eye(24)[:2], np.eye(24)[20:22]
    assert methods.svm_accuracy(kept, X, y, 0) > methods.svm_accuracy(lost, X, y, 0) + 0.2
    first, second = methods.halves(X, 0)
    assert len(first) == len(second) == 1_000
    assert not set(first) & set(second)


@pytest.mark.parametrize(("captured", "told"), [(0.99, "| reached |"), (0.9, "| **not reached** |")])
def test_a_verdict_says_what_is_not_reached(captured, told):
    record = Record("targets", "a9a", "auto", 0.1, 0, {"captured": [captured]}, [1.0], size=(9, 3, 2))
    lines = PcaPage([record]).section("## Numbers to reach").splitlines()
    assert told in next(line for line in lines if line.startswith("| a9a"))
