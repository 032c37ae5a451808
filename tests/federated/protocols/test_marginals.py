"""Protocol "marginals": what it is without noise, what one row can change, what it costs, and how good it is."""

import itertools
import math
from contextlib import contextmanager
from functools import lru_cache
from unittest.mock import patch

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, ZCDpEvent
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csc_array
from sklearn.linear_model import Lasso, LogisticRegression

from tacit.datasets import make_featurewise_frank_wolfe
from tacit.federated import Marginals, Sketching
from tacit.federated.protocols.base import Holding, Question, RefusedError
from tacit.federated.protocols.bounds import Magnitudes, one_entry_per_row
from tacit.federated.protocols.marginals import MarginalsProtocol, parts, rules
from tacit.federated.protocols.marginals.parts import read_part, with_more
from tacit.federated.protocols.marginals.rules import AGAIN, PRODUCTS
from tacit.federated.sketches import Sketch
from tacit.federated.study import Member, Study
from tacit.privacy import Budget, Gate, NoiseSource, Plan, PlanViolationError, Release, audit
from tests.guarantees.recorder import transcript
from tests.guarantees.worlds import evidence, half_the_noise, mu_between, two_worlds, wrong_noise
from tests.units import ROWS

ADJACENCIES = ("add-remove", "replace-one")


def a_study(n, sizes, loss="squared", *, holder=None, n_selected=None, cross="auto", sketch_size=None, **changes):
    """Parties p0, p1 ... with so many columns; labels at all of them, or at one."""
    protocol, sketch = Marginals(n_selected=n_selected, cross=cross), Sketching(size=sketch_size)
    members = tuple(Member(f"p{i}", size, holder in (None, i)) for i, size in enumerate(sizes))
    told = {"l1_radius": 3.0, "delta": 1e-6, "labels": "shared" if holder is None else "sketched"}
    told |= {"classes": (-1, 1)} if loss == "logistic" else {}
    return Study("study", loss, members, n, protocol=protocol, sketch=sketch, **(told | changes))


@lru_cache(maxsize=8)
def agreed(study):
    protocol = MarginalsProtocol(study)
    return protocol, protocol.promise


def run(study, X, y, *, seed=None, tamper=None):
    """All rounds in one place: the solution, and what every party released, round by round."""
    protocol, plan = agreed(study)
    starts = np.cumsum([0, *(member.n_features for member in study.members)])
    places = {member.name: slice(a, a + member.n_features) for member, a in zip(study.members, starts, strict=False)}
    source = {name: NoiseSource(None if seed is None else 100 * seed + i) for i, name in enumerate(study.names)}
    gates = {name: Gate(plan.part(f"{name}/"), source[name]) for name in study.names}
    y = y if study.outputs == 1 else three_classes(y)
    data = {m.name: Holding(m.name, X[:, places[m.name]], y if m.labels else None) for m in study.members}
    memory = {name: {} for name in study.names}
    rounds, wire = protocol.coordinate(), []
    try:
        asked = next(rounds)
        while True:
            answers = {}
            for name, question in asked.items():
                question = question if tamper is None else tamper(question)
                answer = protocol.answer(data[name], question, gates[name], memory[name])
                memory[name] |= answer.memory
                answers[name] = answer.releases
            wire.append(answers)
            asked = rounds.send(answers)
    except StopIteration as end:
        for gate in gates.values():
            gate.finish()
        return end.value, wire


def three_classes(signs):
    """Of two classes three, each row by itself."""
    return np.where(signs > 0.0, np.arange(len(signs)) % 2 + 1.0, 0.0)


def weights_of(solution):
    return np.concatenate(list(solution.coefs.values()))


def some_data(n=400, d=7, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) @ (np.eye(d) + 0.4 * rng.standard_normal((d, d))) + 0.5
    return X, X @ rng.standard_normal(d) + rng.standard_normal(n) + 2.0


# Without noise


@pytest.mark.parametrize("holder", [None, 1], ids=["shared", "sketched"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_without_noise_it_is_the_lasso(fit_intercept, sparse, holder):
    X, y = some_data()
    X = np.where(np.abs(X) > 0.7, X, 0.0)
    study = a_study(400, (3, 4), holder=holder, epsilon=math.inf, fit_intercept=fit_intercept, l1_radius=2.0)
    solution, _ = run(study, csc_array(X) if sparse else X, y)
    found = weights_of(solution)
    residual = y - X @ found - solution.intercept
    alpha = np.abs(X.T @ residual).max() / len(y)  # of the penalty that this radius stands for
    peer = Lasso(alpha=alpha, fit_intercept=fit_intercept, tol=1e-12, max_iter=100_000).fit(X, y)
    assert np.abs(found).sum() == pytest.approx(2.0)
    assert found == pytest.approx(peer.coef_, abs=1e-7)
    assert solution.intercept == pytest.approx(peer.intercept_, abs=1e-7)


def test_without_noise_normal_columns_give_the_logistic_model():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40_000, 5)) @ np.linalg.cholesky(0.5 * np.eye(5) + 0.5).T + 1.0
    y = np.where(rng.random(40_000) < 1 / (1 + np.exp(-(X @ [1.0, -1.0, 0.5, 0.0, 0.0] - 1.0))), 1.0, -1.0)
    peer = LogisticRegression(C=np.inf, tol=1e-8).fit(X, y)
    solution, _ = run(a_study(40_000, (2, 3), "logistic", epsilon=math.inf, l1_radius=50.0), X, y)
    assert weights_of(solution) == pytest.approx(peer.coef_[0], abs=0.03)
    assert solution.intercept == pytest.approx(peer.intercept_[0], abs=0.03)


def test_rows_speak_with_one_entry_each_however_they_are_stored():
    X = np.array([[0.0, 3.0, -4.0], [0.0, 0.0, 0.0], [1.0, 2.0, 5.0], [7.0, 0.0, 8.0]])
    assert one_entry_per_row(X).tolist() == [3.0, 0.0, 5.0, 8.0]
    stored = csc_array(np.where(X == 8.0, 9.0, X))
    stored.data[stored.data == 9.0] = 0.0  # a zero that is stored
    assert one_entry_per_row(stored).tolist() == [3.0, 0.0, 5.0, 7.0]


@pytest.mark.parametrize("limit", [0.5, 1.7, 40.0])
def test_squares_are_read_off_a_histogram(limit):
    values = np.abs(np.random.default_rng(0).standard_normal(20_000))
    gate = Gate(
        Plan(Release("sizes", "gaussian", share=1.0)).calibrate(Budget(math.inf, 1e-6), ROWS, "test"), NoiseSource(0)
    )
    found = Magnitudes.released(gate, "sizes", np.append(values, np.zeros(500)), 20_500)
    assert found.count == 20_000
    assert 0.99 < found.squares(limit) / np.square(np.minimum(values, limit)).sum() < 1.08  # tails thin out in a bin


# The plan


STUDIES = {
    "all columns": {"n_selected": 3},
    "selection": {"n_selected": 2},
    "sketched labels": {"holder": 0, "n_selected": 2},
    "no intercept": {"fit_intercept": False, "cross": "zero", "n_selected": 1},
    "products again": {"cross": "auto", "epsilon": 50.0, "n_selected": 2},  # how many rows are filled is lost in noise
    "sketched columns": {"epsilon": 1e4, "delta": 0.1, "n_selected": 2},
    "logistic": {"loss": "logistic", "y_bounds": None, "entry_bound": None, "n_selected": 2},
    "three classes": {"loss": "logistic", "classes": (0, 1, 2), "y_bounds": None, "n_selected": 2, "cross": "zero"},
    "three classes, all columns": {
        **{"loss": "logistic", "classes": (0, 1, 2), "y_bounds": None, "entry_bound": None, "n_selected": 3},
    },
    "nothing declared": {"y_bounds": None, "entry_bound": None, "n_selected": 1},
}
every_study = pytest.mark.parametrize("name", STUDIES)


def small_study(name, **changes):
    told = {"y_bounds": (-2.0, 2.0), "entry_bound": 1.5, "sketch_size": 3, "cross": "sketched", "epsilon": 2.0}
    return a_study(6, (3, 3), **(told | STUDIES[name] | changes))


def small_data(rng):
    return rng.uniform(-2, 2, (6, 6)), rng.choice([-1.0, 1.0], 6)


@every_study
def test_what_runs_is_the_plan_and_nothing_else_is_sent(name):
    study = small_study(name)
    solution, wire = run(
        study, *small_data(np.random.default_rng(0))
    )  # which fails where a planned release is not made
    planned = {release.name for release in MarginalsProtocol(study).plan().releases}
    sent = {f"{party}/{what}" for answers in wire for party, releases in answers.items() for what in releases}
    known = {
        f"{party}/{what}" for party in study.names for what in ("entry size", "label: magnitudes", "label: spread")
    }
    assert sent == planned - known
    assert (name in ("sketched columns", "three classes, all columns")) == (solution.facts["cross"] == "columns")
    assert (name == "products again") == (solution.facts["cross"] == "again")


@every_study
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_plan_costs_what_was_agreed(name, adjacency):
    study = small_study(name, adjacency=adjacency)
    _, calibrated = agreed(study)
    releases = list(zip(calibrated.plan.releases, calibrated.multipliers, strict=True))
    assert {r.name.split("/")[0] for r, _ in releases} == set(study.names)
    precision = sum(r.count / z**2 * (0.25 if r.kind == "exponential" else 1.0) for r, z in releases)  # 2 rho
    if any(release.kind == "exponential" for release, _ in releases):
        accountant = RdpAccountant(np.concatenate([np.linspace(1.01, 8, 700), np.linspace(8.1, 200, 500)]))
        accountant.compose(ZCDpEvent(precision / 2))
    else:
        accountant = PLDAccountant()
        accountant.compose(GaussianDpEvent(precision**-0.5))
    assert 0.98 * study.epsilon <= accountant.get_epsilon(study.delta) <= study.epsilon * 1.001


def test_equal_seeds_give_equal_results():
    X, y = some_data()
    study = a_study(400, (3, 4), n_selected=2)
    (first, wire), (again, same) = run(study, X, y, seed=7), run(study, X, y, seed=7)
    assert weights_of(first).tobytes() == weights_of(again).tobytes()
    for one, other in zip(wire, same, strict=True):
        assert all(np.array_equal(one[p][what], other[p][what]) for p in one for what in one[p])


def test_squared_hinge_is_refused_and_says_what_serves_it():
    with pytest.raises(ValueError, match="feature-sharing"):
        MarginalsProtocol(a_study(10, (2,), "squared_hinge", classes=(0, 1)))


# What one row can change


wild = st.one_of(st.floats(-3, 3), st.sampled_from([0.0, 1.5, -5.0, 1e300]), st.floats(-1e140, 1e140))


@contextmanager
def rows_may_be_missing():
    """A sketch of fewer rows than agreed takes the last ones as absent: they contribute nothing."""
    apply = Sketch.apply

    def padded(self, columns):
        return apply(self, np.pad(np.asarray(columns), ((0, self.n_rows - columns.shape[0]), (0, 0))))

    with patch.object(Sketch, "apply", padded):
        yield


def as_answered(_, answer, __, outputs=1):
    return answer["label mean"] if outputs > 1 else float(answer["label mean"][0])


@contextmanager
def answers_may_be_wild():
    """The coordinator takes what comes of wild questions, although an honest party could not have answered its own."""
    with (
        patch.object(parts, "taken", lambda _, answer, name, *__: answer[name]),
        patch.object(parts, "label_mean", as_answered),
    ):
        yield


def wild_questions(factor, low, width):
    """A coordinator that asks with numbers of its own."""

    def tamper(question):
        arrays = {what: np.asarray(values) * factor for what, values in question.arrays.items()}
        if "y bounds" in arrays:
            arrays["y bounds"] = np.array([low, low + width, low + 1.0, width / 3.0])[: len(arrays["y bounds"])]
        return Question(question.step, arrays)

    return tamper


@every_study
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@given(data=st.data())
@settings(max_examples=6, deadline=None)
def test_no_row_moves_a_release_further_than_its_noise_covers(name, adjacency, data):
    study = small_study(name, adjacency=adjacency)
    X, y = small_data(np.random.default_rng(data.draw(st.integers(0, 99))))
    X[-1], y[-1] = data.draw(st.lists(wild, min_size=6, max_size=6)), data.draw(wild)
    if study.loss == "logistic":
        y[-1] = np.sign(y[-1]) or 1.0
    if adjacency == "replace-one":
        other, label = data.draw(st.sampled_from([-1.0, 0.0, 0.5, 1e-200])) * X[-1], data.draw(wild)
        neighbour = np.vstack([X[:-1], other]), np.append(y[:-1], 1.0 if study.loss == "logistic" else label)
    elif study.labels == "sketched":
        return  # who holds no labels would multiply a row that is not there with what the sketch says of it
    else:
        neighbour = X[:-1], y[:-1]
    factor, low, width = data.draw(st.sampled_from([1.0, -3.0, 1e90])), data.draw(st.floats(-9, 9)), 10.0
    tamper = data.draw(st.sampled_from([None, wild_questions(factor, low, width)]))
    with rows_may_be_missing(), answers_may_be_wild(), np.errstate(over="ignore"):
        pairs = two_worlds(lambda world: run(study, *world, tamper=tamper), (X, y), neighbour)
    assert len(pairs) >= sum(r.count for r in MarginalsProtocol(study).plan().releases)
    for step, moved in pairs:
        assert step.moved(moved) <= 1.0 + 1e-6, step.name
    assert mu_between(pairs) <= max(study.budget.mu, math.sqrt(2 * study.budget.rho)) * 1.001


def test_what_a_row_can_change_is_attained():
    study = small_study("all columns", adjacency="replace-one", entry_bound=None, fit_intercept=False)
    X, y = small_data(np.random.default_rng(0))
    found = {}
    for other in ([0, 9, 0, 0, 9, 0], [-9, 0, 0, -9, 0, 0]):  # at right angles, and opposite
        X[-1], y[-1] = [9, 0, 0, 9, 0, 0], 2.0
        neighbour = np.vstack([X[:-1], other]), y
        for step, moved in two_worlds(lambda world: run(study, *world), (X, y), neighbour):
            found[step.name] = max(found.get(step.name, 0.0), step.moved(moved))
    assert found["moments"] == pytest.approx(1.0, abs=1e-6)
    assert found["correlations"] == pytest.approx(1.0, abs=1e-6)


@every_study
def test_the_noise_is_what_the_plan_says(name):
    study = small_study(name)
    rng = np.random.default_rng(0)
    steps = []
    for seed in range(12):
        with transcript() as made:
            run(study, *small_data(rng), seed=seed)
        steps += made
    assert not wrong_noise(steps)


def worst_rows():
    """Rows of six that say all they can at once, against rows that say nothing."""
    X, y = np.zeros((6, 4)), np.zeros(6)
    loud, label = X.copy(), y.copy()
    loud[0], label[0] = 1.0, 1.0
    return (loud, label), (X, y)


LAST = {"scores": "sketched", "again": "auto"}
last = pytest.mark.parametrize("last", LAST)


def audited(last, trials, confidence):
    """Every release of both parties, by the likelihood ratio of the transcript, for a coordinator that asks for most.

    The two worlds differ by all that each release is calibrated for, and the noise is Gaussian throughout.
    """
    told = {"epsilon": 8.0, "delta": 1e-3, "y_bounds": (-1.0, 1.0), "entry_bound": 1.0}
    study = a_study(6, (2, 2), n_selected=2, cross=LAST[last], sketch_size=3, fit_intercept=False, **told)
    one, other = worst_rows()

    def largest_score(question):
        return Question("cross", {"score": np.array([9.0, 9.0, 0.0])}) if question.step == "cross" else question

    seeds = itertools.count()
    mechanism = evidence(lambda world: run(study, *world, seed=next(seeds), tamper=largest_score), one, other)
    with patch.object(rules, "_LEAST_SCORE_SIZE", 0):  # few rows have a third round, too
        assert run(study, *one, seed=0)[0].facts["cross"] == last
        found = audit.audit(mechanism, one, other, study.delta, trials, confidence=confidence, score=np.ravel)
    return found.contradicts(claimed_mu=study.budget.mu)


@last
def test_an_audit_of_the_transcript_finds_no_more_than_agreed(last):
    assert not audited(last, 40, confidence=0.9999)


@pytest.mark.parametrize("last", ["scores", pytest.param("again", marks=pytest.mark.slow)])
def test_an_audit_of_the_transcript_finds_half_the_noise(last):
    with half_the_noise():
        assert audited(last, 100, confidence=0.95)


# Questions that are not the protocol's


BAD = {
    "no such step": Question("weights"),
    "no bounds": Question("marginals"),
    "no numbers": Question("marginals", {"y bounds": np.array([0.0, np.nan, 0.0, 1.0])}),
    "wrong order": Question("marginals", {"y bounds": np.array([1.0, -1.0, 0.0, 1.0])}),
    "too wide": Question("marginals", {"y bounds": np.array([-1e308, 1e308, 0.0, 1.0])}),
    "one more": Question("marginals", {"y bounds": np.array([0.0, 1.0, 0.0, 1.0]), "labels": np.zeros(3)}),
    "of another kind": Question("marginals", {"y bounds": np.array(["a", "b", "c", "d"])}),
    "no core": Question("marginals", {"y bounds": np.array([0.0, 1.0])}),
    "no width": Question("marginals", {"y bounds": np.array([0.0, 1.0, 0.5, 0.0])}),
    "far off": Question("marginals", {"y bounds": np.array([0.0, 1.0, 1e200, 1.0])}),
    "too early": Question("cross", {"score": np.zeros(4)}),
    "again too early": Question("again"),
    "again with arrays": Question("again", {"score": np.zeros(4)}),
    "bounds with arrays": Question("bounds", {"y bounds": np.zeros(2)}),
}


@pytest.mark.parametrize("question", BAD.values(), ids=BAD.keys())
def test_other_questions_are_refused_and_nothing_is_released(question):
    study = small_study("nothing declared")
    protocol = MarginalsProtocol(study)
    gate = Gate(protocol.promise.part("p1/"), NoiseSource())
    X, y = small_data(np.random.default_rng(0))
    with pytest.raises(RefusedError):
        protocol.answer(Holding("p1", X[:, 3:], y), question, gate, {})
    planned = protocol.promise.part("p1/").plan.releases
    assert all(gate.left(release.name) == release.count for release in planned)


def test_the_last_round_is_paid_for_once():
    study = small_study("products again")
    protocol, plan = agreed(study)
    gate = Gate(plan.part("p1/"), NoiseSource())
    X, y = small_data(np.random.default_rng(0))
    holding, memory = Holding("p1", X[:, 3:], y), {}
    for step, arrays in (("marginals", {"y bounds": np.array([-2.0, 2.0])}), ("again", {})):
        memory |= protocol.answer(holding, Question(step, arrays), gate, memory).memory
    for step, arrays in (("again", {}), ("cross", {"score": np.zeros(3)})):
        with pytest.raises(PlanViolationError):
            protocol.answer(holding, Question(step, arrays), gate, memory)


def test_answers_of_another_form_are_refused():
    study = small_study("no intercept")
    rounds = MarginalsProtocol(study).coordinate()
    next(rounds)
    with pytest.raises(RefusedError, match="columns"):
        rounds.send({name: {"row norm": np.ones(1)} for name in study.names})


@pytest.mark.parametrize("missing", ["label: reach", "label: middle"])
def test_bounds_of_another_form_are_refused(missing):
    study = small_study("nothing declared")
    rounds = MarginalsProtocol(study).coordinate()
    next(rounds)
    said = {"label: reach": np.array([-1.0, 1.0, 0.5, 0.5]), "label: middle": np.zeros(1)} | {missing: np.zeros(2)}
    with pytest.raises(RefusedError, match=missing):
        rounds.send(dict.fromkeys(study.names, said))


# How good it is


def excess(solution, X, y, best):
    residual = y - X @ weights_of(solution) - solution.intercept
    least = np.mean(np.square(y - X @ weights_of(best) - best.intercept))
    return (np.mean(np.square(residual)) - least) / (np.var(y) - least)


def test_more_budget_brings_it_closer_to_the_optimum():
    X, y = some_data(n=5_000)
    best, _ = run(a_study(5_000, (3, 4), epsilon=math.inf, l1_radius=2.0), X, y)
    found = [run(a_study(5_000, (3, 4), epsilon=e, l1_radius=2.0), X, y, seed=1)[0] for e in (2.0, 30.0, 3_000.0)]
    worse = [excess(solution, X, y, best) for solution in found]
    assert worse[2] < 0.01 < worse[0]
    assert worse[2] < worse[1] < worse[0]


@pytest.mark.parametrize(("epsilon", "cross"), [(2.0, "scores"), (5.0, "columns")])
def test_parties_tell_what_they_have_in_common(epsilon, cross):
    """By their scores, or with more budget by their columns."""
    rng = np.random.default_rng(0)
    shared = rng.standard_normal((20_000, 1))
    X = shared + 0.5 * rng.standard_normal((20_000, 8))
    y = X.mean(axis=1) + rng.standard_normal(20_000)
    best, _ = run(a_study(20_000, (2, 2, 2, 2), epsilon=math.inf), X, y)
    with_cross, _ = run(a_study(20_000, (2, 2, 2, 2), epsilon=epsilon), X, y, seed=0)
    without, _ = run(a_study(20_000, (2, 2, 2, 2), epsilon=epsilon, cross="zero"), X, y, seed=0)
    assert with_cross.facts["cross"] == cross
    assert 3 * excess(with_cross, X, y, best) < excess(without, X, y, best)


def sparse_groups(n, parties, seed=0):
    """Columns that few rows are in: the first of each party says nearly the same as the others' first, on its rows."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, 3 * parties)) < 0.05, rng.standard_normal((n, 3 * parties)), 0.0)
    rows = rng.random(n) < 0.05
    common = rng.standard_normal((n, 1)) + 0.3 * rng.standard_normal((n, parties))
    X[:, ::3] = np.where(rows[:, None], common, 0.0)
    return X, X[:, ::3].sum(axis=1) + 0.05 * rng.standard_normal(n)


def test_parties_cannot_explain_more_than_there_is():
    """Their sketched scores would say nothing; that each of them explains nearly all is enough."""
    X, y = sparse_groups(60_000, 4)
    told = {"epsilon": 1.0, "l1_radius": 16.0, "fit_intercept": False}
    best, _ = run(a_study(60_000, (3,) * 4, **told | {"epsilon": math.inf}), X, y)
    found, _ = run(a_study(60_000, (3,) * 4, **told), X, y, seed=0)
    without, _ = run(a_study(60_000, (3,) * 4, **told, cross="zero"), X, y, seed=0)
    assert found.facts["cross"] == "again"
    assert excess(found, X, y, best) < 0.15
    assert excess(without, X, y, best) > 2.0


def test_means_are_not_taken_for_something_in_common():
    """Without an intercept, columns of one sign all explain the mean of the target, each by a part of it."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 1.5, (4_000, 4))
    y = X.sum(axis=1) + 0.1 * rng.standard_normal(4_000)
    studies = [a_study(4_000, (1,) * 4, l1_radius=4.0, fit_intercept=False, cross=cross) for cross in ("auto", "zero")]
    found, without = (weights_of(run(study, X, y, seed=0)[0]) for study in studies)
    assert found == pytest.approx(without, rel=1e-6)


def test_products_that_are_released_twice_count_by_their_noise():
    study = small_study("products again")
    protocol, _ = agreed(study)
    _, wire = run(study, *small_data(np.random.default_rng(0)), seed=1)
    once, again = (protocol.noise("p0", *what) ** 2 for what in (("correlations", PRODUCTS), ("cross", AGAIN)))
    part = read_part(protocol, "p0", (-2.0, 2.0), {}, wire[0]["p0"])
    both = with_more(protocol, "p0", part, wire[1]["p0"])
    expected = (part.products / once + wire[1]["p0"]["cross"] / again) / (1.0 / once + 1.0 / again)
    assert both.products == pytest.approx(expected)
    assert both.variance_of_products == pytest.approx(1.0 / (1.0 / once + 1.0 / again))


def test_predictions_reach_further_where_rows_have_few_entries():
    X, y = sparse_groups(60_000, 2)
    sparse, wire = run(a_study(60_000, (3, 3), epsilon=2.0), X, y, seed=0)
    assert [norm / wire[1][name]["row norm"][0] for name, norm in sparse.facts["row_norms"].items()] == [1.5, 1.5]
    X, y = some_data(n=5_000)
    dense, wire = run(a_study(5_000, (3, 4)), X, y, seed=0)
    assert [norm / wire[1][name]["row norm"][0] for name, norm in dense.facts["row_norms"].items()] == [1.0, 1.0]


def test_columns_of_a_rare_class_are_found():
    """Labels less their mean are large where they are rare; a bound by what is common would cut them off."""
    rng = np.random.default_rng(0)
    X = (rng.random((30_000, 60)) < 0.1).astype(float)
    y = np.where(rng.random(30_000) < 1.0 / (1.0 + np.exp(5.0 - 3.0 * X[:, [3, 33]].sum(axis=1))), 1.0, -1.0)
    assert np.mean(y > 0.0) < 0.04
    study = a_study(30_000, (30, 30), "logistic", epsilon=3.0, n_selected=2)
    solution, _ = run(study, X, y, seed=0)
    assert 3 in solution.facts["features"]["p0"]
    assert 3 in solution.facts["features"]["p1"]


def test_columns_of_a_target_that_is_mostly_zero_are_found():
    """Less its mean, the target is negative nearly everywhere: frequent columns would win, whatever they say."""
    rng = np.random.default_rng(0)
    X = (rng.random((30_000, 60)) < np.linspace(0.3, 0.02, 30).tolist() * 2).astype(float)
    chances = 1.0 / (1.0 + np.exp(4.0 - 3.0 * X[:, [19, 49]].sum(axis=1)))
    y = np.where(rng.random(30_000) < chances, rng.gamma(2.0, 1.0, 30_000), 0.0)
    assert np.mean(y > 0.0) < 0.1
    solution, _ = run(a_study(30_000, (30, 30), epsilon=3.0, n_selected=2), X, y, seed=0)
    assert 19 in solution.facts["features"]["p0"]
    assert 19 in solution.facts["features"]["p1"]


@pytest.mark.parametrize("shift", [0.0, -300.0])
def test_the_middle_of_targets_is_where_clipped_distances_add_up_to_zero(shift):
    rng = np.random.default_rng(0)
    y = np.where(rng.random(20_000) < 0.3, rng.gamma(2.0, 1.0, 20_000), 0.0) + shift
    protocol, plan = agreed(a_study(20_000, (3, 3), epsilon=8.0))
    gate = Gate(plan.part("p1/"), NoiseSource(0))
    found = protocol.bounds.answer(Holding("p1", np.zeros((20_000, 3)), y), Question("bounds"), gate)
    middle, width = protocol.bounds.y_core({"p1": found})
    assert 0.1 < width < 10.0
    assert abs(np.mean(np.clip((y - middle) / width, -1.0, 1.0))) < 0.02


def test_one_column_that_hardly_varies_does_not_spoil_what_is_known_of_the_others():
    """Its correlations are lost in noise; the others' are not, and their negative ones matter."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((20_000, 4))
    X[:, 2] = -0.8 * X[:, 0] + 0.6 * X[:, 2]
    X[:, 3] *= 0.02
    y = X[:, 0] + X[:, 2] + 0.3 * rng.standard_normal(20_000)
    best, _ = run(a_study(20_000, (2, 2), epsilon=math.inf, l1_radius=3.0), X, y)
    found, _ = run(a_study(20_000, (2, 2), epsilon=10.0, l1_radius=3.0), X, y, seed=0)
    assert found.facts["cross"] == "columns"
    assert excess(found, X, y, best) < 0.2


def test_few_of_many_sparse_columns_are_found():
    A, y, x = make_featurewise_frank_wolfe(20_000, 2_000, coef_density=0.002, coef=True, random_state=0)
    study = a_study(20_000, (500,) * 4, epsilon=4.0, l1_radius=float(np.abs(x).sum()))
    solution, wire = run(study, csc_array(A), y, seed=1)
    least = np.mean(np.square(y - A @ x))
    worse = (np.mean(np.square(y - A @ weights_of(solution) - solution.intercept)) - least) / (np.var(y) - least)
    assert worse < 0.1
    assert max(sum(v.nbytes for answers in wire for v in answers[p].values()) for p in study.names) < 2_000
