import math
from dataclasses import replace

import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from scipy.optimize import minimize
from scipy.sparse import csr_array
from sklearn.svm import LinearSVC

from tacit.privacy import Budget, Gate, Plan
from tacit.problems import LOSSES, Penalty
from tacit.solvers import Dual, choose
from tacit.solvers.dual import steps
from tacit.solvers.dual.paper import Primal, Published, Sequential
from tacit.solvers.dual.steps import AllRows, Duals, Sampled
from tests.solvers.support import CLASSES, bounded, either, objective, rows, solve, table, task
from tests.units import ROWS

every_loss = pytest.mark.parametrize("loss", [loss.name for loss in Dual.serves.losses])
every_class_loss = pytest.mark.parametrize("loss", [loss.name for loss in Dual.serves.multiclass])
every_variant = pytest.mark.parametrize("variant", ["secret", "published", "sequential", "primal"])


def run(problem, data, l2=0.01, seed=0, **options):
    return solve(problem, data, l2=l2, seed=seed, solver=Dual(**options))


def class_task(loss, n, d, epsilon=1.0):
    return task(loss, n, d, epsilon=epsilon, outputs=CLASSES)


def optimum(loss, data, l2, fit_intercept):
    """Of the problem with a penalty on the intercept, too."""
    Z = table(data)
    n, d = Z.shape
    wide = np.hstack([Z, np.full((n, 1), float(fit_intercept))])
    penalty = np.append(np.full(d, l2), min(l2, steps._INTERCEPT))
    if loss == "hinge":  # as liblinear, which penalises all entries of a row alike
        to_weights = np.sqrt(l2 / penalty)
        model = LinearSVC(loss="hinge", C=1 / (n * l2), fit_intercept=False, tol=1e-9, max_iter=10_000_000)
        return (model.fit(wide * to_weights, data.targets).coef_ * to_weights)[:, : d + 1]

    def value_and_slope(w):
        margins = wide @ w
        value = LOSSES[loss].value(margins, data.targets).mean() + penalty @ w**2 / 2
        return value, wide.T @ LOSSES[loss].derivative(margins, data.targets) / n + penalty * w

    return minimize(value_and_slope, np.zeros(d + 1), jac=True, method="BFGS", options={"gtol": 1e-9}).x[None, :]


def penalised(loss, data, weights, l2):
    return objective(loss, data, weights, l2) + min(l2, steps._INTERCEPT) / 2 * float(weights[0, -1] ** 2)


def against_the_rest(data, k):
    return bounded(data.Z, np.where(data.targets == k, 1.0, -1.0))


# --- without noise it solves the problem -----------------------------------------------------------------------------


@every_loss
@either.intercept
@either.table
def test_without_noise_it_finds_the_optimum(loss, fit_intercept, sparse):
    n, d, l2 = 300, 4, 0.01
    data = rows(loss, n, d, sparse, seed=1)
    weights = run(task(loss, n, d, sparse, fit_intercept, epsilon=math.inf), data, l2).weights
    if not fit_intercept:
        assert not weights[:, -1].any()
    best = penalised(loss, data, optimum(loss, data, l2, fit_intercept), l2)
    assert best * (1 - 1e-5) <= penalised(loss, data, weights, l2) <= best * (1 + (1e-3 if loss == "hinge" else 1e-5))


@every_class_loss
def test_each_class_is_its_own_problem(loss):
    n, d, l2 = 300, 4, 0.01
    data = rows("multinomial", n, d, seed=3)
    weights = run(class_task(loss, n, d, math.inf), data, l2).weights
    assert weights.shape == (CLASSES, d + 1)
    for k in range(CLASSES):
        binary = against_the_rest(data, k)
        best = penalised(loss, binary, optimum(loss, binary, l2, True), l2)
        assert penalised(loss, binary, weights[k : k + 1], l2) == pytest.approx(best, rel=1e-3)


@every_loss
def test_the_objective_falls_to_the_optimum_as_epsilon_grows(loss):
    n, d, l2 = 2_000, 4, 0.01
    data = rows(loss, n, d, seed=5)
    best = objective(loss, data, optimum(loss, data, l2, True), l2)
    found = []
    for epsilon in (0.1, 1.0, 8.0):
        weights = [run(task(loss, n, d, epsilon=epsilon, delta=1e-5), data, l2, seed=s).weights for s in range(5)]
        found.append(np.mean([objective(loss, data, w, l2) for w in weights]) / best - 1)
    assert found[0] > found[2] >= -1e-6
    assert found[2] < 0.12, found


@every_loss
def test_v_stays_the_sum_that_it_stands_for(loss, monkeypatch):
    """With momentum, too: then v and the dual variables both go on in the direction of the last step."""
    kept, init = [], Duals.__init__

    def noted(self, *given, **options):
        init(self, *given, **options)
        kept.append(self)

    monkeypatch.setattr(Duals, "__init__", noted)
    n, d, l2 = 200, 3, 0.1
    data = rows(loss, n, d, seed=2)
    for options in ({"n_passes": 7}, {"n_passes": 3, "batch_size": 20, "averaging": "last"}):
        weights = run(task(loss, n, d, epsilon=math.inf), data, l2, **options).weights[0]
        alpha = kept[-1].at(np.arange(n))[:, 0]
        v = weights * n * np.append(np.full(d, l2), l2 if "batch_size" in options else steps._INTERCEPT)
        kept_back = 1 if loss == "logistic" and "batch_size" in options else 0  # its intercept starts by class counts
        stands_for = np.append(data.Z.T @ alpha, alpha.sum())
        np.testing.assert_allclose(v[: d + 1 - kept_back], stands_for[: d + 1 - kept_back], atol=1e-9)


# --- rules -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "batch"), [(120, 120), (300, 300), (45_000, 300), (1_000_000, 300)])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_batches_and_passes_follow_the_rule(loss, n, batch):
    given = task(loss, n, 20, epsilon=0.1)
    found = Dual().at(given)
    more = math.sqrt((0.05 if loss == "squared" else 0.1) / given.nu)
    passes = 10 * min(max(1.0, more), 10.0)
    assert (found.batch, found.sampling) == (batch, batch / n)
    assert found.steps == round(passes * n / batch)
    assert type(found) is Sampled


def test_few_rows_get_ten_passes_and_many_up_to_a_hundred():
    passes = [Dual().at(task("hinge", n, 20, epsilon=0.1)).steps * 300 / n for n in (300, 30_000, 3_000_000)]
    assert passes[0] == 10
    assert 10 < passes[1] < 30
    assert passes[2] == pytest.approx(100)


# How far a dual variable goes, the noise that is borne, the power of more, the least and the most that is left of it,
# the least penalty at most, the damping.
RULES = {
    "squared": (3.0, 0.006, 0.6, 0.08, 0.5, 0.003, 0.5),
    "squared_hinge": (1.0, 0.086, 0.8, 0.0, 1.0, 0.01, 0.5),
    "logistic": (1.0, 0.03, 0.8, 0.2, 0.7, 0.01, 0.1),
    "hinge": (1.0, 0.055, 0.8, 0.0, 1.0, 0.01, 0.1),
}


@pytest.mark.parametrize("loss", RULES)
@pytest.mark.parametrize("n", [200, 2_000])
@pytest.mark.parametrize("l2", [0.0005, 0.03])
def test_the_clip_is_the_longest_update_of_a_row(loss, n, l2, monkeypatch):
    seen, mechanism = [], steps.mechanism

    def noted(given, clip):
        seen.append(clip)
        return mechanism(given, clip)

    monkeypatch.setattr(steps, "mechanism", noted)
    d = 8
    given = task(loss, n, d, epsilon=0.1)
    found = Dual().at(given)
    run(given, rows(loss, n, d), l2)
    width, (reach, bearable, power, low, high, most, part) = d + 1, RULES[loss]
    damping = part * min(300, n)
    noise = math.sqrt(given.nu / (given.budget.mu * damping)) if loss.endswith("hinge") else given.nu
    reach *= min(high, max(low, (bearable / noise) ** power))
    passes = found.steps * found.batch / n
    least = min(most, 2 * damping * width / (n * passes))
    wanted = reach * math.sqrt(width) / (1 + damping * width / (max(l2, least) * n))
    assert seen == [pytest.approx(wanted, rel=1e-12)]
    run(task(loss, n, d, epsilon=0.1), rows(loss, n, d), l2, clip=0.7)
    assert seen[1] == 0.7


def test_a_user_sets_batch_and_passes():
    found = Dual(batch_size=50, n_passes=3).at(task("logistic", 1_000, 5))
    assert (found.batch, found.steps, found.sampling) == (50, 60, 0.05)


def test_a_batch_cannot_be_larger_than_all_rows():
    data, problem = rows("logistic", 100, 3), task("logistic", 100, 3)
    one, other = (run(problem, data, batch_size=size, n_passes=3).weights for size in (100, None))
    np.testing.assert_array_equal(one, other)  # the rule asks for 300, and there are 100
    with pytest.raises(ValueError, match="batch_size must be at most the number of rows, 100, got 101"):
        Dual(batch_size=101).at(problem)


def test_little_noise_or_a_variant_pick_the_form():
    quiet, noisy = task("logistic", 100, 3, epsilon=math.inf), task("logistic", 100, 3)
    assert type(Dual().at(quiet)) is AllRows
    assert type(Dual(batch_size=20).at(quiet)) is Sampled
    forms = {"secret": Sampled, "published": Published, "sequential": Sequential, "primal": Primal}
    assert {name: type(Dual(variant=name).at(noisy)) for name in forms} == forms
    assert {name: type(Dual(variant=name).at(quiet)) for name in forms} == forms | {"secret": AllRows}


def test_ten_thousand_steps_are_calibrated_to_within_one_percent_from_below():
    plan = Plan(*Dual(n_passes=10).at(task("hinge", 300_000, 20, epsilon=0.1, delta=1e-9)).releases(1.0))
    assert [(r.count, r.sampling) for r in plan.releases] == [(10_000, 1e-3)]
    for epsilon in (0.1, 1.0):
        event = plan.calibrate(Budget(epsilon, 1e-9, "add-remove"), ROWS, "test").event
        assert 0.99 * epsilon <= PLDAccountant().compose(event).get_epsilon(1e-9) <= epsilon


# --- the penalty is what was asked, if that is asked -----------------------------------------------------------------


@pytest.mark.parametrize("options", [{"batch_size": 50}, {}], ids=["samples", "all rows"])
def test_every_penalty_has_its_own_solution_unless_the_rule_raises_it(options):
    data, found = rows("logistic", 400, 3, seed=1), {}
    for least in (None, 0.0):
        for C in (1.0, 1e2, 1e4, 1e8):
            l2 = 1.0 / (C * 400)
            problem = replace(task("logistic", 400, 3, epsilon=2.0 if options else 1e4), penalty=Penalty(l2=l2))
            found[least, C] = run(problem, data, l2, least_penalty=least, **options).weights
    rule, asked = ([found[least, C] for C in (1.0, 1e2, 1e4, 1e8)] for least in (None, 0.0))
    assert all(not np.array_equal(asked[k], asked[k + 1]) for k in range(3))
    if options:
        assert all(np.array_equal(rule[0], other) for other in rule[1:])


def test_without_noise_the_penalty_that_was_asked_for_is_served():
    n, d = 300, 3
    data = rows("squared", n, d, seed=1)
    for l2 in (1e-3, 1.0):
        problem = replace(task("squared", n, d, epsilon=math.inf), penalty=Penalty(l2=l2))
        weights = run(problem, data, l2, batch_size=1, n_passes=200, least_penalty=0.0, averaging="last").weights
        wide = np.hstack([data.Z, np.ones((n, 1))])
        best = np.linalg.solve(wide.T @ wide / n + l2 * np.eye(d + 1), wide.T @ data.targets / n)
        np.testing.assert_allclose(weights[0], best, rtol=5e-3)


def test_no_penalty_at_all_is_refused_with_the_least_that_is_served():
    problem = replace(task("logistic", 100, 3), penalty=Penalty(l2=0.0))
    with pytest.raises(ValueError, match=r"below 1e-12, as weights .*: set least_penalty to 1e-12 or more"):
        Dual(least_penalty=0.0).at(problem)
    for solver in (Dual(), Dual(least_penalty=1e-12)):
        assert solver.at(problem).penalty > 0.0


# --- averages of iterates, and the damping ---------------------------------------------------------------------------


@pytest.mark.parametrize("at_once", [2_000_000, 60])
@pytest.mark.parametrize("variant", ["secret", "published"])
def test_the_mean_is_that_of_the_second_half_of_the_iterates(variant, at_once, monkeypatch):
    monkeypatch.setattr(steps, "_AT_ONCE", at_once)
    data, problem, l2 = rows("hinge", 100, 3), task("hinge", 100, 3), 0.1
    seen, release = [], Gate.release
    monkeypatch.setattr(Gate, "release", lambda *given: seen.append(release(*given)) or seen[-1])
    options = {"batch_size": 20, "n_passes": 3, "variant": variant}
    mean = run(problem, data, l2, averaging="tail", **options).weights[0]
    path = np.cumsum(np.concatenate([moved.reshape(-1, 4) for moved in seen]), axis=0)
    assert len(path) == 15
    np.testing.assert_allclose(mean, np.mean(path[-8:], axis=0) / (100 * l2), rtol=1e-12)
    last = run(problem, data, l2, averaging="last", **options).weights[0]
    np.testing.assert_allclose(last, path[-1] / (100 * l2), rtol=1e-12)


def test_the_mean_of_steps_over_all_rows_is_taken_where_it_is_asked_for():
    data, problem = rows("squared", 100, 3), task("squared", 100, 3, epsilon=math.inf)
    path = [run(problem, data, 0.1, n_passes=k).weights for k in range(1, 7)]
    mean = run(problem, data, 0.1, n_passes=6, averaging="tail").weights
    np.testing.assert_allclose(mean, np.mean(path[-3:], axis=0), rtol=1e-9)


@pytest.mark.parametrize("tail", [1, 3, 10])
def test_noise_of_a_mean_is_that_of_the_sums_in_it(tail):
    walks = np.cumsum(np.random.default_rng(0).normal(size=(20_000, 10)), axis=1)
    assert steps.added(10, tail) == pytest.approx(walks[:, -tail:].mean(axis=1).std(), rel=0.02)


def test_a_user_sets_the_damping():
    given = task("hinge", 1_000, 5)
    assert [Dual(batch_size=100, damping=part).at(given).damping for part in (1, 0.3, 0.001)] == [100.0, 30.0, 1.0]
    assert type(Dual(damping=0.5).at(task("hinge", 1_000, 5, epsilon=math.inf))) is Sampled


# --- what it serves, and what it refuses -----------------------------------------------------------------------------


def test_replace_one_is_refused():
    with pytest.raises(ValueError, match="does not serve adjacency='replace-one'"):
        choose("dual", task("logistic", 100, 3, adjacency="replace-one"))


def test_several_classes_are_for_losses_of_labels():
    with pytest.raises(ValueError, match="more than two classes"):
        choose("dual", class_task("squared", 100, 3))


def test_the_primal_variant_refuses_several_classes():
    with pytest.raises(ValueError, match="more than two classes"):
        Dual(variant="primal").at(class_task("hinge", 100, 3))


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("n_passes", 0),
        ("n_passes", 100_001),
        ("batch_size", 0),
        ("clip", 0.0),
        ("variant", "Secret"),
        ("inner", "gradient"),
        ("averaging", "periodic"),
        ("least_penalty", -1.0),
        ("least_penalty", math.inf),
        ("damping", 0.0),
        ("damping", 1.5),
    ],
)
def test_options_out_of_range_are_refused_without_a_task(option, value):
    with pytest.raises(ValueError, match=f"{option} must"):
        Dual(**{option: value}).check()


@pytest.mark.parametrize("variant", ["sequential", "primal"])
@pytest.mark.parametrize("option", [{"averaging": "tail"}, {"damping": 0.5}])
def test_variants_with_one_iterate_and_no_damping_refuse_both(variant, option):
    with pytest.raises(ValueError, match=f"variant='{variant}' has no damping, and returns its last iterate"):
        Dual(variant=variant, **option).check()


def test_more_steps_than_are_of_use_are_refused():
    with pytest.raises(ValueError, match="would make 20,000,000 steps, and at most 10,000,000 are of use"):
        Dual(n_passes=100, batch_size=1).at(task("logistic", 200_000, 3))


@every_loss
@every_variant
def test_sparse_and_dense_agree(loss, variant):
    n, d = 60, 6
    data = rows(loss, n, d, sparse=True, seed=2)
    options = {"batch_size": 6 if variant == "primal" else 20, "n_passes": 3, "variant": variant}
    one = run(task(loss, n, d, True), data, **options).weights
    other = run(task(loss, n, d), bounded(table(data), data.targets), **options).weights
    np.testing.assert_allclose(one, other, atol=1e-7)


@every_loss
def test_rows_of_zeros_do_no_harm(loss):
    data = rows(loss, 100, 3)
    data.Z[:50] = 0.0
    for stored in (data, bounded(csr_array(data.Z), data.targets)):
        weights = run(task(loss, 100, 3, stored is not data, fit_intercept=False, epsilon=math.inf), stored).weights
        rest = run(
            task(loss, 50, 3, fit_intercept=False, epsilon=math.inf), bounded(data.Z[50:], data.targets[50:]), 0.02
        )
        np.testing.assert_allclose(weights, rest.weights, rtol=2e-2, atol=2e-3)


@every_loss
@every_variant
def test_without_an_intercept_there_is_none(loss, variant):
    options = {"variant": variant, "n_passes": 2, "batch_size": 10 if variant != "primal" else 2}
    solution = run(task(loss, 100, 3, fit_intercept=False), rows(loss, 100, 3), **options)
    assert not solution.weights[:, -1].any()
    assert solution.weights[:, :-1].all()


def test_newtons_single_step_comes_close():
    data = rows("logistic", 2_000, 4, seed=4)
    problem = task("logistic", 2_000, 4, epsilon=4.0)
    exact, newton = (run(problem, data, inner=inner).weights for inner in ("exact", "newton"))
    assert not np.array_equal(exact, newton)
    assert objective("logistic", data, newton, 0.01) < 1.05 * objective("logistic", data, exact, 0.01)


@pytest.mark.parametrize("loss", ["squared", "hinge", "squared_hinge"])
def test_the_inner_step_matters_for_the_logistic_loss_alone(loss):
    data = rows(loss, 200, 3)
    one, other = (run(task(loss, 200, 3), data, inner=inner).weights for inner in ("exact", "newton"))
    np.testing.assert_array_equal(one, other)


# --- variants --------------------------------------------------------------------------------------------------------


def test_the_published_variant_is_the_papers_unless_it_is_asked_otherwise():
    given = task("hinge", 1_000, 4)
    found = Dual(variant="published", batch_size=100).at(given)
    assert (found.damping, found.tail) == (100.0, 1)
    found = Dual(variant="published", batch_size=100, n_passes=3, damping=0.5, averaging="tail").at(given)
    assert (found.damping, found.tail) == (50.0, 15)


@every_loss
def test_the_published_variant_has_more_noise(loss):
    data, options = rows(loss, 1_000, 4), {"batch_size": 100, "n_passes": 3, "damping": 1.0, "averaging": "last"}
    secret, published = (run(task(loss, 1_000, 4), data, variant=v, **options).noise for v in ("secret", "published"))
    np.testing.assert_allclose(published, math.sqrt(2) * secret, rtol=1e-6)


@pytest.mark.parametrize("variant", ["published", "sequential", "primal"])
@every_loss
def test_every_variant_learns_without_noise(loss, variant):
    n, d, l2 = 150, 3, 0.05
    data = rows(loss, n, d, seed=6)
    options = {"variant": variant, "n_passes": 60, "batch_size": 2 if variant == "primal" else 30}
    weights = run(task(loss, n, d, epsilon=math.inf), data, l2, **options).weights
    best = objective(loss, data, optimum(loss, data, l2, True), l2)
    nothing = objective(loss, data, np.zeros_like(weights), l2)
    left = 0.6 if variant == "published" else 0.1  # whose steps are as short as batches of parallel rows ask for
    assert objective(loss, data, weights, l2) - best < left * (nothing - best)


@every_loss
def test_stated_noise_is_that_of_the_weights(loss):
    n, d, l2 = 400, 3, 0.5
    data = bounded(np.zeros((n, d)), rows(loss, n, d).targets)  # nothing but noise in the weights of features
    problem = task(loss, n, d, epsilon=0.5)
    solutions = [run(problem, data, l2, seed=seed, batch_size=100, n_passes=1) for seed in range(60)]
    spread = np.sqrt(np.mean([s.weights[0, :d] ** 2 for s in solutions]))
    assert spread == pytest.approx(solutions[0].noise[0, 0], rel=0.25)
