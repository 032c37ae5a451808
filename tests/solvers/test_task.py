import dataclasses
import math

import numpy as np
import pytest

from tacit import solvers
from tacit.solvers import Rows, choose

from .support import rows, task


class FakeSolver:
    name = "fake"
    losses = ("logistic",)
    adjacencies = ("add-remove",)


@pytest.fixture
def fake(monkeypatch):
    solver = FakeSolver()
    monkeypatch.setitem(solvers.SOLVERS, "fake", solver)
    return solver


def test_rows_do_not_show_themselves():
    private = rows("squared", 3, 2)
    assert repr(private) == str(private) == "Rows(private)"
    assert "private" in f"{[private]}"
    with pytest.raises(dataclasses.FrozenInstanceError):
        private.Z = np.zeros((3, 2))
    assert isinstance(private, Rows)


@pytest.mark.parametrize("loss", ["squared", "logistic", "multinomial"])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_auto_is_gradient(loss, adjacency):
    problem = task(loss, 10, 2, adjacency=adjacency)
    assert choose("auto", problem) is choose("gradient", problem) is solvers.SOLVERS["gradient"]


def test_a_solver_is_found_by_its_name(fake):
    assert choose("fake", task("logistic", 10, 2)) is fake


@pytest.mark.usefixtures("fake")
def test_an_unserved_loss_is_refused_and_the_able_are_named():
    with pytest.raises(ValueError, match=r"solver='fake' does not serve the squared loss; these do: gradient$"):
        choose("fake", task("squared", 10, 2))


@pytest.mark.usefixtures("fake")
def test_an_unserved_adjacency_is_refused_and_the_able_are_named():
    with pytest.raises(ValueError, match=r"does not serve adjacency='replace-one'; these do: gradient$"):
        choose("fake", task("logistic", 10, 2, adjacency="replace-one"))


def test_a_task_is_public_numbers_only():
    problem = task("logistic", 10, 2, epsilon=math.inf)
    kinds = {type(value) for value in dataclasses.asdict(problem).values()}
    assert kinds <= {int, str, bool, dict}
