"""The benchmarks of rules on tiny sets: what they tune, keep apart and write; and the sets that judge."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from benchmarks.frame import sets
from benchmarks.frame.command import Effort
from benchmarks.frame.records import Record
from benchmarks.rules import (
    coordinate,
    curvature,
    dual,
    judges,
    means,
    order,
    regressions,
    sharing,
    solvers,
    text,
    units,
    walks,
)
from benchmarks.rules import steps as step_counts
from benchmarks.rules.tuned import compared, settings
from tacit import LogisticRegression
from tacit.solvers.text import steps

X = np.random.default_rng(0).normal(size=(400, 3))
TARGETS = {"line": X[:, 0] + 0.5 * X[:, 1], "two": np.where(X[:, 0] > 0, "yes", "no")}


@pytest.fixture
def tiny(monkeypatch):
    """Two sets of three columns, of which "two" chose, and one that is not here; quick runs at one epsilon."""

    def load(name):
        if name not in TARGETS:
            raise sets.MissingSetError("not here")
        return X, TARGETS[name], "regression" if name == "line" else "classification"

    monkeypatch.setattr(sets, "load", load)
    sparse = {"2 of 20": {"size": (300, 20, 2), "chose": False}, "2 of 30": {"size": (200, 30, 2), "chose": True}}
    for module in (coordinate, dual):
        part = dataclasses.replace(module.BENCHMARK.parts["rule"], sets=("line", "two", "absent"))
        monkeypatch.setitem(module.BENCHMARK.parts, "rule", part)
        few = module.BENCHMARK.quick.but(epsilons=[1.0], chose=["two"], sparse=sparse)
        monkeypatch.setattr(module.BENCHMARK, "quick", few)


@pytest.mark.usefixtures("tiny")
def test_excess_is_between_the_minimum_and_the_zero_model():
    for name in ("line", "two"):
        problem = coordinate.problem(name, 300)
        assert problem.excess(np.zeros(4)) == pytest.approx(1.0)
        assert problem.run("coordinate", float("inf"), range(1))[0] == pytest.approx(0.0, abs=1e-4)
        for other in dual.problems(name, 400):
            assert other.excess(np.zeros(4)) == pytest.approx(1.0)
            found, spread = dual.run_at(other, float("inf"), range(1))
            assert -1e-6 <= found < 2e-3
            assert spread == 0.0


@pytest.mark.usefixtures("tiny")
def test_steps_are_set_next_to_more_of_them(monkeypatch, tmp_path):
    for name, part in step_counts.BENCHMARK.parts.items():
        monkeypatch.setitem(
            step_counts.BENCHMARK.parts, name, dataclasses.replace(part, sets=("line", "two", "absent"))
        )
    step_counts.BENCHMARK.main(["--quick", "--out", str(tmp_path)])
    page = (tmp_path / "steps_rule.md").read_text()
    told = [line.split(" | ") for line in page.splitlines() if line.startswith(("| line", "| two"))]
    assert [len(row) for row in told] == [8, 8, 2, 2]
    assert all(float(row[1].rstrip(" |")) < 1e-6 for row in told[2:])


def test_regressions_are_set_next_to_those_with_a_part_replaced(monkeypatch, tmp_path):
    few = regressions.BENCHMARK.quick.but(judged=["noise 200 x 10, 3"], chose=["skewed 100 x 5, 1"], seeds=1)
    monkeypatch.setattr(regressions.BENCHMARK, "quick", few)
    rules = regressions.target.LabelScale.run, regressions.guard.is_due, regressions.target._CALM
    regressions.BENCHMARK.main(["--quick", "--out", str(tmp_path)])
    assert (regressions.target.LabelScale.run, regressions.guard.is_due, regressions.target._CALM) == rules
    page = (tmp_path / "regressions_rule.md").read_text()
    told = [line.split(" | ") for line in page.splitlines() if line.startswith(("| noise", "| skewed"))]
    assert [len(row) for row in told] == [7, 7]
    assert not any(part.startswith("+0.000") for part in told[0][4:])  # each part makes a difference


def test_long_steps_are_set_next_to_safe_ones(monkeypatch, tmp_path):
    found = {"three": lambda: (X, np.digitize(X[:, 0], [-0.5, 0.5])), "ten pairs": curvature.ten_pairs}
    monkeypatch.setattr(curvature, "MADE", found)
    few = curvature.BENCHMARK.quick.but(judged=["three"], chose=["ten pairs"], seeds=1)
    monkeypatch.setattr(curvature.BENCHMARK, "quick", few)
    rule = curvature.classes.curvature
    curvature.BENCHMARK.main(["--quick", "--out", str(tmp_path)])
    assert curvature.classes.curvature is rule
    page = (tmp_path / "curvature_rule.md").read_text()
    told = [line.split(" | ") for line in page.splitlines() if line.startswith(("| three", "| ten pairs"))]
    assert [len(row) for row in told] == [7, 7]
    assert "+0.000" not in told[0][5]  # other steps, another log-loss


def test_centres_are_set_next_to_those_of_histograms(monkeypatch, tmp_path):
    made = X + np.array([3.0, 0.0, -1.0]), (X[:, 0] > 0.3).astype(int), "classification"
    monkeypatch.setattr(means, "load", lambda _: made)
    few = means.BENCHMARK.quick.but(judged=["two"], chose=["other"], seeds=1, epsilons=[5.0])
    monkeypatch.setattr(means.BENCHMARK, "quick", few)
    scale = means.linear.MagnitudeScale
    means.BENCHMARK.main(["--quick", "--out", str(tmp_path)])
    assert means.linear.MagnitudeScale is scale
    told = [line.split(" | ") for line in (tmp_path / "means_rule.md").read_text().splitlines() if "400 x 3" in line]
    assert [row[0] for row in told] == ["| two", "| other"]
    assert "+0.000" not in told[0][5]  # other centres, another log-loss


def test_all_slopes_together_are_set_next_to_the_mean_iterate(monkeypatch, tmp_path):
    made = X, (X[:, 0] > 0.3).astype(int), "classification"
    monkeypatch.setattr(walks, "load", lambda _: made)
    few = walks.BENCHMARK.quick.but(judged=["two"], chose=["other"], seeds=1, epsilons=[1.0])
    monkeypatch.setattr(walks.BENCHMARK, "quick", few)
    together = walks.Walk.together
    walks.BENCHMARK.main(["--quick", "--out", str(tmp_path)])
    assert walks.Walk.together is together
    told = [line.split(" | ") for line in (tmp_path / "walks_rule.md").read_text().splitlines() if "400 x 3" in line]
    assert [row[0] for row in told] == ["| two", "| other"]
    assert "+0.000" not in told[0][5]  # other weights, another log-loss


def test_shares_of_units_are_set_next_to_those_of_two_classes(monkeypatch, tmp_path):
    made = X, np.digitize(X[:, 0], [-1.0, -0.3, 0.3, 1.0]), "classification"
    monkeypatch.setattr(units, "load", lambda _: made)
    few = units.BENCHMARK.quick.but(judged=["five"], chose=["other"], seeds=1, epsilons=[0.3])
    monkeypatch.setattr(units.BENCHMARK, "quick", few)
    share = units.linear._beside_weights
    units.BENCHMARK.main(["--quick", "--out", str(tmp_path)])
    assert units.linear._beside_weights is share
    told = [line.split(" | ") for line in (tmp_path / "units_rule.md").read_text().splitlines() if "400 x 3" in line]
    assert [row[0] for row in told] == ["| five", "| other"]
    assert "+0.000 ± 0.000" not in told[0][5]  # another share, another log-loss


def test_solvers_are_set_next_to_each_other(monkeypatch, tmp_path):
    both = {"two": (X, (X[:, 0] > 0.3).astype(int)), "three": (X, np.digitize(X[:, 0], [-0.5, 0.5]))}
    monkeypatch.setattr(solvers, "table", both.__getitem__)
    few = solvers.BENCHMARK.quick.but(judged=["two"], chose=[], several=["three"], epsilons=[20.0])
    monkeypatch.setattr(solvers.BENCHMARK, "quick", few)
    solvers.BENCHMARK.main(["--quick", "--out", str(tmp_path)])
    page = (tmp_path / "solvers_rule.md").read_text()
    told = [line.split(" | ") for line in page.splitlines() if line.startswith(("| two", "| three"))]
    assert [len(row) for row in told] == [7, 7, 7]
    assert "of 1 cells" in page
    assert "sets that chose" not in page


@pytest.mark.usefixtures("tiny")
def test_orders_are_set_next_to_new_permutations(monkeypatch, tmp_path):
    for name in ("standardised", "raw"):
        part = dataclasses.replace(order.BENCHMARK.parts[name], sets=("line", "two", "absent"))
        monkeypatch.setitem(order.BENCHMARK.parts, name, part)
    monkeypatch.setattr(order.BENCHMARK, "quick", order.BENCHMARK.quick.but(epsilons=[10.0]))
    order.BENCHMARK.main(["--quick", "--out", str(tmp_path), "--parts", "standardised", "raw"])
    page = (tmp_path / "order_rule.md").read_text()
    told = [line for line in page.splitlines() if line.startswith(("| line", "| two"))]
    assert [line.split(" | ")[0] for line in told] == ["| line", "| two", "| line, weak", "| line, strong", "| two"]
    excess = np.array([[float(cell.split(" ± ")[0]) for cell in line.strip("| ").split(" | ")[3:]] for line in told])
    assert excess.shape == (5, len(order.MODELS))
    assert np.all(excess < 0.1)
    (weak, problem), _ = order.raw("line", 300)
    assert weak == "line | weak"
    assert problem.run("cyclic", float("inf"), range(1))[0] == pytest.approx(0.0, abs=1e-4)


@pytest.mark.usefixtures("tiny")
def test_slopes_are_those_of_the_objective():
    w = np.array([0.3, -0.2, 0.1, 0.05])
    for problem in (*dual.problems("line", 400), *dual.problems("two", 400)):
        value, slope = problem.objective(w, 0.3)
        for j in range(4):
            moved = w + 1e-6 * np.eye(4)[j]
            assert (problem.objective(moved, 0.3)[0] - value) / 1e-6 == pytest.approx(slope[j], abs=1e-4)


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("solver", ["coordinate", "dual"])
def test_tuning_is_over_the_grid_on_seeds_of_its_own(solver):
    seen = []

    def run(seeds, **options):
        seen.append((seeds, bool(options)))
        if solver == "dual":
            return dual.run_at(dual.problems("line", 400)[0], 10.0, seeds, **options)
        return coordinate.problem("line", 300).run("coordinate", 10.0, seeds, **options)

    grid = {"n_passes": (10,), "clip": (1e-6, 1.0)} | ({"batch_size": (100,)} if solver == "dual" else {"step": (1.0,)})
    effort = Effort(grid=grid, tuning=1, kept=1, seeds=2)
    scores, best = compared(run, settings(effort), effort)
    assert best["clip"] == 1.0  # the other leaves the weights where they are
    assert scores["tuned"][0] < 0.5
    assert scores["ratio"] == scores["rule"][0] / scores["tuned"][0]
    assert [seeds.start for seeds, tuned in seen if tuned] == [1_000, 1_000, 1_000, 0]  # the best once more


@pytest.mark.usefixtures("tiny")
def test_the_pages_tell_sets_that_chose_from_those_that_judge(run, capsys):
    assert [r.set for r in run(dual.BENCHMARK, "--quick")] == ["line", "two", "two", "two"]
    assert run.measured == ["rule, line ", "rule, two "]  # the other is skipped
    judged, chose = run.page("dual_rule").split("## Sets that chose")
    assert (judged.count("| line |"), chose.count("| two |")) == (1, 3)
    run(coordinate.BENCHMARK, "--quick")
    judged, chose = run.page("coordinate_rule").split("## Sets that chose")
    assert (judged.count("| line |"), chose.count("| two |")) == (1, 1)
    sparse = run.page("greedy_rule")
    assert sparse.index("| 2 of 20 |") < sparse.index("## Chose") < sparse.index("| 2 of 30 |")
    coordinate.BENCHMARK.main(["--quick", "--parts", "rule", "--sets", "absent", "--out", str(run.folder)])
    assert "skipped: rule, absent (not here)" in capsys.readouterr().out


@pytest.fixture
def words(monkeypatch):
    """Texts of three groups that one word each gives away."""
    rng = np.random.default_rng(0)
    groups = rng.choice(["rec.autos", "sci.med", "talk.religion"], size=400)
    rows = np.zeros((400, 1_200))
    for row, group in zip(rows, groups, strict=True):
        row[rng.integers(0, 1_200, size=5)] = 0.3
        row[{"rec.autos": 0, "sci.med": 1, "talk.religion": 2}[group]] = 0.8
    monkeypatch.setattr(text, "texts", lambda: (csr_array(rows), groups))
    monkeypatch.setattr(text.BENCHMARK, "quick", text.BENCHMARK.quick.but(epsilons=[10.0]))
    return groups


def test_a_question_keeps_the_groups_it_is_about(words):
    rows, y = text.question("rec or sci")
    assert rows.shape[0] == len(y) == np.isin(words, ["rec.autos", "sci.med"]).sum()
    assert y.sum() == (words == "rec.autos").sum()
    assert text.question("talk, not the rest")[0].shape[0] == 400
    assert text.question("talk, not the rest", 50)[0].shape[0] == 50


def test_constants_are_moved_for_as_long_as_it_lasts():
    before = steps._STEPS
    with text.constants({"_STEPS": 7}):
        inside = steps._STEPS
    assert (inside, steps._STEPS) == (7, before)


def test_every_setting_is_understood():
    for setting in text.TOLD.settings.values():
        assert all(hasattr(steps, name) for name in setting["constants"])
        LogisticRegression(epsilon=1.0, **setting["parameters"])


@pytest.mark.usefixtures("words")
def test_the_page_says_what_the_rule_gives_up(run):
    (record,) = run(text.BENCHMARK, "--quick", "--sets", "rec or sci")
    page = run.page("text_rule")
    assert page.count("| rec or sci |") == 1
    behind = record.scores["tuned"][0] - record.scores["rule"][0]
    assert f"The rule gives up {behind:.3f} of accuracy in the median" in page


def test_judges_are_encoded_row_by_row():
    frame = pd.DataFrame({"size": [1.5, None, 3.0], "color": ["red", "blue", None]})
    expected = [[1.5, 0, 0, 1, 0], [0, 1, 1, 0, 0], [3.0, 0, 0, 0, 1]]  # size, missing, blue, red, missing
    np.testing.assert_array_equal(judges.encode(frame), expected)


def test_what_is_behind_a_rule_of_feature_sharing_counts_once_and_not_how_far_off_it_was():
    def record(model, where, relative, seed=0):
        return Record("choice", f"words | {where}", model, 1.0, seed, {"relative": [relative]}, [0.1], size=(9, 2, 3))

    steady = [record("product | 0.75", *where) for where in (("few", 0.8), ("many", 0.8), ("many", 1.0, 1))]
    lucky = [
        record("best | 0.5", "few", 0.1),
        record("best | 0.5", "many", 40.0),
        record("best | 0.5", "many", 60.0, 1),
    ]
    page = sharing.SharingPage([*steady, *lucky], sharing.BENCHMARK.quick)
    assert page.mean("best | 0.5").average == pytest.approx((0.1 + 2.0) / 2)
    assert page.behind("best | 0.5") == pytest.approx([-0.7, 1.2, 1.0])
    assert "| best | +0.500 ± 0.603 | - |" in page.differences()
    assert "50.000 ± 10.000" in str(page)


@pytest.mark.parametrize("loss", sharing.LOSSES)
def test_the_data_of_that_rule_has_a_model_in_the_ball_and_no_two_seeds_alike(loss):
    first, other = (sharing.problem("words", 400, loss, seed) for seed in (0, 1))
    assert first.A.shape == (400, 1_000)
    assert first.optimum < 0.9 * first.at_zero
    assert not np.array_equal(first.y, other.y)
