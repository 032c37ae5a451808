import dataclasses
import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.sparse import csr_array

from tacit import solvers
from tacit.privacy import Gate
from tacit.problems import LOSSES
from tacit.solvers import SOLVERS, Options, Rows, choose

from .support import rows, task


class FakeSolver:
    name = "fake"
    losses = (LOSSES["logistic"],)
    adjacencies = ("add-remove",)
    penalties = ("l1",)
    options = ()


@pytest.fixture
def fake(monkeypatch):
    solver = FakeSolver()
    monkeypatch.setitem(solvers.SOLVERS, "fake", solver)
    return solver


def test_rows_do_not_show_themselves():
    private = rows("squared", 3, 2)
    assert repr(private) == str(private) == "Rows(private)"
    assert "private" in f"{[private]}"
    assert repr(private.some(np.array([1]))) == "Rows(private)"
    with pytest.raises(dataclasses.FrozenInstanceError):
        private.Z = np.zeros((3, 2))
    assert isinstance(private, Rows)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("places", [[], [2], [0, 3, 4]], ids=str)
def test_some_rows_are_those_at_the_places(sparse, places):
    whole = rows("squared", 5, 3, sparse)
    some = whole.some(np.array(places, dtype=np.int64))
    expected = whole.Z.toarray() if sparse else whole.Z
    assert isinstance(some.Z, csr_array) == sparse
    np.testing.assert_array_equal(some.Z.toarray() if sparse else some.Z, expected[places])
    np.testing.assert_array_equal(some.targets, whole.targets[places])


# --- the public numbers that rules are made of -------------------------------------------------------------


def test_the_noise_level_of_a_task():
    problem = task("logistic", 1000, 9)
    assert problem.nu == pytest.approx(10 / (1000 * problem.budget.mu))
    assert problem.calm == pytest.approx(1e-3 / problem.nu)
    assert problem.width == 10
    assert task("logistic", 1000, 9, fit_intercept=False).width == 9
    assert task("logistic", 1000, 9, epsilon=math.inf).calm == math.inf


def test_options_that_were_given():
    assert Options().given == ()
    assert Options(n_passes=2.0, batch_size=10).given == ("n_passes", "batch_size")


def test_a_task_is_public_numbers_only():
    problem = task("logistic", 10, 2, epsilon=math.inf, n_iter=3)
    kinds = {type(value) for value in dataclasses.asdict(problem).values()}
    assert kinds <= {int, str, bool, dict, tuple}


# --- which solver serves what ------------------------------------------------------------------------------


def test_the_solvers():
    assert list(SOLVERS) == [solver.name for solver in SOLVERS.values()]
    assert {"gradient", "objective", "sgd", "statistics"} <= set(SOLVERS)


@pytest.mark.parametrize("loss", ["squared", "logistic", "multinomial"])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize(("d", "sparse"), [(2, False), (2, True), (5000, False)])
def test_auto_is_gradient(loss, adjacency, d, sparse):
    problem = task(loss, 10, d, sparse, adjacency=adjacency)
    assert choose("auto", problem) is choose("gradient", problem) is SOLVERS["gradient"]


@pytest.mark.parametrize(
    ("problem", "name"),
    [
        (task("hinge", 10, 2), "sgd"),
        (task("squared_hinge", 10, 5000, sparse=True), "sgd"),
        (task("squared_hinge", 10, 2, adjacency="replace-one"), "coordinate"),
        (task("squared_hinge", 10, 2, penalties=("l2", "bounds")), "coordinate"),
        (replace(task("hinge", 10, 2), outputs=3), "dual"),
        (task("squared", 10, 2, penalties=("l1",)), "coordinate"),
        (task("squared", 1_000, 1_000, penalties=("l1",), epsilon=10.0), "greedy"),
        (task("squared", 1_000, 1_000, penalties=("l2", "l1"), epsilon=10.0), "greedy"),
        (task("squared", 1_000, 1_000, penalties=("l1",), epsilon=0.1), "coordinate"),
        (task("squared", 1_000, 100, penalties=("l1",), epsilon=10.0), "coordinate"),
        (task("squared", 1_000, 1_000, penalties=("l2", "bounds"), epsilon=10.0), "coordinate"),
        (task("multinomial", 10, 2, penalties=("l1",)), "sgd"),
        (task("logistic", 10, solvers.WIDE, sparse=True), "gradient"),
        (task("logistic", 10, solvers.WIDE + 1, sparse=True), "one-shot"),
        (task("logistic", 10, solvers.WIDE + 1, sparse=True, n_iter=3), "gradient"),
        (task("logistic", 2_000, solvers.WIDE + 1, sparse=True), "gradient"),
        (task("logistic", 2_000, solvers.WIDE + 1, sparse=True, adjacency="replace-one"), "one-shot"),
        (task("logistic", 10, solvers.WIDE + 1, sparse=True, epsilon=math.inf), "gradient"),
        (task("multinomial", 10, solvers.WIDE + 1, sparse=True), "sgd"),
        (task("multinomial", 10, solvers.WIDE + 1, sparse=True, adjacency="replace-one"), "gradient"),
        (task("squared", 10, solvers.WIDE + 1, sparse=True), "gradient"),
    ],
)
def test_auto_goes_by_the_task(problem, name):
    assert choose("auto", problem) is SOLVERS[name]


def test_a_refusal_says_what_auto_stands_for():
    with pytest.raises(
        ValueError, match=r"^solver='auto' \(sgd here\) does not serve adjacency='replace-one'; no solver"
    ):
        choose("auto", task("hinge", 10, 2, adjacency="replace-one"))


def test_a_solver_is_found_by_its_name(fake):
    assert choose("fake", task("logistic", 10, 2, penalties=("l1",))) is fake


ADJACENCIES = ("add-remove", "replace-one")
PENALTIES = ("l2", "l1")
OPTIONS = ({}, {"n_iter": 5}, {"n_passes": 2.0}, {"batch_size": 4}, {"n_passes": 2.0, "batch_size": 4})


def serves(solver, problem):
    return (
        problem.loss in solver.losses
        and problem.budget.adjacency in solver.adjacencies
        and set(problem.penalties) <= set(solver.penalties)
        and set(problem.options.given) <= set(solver.options)
    )


@pytest.mark.parametrize("name", SOLVERS)
def test_a_task_is_served_or_refused_before_data_is_read_and_the_able_are_named(name, monkeypatch):
    monkeypatch.setattr(Gate, "__init__", lambda *_: pytest.fail("a gate was opened"))
    served = refused = 0
    for loss, adjacency, penalty, options in product(LOSSES, ADJACENCIES, PENALTIES, OPTIONS):
        problem = task(loss, 10, 2, adjacency=adjacency, penalties=(penalty,), **options)
        if serves(SOLVERS[name], problem):
            assert choose(name, problem) is SOLVERS[name]
            served += 1
            continue
        with pytest.raises(ValueError, match=f"^solver='{name}' does not serve ") as caught:
            choose(name, problem)
        message, hint = str(caught.value).rsplit("; ", 1)
        able = [solver.name for solver in SOLVERS.values() if serves(solver, problem)]
        assert hint == (f"these do: {', '.join(able)}" if able else "no solver serves all that was asked for")
        wanted = {
            f"the {LOSSES[loss].words} loss": LOSSES[loss] in SOLVERS[name].losses,
            f"adjacency='{adjacency}'": adjacency in SOLVERS[name].adjacencies,
            f"the {penalty} penalty": penalty in SOLVERS[name].penalties,
            **{f"the parameter {option}": option in SOLVERS[name].options for option in options},
        }
        assert {words for words in wanted if words in message} == {words for words, ok in wanted.items() if not ok}
        refused += 1
    assert served > 0
    assert refused > 0


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("loss", LOSSES)
def test_more_than_two_classes_are_served_where_the_solver_says_so(name, loss):
    solver = SOLVERS[name]
    assert set(solver.multiclass) <= set(solver.losses)
    problem = dataclasses.replace(task(loss, 10, 2), outputs=3)
    if LOSSES[loss] in solver.multiclass:
        assert choose(name, problem) is solver
        return
    able = [other.name for other in SOLVERS.values() if LOSSES[loss] in other.multiclass]
    which = f"these do: {', '.join(able)}" if able else "no solver serves all that was asked for"
    with pytest.raises(
        ValueError, match=f"does not serve the {LOSSES[loss].words} loss of more than two classes; {which}$"
    ):
        choose(name, problem)


def test_refusals_in_full(monkeypatch):
    four = ("gradient", "objective", "sgd", "statistics")
    monkeypatch.setattr(solvers, "SOLVERS", {name: SOLVERS[name] for name in four})
    cases = {
        ("objective", task("hinge", 9, 2)): "the hinge loss; these do: sgd",
        ("statistics", task("logistic", 9, 2)): "the logistic loss; these do: gradient, objective, sgd",
        ("sgd", task("squared", 9, 2, adjacency="replace-one")): (
            "adjacency='replace-one'; these do: gradient, objective, statistics"
        ),
        ("gradient", task("squared", 9, 2, penalties=("l1",))): "the l1 penalty; these do: sgd",
        ("gradient", task("squared", 9, 2, batch_size=4)): "the parameter batch_size; these do: sgd",
        ("sgd", task("hinge", 9, 2, n_iter=4)): "the parameter n_iter; no solver serves all that was asked for",
    }
    for (name, problem), message in cases.items():
        with pytest.raises(ValueError, match=r"does not serve") as caught:
            choose(name, problem)
        assert str(caught.value) == f"solver={name!r} does not serve {message}"
