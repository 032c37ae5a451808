"""Which solver serves what, and which one "auto" stands for."""

import math
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import clone

from tacit import solvers
from tacit.privacy import Gate
from tacit.problems import LOGISTIC, LOSSES
from tacit.solvers import SOLVERS, Gradient, Sgd, Text, check_solver, choose
from tacit.solvers.base import Serves, Solver, iterations, option
from tacit.solvers.pca import PCA_SOLVERS
from tacit.solvers.text.steps import WIDE

from .support import task


@dataclass(eq=False, repr=False)
class Fake(Solver):
    name: ClassVar[str] = "fake"
    serves: ClassVar[Serves] = Serves(losses=(LOGISTIC,), adjacencies=("add-remove",), penalties=("l1",))

    n_iter: int = option(3, iterations(name, most=3))


@pytest.fixture
def fake(monkeypatch):
    monkeypatch.setitem(solvers.SOLVERS, "fake", Fake)


every_solver = pytest.mark.parametrize("name", SOLVERS)


# --- options -------------------------------------------------------------------------------------------------------


@every_solver
def test_the_options_of_a_solver_are_its_parameters(name):
    solver = SOLVERS[name]()
    assert set(solver.get_params()) == {field.name for field in fields(solver)}
    assert clone(solver).get_params() == solver.get_params()
    assert repr(solver) == f"{type(solver).__name__}()"
    assert solver.check().get_params() == solver.get_params()


@pytest.mark.parametrize("kind", [*SOLVERS.values(), *PCA_SOLVERS.values()], ids=lambda kind: kind.name)
def test_every_option_says_what_it_must_be(kind):
    for one in fields(kind):
        with pytest.raises((TypeError, ValueError), match=one.name):
            kind(**{one.name: object()}).check()
        if one.default is not None:
            with pytest.raises((TypeError, ValueError), match=one.name):
                kind(**{one.name: None}).check()


def test_checked_options_are_plain_numbers():
    solver = Sgd(n_passes=np.float32(2.5), batch_size=np.int32(7))
    found = solver.check()
    assert (found.n_passes, found.batch_size) == (2.5, 7)
    assert (type(found.n_passes), type(found.batch_size)) == (float, int)
    assert type(solver.batch_size) is np.int32  # what was given stays as it is


def test_options_that_were_given():
    options = ("averaging", "batch_size", "clip", "learning_rate", "momentum", "n_passes")
    assert Sgd().get_params() == dict.fromkeys(options)
    assert Sgd(n_passes=2.0, batch_size=10).get_params() == dict.fromkeys(options) | {"n_passes": 2.0, "batch_size": 10}
    assert repr(Sgd(n_passes=2.0)) == "Sgd(n_passes=2.0)"


# --- which solver serves what ------------------------------------------------------------------------------


def test_the_solvers():
    assert list(SOLVERS) == [kind.name for kind in SOLVERS.values()]
    assert {"gradient", "objective", "sgd", "statistics", "text"} <= set(SOLVERS)
    assert all(kind.__name__ in solvers.__all__ for kind in SOLVERS.values())


@pytest.mark.parametrize("loss", ["squared", "logistic", "multinomial"])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize(("d", "sparse"), [(2, False), (2, True), (5000, False)])
def test_auto_is_gradient(loss, adjacency, d, sparse):
    problem = task(loss, 10, d, sparse, adjacency=adjacency)
    assert type(choose("auto", problem)) is type(choose("gradient", problem)) is Gradient


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
        (task("logistic", 10, WIDE, sparse=True), "gradient"),
        (task("logistic", 10, WIDE + 1, sparse=True), "one-shot"),
        (task("logistic", 2_000, WIDE + 1, sparse=True), "text"),
        (task("logistic", 2_000, WIDE + 1, sparse=True, adjacency="replace-one"), "one-shot"),
        (task("logistic", 10, WIDE + 1, sparse=True, epsilon=math.inf), "text"),
        (task("multinomial", 10, WIDE + 1, sparse=True), "sgd"),
        (task("multinomial", 10, WIDE + 1, sparse=True, adjacency="replace-one"), "gradient"),
        (task("squared", 10, WIDE + 1, sparse=True), "gradient"),
    ],
)
def test_auto_goes_by_the_task(problem, name):
    assert type(choose("auto", problem)) is SOLVERS[name]


def test_a_refusal_says_what_auto_stands_for():
    with pytest.raises(
        ValueError, match=r"^solver='auto' \(sgd here\) does not serve adjacency='replace-one'; no solver"
    ):
        choose("auto", task("hinge", 10, 2, adjacency="replace-one"))


@pytest.mark.usefixtures("fake")
def test_a_solver_is_found_by_its_name():
    problem = task("logistic", 10, 2, penalties=("l1",))
    assert type(choose("fake", problem)) is Fake
    given = Fake()
    assert choose(given, problem) is given


def test_a_solver_that_was_given_is_taken():
    given = Text(n_iter=3)
    assert choose(given, task("logistic", 10, WIDE + 1, sparse=True)) is given  # where "auto" is the one shot


@pytest.mark.usefixtures("fake")
def test_bad_options_are_refused_with_or_without_a_task():
    for refuse in (check_solver, lambda solver: choose(solver, task("hinge", 10, 2))):
        with pytest.raises(ValueError, match="n_iter must be at most 3 for the fake solver, got 4"):
            refuse(Fake(4))


@pytest.mark.parametrize("solver", [None, 3, Gradient, Solver(), Fake()], ids=str)
def test_what_is_no_solver_is_refused(solver):
    with pytest.raises(TypeError, match=r"solver must be a name or an object of tacit\.solvers, got "):
        check_solver(solver)


def test_an_unknown_name_is_refused_and_the_known_are_named():
    with pytest.raises(ValueError, match=r"solver must be one of 'auto', 'coordinate', .*, got 'newton'"):
        check_solver("newton")


ADJACENCIES = ("add-remove", "replace-one")
PENALTIES = ("l2", "l1")


def serves(kind, problem):
    of = kind.serves
    return (
        problem.loss in (of.losses if problem.outputs == 1 else of.multiclass)
        and problem.budget.adjacency in of.adjacencies
        and set(problem.penalties) <= set(of.penalties)
        and (problem.sparse or not of.sparse_only)
        and (problem.l1_radius is None or of.ball)
    )


@every_solver
def test_a_task_is_served_or_refused_before_data_is_read_and_the_able_are_named(name, monkeypatch):
    monkeypatch.setattr(Gate, "__init__", lambda *_: pytest.fail("a gate was opened"))
    kind, served, refused = SOLVERS[name], 0, 0
    for loss, adjacency, penalty, sparse, radius in product(LOSSES, ADJACENCIES, PENALTIES, (False, True), (None, 1.0)):
        problem = task(loss, 10, 2, sparse, adjacency=adjacency, penalties=(penalty,), l1_radius=radius)
        if serves(kind, problem):
            assert type(choose(name, problem)) is kind
            served += 1
            continue
        with pytest.raises(ValueError, match=f"^solver='{name}' does not serve ") as caught:
            choose(name, problem)
        message, hint = str(caught.value).rsplit("; ", 1)
        able = [other.name for other in SOLVERS.values() if serves(other, problem)]
        assert hint == (f"these do: {', '.join(able)}" if able else "no solver serves all that was asked for")
        wanted = {
            f"the {LOSSES[loss].words} loss": LOSSES[loss]
            in (kind.serves.losses if problem.outputs == 1 else kind.serves.multiclass),
            f"adjacency='{adjacency}'": adjacency in kind.serves.adjacencies,
            f"the {penalty} penalty": penalty in kind.serves.penalties,
            "dense rows": sparse or not kind.serves.sparse_only,
            "the parameter l1_radius": radius is None or kind.serves.ball,
        }
        assert {words for words in wanted if words in message} == {words for words, ok in wanted.items() if not ok}
        refused += 1
    assert served > 0
    assert refused > 0


@every_solver
@pytest.mark.parametrize("loss", LOSSES)
def test_more_than_two_classes_are_served_where_the_solver_says_so(name, loss):
    kind = SOLVERS[name]
    assert set(kind.serves.multiclass) <= set(kind.serves.losses)
    problem = replace(task(loss, 10, 2, sparse=True), outputs=3)
    if LOSSES[loss] in kind.serves.multiclass:
        assert type(choose(name, problem)) is kind
        return
    able = [other.name for other in SOLVERS.values() if LOSSES[loss] in other.serves.multiclass]
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
        ("gradient", task("squared", 9, 2, l1_radius=1.0)): (
            "the parameter l1_radius; no solver serves all that was asked for"
        ),
    }
    for (name, problem), message in cases.items():
        with pytest.raises(ValueError, match=r"does not serve") as caught:
            choose(name, problem)
        assert str(caught.value) == f"solver={name!r} does not serve {message}"


@pytest.mark.parametrize(("name", "option"), [("gradient", "batch_size"), ("sgd", "n_iter"), ("statistics", "n_iter")])
def test_options_of_other_solvers_are_refused_by_name(name, option):
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{option}'"):
        SOLVERS[name](**{option: 4})


@pytest.mark.parametrize("name", ["serves", "name", "at", "check", "batch"])
def test_nothing_but_an_option_can_be_set_on_a_solver(name):
    solver = SOLVERS["dual"]()
    with pytest.raises(AttributeError, match=f"has the options n_passes, .*not '{name}'"):
        setattr(solver, name, None)
    solver.set_params(batch_size=4)
    assert solver.batch_size == 4
