"""The benchmark of the rule for text, on few made-up words: what it asks, moves and writes."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from tacit.solvers import rescaled

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.fixture
def rule(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    module = importlib.import_module("text_rule")
    rng = np.random.default_rng(0)
    groups = rng.choice(["rec.autos", "sci.med", "talk.religion"], size=400)
    X = np.zeros((400, 1_200))
    for row, group in zip(X, groups, strict=True):
        row[rng.integers(0, 1_200, size=5)] = 0.3
        row[{"rec.autos": 0, "sci.med": 1, "talk.religion": 2}[group]] = 0.8
    monkeypatch.setattr(module, "texts", lambda: (csr_array(X), groups))
    monkeypatch.setattr(module, "EPSILONS", (10.0,))
    yield module
    sys.modules.pop("text_rule")


def test_a_question_keeps_the_groups_it_is_about(rule):
    X, y = rule.question("rec or sci")
    groups = rule.texts()[1]
    assert X.shape[0] == len(y) == np.isin(groups, ["rec.autos", "sci.med"]).sum()
    assert y.sum() == (groups == "rec.autos").sum()
    assert rule.question("talk, not the rest")[0].shape[0] == 400
    assert rule.question("talk, not the rest", 50)[0].shape[0] == 50


def test_constants_are_moved_for_as_long_as_it_lasts(rule):
    before = rescaled._STEPS
    with rule.constants({"_STEPS": 7}):
        inside = rescaled._STEPS
    assert (inside, rescaled._STEPS) == (7, before)


def test_every_setting_is_understood(rule):
    for changed, parameters in rule.SETTINGS.values():
        assert all(hasattr(rescaled, name) for name in changed)
        rule.LogisticRegression(epsilon=1.0, **parameters)


def test_the_page_says_what_the_rule_gives_up(rule, tmp_path, capsys):
    rule.main(["--quick", "--questions", "rec or sci", "--out", str(tmp_path)])
    page = (tmp_path / "text_rule.md").read_text(encoding="utf8")
    assert page.count("| rec or sci |") == 1
    assert "behind the best by" in capsys.readouterr().out
