import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import lsq_linear, minimize
from scipy.sparse import csc_array, csr_array
from sklearn.linear_model import ElasticNet, Lasso

from tacit.privacy import Budget, Gate, NoiseSource, Plan, Release
from tacit.problems import SQUARED_HINGE, Penalty
from tacit.problems.bounds import Bounds
from tacit.solvers import Coordinate
from tacit.solvers.coordinate.columns import Columns, Smoothness
from tacit.solvers.coordinate.iterates import coordinates, outer_loops
from tests.guarantees.recorder import transcript
from tests.solvers.support import (
    bounded,
    either_adjacency,
    either_intercept,
    either_table,
    objective,
    rows,
    scikit_learn,
    solved,
    table,
    task,
)
from tests.units import ROWS

LOSSES = [loss.name for loss in Coordinate.serves.losses]
every_loss = pytest.mark.parametrize("loss", LOSSES)
DEVIATION = 3.0  # of the stated noise from what is seen


def solution(problem, data, l2=0.0, l1=0.0, low=-math.inf, high=math.inf, seed=0, **options):
    """Run the solver with these options on the whole budget; the gate checks that the plan was kept."""
    penalty = Penalty(l2=np.full(problem.d, l2), l1=np.full(problem.d, l1), low=low, high=high)
    return solved(Coordinate(**options), problem, replace(data, penalty=penalty), seed)


def weights(*args, **kwargs):
    return solution(*args, **kwargs).weights


def stored(data, store):
    return bounded(store(table(data)), data.targets)


# --- without noise it is an ordinary solver ---------------------------------------------------------------------------

STORES = {
    "columns": np.asfortranarray,
    "rows": np.ascontiguousarray,
    "single precision": lambda Z: np.asfortranarray(Z, dtype=np.float32),
    "CSR": csr_array,
    "CSC": csc_array,
}
every_store = pytest.mark.parametrize("store", STORES.values(), ids=STORES)


def quiet_task(loss, n, d, store=np.asfortranarray, fit_intercept=True):
    sparse = store in (csr_array, csc_array)
    return task(loss, n, d, sparse, fit_intercept, math.inf, penalties=("l2", "l1", "bounds"))


@every_store
@either_intercept
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_without_noise_it_agrees_with_scikit_learn(loss, store, fit_intercept):
    n, d = 500, 6
    data = rows(loss, n, d, store in (csr_array, csc_array), seed=1)
    found = weights(quiet_task(loss, n, d, store, fit_intercept), stored(data, store), l2=0.01)
    if not fit_intercept:
        assert not found[:, -1].any()
    best = objective(loss, data, scikit_learn(loss, data, 0.01, fit_intercept), 0.01)
    assert best * (1 - 1e-9) <= objective(loss, data, found, 0.01) <= best * (1 + 1e-5)


@every_store
@pytest.mark.parametrize("l1_ratio", [1.0, 0.3], ids=["lasso", "elastic net"])
def test_without_noise_an_l1_penalty_agrees_with_scikit_learn(store, l1_ratio):
    n, d, alpha = 500, 8, 0.05
    data = rows("squared", n, d, store in (csr_array, csc_array), seed=2)
    model = Lasso(alpha) if l1_ratio == 1.0 else ElasticNet(alpha=alpha, l1_ratio=l1_ratio)
    model.set_params(tol=1e-10, max_iter=100_000).fit(table(data), data.targets)
    l1, l2 = alpha * l1_ratio, alpha * (1 - l1_ratio)
    found = weights(quiet_task("squared", n, d, store), stored(data, store), l2, l1, averaging="last")
    expected = np.append(model.coef_, model.intercept_)[None, :]
    best = objective("squared", data, expected, l2, l1)
    assert best * (1 - 1e-9) <= objective("squared", data, found, l2, l1) <= best * (1 + 1e-5)
    if l1_ratio == 1.0:
        np.testing.assert_array_equal(found[0] == 0.0, expected[0] == 0.0)


def test_without_noise_the_squared_hinge_is_solved():
    n, d, l2 = 500, 6, 0.01
    data, loss = rows("squared_hinge", n, d, seed=3), SQUARED_HINGE
    wide = np.hstack([table(data), np.ones((n, 1))])

    def value(w):
        return loss.value(wide @ w, data.targets).mean() + l2 / 2 * w[:d] @ w[:d]

    best = minimize(value, np.zeros(d + 1), method="BFGS", options={"gtol": 1e-7}).fun
    assert value(weights(quiet_task("squared_hinge", n, d), data, l2=l2)[0]) <= best * (1 + 1e-5)


@either_table
def test_without_noise_bounds_are_kept_and_used(sparse):
    n, d = 500, 6
    data = rows("squared", n, d, sparse, seed=4)
    low, high = np.array([0.0, 0.1, -0.05, -math.inf, -math.inf, 0.2]), np.array([math.inf, 0.2, 0.05, 0.0, 9.0, 0.2])
    problem = quiet_task("squared", n, d, csr_array if sparse else np.asfortranarray, fit_intercept=False)
    found = weights(problem, data, low=low, high=high)[0]
    assert np.all((low - 1e-12 <= found[:d]) & (found[:d] <= high + 1e-12))
    assert found[5] == pytest.approx(0.2)
    # lsq_linear wants low < high: the fixed weight goes to the other side.
    Z = table(data)
    best = lsq_linear(Z[:, :5], data.targets - 0.2 * Z[:, 5], (low[:5], high[:5]), tol=1e-12).x
    np.testing.assert_allclose(found[:5], best, atol=1e-5)
    assert np.any(np.isclose(best, low[:5]) | np.isclose(best, high[:5]))


@pytest.mark.parametrize("order", ["jittered", "permuted", "cyclic", "random"])
@pytest.mark.parametrize("averaging", ["last", "tail", "periodic", 3])
def test_every_order_and_average_leads_there(order, averaging):
    n, d = 300, 4
    data = rows("squared", n, d, seed=5)
    clipping = "coordinate" if order == "random" else "row"
    options = {"order": order, "averaging": averaging, "clipping": clipping, "n_passes": 400, "clip": 1e6, "step": 1.0}
    best = objective("squared", data, scikit_learn("squared", data, 0.0, True))
    assert objective("squared", data, weights(quiet_task("squared", n, d), data, **options)) <= best * (1 + 1e-2)


def test_a_constant_column_does_not_raise():
    data = rows("squared", 100, 3, seed=6)
    Z = table(data).copy()
    Z[:, 1] = 0.0
    assert np.all(np.isfinite(weights(quiet_task("squared", 100, 3), bounded(Z, data.targets))))


# --- with noise -------------------------------------------------------------------------------------------------------


@every_loss
def test_it_comes_closer_as_the_budget_grows(loss):
    n, d, l2 = 2_000, 5, 1e-3
    data = rows(loss, n, d, seed=7)
    excess = []
    for epsilon in (0.3, 3.0, 100.0, math.inf):
        some = [weights(task(loss, n, d, epsilon=epsilon), data, l2=l2, seed=seed) for seed in range(3)]
        excess.append(np.mean([objective(loss, data, w, l2) for w in some]))
    assert excess == sorted(excess, reverse=True)
    nothing = objective(loss, data, np.zeros((1, d + 1)), l2)
    assert excess[2] - excess[3] <= 0.02 * (nothing - excess[3])


@pytest.mark.parametrize("step", [1.0, 0.3])
@pytest.mark.parametrize("averaging", ["last", "tail", "periodic"])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_the_stated_noise_is_what_is_seen_on_uncorrelated_columns(loss, averaging, step):
    n, d = 2_000, 4
    rng = np.random.default_rng(8)
    Z = rng.choice([-1.0, 1.0], size=(n, d))
    margins = 0.3 * Z.sum(axis=1) / math.sqrt(d) + rng.normal(size=n)
    data = bounded(np.asfortranarray(Z), margins / 1.1 if loss == "squared" else np.where(margins > 0, 1.0, -1.0))
    options = {"averaging": averaging, "step": step, "n_passes": 12}
    runs = [solution(task(loss, n, d), data, seed=seed, **options) for seed in range(25)]
    seen = np.array([run.weights for run in runs]).std(axis=0).mean()
    told = np.mean([run.noise for run in runs])
    assert 1 / DEVIATION < seen / told < DEVIATION


@every_loss
@either_intercept
@either_table
@either_adjacency
def test_a_run_makes_the_releases_of_its_plan(loss, fit_intercept, sparse, adjacency):
    problem = task(loss, 60, 5, sparse, fit_intercept, 1.0, adjacency)
    with transcript() as steps:
        found = solution(problem, rows(loss, 60, 5, sparse), n_passes=3)
    assert [step.name for step in steps] == ["smoothness", "passes", "passes", "passes"]
    assert [len(step.exact) for step in steps] == [5, *[5 + fit_intercept] * 3]
    assert found.weights.shape == found.noise.shape == (1, 6)
    assert np.all(np.isfinite(found.weights))
    assert np.all(found.noise[0, : problem.width] > 0.0)
    if not fit_intercept:
        assert found.weights[0, -1] == found.noise[0, -1] == 0.0


@pytest.mark.parametrize("bounds", [(0.0, math.inf), (-0.01, 0.02), (0.5, 0.5)])
@pytest.mark.parametrize("averaging", ["last", "tail", "periodic"])
def test_noise_does_not_leave_the_bounds(bounds, averaging):
    low, high = bounds
    problem = task("logistic", 40, 4, epsilon=0.1, penalties=("bounds",))
    found = weights(problem, rows("logistic", 40, 4), low=low, high=high, averaging=averaging)[0, :4]
    assert np.all((found >= low - 1e-12) & (found <= high + 1e-12))


def test_a_seed_repeats_a_run_and_its_order():
    problem, data = task("logistic", 50, 4), rows("logistic", 50, 4)
    first, again, other = (weights(problem, data, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.any(first == other)


# --- orders and averages ----------------------------------------------------------------------------------------------


def coordinates_of(order, passes=30, clipping="row"):
    """Which coordinate each update of a run was in, by its size: column j has entries 2^j, the rest is symmetric."""
    d = 4
    Z = np.diag(2.0 ** np.arange(d))
    options = {"order": order, "n_passes": passes, "averaging": "last", "clipping": clipping}
    options |= {"smoothness": (1.0,) * d, "step": 1e-6, "clip": 1e6}
    with transcript() as steps:
        weights(quiet_task("squared", d, d, fit_intercept=False), bounded(Z, np.ones(d)), **options)
    # The derivative of column j is -2^j where nothing has moved much.
    unit = 1.0 if clipping == "row" else 1e6 / 2.0
    return [np.rint(np.log2(-step.released * unit)).astype(int).tolist() for step in steps]


def test_a_cyclic_order_is_the_columns_order():
    assert coordinates_of("cyclic") == [[0, 1, 2, 3]] * 30


def test_a_permuted_order_visits_each_coordinate_once_in_a_pass_and_changes():
    visited = coordinates_of("permuted")
    assert all(sorted(order) == [0, 1, 2, 3] for order in visited)
    assert len({tuple(order) for order in visited}) > 10


def test_a_jittered_order_visits_each_coordinate_once_near_its_place_in_the_table_and_changes():
    visited = coordinates_of("jittered")
    assert all(sorted(order) == [0, 1, 2, 3] for order in visited)
    assert 1 < len({tuple(order) for order in visited}) < 24
    with Gate(
        Plan(Release("one", "gaussian", share=1.0)).calibrate(Budget(1.0, 1e-6), ROWS, "test"), NoiseSource(0)
    ) as gate:
        places = np.array([np.argsort(coordinates("jittered", 100, gate)) for _ in range(200)])
        gate.skip("one")
    assert np.abs(places - np.arange(100)).max() <= 50  # half of the width
    assert np.abs(places.mean(axis=0)[30:70] - np.arange(30, 70)).max() < 6
    assert places.std(axis=0).min() > 3


@pytest.mark.parametrize(
    ("facts", "options", "order"),
    [
        ({"d": 2_000}, {}, "jittered"),
        ({"d": 100, "sparse": True}, {}, "jittered"),
        ({"d": 101, "sparse": True}, {}, "permuted"),
        ({"d": 101, "fit_intercept": False}, {}, "permuted"),
        ({"d": 101, "bounds": Bounds(-np.ones(101), np.ones(101))}, {"rescale": False}, "permuted"),
        ({"d": 101, "bounds": Bounds(-np.ones(101), np.ones(101))}, {}, "jittered"),
        ({"d": 101, "sparse": True}, {"order": "cyclic"}, "cyclic"),
    ],
)
def test_many_columns_that_are_not_centred_are_permuted(facts, options, order):
    assert Coordinate(**options).at(task("squared", 500, **facts)).order == order


def test_a_random_order_draws_each_coordinate_alone():
    visited = coordinates_of("random", passes=100, clipping="coordinate")
    assert any(sorted(order) != [0, 1, 2, 3] for order in visited)
    counts = np.bincount(np.concatenate(visited), minlength=4)
    assert np.abs(counts - 100).max() < 50  # five and a half deviations of a count


def cyclic_weights(data, averaging, passes, declared, l2):
    """The weights of features, and the releases, of passes in the order of the table."""
    n, d = data.Z.shape
    options = {"order": "cyclic", "averaging": averaging, "n_passes": passes, "smoothness": declared}
    with transcript() as steps:
        found = weights(task("squared", n, d, fit_intercept=False), data, l2=l2, **options)
    return found[0, :d], steps


def iterates(released, orders, steps, units, n, l2, start):
    """The weights after every update, from what was released: the algorithm without its data."""
    w, path = start.copy(), []
    for value, j in zip(np.concatenate(released), np.concatenate(orders), strict=True):
        w[j] = (w[j] - steps[j] * value * units[j] / n) / (1 + steps[j] * l2)
        path.append(w.copy())
    return np.array(path)


@pytest.mark.parametrize(
    ("averaging", "passes", "loops"), [("periodic", 10, 3), ("periodic", 1, 1), (4, 8, 4), (3, 7, 3), (99, 5, 5)]
)
def test_periodic_averages_are_the_papers(averaging, passes, loops):
    """Algorithm 1, literally: T outer loops of K updates; each starts at the mean of the last loop's iterates."""
    n, d, l2 = 60, 3, 4.0  # strong convexity 2 in the norm of the constants, of which the largest is 2
    data, declared = rows("squared", n, d, seed=9), (1.0, 0.5, 2.0)
    found, steps = cyclic_weights(data, averaging, passes, declared, l2)
    smooth = np.array(declared)
    w, order = np.zeros(d), [np.arange(d)]
    ends = [passes * (k + 1) // loops if passes % loops == 0 else -(-passes * (k + 1) // loops) for k in range(loops)]
    start = 0
    for end in ends:
        released = [step.released for step in steps[start:end]]
        w = iterates(released, order * len(released), 1 / smooth, np.sqrt(smooth), n, l2, w).mean(axis=0)
        start = end
    assert start == passes
    np.testing.assert_allclose(found, w, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("averaging", "passes", "taken"), [("last", 7, 1), ("tail", 7, 4), (None, 6, 3), ("tail", 1, 1)]
)
def test_the_last_passes_are_averaged(averaging, passes, taken):
    n, d, l2 = 60, 3, 0.1
    data, declared = rows("squared", n, d, seed=10), (1.0, 0.5, 2.0)
    found, steps = cyclic_weights(data, averaging, passes, declared, l2)
    smooth, order = np.array(declared), [np.arange(d)] * passes
    path = iterates([s.released for s in steps], order, 1 / smooth, np.sqrt(smooth), n, l2, np.zeros(d))
    np.testing.assert_allclose(found, path[d - 1 :: d][-taken:].mean(axis=0), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("convexity", "passes", "loops"), [(0.0, 50, 1), (0.01, 201, 1), (0.01, 404, 2), (1.0, 50, 12), (1e9, 7, 3)]
)
def test_loops_are_as_long_as_the_theorem_asks(convexity, passes, loops):
    """K = 2 p (1 + 1 / mu) updates each: as many as there are passes for, and one where they are longer than that."""
    assert outer_loops("periodic", passes, convexity) == loops
    if loops > 1:
        assert loops * 2 * (1 + 1 / convexity) <= passes < (loops + 1) * 2 * (1 + 1 / convexity)
    assert outer_loops("last", passes, convexity) == outer_loops("tail", passes, convexity) == 0


# --- parts of a pass, the start and the path --------------------------------------------------------------------------


@pytest.mark.parametrize("clipping", ["row", "coordinate"])
@pytest.mark.parametrize(
    ("passes", "sizes"), [(0.01, [1]), (0.5, [3]), (1, [6]), (1.3, [6, 2]), (2.99, [6, 6, 6]), (2.9, [6, 6, 5])]
)
def test_a_fraction_of_passes_is_so_many_updates(passes, sizes, clipping):
    problem, options = task("squared", 60, 5), {"n_passes": passes, "clipping": clipping, "smoothness": (1.0,) * 5}
    with transcript() as steps:
        found = solution(problem, rows("squared", 60, 5), averaging="last", **options)
    assert [step.freedom for step in steps] == sizes
    assert [step.name for step in steps] == ["passes" if size == 6 else "part of a pass" for size in sizes]
    np.testing.assert_array_equal(found.noise[0] > 0.0, found.weights[0] != 0.0)
    if sum(sizes) < 6:
        assert np.count_nonzero(found.weights) == sum(sizes)
    assert steps[0].noise == pytest.approx(steps[-1].noise)  # of each of its values
    releases = Coordinate(**options).at(problem).releases(0.7)
    assert sum(release.share for release in releases) == pytest.approx(0.7)
    assert sum(release.count for release in releases) == len(sizes)


@pytest.mark.parametrize("updates", [1, 3, 8, 15])
def test_capped_updates_have_the_noise_of_their_number(updates):
    """K updates of sensitivity 1 each are one release with sensitivity sqrt(K), whatever passes they make up."""
    problem = task("squared", 60, 6, fit_intercept=False)
    options = {"n_passes": updates / 6, "clipping": "coordinate", "smoothness": (1.0,) * 6}
    with transcript() as steps:
        solution(problem, rows("squared", 60, 6), **options)
    one = Plan(Release("one", "gaussian", share=1.0)).calibrate(problem.budget, ROWS, "test").multiplier("one")
    for step in steps:
        assert step.noise == pytest.approx(one * math.sqrt(updates), rel=1e-6)


@pytest.mark.parametrize("passes", [3, 2.4])
def test_the_path_is_the_iterates_after_each_pass_from_the_start(passes):
    n, d, l2 = 60, 3, 0.1
    data, smooth = rows("squared", n, d, seed=9), np.array([1.0, 0.5, 2.0])
    options = {"order": "cyclic", "n_passes": passes, "smoothness": smooth, "averaging": "last", "keep_path": True}
    start = np.array([0.3, -2.0, 1.0])
    with transcript() as steps:
        found = solution(task("squared", n, d, fit_intercept=False), data, l2=l2, coef_init=start, **options)
    orders = [np.arange(step.freedom) for step in steps]
    path = iterates([step.released for step in steps], orders, 1 / smooth, np.sqrt(smooth), n, l2, start)
    ends = np.cumsum([step.freedom for step in steps]) - 1
    np.testing.assert_allclose(found.path[:, :d], path[ends], rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(found.path[-1], found.weights[0])


def test_a_start_is_moved_into_the_bounds_and_kept_where_nothing_pulls():
    problem = task("squared", 40, 3, epsilon=math.inf, penalties=("bounds",))
    data = bounded(np.zeros((40, 3)), np.zeros(40))
    options = {"smoothness": (1.0,) * 3, "n_passes": 1, "averaging": "last"}
    found = weights(problem, data, low=-1.0, high=0.5, coef_init=[9.0, -0.25, -9.0], **options)
    np.testing.assert_array_equal(found[0, :3], [0.5, -0.25, -1.0])


# --- smoothness constants ---------------------------------------------------------------------------------------------


def test_declared_constants_are_not_released():
    problem, options = task("squared", 60, 3), {"smoothness": (1.0, 0.5, 2.0), "n_passes": 2}
    with transcript() as steps:
        weights(problem, rows("squared", 60, 3), **options)
    assert {step.name for step in steps} == {"passes"}
    releases = Coordinate(**options).at(problem).releases(0.7)
    assert [r.name for r in releases] == ["passes"]
    assert releases[0].share == 0.7


def released_constants(problem, data, seed=0, law="private"):
    """The constants, and the deviation of the noise they were released with."""
    smoothness = Smoothness.of(problem, law)
    first, _ = smoothness.releases(1.0)
    with Gate(Plan(*first).calibrate(problem.budget, problem.unit, "test"), NoiseSource(seed)) as gate:
        found = smoothness.constants(Columns(problem, data), gate)
        replaced, total = problem.budget.adjacency == "replace-one", max(problem.d, 9.0)
        if law == "laplace":
            size = math.sqrt(2.0) * (min(2.0 * total, 9.0 * problem.d) if replaced else total)
        else:
            size = math.sqrt(9.0 * total) * (math.sqrt(2) if replaced else 1.0)
        return found, gate.multiplier("smoothness") * size / problem.n


either_law = pytest.mark.parametrize("law", ["private", "laplace"])


@either_law
def test_without_noise_constants_are_mean_squares(law):
    data = rows("squared", 200, 5, seed=11)
    Z = table(data) / 2.0  # inside the bound on a row's squares
    found, _ = released_constants(task("squared", 200, 5, epsilon=math.inf), bounded(Z, data.targets), law=law)
    np.testing.assert_allclose(found, [*(Z**2).mean(axis=0), 1.0], rtol=1e-8)


@either_law
@either_adjacency
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 3.0])
def test_constants_are_floored_at_the_noise(epsilon, adjacency, law):
    data = rows("squared", 50, 6, seed=12)
    Z = table(data).copy()
    Z[:, 0] = 0.0
    for seed in range(5):
        problem = task("squared", 50, 6, epsilon=epsilon, adjacency=adjacency)
        found, error = released_constants(problem, bounded(Z, data.targets), seed, law)
        assert found[-1] == 1.0
        assert np.all(found[:-1] >= error * (1 - 1e-6))
        assert np.all(np.isfinite(found))


def test_noisy_constants_are_drawn_towards_their_mean():
    """Where noise is all that tells columns apart they are alike; where columns differ they keep their order."""
    n, d = 4_000, 30
    rng = np.random.default_rng(13)
    Z = np.clip(rng.normal(size=(n, d)), -3, 3)
    alike, _ = released_constants(task("squared", n, d, epsilon=0.5), bounded(Z, np.zeros(n)))
    noisy = np.std(alike[:-1])
    scales = np.geomspace(0.05, 1.0, d)
    told, error = released_constants(task("squared", n, d, epsilon=0.5), bounded(Z * scales, np.zeros(n)))
    assert noisy < 0.5 * error
    assert np.corrcoef(told[:-1], scales**2)[0, 1] > 0.9


@pytest.mark.parametrize(("law", "kind"), [("private", "gaussian"), ("laplace", "laplace")])
@pytest.mark.parametrize(("share", "part"), [(None, 0.02), (0.25, 0.25)])
def test_constants_get_their_share_and_their_law(law, kind, share, part):
    releases = Coordinate(smoothness=law, smoothness_share=share).at(task("squared", 60, 3)).releases(0.5)
    assert [release.kind for release in releases] == [kind, "gaussian"]
    assert [release.share for release in releases] == pytest.approx([0.5 * part, 0.5 * (1 - part)])


def test_a_single_column_does_not_raise():
    data = rows("squared", 50, 1, seed=14)
    for epsilon in (0.1, 10.0, math.inf):
        assert np.all(np.isfinite(weights(task("squared", 50, 1, epsilon=epsilon), data)))


# --- rules and refusals -----------------------------------------------------------------------------------------------


def test_options_take_the_place_of_rules():
    problem = task("logistic", 1000, 8)
    found = Coordinate(n_passes=17, clip=0.3, step=0.7, averaging=4).at(problem)
    assert (found.passes, found.clip, found.step, found.averaging) == (17, 0.3, 0.7, 4)
    assert found.releases(1.0)[-1].count == 17
    assert Coordinate(n_passes=0.2).at(problem).passes == 1


def test_passes_and_clip_grow_as_the_noise_vanishes():
    budgets = (0.01, 0.1, 1.0, 10.0, 1e4, 1e7, math.inf)
    found = [Coordinate().at(task("logistic", 10_000, 20, epsilon=epsilon)) for epsilon in budgets]
    for name in ("passes", "clip"):
        values = [getattr(algorithm, name) for algorithm in found]
        assert values == sorted(values)
        assert values[0] < values[-1]


def test_rules_do_not_depend_on_the_loss_or_the_data():
    """What a plan fixes is a function of n, d, the budget and what the user set."""
    counts = {
        Coordinate().at(task(loss, 500, 7, sparse)).releases(1.0)[-1].count
        for loss in LOSSES
        for sparse in (False, True)
    }
    assert len(counts) == 1


def test_random_order_with_clipped_rows_is_refused():
    solver = Coordinate(order="random")
    for refuse in (solver.check, lambda: solver.at(task("squared", 50, 3))):
        with pytest.raises(ValueError, match="order='random' needs clipping='coordinate'"):
            refuse()
    assert solver.get_params() == Coordinate(order="random").get_params()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("n_passes", 0),
        ("n_passes", 100_001),
        ("order", "Cyclic"),
        ("clipping", "column"),
        ("clip", 0.0),
        ("step", math.inf),
        ("averaging", "mean"),
        ("averaging", 0),
        ("smoothness", "public"),
        ("smoothness", [1.0, 0.0]),
        ("smoothness_share", 0.0),
        ("smoothness_share", 1.0),
        ("coef_init", [1.0, math.inf]),
        ("coef_init", [1.0, math.nan]),
        ("coef_init", [[1.0]]),
        ("coef_init", 0.0),
        ("intercept_init", math.inf),
    ],
)
def test_options_out_of_range_are_refused_without_a_task(option, value):
    with pytest.raises(ValueError, match=f"{option} must"):
        Coordinate(**{option: value}).check()


@pytest.mark.parametrize("option", ["smoothness", "coef_init"])
def test_what_is_declared_has_one_number_for_each_feature(option):
    Coordinate(**{option: [1.0, 2.0]}).check()
    with pytest.raises(ValueError, match=f"{option} must hold one number for each of 3 features, got 2"):
        Coordinate(**{option: [1.0, 2.0]}).at(task("squared", 50, 3))


def test_keeping_the_path_is_on_or_off():
    with pytest.raises(TypeError, match="keep_path must be True or False"):
        Coordinate(keep_path="yes").check()


def test_options_that_would_do_nothing_are_refused():
    with pytest.raises(ValueError, match="smoothness_share must be None where smoothness is declared"):
        Coordinate(smoothness=[1.0, 2.0], smoothness_share=0.1).check()
    with pytest.raises(ValueError, match="intercept_init must be None where fit_intercept=False"):
        Coordinate(intercept_init=1.0).at(task("squared", 50, 3, fit_intercept=False))


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-8), (0.5, 0.1)])
def test_the_papers_noise_is_more_than_is_needed(epsilon, delta):
    """Theorem 3.1 for K updates against the exact calibration of as many Gaussian releases of replaced rows."""
    n, passes, width = 1_000, 10, 5
    problem = task("squared", n, width, fit_intercept=False)
    budget = replace(problem.budget, epsilon=epsilon, delta=delta, adjacency="replace-one")
    constants = np.array([0.5, 1.0, 2.0, 0.1, 3.0])
    paper = constants * math.sqrt(12 * passes * width * math.log(1 / delta)) / (n * epsilon)
    releases = Coordinate(n_passes=passes).at(problem).releases(1.0)
    multiplier = Plan(*releases).calibrate(budget, ROWS, "test").multiplier("passes")
    ours = multiplier * 2.0 * math.sqrt(width) * constants / n
    assert np.all(paper > ours)
