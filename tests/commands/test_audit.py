import itertools
import json
from dataclasses import replace

import numpy as np
import pytest

from tacit.commands import audit
from tacit.privacy import Budget, NoiseSource
from tacit.privacy.plan import CalibratedPlan
from tacit.solvers import SOLVERS, Solution, Task

from .support import tacit

pytestmark = pytest.mark.usefixtures("same_noise_each_time")

SERVED = [(name, loss) for name, solver in SOLVERS.items() for loss in solver.losses]


@pytest.fixture
def same_noise_each_time(monkeypatch):
    seeds = itertools.count()
    monkeypatch.setattr(audit, "NoiseSource", lambda: NoiseSource(next(seeds)))


@pytest.mark.parametrize(("solver", "loss"), SERVED)
def test_every_solver_can_be_audited_and_keeps_its_claim(capsys, solver, loss):
    words = ("--solver", solver, "--loss", loss, "--trials", 20, "--confidence", "0.999")
    code, out, err = tacit(capsys, "audit", *words)
    assert (code, err) == (0, "")
    assert out.startswith(f"{solver} solver, {loss} loss, add-remove, worst-case neighbours\nclaimed  epsilon = 5 at ")
    assert "with 99.9% confidence, from 2 x 20 runs\nNot refuted." in out


def test_less_noise_than_claimed_is_refuted(capsys, monkeypatch):
    # A quarter of the noise: mu = 5.8 where 1.45 is claimed, and 2,000 runs show about 3.
    honest = CalibratedPlan.multiplier
    monkeypatch.setattr(CalibratedPlan, "multiplier", lambda plan, name: honest(plan, name) / 4)
    words = ("--solver", "gradient", "--loss", "squared", "--trials", 2_000)
    code, out, _ = tacit(capsys, "audit", *words, "--json")
    told = json.loads(out)
    assert code == 1
    assert told["refuted"]
    assert told["found"]["mu"] > told["claimed"]["mu"]
    assert "REFUTED: the bound on mu is above the claim." in audit._text(told)


def test_a_leak_of_a_sampled_solver_is_refuted_by_epsilon(capsys, monkeypatch):
    class Leaky:
        honest = SOLVERS["sgd"]

        def __getattr__(self, name):
            return getattr(self.honest, name)

        def run(self, task, rows, _, meter):
            for release in self.honest.plan(task, 1.0).releases:
                meter.skip(release.name, release.count)
            return Solution(np.full((1, task.d + 1), rows.Z[0, 0]), np.zeros((1, task.d + 1)))

    monkeypatch.setitem(SOLVERS, "sgd", Leaky())
    words = ("--solver", "sgd", "--trials", 500, "--epsilon", "0.5", "--json")
    code, out, _ = tacit(capsys, "audit", *words)
    told = json.loads(out)
    assert code == 1
    assert (told["tested"], told["found"]["mu"], told["claimed"]["mu"]) == ("epsilon", None, None)
    assert told["found"]["epsilon"] > 0.5


def test_the_number_of_runs_fits_the_time(capsys, monkeypatch):
    monkeypatch.setattr(audit, "SECONDS", 0.0)
    monkeypatch.setattr(audit, "LEAST", 30)
    _, out, _ = tacit(capsys, "audit", "--solver", "gradient")
    assert "from 2 x 30 runs" in out
    monkeypatch.setattr(audit, "SECONDS", 1e9)
    monkeypatch.setattr(audit, "MOST", 40)
    _, out, _ = tacit(capsys, "audit", "--solver", "gradient")
    assert "from 2 x 40 runs" in out


def test_the_neighbours_differ_in_one_row():
    task = Task(audit.ROWS, audit.COLUMNS, "logistic", 1, False, False, Budget(1.0, 1e-3, "replace-one"))
    for each in (task, replace(task, budget=Budget(1.0, 1e-3)), replace(task, loss="multinomial", outputs=3)):
        one, other = audit.neighbours(each)
        assert np.flatnonzero(np.any(one.Z != other.Z, axis=1)).tolist() == [0]
        np.testing.assert_array_equal(one.targets, other.targets)
        assert np.all(one.Z.sum(axis=0) == 0)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--epsilon", "inf"), "epsilon must be finite"),
        (("--epsilon", "-1"), "epsilon must be above 0"),
        (("--delta", "1"), "delta must lie strictly between 0 and 1"),
        (("--confidence", "2"), "confidence must lie strictly between 0 and 1"),
        (("--trials", "3"), "trials must be at least 20"),
        (("--loss", "other"), "loss must be one of"),
        (("--solver", "other"), "solver must be one of"),
    ],
)
def test_what_is_wrong_is_one_line(capsys, words, message):
    code, out, err = tacit(capsys, "audit", *words)
    assert (code, out) == (2, "")
    assert err.startswith("tacit audit: error: ")
    assert message in err
    assert err.count("\n") == 1
