import json
import math

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent
from scipy.sparse import csr_array

from tacit import LogisticRegression, Ridge
from tacit.commands.calibrate import Answer
from tacit.privacy import Budget, Guarantee, epsilon_of, events
from tacit.problems import LOGISTIC
from tacit.solvers import SOLVERS

from .support import tacit

FIT = ("calibrate", "--rows", "400", "--columns", "3", "--epsilon", "2")


def answer(capsys, *words):
    code, out, err = tacit(capsys, *words, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.filterwarnings("ignore:.*budget is too small:UserWarning")
def test_it_says_what_a_fit_does(capsys, solver):
    loss = "logistic" if LOGISTIC in SOLVERS[solver].serves.losses else "squared"
    sparse = ("--sparse",) if SOLVERS[solver].serves.sparse_only else ()
    told = answer(capsys, *FIT, "--solver", solver, "--loss", loss, *sparse)
    X, y = np.random.default_rng(0).normal(size=(400, 3)), np.arange(400) % 2
    X = csr_array(X) if sparse else X
    plan = (LogisticRegression if loss == "logistic" else Ridge)(2.0, solver=solver).fit(X, y).plan_
    assert told["event"] == events.to_dict(plan.event)
    assert [(r["name"], r["count"], r["sampling"]) for r in told["releases"]] == [
        (r.name, r.count, r.sampling) for r in plan.plan.releases
    ]
    assert [r["noise_multiplier"] for r in told["releases"]] == list(plan.multipliers)
    assert sum(r["share"] for r in told["releases"]) == pytest.approx(1.0)
    assert told["asked_epsilon"] == 2.0
    assert 1.97 <= told["epsilon"] <= 2.0


@pytest.mark.filterwarnings("ignore:.*budget is too small:UserWarning")
def test_declarations_and_classes_change_the_plan(capsys):
    def told(*words):
        return answer(capsys, *FIT, "--solver", "gradient", *words)["event"]

    X, y = np.random.default_rng(0).normal(size=(400, 3)), np.arange(400) % 4
    for words, model, table in (
        (("--row-norm", "1"), LogisticRegression(2.0, row_norm=1.0), X),
        (("--adjacency", "replace-one", "--no-intercept"), LogisticRegression(2.0, None, "replace-one"), X),
        (("--sparse",), LogisticRegression(2.0), csr_array(X)),
        (("--loss", "squared"), Ridge(2.0), X),
        (("--loss", "squared", "--y-bounds", "0", "1"), Ridge(2.0, y_bounds=(0.0, 1.0)), X),
        (("--classes", "4"), LogisticRegression(2.0), X),
    ):
        model.set_params(solver="gradient", fit_intercept="--no-intercept" not in words)
        model.fit(table, y if "--classes" in words else y % 2)
        assert told(*words) == events.to_dict(model.plan_.event), words
    code, out, _ = tacit(capsys, *FIT, "--classes", "5")
    assert code == 0
    assert "multinomial loss, 400 rows, 3 columns, add-remove\n" in out


def test_text_is_a_table(capsys):
    _, out, _ = tacit(capsys, *FIT, "--solver", "gradient")
    lines = out.splitlines()
    assert lines[0] == "gradient solver, logistic loss, 400 rows, 3 columns, add-remove"
    assert lines[1].split() == ["release", "kind", "part", "times", "sampling", "noise", "multiplier"]
    assert lines[-3].endswith(" Gaussian releases")
    assert lines[-2].startswith("epsilon  ")
    assert lines[-2].endswith("(asked for 2)")
    assert float(lines[-1].split()[1].rstrip(",")) == pytest.approx(Budget(2.0, 400**-1.5).mu, rel=1e-5)


@pytest.mark.parametrize("sampling", [1.0, 0.05])
def test_there_and_back(capsys, sampling):
    words = ("--delta", "1e-6", "--count", "20", "--sampling", sampling)
    there = answer(capsys, "calibrate", "--epsilon", "1.5", *words)
    [release] = there["releases"]
    back = answer(capsys, "calibrate", "--noise-multiplier", release["noise_multiplier"], *words)
    assert back["epsilon"] == there["epsilon"]
    assert 0.98 * 1.5 <= back["epsilon"] <= 1.5
    assert (back["mu"] is None) == (sampling < 1)


def test_several_releases_and_mu(capsys):
    told = answer(capsys, "calibrate", "--noise-multiplier", 10, 20, "--count", 1, 4, "--delta", "1e-6")
    assert told["mu"] == pytest.approx(math.sqrt(1 / 100 + 4 / 400))
    same = answer(capsys, "calibrate", "--mu", told["mu"], "--delta", "1e-6")
    assert same["epsilon"] == pytest.approx(told["epsilon"], rel=1e-6)
    fit = answer(capsys, "calibrate", "--mu", "0.5", "--rows", "400", "--columns", "3", "--solver", "gradient")
    assert fit["mu"] == pytest.approx(0.5, rel=1e-6)


def test_a_stored_guarantee_is_recomputed(capsys, tmp_path):
    X, y = np.random.default_rng(0).normal(size=(400, 3)), np.arange(400) % 2
    guarantee = LogisticRegression(2.0, row_norm=3.0).fit(X, y).guarantee_
    (tmp_path / "g.json").write_text(guarantee.to_json())
    told = answer(capsys, "calibrate", "--recompute", tmp_path / "g.json")
    assert told["epsilon"] == guarantee.recompute()
    assert told["delta"] == guarantee.delta
    other = answer(capsys, "calibrate", "--recompute", tmp_path / "g.json", "--delta", "1e-9")
    assert other["epsilon"] == epsilon_of(guarantee.event, 1e-9) > told["epsilon"]
    assert str(guarantee) in tacit(capsys, "calibrate", "--recompute", tmp_path / "g.json")[1]


def test_a_stored_guarantee_with_a_part_of_delta_beside_its_event_has_no_mu(capsys, tmp_path):
    guarantee = Guarantee(1.0, 1e-5, "add-remove", "encoder", GaussianDpEvent(5.0), 400, d0=1e-6)
    (tmp_path / "g.json").write_text(guarantee.to_json())
    told = answer(capsys, "calibrate", "--recompute", tmp_path / "g.json")
    assert (told["epsilon"], told["delta"], told["mu"]) == (guarantee.recompute(), 1e-5, None)
    assert "mu " not in tacit(capsys, "calibrate", "--recompute", tmp_path / "g.json")[1]
    code, _, err = tacit(capsys, "calibrate", "--recompute", tmp_path / "g.json", "--delta", "1e-7")
    assert (code, "--delta must be above 1e-06" in err) == (2, True)


def test_without_privacy(capsys):
    told = answer(capsys, *FIT, "--epsilon", "inf", "--solver", "gradient")
    assert (told["epsilon"], told["mu"]) == ("inf", "inf")
    assert {r["noise_multiplier"] for r in told["releases"]} == {0.0}


def test_an_answer_without_a_share_says_so():
    assert "fixed" in str(Answer(*_fixed()))


def _fixed():
    from tacit.privacy import Release

    release = Release("one", "laplace", multiplier=3.0)
    return release.event(3.0), 1e-6, ((release, 3.0),)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "exactly one of --epsilon, --mu"),
        (("--epsilon", "1", "--mu", "1"), "exactly one of --epsilon, --mu"),
        (("--epsilon", "1"), "give --delta, or --rows"),
        (("--epsilon", "1", "--delta", "0"), "delta must lie strictly between 0 and 1"),
        (("--epsilon", "1", "--rows", "1", "--columns", "2"), "rows must be at least 2"),
        (("--epsilon", "1", "--delta", "1e-6", "--columns", "2"), "needs --rows as well as --columns"),
        (("--epsilon", "1", "--rows", "100", "--columns", "0"), "columns must be at least 1"),
        (("--epsilon", "1", "--rows", "100", "--columns", "2", "--loss", "l"), "loss must be one of 'squared'"),
        (("--epsilon", "1", "--rows", "100", "--columns", "2", "--solver", "s"), "solver must be one of 'auto'"),
        (("--epsilon", "1", "--rows", "100", "--columns", "2", "--classes", "1"), "classes must be at least 2"),
        (("--mu", "0", "--delta", "1e-6"), "mu must be above 0"),
        (("--noise-multiplier", "0", "--delta", "1e-6"), "noise-multiplier must be above 0"),
        (
            ("--noise-multiplier", "1", "--count", "1", "2", "--delta", "1e-6"),
            "--count takes one number, or one for each",
        ),
        (
            ("--noise-multiplier", "1", "--sampling", "0.1", "--delta", "1e-6", "--adjacency", "replace-one"),
            "add-remove only",
        ),
        (("--recompute", "none.json"), "No such file"),
        (("--recompute", "pyproject.toml"), "holds no guarantee"),
    ],
)
def test_what_is_wrong_is_one_line(capsys, pytestconfig, monkeypatch, words, message):
    monkeypatch.chdir(pytestconfig.rootpath)
    code, out, err = tacit(capsys, "calibrate", *words)
    assert (code, out) == (2, "")
    assert err.startswith("tacit calibrate: error: ")
    assert message in err
    assert err.count("\n") == 1
