"""Slopes of the logistic loss: what parties release, what the coordinator asks, what it costs; and mutants of each."""

import math
from itertools import chain, combinations
from unittest.mock import patch

import numpy as np
import pytest
from scipy import sparse
from scipy.integrate import quad
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from tacit.federated import FederatedLogisticRegression, Marginals, Party
from tacit.federated.protocols import columns
from tacit.federated.protocols.base import Holding, Question, RefusedError
from tacit.federated.protocols.marginals.masked import MaskedProtocol, logistic, party, slopes
from tacit.federated.protocols.marginals.rules import SUMS
from tacit.privacy import Gate, NoiseSource, accounting, gdp
from tacit.privacy.gate import PlanViolationError
from tacit.privacy.mechanisms import GaussianVector
from tests.federated.protocols.masked_run import HOLDER, ROWS, SIZES, masked_study, run, some_data

ADJACENCIES = ("add-remove", "replace-one")
CLASSES = {"loss": "logistic", "classes": (0, 1), "y_bounds": None, "l1_radius": 50.0}


def classes_study(**changes):
    return masked_study(**(CLASSES | changes))


def some_classes(seed=0, rows=ROWS):
    X, y = some_data(seed, rows)
    return X, np.where(y > 0.0, 1.0, -1.0)


def asked(direction, offset=0.0, deviation=0.0):
    arrays = {slopes.DIRECTION: np.asarray(direction, dtype=float), slopes.PLACE: np.array([offset, deviation])}
    return Question(slopes.STEP, arrays)


def released(study, X, question, source=0, gate=None, name="a"):
    """What a party answers, its rows clipped to norm 2."""
    protocol = MaskedProtocol(study)
    gate = gate or Gate(protocol.promise.part(f"{name}/"), NoiseSource(source))
    holding = Holding(name, X, None, None)
    return protocol.answer(holding, question, gate, {"row norm": np.array([2.0])}).releases["slopes"]


# What a party releases.


@pytest.mark.parametrize("deviation", [0.0, 0.5, 1.5, -1.5])
def test_expected_residuals_are_integrals(deviation):
    for centre in (-6.0, -0.3, 0.0, 2.0):
        exact, _ = quad(lambda g, c=centre: expit(c + deviation * g) * math.exp(-g * g / 2.0), -12.0, 12.0)
        found = slopes.expected(np.array([centre]), deviation)
        assert found[0] == pytest.approx(exact / math.sqrt(2.0 * math.pi) - 0.5, abs=1e-5)


def test_expected_residuals_are_at_most_a_half_whatever_is_asked():
    for centre in (-1e300, -1e3, 0.0, 1e3, 1e300):
        for deviation in (0.0, 1.0, 1e100):
            assert abs(slopes.expected(np.array([centre]), deviation)[0]) <= 0.5


def by_hand(X, direction, offset):
    """Row by row, without deviation."""
    total = np.zeros(X.shape[1] + 1)
    for row in X:
        z = row / max(2.0, math.sqrt(float(row @ row)))
        total += np.append(z, SUMS) * (1.0 / (1.0 + math.exp(-(float(z @ direction) + offset))) - 0.5)
    return total


def test_without_noise_sums_are_those_of_rows_one_by_one():
    X = some_data()[0]["a"] * 3.0  # some rows are clipped
    study, direction = classes_study(epsilon=math.inf), np.array([1.0, -4.0, 0.5])
    found = released(study, X, asked(direction, 0.3))
    np.testing.assert_allclose(found, by_hand(X, direction, 0.3), rtol=0, atol=1e-11)
    np.testing.assert_allclose(released(study, sparse.csc_array(X), asked(direction, 0.3)), found, rtol=0, atol=1e-11)


@pytest.mark.parametrize("storage", [np.ascontiguousarray, np.asfortranarray, sparse.csc_array])
def test_margins_of_other_rows_keep_their_bits_where_a_person_is_absent(storage):
    # Weights that cancel leave nothing but roundings of a margin, whose sign a product by BLAS takes from its blocks.
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(1, 23)) * rng.uniform(0.5, 1.0, size=(301, 1))
    weights = rng.normal(size=23)
    weights[-1] = -float(rows[0, :-1] @ weights[:-1]) / rows[0, -1]
    found = columns.images(storage(rows), 1e60 * weights)
    assert np.sign(found).min() < 0.0 < np.sign(found).max()
    for absent in (0, 1, 7, 150, 300):
        kept = np.delete(np.arange(301), absent)
        np.testing.assert_array_equal(columns.images(storage(rows[kept]), 1e60 * weights), found[kept])


def test_the_same_bits_if_it_is_asked_again_and_other_noise_for_another_question():
    X = some_data()[0]["a"]
    one, same = (released(classes_study(), X, asked(np.ones(3)), source=5) for _ in range(2))
    np.testing.assert_array_equal(one, same)
    gate = Gate(MaskedProtocol(classes_study()).promise.part("a/"), NoiseSource(5))
    first, second = (released(classes_study(), X, asked(np.ones(3)), gate=gate) for _ in range(2))
    assert not np.any(first == second)


BAD = {
    "no array": Question(slopes.STEP),
    "one more": Question(slopes.STEP, {**asked(np.ones(3)).arrays, "more": np.ones(1)}),
    "too short": asked(np.ones(2)),
    "a table": asked(np.ones((3, 1))),
    "no place": Question(slopes.STEP, {slopes.DIRECTION: np.ones(3), slopes.PLACE: np.ones(3)}),
    "whole numbers": Question(slopes.STEP, {**asked(np.ones(3)).arrays, slopes.DIRECTION: np.ones(3, dtype=np.int64)}),
    "no number": asked([1.0, math.nan, 1.0]),
    "infinite": asked(np.ones(3), math.inf),
    "too large": asked(np.full(3, 1e101)),
    "too far apart": asked(np.ones(3), 0.0, 1e101),
}


@pytest.mark.parametrize("question", BAD.values(), ids=BAD)
def test_questions_of_another_form_are_refused_and_nothing_is_released(question):
    gate = Gate(MaskedProtocol(classes_study()).promise.part("a/"), NoiseSource(0))
    with pytest.raises(RefusedError, match="slopes"):
        released(classes_study(), some_data()[0]["a"], question, gate=gate)
    assert not any(gate.made.values())


def test_slopes_are_for_the_logistic_loss_and_come_after_units():
    X = some_data()[0]["a"]
    with pytest.raises(RefusedError, match="not part of this study"):
        released(masked_study(), X, asked(np.ones(3)))
    protocol = MaskedProtocol(classes_study())
    gate = Gate(protocol.promise.part("a/"), NoiseSource(0))
    with pytest.raises(RefusedError, match="comes before 'units'"):
        protocol.answer(Holding("a", X, None, None), asked(np.ones(3)), gate, {})
    assert not any("slopes" in release.name for release in MaskedProtocol(masked_study()).promise.plan.releases)


def test_a_fourth_question_is_not_granted():
    gate = Gate(MaskedProtocol(classes_study()).promise.part("a/"), NoiseSource(0))
    for _ in range(3):
        released(classes_study(), some_data()[0]["a"], asked(np.ones(3)), gate=gate)
    with pytest.raises(PlanViolationError):
        released(classes_study(), some_data()[0]["a"], asked(np.ones(3)), gate=gate)


# The person, present, absent and replaced.


def sums(X, question):
    """The sums that noise is added to, and the sensitivity that is claimed for them."""
    with patch.object(GaussianVector, "draw", lambda mechanism, grant, values: (grant.take(), mechanism, values)[1:]):
        return released(classes_study(), X, question)


def moved(question, changed=None):
    """How far a person as far out as can be moves the sums, over what is claimed."""
    X = some_data()[0]["a"]
    X[7] = 1e6 * np.sign(question.arrays[slopes.DIRECTION])
    other = np.delete(X, 7, axis=0)
    if changed is not None:
        other = X.copy()
        other[7] = changed * X[7]
    (mechanism, with_it), (_, without) = sums(X, question), sums(other, question)
    adjacency = "add-remove" if changed is None else "replace-one"
    return float(np.linalg.norm(with_it - without)) / mechanism.sensitivity.under(adjacency)


STEEP = asked([1e6, -1e6, 1e6])  # the factor is 1/2 at that person


@pytest.mark.parametrize(
    "question", [STEEP, asked([1e100] * 3, -1e100, 1e100), asked([0.1] * 3, 40.0), asked([0.0] * 3)]
)
def test_a_person_who_is_absent_moves_slopes_by_no_more_than_is_covered(question):
    assert moved(question) <= 1.0


def test_the_worst_person_moves_slopes_by_all_that_is_covered():
    assert moved(STEEP) > 0.999
    turned = moved(STEEP, -1.0)  # (z, b)/2 in place of (-z, b)(-1/2): the constants differ, and rows do not
    assert turned == pytest.approx(SUMS / math.hypot(1.0, SUMS), abs=1e-3)
    one_sided = asked(np.ones(3), 1e6)  # the same factor for all
    assert moved(one_sided, -1.0) == pytest.approx(1.0 / math.hypot(1.0, SUMS), abs=1e-3)


def test_rows_that_are_not_clipped_are_caught():
    with patch.object(columns, "unit_rows", lambda X, norm: X / norm):
        assert moved(STEEP) > 1.5


def test_factors_that_are_not_centred_are_caught():
    honest = slopes.expected
    with patch.object(slopes, "expected", lambda *given: honest(*given) + 0.5):
        assert moved(STEEP) > 1.5


def test_factors_that_are_not_clipped_are_caught():
    with patch.object(slopes, "expected", lambda centres, _: centres):
        assert moved(STEEP) > 1.5


def enough_noise(draws):
    """Whether the mean square of what is added is what the plan says: false alarms are one in a thousand."""
    study = classes_study()
    protocol, X, question = MaskedProtocol(study), some_data()[0]["a"], asked(np.ones(3))
    _, plain = sums(X, question)
    noise = np.concatenate([released(study, X, question, source) - plain for source in range(draws)])
    noise /= protocol.noise("a", "slopes", slopes.SLOPES)
    return abs(float(np.mean(noise**2)) - 1.0) < 3.3 * math.sqrt(2.0 / len(noise))


def test_slopes_have_the_noise_of_the_plan():
    assert enough_noise(150)


def test_slopes_without_noise_are_caught():
    with patch.object(GaussianVector, "draw", lambda _, grant, values: (grant.take(), values)[1]):
        silent = [released(classes_study(), some_data()[0]["a"], asked(np.ones(3)), source) for source in range(2)]
        np.testing.assert_array_equal(*silent)
        assert not enough_noise(150)


# The plan.


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_plan_costs_what_the_worst_of_all_coalitions_sees(adjacency):
    protocol = MaskedProtocol(classes_study(adjacency=adjacency))
    outer, twice = (1.0, 1.0) if adjacency == "add-remove" else (math.sqrt(2.0), 2.0)
    names, promise = protocol.study.names, protocol.promise
    first = [z for r, z in zip(promise.plan.releases, promise.multipliers, strict=True)
             if r.name.endswith(("row norm", "label mean"))]  # fmt: skip
    costs = []
    for T in chain.from_iterable(combinations(names, size) for size in range(len(names))):
        total = sum(1.0 / z**2 for z in first)
        for k in set(names) - set(T):
            total += (outer * protocol.own_norm(k) ** 2 / protocol.noise(k, "moments", protocol.moments_of(k))) ** 2
            total += 3.0 * (twice * 0.5 * math.hypot(1.0, SUMS) / protocol.noise(k, "slopes", slopes.SLOPES)) ** 2
            for m in set(names) - {k}:
                t = protocol.noise(k, protocol.share_name(m), protocol.products_of(k, m))
                part = (twice * protocol.norm(k) * protocol.norm(m) / t) ** 2
                total += part if m in T else part / 4.0
        costs.append(total)
    mu = accounting.mu_of(promise.event)
    assert mu**2 == pytest.approx(max(costs), rel=1e-9)
    assert gdp.mu_from_budget(1.0, 1e-6) * (1.0 - 1e-5) < mu <= gdp.mu_from_budget(1.0, 1e-6)


# What the coordinator asks, and the model.


def test_questions_are_regressions_of_the_margin_on_a_party_s_own_columns():
    """On correlated columns, by least squares on the rows themselves."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((400, 3)) @ rng.standard_normal((3, 9)) + rng.standard_normal((400, 9)) + 0.5
    X = {name: x / 20.0 for name, x in zip(SIZES, np.split(X, [3, 5], axis=1), strict=True)}
    y = np.where(sum(x[:, 0] for x in X.values()) + 0.1 * rng.standard_normal(400) > 0.0, 1.0, -1.0)
    done = run(classes_study(epsilon=math.inf, n_rows=400, l1_radius=20.0), X, y)
    rows = {name: x / done.memory[name]["row norm"][0] for name, x in X.items()}
    turns = [questions for questions in done.asked if questions["a"].step == slopes.STEP]
    assert len(turns) == 3
    for turn in turns:
        told = {name: question.arrays for name, question in turn.items()}
        # m is the same for all parties: solve for the weights that make all three regressions what was told.
        tables = {name: np.column_stack([z, np.ones(400)]) for name, z in rows.items()}
        everything = np.column_stack([*rows.values(), np.ones(400)])
        maps = [np.linalg.lstsq(table, everything, rcond=None)[0] for table in tables.values()]
        wanted = np.concatenate([[*told[n]["direction"], told[n]["place"][0]] for n in SIZES])
        weights, *_ = np.linalg.lstsq(np.vstack(maps), wanted, rcond=None)
        np.testing.assert_allclose(np.vstack(maps) @ weights, wanted, rtol=0, atol=1e-4 * np.abs(wanted).max())
        for name, table in tables.items():
            margin = everything @ weights
            left = margin - table @ np.linalg.lstsq(table, margin, rcond=None)[0]
            assert told[name]["place"][1] == pytest.approx(math.sqrt(float(np.mean(left**2))), rel=1e-3)


def fitted(X, y, epsilon=math.inf, radius=200.0, **told):
    model = FederatedLogisticRegression(
        epsilon,
        1e-6,
        l1_radius=radius,
        labels="held",
        protocol=Marginals(products="masked"),
        classes=[-1.0, 1.0],
        **told,
    )
    return model.fit([Party(x, y if name == HOLDER else None, name=name) for name, x in X.items()])


def loss(margins, y):
    return float(np.mean(np.logaddexp(0.0, -y * margins)))


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_without_noise_and_for_normal_columns_it_is_logistic_regression(fit_intercept):
    rng = np.random.default_rng(7)
    X = rng.standard_normal((20_000, 3)) @ rng.standard_normal((3, 9)) / 3.0 + rng.standard_normal((20_000, 9))
    truth = np.array([0.5, -0.5, 0.3, 0.6, 0.0, -0.4, 0.2, 0.1, -0.3])
    y = np.where(rng.random(20_000) < expit(X @ truth + 0.4 * fit_intercept), 1.0, -1.0)
    model = fitted(dict(zip(SIZES, np.split(X, [3, 5], axis=1), strict=True)), y, fit_intercept=fit_intercept)
    expected = LogisticRegression(C=1e8, fit_intercept=fit_intercept).fit(X, y)
    np.testing.assert_allclose(model.coef_.ravel(), expected.coef_.ravel(), atol=0.02)
    np.testing.assert_allclose(model.intercept_, expected.intercept_, atol=0.02)


def with_flat_slopes(done):
    """The coordinator's side once more, told that the loss is level wherever it looks: its questions for slopes."""
    given, norms, n = done.model.facts["moments"].given, done.model.facts["row_norms"], done.protocol.study.n_rows
    level, ends = given.positive - 0.5, np.cumsum(list(SIZES.values()))[:-1]
    sums = dict(zip(SIZES, np.split(given.slope / 2.0 + level * given.mean, ends), strict=True))
    rounds, asked_for = done.protocol.coordinate(), []
    next(rounds)
    for questions, said in zip(done.asked, done.answers, strict=True):
        told = {name: {**answer.releases, **answer.beside} for name, answer in said.items()}
        if questions["a"].step == slopes.STEP:
            told = {name: {"slopes": n * np.append(sums[name] / norms[name], SUMS * level)} for name in SIZES}
        try:
            turn = rounds.send(told)
        except StopIteration:
            return asked_for
        if turn["a"].step == slopes.STEP:
            asked_for.append(turn)
    raise AssertionError("the coordinator did not come to an end")


def test_caution_about_noise_shortens_steps_and_leaves_weights_where_the_loss_is_level():
    done = run(classes_study(n_rows=2_000, epsilon=4.0), *some_classes(3, 2_000))
    with patch.object(logistic, "_PENALTY", 0.0):
        first, *later = with_flat_slopes(done)
    assert len(later) == 2
    for turn in later:
        for name in SIZES:
            for what in (slopes.DIRECTION, slopes.PLACE):
                expected = first[name].arrays[what]
                np.testing.assert_allclose(turn[name].arrays[what], expected, atol=1e-6 * np.abs(expected).max())
    penalised = with_flat_slopes(done)
    sizes = [np.linalg.norm(turn["a"].arrays[slopes.DIRECTION]) for turn in penalised]
    assert sizes[0] > sizes[1] > sizes[2] > 0.3 * sizes[0]


def far_from_normal():
    """Columns of a party are signs that go together; a fifth of people are far from the others."""
    rng = np.random.default_rng(8)
    kind = np.where(rng.random((6_000, 3)) < 0.2, 3.0, -0.5)
    X = {n: kind[:, [k]] * rng.uniform(0.3, 1.5, size) + 0.3 * rng.standard_normal((6_000, size))
         for k, (n, size) in enumerate(SIZES.items())}  # fmt: skip
    margins = sum(x.mean(axis=1) for x in X.values())
    return X, np.where(rng.random(6_000) < expit(2.0 * margins - 1.0), 1.0, -1.0)


def excess(model, X, y):
    """Of the loss, over that of the best linear model."""
    table = np.column_stack(list(X.values()))
    best = LogisticRegression(C=1e8, max_iter=1_000).fit(table, y)
    return loss(table @ model.coef_.ravel() + model.intercept_, y) - loss(best.decision_function(table), y)


def test_slopes_take_off_most_of_what_normal_columns_get_wrong():
    X, y = far_from_normal()
    corrected = excess(fitted(X, y), X, y)
    with patch.object(MaskedProtocol, "has_slopes", False):
        normal = excess(fitted(X, y), X, y)
    assert normal > 0.003
    assert corrected < 0.35 * normal


def test_slopes_of_the_wrong_sign_are_caught():
    X, y = far_from_normal()
    honest = slopes.expected
    with patch.object(slopes, "expected", lambda *given: -honest(*given)):
        assert excess(fitted(X, y), X, y) > 0.02


def test_other_radii_follow_from_the_last_step():
    X, y = some_classes(2, 2_000)
    model = fitted(X, y, 5.0, 4.0, random_state=0)
    coefs, intercepts = model.l1_path([0.5, 4.0])
    np.testing.assert_allclose(coefs[1], model.coef_.ravel(), atol=1e-9)
    np.testing.assert_allclose(intercepts[1], model.intercept_, atol=1e-9)
    assert np.abs(coefs[0]).sum() <= 0.5 + 1e-9


@pytest.mark.parametrize("epsilon", [0.01, 1e3])
def test_models_stay_in_the_ball_and_finite_at_any_noise(epsilon):
    X, y = some_classes()
    model = fitted(X, y, epsilon, 3.0, random_state=0)
    assert np.abs(model.coef_).sum() <= 3.0 + 1e-9
    assert np.all(np.isfinite(model.coef_))
    assert np.all(np.isfinite(model.intercept_))


def told_again(done, changed):
    """The coordinator's side once more, with another array as the slopes of party a."""
    rounds = done.protocol.coordinate()
    next(rounds)
    for questions, said in zip(done.asked, done.answers, strict=True):
        told = {name: {**answer.releases, **answer.beside} for name, answer in said.items()}
        if questions["a"].step == slopes.STEP:
            told["a"] = {} if changed is None else {"slopes": changed}
        rounds.send(told)


BAD_SLOPES = [np.ones(2), np.full(4, 1e9), np.full(4, math.nan), np.ones(4, dtype=np.float32), None]


@pytest.mark.parametrize("changed", BAD_SLOPES, ids=["short", "large", "no number", "single", "missing"])
def test_a_reply_of_another_form_is_refused(changed):
    done = run(classes_study(), *some_classes())
    with pytest.raises(RefusedError, match=r"party 'a' (answered|did not answer with) 'slopes'"):
        told_again(done, changed)


def test_the_memory_of_a_party_is_its_units_alone():
    """Slopes change nothing that later noise or masks follow from."""
    done = run(classes_study(), *some_classes())
    assert all(not answer.memory and not answer.beside for said in done.answers[3:] for answer in said.values())
    assert set(done.answers[-1]["a"].releases) == {"slopes"}
    assert party.SEED in done.memory["a"]
