"""The federated benchmark on tiny data: what it makes, runs, keeps and writes."""

import math

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from benchmarks.federated import __main__ as federated
from benchmarks.federated import blocks, methods, paper, problems, theory, timing
from benchmarks.federated.__main__ import BENCHMARK
from benchmarks.federated.page import FederatedPage
from benchmarks.frame.plots import Canvas
from benchmarks.frame.records import Record
from tacit.federated.protocols.marginals import MarginalsProtocol
from tacit.privacy import Plan, Release


def classes(_name="colon", _rows=None, loss="logistic"):
    """A few rows of two classes that one column gives away."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 12))
    y = np.where(A[:, 3] > 0, 1.0, -1.0)
    return problems.Problem(sparse.csc_array(A), y, 2.0, loss, 3.0)


@pytest.fixture
def tiny(monkeypatch):
    """Small data in place of the real sets, and hardly any effort."""
    monkeypatch.setattr(problems, "real", classes)
    monkeypatch.setattr(paper, "SETTINGS", paper.SETTINGS[:1])
    monkeypatch.setattr(problems, "REAL", {"colon": ("colon", 2.0, 3.0)})
    effort = BENCHMARK.full.but(seeds=1, repetitions=1, number_seeds=1, sizes={"60 x 24": [60, 24]}, many=[120, 40])
    effort = effort.but(active={"3 active columns, radius of the truth": [3, 0.0]}, columns=24)
    effort = effort.but(
        compared={"60 x 24, 10%": [60, 24, 0.1]}, iterations=[4], rows=[40, 80], parties=[2, 4], epsilons=[0.5, 5.0]
    )
    effort = effort.but(shares=[0.8], sketches=[0.2], block_size=[30, 200], ratios=[0.1], traced=3, rounds=4, turns=1)
    monkeypatch.setattr(BENCHMARK, "full", effort)


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
def test_a_run_measures_everything_and_writes_the_page(run, monkeypatch):
    drawn, draw = {}, Canvas.draw

    def kept(canvas, path, panels, *more, **named):
        drawn[path.name] = [line.label for panel in panels for line in panel.lines]
        if path.stem.endswith("2"):  # writing all of them takes long
            draw(canvas, path, panels, *more, **named)

    monkeypatch.setattr(Canvas, "draw", kept)
    records = run(BENCHMARK)
    names = set(methods.METHODS)
    assert {r.table for r in records} == set(BENCHMARK.parts)
    assert {r.model for r in records if r.table == "figure 6"} == names | {"not private"}
    assert {r.model for r in records if r.table == "numbers"} == names | {"not private"}
    assert {r.set for r in records if r.table == "figure 5"} == {"60 x 24 | all", "60 x 24 | 2", "60 x 24 | 4"}
    assert {r.epsilon for r in records if r.table == "figure 6"} == {None, 0.5, 5.0}
    fits = [r for r in records if "relative" in r.scores]
    assert all(math.isfinite(r.scores["relative"][0]) for r in fits)
    assert all(r.scores["relative"][0] >= -1e-4 for r in fits)  # nothing beats the optimum
    parted = names - {"central", "central short"}
    assert all(r.scores["uplink"][0] > 100 for r in fits if r.model.split(",")[0] in parted)
    hinge = {r.model for r in records if r.table == "hinge"}
    assert hinge == {"not private", "central", "central short", "product", "best"}
    assert drawn["federated_uplink.png"][-1] == "PRIDE (Remark 4)"
    page = run.page("federated")
    what = "marginals, 3 active columns, radius of the truth: relative excess loss of the weights"
    assert f"| {what} | at most 0.05 |" in page
    assert "| marginals: uplink of a party, bytes | at most 2,000 |" in page
    assert "quick run" not in page
    widths = [{line.count("|") for line in table.splitlines()} for table in page.split("\n\n") if table.startswith("|")]
    assert widths
    assert all(len(width) == 1 for width in widths)  # every row of a table has as many cells as its head
    assert sorted(drawn) == [*(f"federated_figure_{number}.png" for number in range(1, 10)), "federated_uplink.png"]
    assert all(f"({name})" in page for name in drawn)
    assert "feature-sharing, best" in drawn["federated_figure_6.png"]
    assert run.drawn("federated_figure_2")


@pytest.mark.usefixtures("tiny")
def test_a_run_goes_on_where_it_stopped_and_repeats_only_what_is_asked_for(run):
    few = ("--parts", "figure 2", "figure 5")
    found = run.goes_on(BENCHMARK, few, ("--parts", "figure 5", "--methods", "marginals"))
    assert run.measured == ["figure 5, 60 x 24 "]
    times, scores = ({r.key: getattr(r, field) for r in found.before} for field in ("seconds", "scores"))
    assert {r.model for r in found.after if r.seconds != times[r.key]} <= {"marginals", "not private"}
    assert all(r.scores == scores[r.key] for r in found.after)  # seeds fix everything but the time


@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge"])
def test_the_optimum_is_that_of_another_solver(loss):
    rng = np.random.default_rng(1)
    A = rng.standard_normal((80, 6))
    y = A @ [1.0, -0.5, 0.0, 0.0, 0.3, 0.0] + 0.3 * rng.standard_normal(80) + 0.2
    problem = problems.Problem(
        sparse.csc_array(A), y if loss == "squared" else np.sign(y), 1.2, loss, None if loss == "squared" else 3.0
    )

    def value(z):  # x = u - v with u, v >= 0
        return problem.value(A @ (z[:6] - z[6:12]) + (z[12] if problem.intercept else 0.0))

    ball = {"type": "ineq", "fun": lambda z: problem.radius - z[:12].sum()}
    bounds = [(0.0, None)] * 12 + [(None, None)]
    other = minimize(value, np.zeros(13), bounds=bounds, constraints=[ball], tol=1e-12)
    assert problem.optimum == pytest.approx(other.fun, rel=1e-4)
    assert np.abs(problem.best[:-1]).sum() <= problem.radius * (1 + 1e-6)
    assert problem.relative(problem.at_zero) == 1.0
    assert problem.relative(problem.optimum) == 0.0


@pytest.mark.parametrize("among", [2, 4])
def test_columns_of_different_parties_are_correlated(among):
    problem = problems.correlated(4_000, 40, 0.3, 4, among)
    assert problem.A.shape == (4_000, 40)
    moments = (problem.A.T @ problem.A).toarray()
    norms = np.sqrt(np.diag(moments))
    cosines = moments / np.outer(norms, norms)
    active = np.flatnonzero(problem.truth)
    groups = [active[active % 10 == group] for group in range(4)]  # one column of a group at a party, which holds ten
    assert [len(group) for group in groups] == [among] * 4
    for group in groups:
        block = cosines[np.ix_(group, group)]
        assert abs(block[np.triu_indices(among, 1)] - 0.9).max() < 0.03
    assert abs(cosines[groups[0][0], groups[1][0]]) < 0.1


def test_the_split_of_a_budget_moves_what_columns_are_chosen_with_and_leaves_the_rest():
    plan = Plan(
        Release("a/bounds", "exponential", share=0.1),
        Release("a/columns", "exponential", share=0.6),
        Release("a/correlations", "gaussian", share=0.05),
        Release("a/moments", "gaussian", share=0.15),
        Release("b/moments", "gaussian", share=0.1),  # chooses nothing: all columns are in
    )
    changed = {r.name: r.share for r in methods.split_plan(plan, 0.25).releases}
    assert changed == pytest.approx(
        {"a/bounds": 0.1, "a/columns": 0.2, "a/correlations": 0.15, "a/moments": 0.45, "b/moments": 0.1}
    )
    kept = MarginalsProtocol.plan
    with methods.choosing(0.25):
        assert MarginalsProtocol.plan is not kept
    assert MarginalsProtocol.plan is kept


def test_all_methods_have_the_same_ball():
    problem = problems.synthetic(300, 60, 0.2, 3, 2.5)
    for method in methods.METHODS.values():
        settings = [methods.Setting(epsilon=20.0, seed=seed) for seed in range(3)]
        norms = [method.measure(problem, setting)[0]["norm"] for setting in settings]
        assert 1.0 < max(norms) <= 2.5 * (1 + 1e-9)  # few steps of one fit may cancel by chance


def test_another_split_is_another_fit():
    problem = problems.synthetic(300, 60, 0.2, 3, None)
    setting = methods.Setting()
    for name in ("marginals", "product"):
        before, after = (methods.METHODS[name].measure(problem, s)[0] for s in (setting, methods.Setting(choosing=0.9)))
        assert after["loss"] != before["loss"]


def test_the_rounds_besides_the_protocols_work_are_less_than_all_of_it():
    found = timing.overhead(4, 5, 0)
    assert found["round"] == pytest.approx(found["own"] + found["rest"])
    assert min(found.values()) > 0.0


def test_samplings_have_the_probabilities_that_the_page_says():
    samplings = {name: sampling for name, (_, sampling) in blocks.samplings().items()}
    assert [s.least_marginal for s in samplings.values()] == [1.0, 0.4, 0.8, 0.16]
    assert blocks.samplings()["distributed"][0].endswith("p = 0.8")


def test_printed_balls_are_larger_and_the_same_ball_is_not():
    problem = problems.synthetic(60, 200, 0.2, 5, 2.0)
    norms = {
        (balls, workers): sum(ball.radius for ball in blocks.worker_domain(problem, workers, balls).balls)
        for balls in (blocks.PRINTED, blocks.SAME)
        for workers in (2, 8)
    }
    assert list(norms.values()) == [4.0, 16.0, 2.0, 2.0]


@pytest.mark.parametrize(("relative", "told"), [(0.04, "| reached |"), (0.06, "| **not reached** |")])
def test_a_verdict_says_what_is_not_reached(relative, told):
    record = Record(
        "numbers",
        "few | all",
        "marginals",
        1.0,
        0,
        {"relative": [relative], "linear": [relative], "uplink": [1_500.0]},
        [1.0],
        size=(2, 3, 4),
    )
    lines = FederatedPage([record]).section("## Numbers to reach").splitlines()
    assert told in lines[4]
    assert "| reached |" in lines[5]


def test_what_is_needed_is_the_value_from_which_on_all_are_good():
    def record(at, relative):
        scores = {"relative": [relative]}
        return Record("figure 4", f"all | {at}", "central", 1.0, 0, scores, [0.0], size=(2, 3, 4))

    page = FederatedPage([record(*pair) for pair in ((500, 0.4), (1_000, 0.7), (2_000, 0.5), (16_000, 0.1))])
    assert page.first_below("figure 4", "all", ("central", "no such"), 0.5) == "2,000"
    assert page.first_below("figure 4", "all", ("central",), 0.05) == "not reached"


def a_duel(part, where, ours, theirs):
    """Records of both protocols, one for each seed."""
    for model, values in (("marginals", ours), ("product", theirs)):
        for seed, value in enumerate(values):
            yield Record(part, where, model, 1.0, seed, {"relative": [value]}, [0.0], size=(2, 3, 4))


def test_duels_count_every_figure_and_only_what_standard_errors_tell_apart():
    records = [
        *a_duel("figure 5", "small | 2", [0.1, 0.12, 0.11], [0.5, 0.6, 0.4]),
        *a_duel("figure 9", "phishing | 4", [0.12, 0.11, 0.13], [0.05, 0.06, 0.05]),
        *a_duel("figure 6", "small | 1", [0.5, 0.9, 0.1], [0.4, 0.8, 0.2]),
        *a_duel("figure 3", "small | 8", [1.1, 1.2, 1.3], [1.5, 1.6, 2.0]),  # neither is worth having
    ]
    page = FederatedPage(records)
    told = page.duels_told()
    assert "run in 4 settings" in told
    assert "In 3 of them at least one" in told
    assert "standard errors 1 times, feature-sharing, with the best of its geometries in each, 1 times: " in told
    assert "figure 9, phishing, 4 (0.120 against 0.053)" in told
    assert "In 1 two standard errors do not tell them apart (marginals has the lower mean in 0 of these)" in told
    leads = {duel.where: duel.lead for duel in page.duels()}
    assert leads["figure 5, small, 2"] == pytest.approx(0.39 / np.sqrt((0.01**2 + 0.1**2) / 3))


def test_figure_4_is_compared_for_each_number_of_parties():
    record = lambda model, value: Record(  # noqa: E731
        "figure 4", "all | 500", model, 1.0, 0, {"relative": [value]}, [0.0], size=(2, 3, 4)
    )
    pairs = [("marginals, K = 2", 0.2), ("best, K = 2", 0.4), ("marginals, K = 4", 0.3), ("product, K = 8", 0.1)]
    (duel,) = FederatedPage([record(*pair) for pair in pairs]).duels()
    assert duel.where == "figure 4, 500, K = 2"


def test_the_promised_risk_falls_as_the_theorem_says_only_where_its_constants_are_constant():
    few, many = (theory.promised(rows, 500, 4, 0.01, 5.0) for rows in (1_000, 8_000))
    slope = np.log(many["risk, constant"] / few["risk, constant"]) / np.log(8)
    assert -0.66 < slope < -0.5  # n^(-2/3) but for logarithms
    assert many["risk, true"] > few["risk, true"]
    assert many["iterations, true"] < few["iterations, true"] < few["iterations, constant"]
    assert many["sigma squared"] == pytest.approx((1 + np.sqrt(8_000 / many["rows of the sketch"])) ** 2, rel=0.2)
    growth = np.log(many["uplink, Corollary 1"] / few["uplink, Corollary 1"]) / np.log(8)
    assert 2 / 3 < growth < 0.75
    assert many["uplink, PRIDE"] == pytest.approx(8 * few["uplink, PRIDE"])


def test_the_page_says_what_stands_on_as_many_runs_as_the_paper_has():
    def records(where, model, count):
        for seed in range(count):
            yield Record(*where, model, 1.0, seed, {"relative": [0.5]}, [0.0], size=(2, 3, 4))

    page = FederatedPage(
        [
            *records(("figure 4", "all | 500"), "product, K = 2", 20),
            *records(("figure 4", "all | 1000"), "product, K = 2", 20),
            *records(("figure 4", "all | 2000"), "product, K = 2", 3),
            *records(("figure 4", "all | 500"), "marginals, K = 2", 3),
            *records(("figure 5", "small | 2"), "serial", 20),
            *records(("figure 5", "small | 2"), "not private", 20),
        ]
    )
    assert page.repeated() == ("figure 4 at 500 and 1,000 (feature-sharing, product); figure 5, small")
    assert page.seeds() == "3 to 20"
    assert FederatedPage(records(("figure 4", "all | 500"), "best", 3)).repeated() == "nowhere"


def test_bounds_are_the_printed_ones():
    assert theory.gap_bound(1.0, 4.0, 1.0, 0) == 5.0
    assert theory.gap_bound(1.0, 4.0, 0.5, 12) == pytest.approx(2 * (1 + 8) / 8)
    rho = theory.inexactness(3.0, 2, 0.5, 0.25)
    assert rho == 5 * 0.5 + 0.25 * 2
    assert theory.gap_bound(1.0, 4.0, 0.5, 12, rho) == pytest.approx(2 * (1 + 4.0 * 8) / 8)
    study = theory.Study(1_000, 100, 2, 9, 3.0, 1.0, 0.01, 0.5, 8.0, spread=4.0)
    shared = (2 * 3 * 0.5 * 9 + 2**1.5 * 3 * 4) * np.sqrt(np.log(100) + 1)
    chosen = 2 * 3 * np.sqrt(32 * np.log(200))
    assert study.noise == pytest.approx(shared + chosen)
    assert study.iterations == pytest.approx((8 * 1_000 / study.noise) ** (2 / 3))
    logarithm = np.log(2 * 3 * 100 * 1_000)
    assert study.risk == pytest.approx(study.noise ** (2 / 3) * 2 * logarithm / 100)


def test_few_rows_are_repeated_more_often():
    effort = BENCHMARK.full
    few, many = (federated.Point(1, federated.synthetic((rows, 50)), ()) for rows in (effort.few_rows, 10**5))
    assert (few.repeated(effort), many.repeated(effort)) == (effort.repetitions, effort.seeds)
    assert federated.Point(1, few.data, (), seeds=6).repeated(effort) == 6
