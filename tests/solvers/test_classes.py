"""Class counts before the steps, the surplus after them, and weights of classes."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.sparse import eye_array
from scipy.special import expit
from sklearn.linear_model import LogisticRegression as PlainLogisticRegression
from sklearn.metrics import log_loss

from tacit import LinearSVC, LogisticRegression
from tacit.blocks import Bounded, Passes, WeightedPasses
from tacit.privacy import Budget, Unit
from tacit.problems import LOGISTIC, MULTINOMIAL, SQUARED, Penalty
from tacit.problems.task import LinearTask
from tacit.solvers import Coordinate, Dual, Gradient, classes, curvature, gradient

pytestmark = pytest.mark.filterwarnings("ignore:random_state is set:UserWarning")


def rare(seed, n=50_000, d=10, rate=0.005):
    """Columns in several units, and a class that one row in two hundred is of."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, d))
    margins = Z @ rng.normal(scale=0.5, size=d)
    offset = brentq(lambda b: expit(margins + b).mean() - rate, -30.0, 5.0)
    return Z * rng.choice([0.1, 1.0, 10.0], size=d) + 1.0, (rng.random(n) < expit(margins + offset)).astype(int)


def ratio(epsilon, seed):
    """The mean predicted probability over the true share."""
    X, y = rare(seed)
    model = LogisticRegression(epsilon=epsilon, random_state=seed).fit(X, y)
    return model.predict_proba(X)[:, 1].mean() / y.mean()


@pytest.mark.whole
@pytest.mark.parametrize(("epsilon", "most"), [(1.0, 1.25), (3.0, 1.18)])
def test_probabilities_of_rare_events_are_near_the_truth(epsilon, most):
    """Without the two releases they are 2.5 and 1.7 times too high. Fits are seeded, so there is no chance in it."""
    found = np.mean([ratio(epsilon, seed) for seed in range(3)])
    assert 1.0 / most < found < most


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "most"), [(0.3, 1.35), (1.0, 1.18), (3.0, 1.18)])
def test_probabilities_of_rare_events_over_ten_seeds(epsilon, most):
    found = np.mean([ratio(epsilon, seed) for seed in range(10)])
    assert 1.0 / most < found < most


def task(n, outputs=1, loss=LOGISTIC, epsilon=1.0, **more):
    budget = Budget(epsilon, 1e-6)
    return LinearTask(unit=Unit("row", n), d=5, budget=budget, loss=loss, outputs=outputs, **more)


def test_counts_are_planned_by_public_numbers():
    assert classes.are_due(task(10_000))
    assert classes.are_due(task(10_000, 3, MULTINOMIAL))
    assert not classes.are_due(task(100))
    assert not classes.are_due(task(10_000, 100, MULTINOMIAL))
    assert not classes.are_due(task(10_000, loss=SQUARED))
    assert not classes.are_due(task(10_000, fit_intercept=False))


@pytest.mark.parametrize(
    ("solver", "surplus"), [(Coordinate(), False), (Dual(), True), (Dual(variant="published"), None)]
)
def test_solvers_of_papers_count_two_classes_in_the_same_plan(solver, surplus):
    names = {n: [release.name for release in solver.at(task(n)).releases(0.5)] for n in (100, 10_000)}
    counted = surplus is not None
    assert (names[10_000][0] == classes.COUNTS) == counted
    assert (names[10_000][-1] == classes.SURPLUS) == bool(surplus)
    assert {classes.COUNTS, classes.SURPLUS}.isdisjoint(names[100])
    assert sum(release.share for release in solver.at(task(10_000)).releases(0.5)) == pytest.approx(0.5)


def test_a_declared_start_is_not_counted():
    for start in (Coordinate(intercept_init=0.0), Coordinate(coef_init=[0.0] * 5)):
        assert classes.COUNTS not in [release.name for release in start.at(task(10_000)).releases(1.0)]
    several = Dual().at(task(10_000, 3)).releases(1.0)
    assert classes.COUNTS not in [release.name for release in several]


@pytest.mark.parametrize("solver", ["coordinate", "dual"])
def test_without_noise_counts_and_surplus_change_no_optimum(solver, monkeypatch):
    """Where a rare class has to be found the start is far from zero, and both ends are the same."""
    X, y = rare(0, n=4_000, rate=0.05)
    found = []
    for enough in (0.0, math.inf):
        monkeypatch.setattr(classes, "ENOUGH", enough)
        found.append(LogisticRegression(epsilon=math.inf, solver=solver).fit(X, y).decision_function(X))
    np.testing.assert_allclose(*found, atol=2e-2)


def test_the_dual_solver_predicts_as_much_of_a_rare_class_as_there_is(monkeypatch):
    """Its intercept is penalised; without counts rare events are predicted twice too often."""
    X, y = rare(0, n=8_000, d=40, rate=0.03)
    found = []
    for enough in (classes.ENOUGH, math.inf):
        monkeypatch.setattr(classes, "ENOUGH", enough)
        model = LogisticRegression(epsilon=3.0, solver="dual", random_state=0).fit(X, y)
        found.append(model.predict_proba(X)[:, 1].mean() / y.mean())
    assert 0.9 < found[0] < 1.1
    assert found[1] > 1.6


def test_several_classes_are_counted_at_a_tenth_of_the_budget():
    some = task(1_000, 10, MULTINOMIAL, epsilon=0.5)
    assert not classes.are_due(some)
    assert classes.are_counted(some)
    assert [release.name for release in Gradient().at(some).releases(1.0)][:2] == [classes.COUNTS, "second moments"]
    assert not classes.are_counted(task(100, 10, MULTINOMIAL, epsilon=0.5))
    assert not classes.are_counted(task(200, 2, LOGISTIC, epsilon=0.5))
    assert not classes.are_counted(task(1_000, 10, MULTINOMIAL, epsilon=0.5, fit_intercept=False))


@pytest.mark.parametrize(
    ("parts", "least"),
    [([0.1] * 10, 0.1), ([0.498, 0.498, *[0.0005] * 8], 0.498), ([0.96, *[0.01] * 4], 0.2), ([0.5, 0.3, 0.2], 0.388)],
    ids=["equal", "two of ten", "one of five", "three"],
)
def test_steps_are_made_for_the_curvature_of_the_class_shares(parts, least):
    parts = np.array(parts)
    asked = task(10**6, len(parts), MULTINOMIAL, epsilon=0.005)
    worst = max(1.0 / len(parts), np.linalg.eigvalsh(np.diag(parts) - np.outer(parts, parts))[-1])
    assert worst == pytest.approx(least, abs=0.02)
    assert worst < classes.curvature(asked, parts) < min(1.2 * worst, 0.5) + 1e-12
    assert classes.curvature(task(20, len(parts), MULTINOMIAL, epsilon=0.1), parts) == 0.5
    assert classes.curvature(task(10**6, len(parts), MULTINOMIAL, epsilon=math.inf), parts) == 0.5
    assert classes.curvature(task(10**6, len(parts), MULTINOMIAL, fit_intercept=False), parts) == 0.5
    assert classes.curvature(task(10**6, 1, LOGISTIC), np.array([0.01, 0.99])) == LOGISTIC.curvature


def pairs(K, n=8_000):
    """Columns that tell which pair a class is of, and columns that tell a little which of the pair it is."""
    rng = np.random.default_rng(7)
    y = rng.integers(0, K, n)
    X = np.zeros((n, K))
    X[np.arange(n), y // 2] = 1.0
    X[np.arange(n), K // 2 + y // 2] = rng.normal(size=n) + 0.7 * (2 * (y % 2) - 1)
    return X, y


def test_steps_that_meet_more_curvature_are_made_shorter(monkeypatch):
    """Where pairs of equal classes are hard to tell apart the curvature is 1/2. Seeded: there is no chance in it."""
    X, y = pairs(20)
    monkeypatch.setattr(curvature.Curvature, "spared", lambda self, *_: self)  # steps as long as shares allow

    def loss():
        return log_loss(y, LogisticRegression(epsilon=10.0, random_state=0).fit(X, y).predict_proba(X))

    guarded = loss()
    monkeypatch.setattr(curvature.Curvature, "is_exceeded", lambda *_: False)
    assert guarded < 0.6
    assert loss() > 0.9
    monkeypatch.setattr(classes, "curvature", lambda asked, _: asked.loss.curvature)
    assert guarded < 1.1 * loss()


@pytest.mark.parametrize(("lift", "h"), [(100.0, 0.1), (8.0, 0.2), (1.0, math.sqrt(0.05))])
def test_steps_are_as_long_as_shares_allow_only_where_noise_makes_them_short(lift, h):
    """16 steps: a bound that noise lifts a hundredfold leaves all they can have, and none the geometric mean."""
    moments, l2 = np.linspace(1.0, 3.0, 5), np.zeros(5)
    bound = curvature.Curvature(np.eye(5), moments, moments, lift * moments, l2, 0.1)
    assert bound.spared(16, 0.5).h == pytest.approx(h, rel=1e-12)
    assert bound.of(0.5).spared(16, 0.5).h == 0.5


@pytest.mark.filterwarnings("ignore::tacit.estimators.fit.FewRowsWarning")
def test_margins_of_several_classes_that_are_noise_are_not_kept(monkeypatch):
    """Labels that columns say nothing of, six classes: nearly what the class shares give. Seeded: no chance in it."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(8_000, 80)), rng.integers(0, 6, 8_000)

    def loss(epsilon, labels):
        return log_loss(labels, LogisticRegression(epsilon=epsilon, random_state=0).fit(X, labels).predict_proba(X))

    told = np.digitize(X[:, 0], [-1.0, -0.4, 0.0, 0.4, 1.0])
    kept, sure = loss(0.3, y), loss(20.0, told)
    monkeypatch.setattr(gradient._Steps, "_kept", lambda *_: 1.0)
    assert kept < math.log(6) + 0.03
    assert loss(0.3, y) > kept + 0.1
    assert sure == pytest.approx(loss(20.0, told), rel=0.02)


@pytest.mark.parametrize("full", [True, False])
def test_the_noise_of_a_slope_that_meets_itself_is_taken_off(full):
    """Slopes of 0.6 and of 1.2 times what steps are made for, under noise: none and all of 200 are found too much."""
    rng = np.random.default_rng(0)
    d, K, noise, momentum = 30, 5, 0.2, 0.5
    most, l2 = np.linspace(1.0, 3.0, d), np.full(d, 0.1)
    vectors = np.linalg.qr(rng.normal(size=(d, d)))[0] if full else eye_array(d)
    bound = curvature.Curvature(vectors, most, most, most, l2, 0.2)
    place, begin = rng.normal(size=(2, K, d))

    def is_found(part):
        H = part * 0.2 * (vectors @ (most[:, None] * vectors.T) if full else np.diag(most))
        first = begin @ H + noise * rng.normal(size=(K, d))
        move = 3.0 * place - (1.0 + momentum) * bound.inverse_times(first)
        change = (begin + move) @ H + noise * rng.normal(size=(K, d)) - first
        return bound.is_exceeded(move, change, noise, momentum)

    assert not any(is_found(0.6) for _ in range(200))
    assert all(is_found(1.2) for _ in range(200))


@pytest.mark.whole
@pytest.mark.parametrize(
    ("weight", "several"), [({1: 4.0}, False), ("balanced", False), ({0: 0.5}, True), ("balanced", True)]
)
def test_without_noise_weights_mean_what_they_mean_in_scikit_learn(weight, several):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3_000, 4))
    margins = X @ [1.0, -1.0, 0.5, 0.0] + rng.logistic(size=3_000)
    y = np.digitize(margins, [0.0, 2.5] if several else [2.0])
    model = LogisticRegression(epsilon=math.inf, class_weight=weight).fit(X, y)
    clipped = np.clip(X, model.clip_low_, model.clip_high_)
    plain = PlainLogisticRegression(class_weight=weight).fit(clipped, y)
    assert np.allclose(model.predict_proba(X), plain.predict_proba(clipped), atol=1e-3)


def test_balanced_weights_move_predictions_to_the_rare_class():
    X, y = rare(0, n=20_000, rate=0.05)
    plain = LogisticRegression(epsilon=3.0, random_state=0).fit(X, y)
    model = LogisticRegression(epsilon=3.0, class_weight="balanced", random_state=0).fit(X, y)
    assert plain.predict(X).mean() < 0.05
    assert 0.15 < model.predict(X).mean() < 0.5
    assert any(release.name == "class counts" for release in model.plan_.plan.releases)


def test_a_rare_class_gets_at_most_ten_times_the_weight():
    X, y = rare(0, n=5_000, rate=0.004)
    margins = LogisticRegression(epsilon=math.inf, class_weight="balanced").fit(X, y).decision_function(X)
    plain = PlainLogisticRegression(class_weight={0: 0.501, 1: 10.0}, max_iter=5_000).fit(X, y).decision_function(X)
    assert abs(np.mean(margins) - np.mean(plain)) < 0.3


def test_hinges_have_weights_too():
    X, y = rare(0, n=5_000, rate=0.1)
    plain = LinearSVC(epsilon=5.0, random_state=0).fit(X, y)
    for weight in ({1: 8.0}, "balanced"):
        model = LinearSVC(epsilon=5.0, class_weight=weight, random_state=0).fit(X, y)
        assert model.predict(X).mean() > plain.predict(X).mean() + 0.05


@pytest.mark.parametrize("outputs", [1, 3])
def test_weighted_passes_are_weighted_sums(outputs):
    rng = np.random.default_rng(outputs)
    n, d, weights = 200, 3, np.array([0.5, 2.0, 3.0])[: max(outputs, 2)]
    numbers = rng.integers(0, len(weights), size=n)
    task = LinearTask(
        unit=Unit("row", n), d=d, budget=Budget(1.0, 1e-5), loss=LOGISTIC if outputs == 1 else MULTINOMIAL,
        outputs=outputs, class_weight=tuple(weights),
    )  # fmt: skip
    Z, targets = rng.normal(size=(n, d)), numbers * 2.0 - 1.0 if outputs == 1 else numbers.astype(float)
    data = Bounded(Z, targets, Penalty())
    found, w = WeightedPasses(task, data, weights), rng.normal(size=(outputs, d + 1))
    alone = [Passes(task, data.some(np.array([i]))) for i in range(n)]

    def summed(of):
        return sum(weights[k] * of(one) for k, one in zip(numbers, alone, strict=True))

    v, diagonal = rng.normal(size=d + 1), np.ones(d + 1)
    for of in (
        lambda one: one.gradient(w, 0.7),
        lambda one: one.residuals(w),
        lambda one: one.second_moments(1.3),
        lambda one: one.squares(1.3),
        lambda one: one.curvature_times(v, diagonal, 1.3),
    ):
        assert np.allclose(of(found), summed(of))
    assert found.heaviest == weights.max()


@pytest.mark.whole
@pytest.mark.parametrize(
    ("weight", "words"),
    [
        ("even", 'None, "balanced" or a dict'),
        ({}, 'None, "balanced" or a dict'),
        ({1: 0.0}, r"class_weight\[1\]"),
        ({1: math.inf}, r"class_weight\[1\]"),
        ({7: 2.0}, "none of the classes"),
    ],
)
def test_bad_weights_are_refused(weight, words):
    X, y = rare(0, n=200, rate=0.3)
    with pytest.raises(ValueError, match=words):
        LogisticRegression(class_weight=weight).fit(X, y)


def test_solvers_without_weights_say_so():
    X, y = rare(0, n=200, rate=0.3)
    with pytest.raises(ValueError, match=r"does not serve the parameter class_weight; these do: gradient, sgd"):
        LogisticRegression(solver="objective", class_weight="balanced").fit(X, y)
