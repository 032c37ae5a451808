import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.optimize import lsq_linear, minimize
from scipy.sparse import csc_array, csr_array
from sklearn.linear_model import ElasticNet, Lasso

from tacit.privacy import Gate, NoiseSource, Plan
from tacit.problems import SQUARED_HINGE
from tacit.solvers import Coordinate
from tacit.solvers.coordinate.columns import Columns, Smoothness
from tests.guarantees.recorder import transcript
from tests.solvers.support import bounded, either, objective, penalised, rows, scikit_learn, table, task
from tests.units import ROWS

LOSSES = [loss.name for loss in Coordinate.serves.losses]
every_loss = pytest.mark.parametrize("loss", LOSSES)
DEVIATION = 3.0  # of the stated noise from what is seen


solution = partial(penalised, Coordinate)


def weights(*args, **given):
    return solution(*args, **given).weights


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
@either.intercept
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


@either.table
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


@pytest.mark.parametrize("order", ["permuted", "cyclic", "random"])
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
@either.intercept
@either.table
@either.adjacency
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
    n, d, l2 = 60, 3, 0.1
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


# --- smoothness constants ---------------------------------------------------------------------------------------------


def test_declared_constants_are_not_released():
    problem, options = task("squared", 60, 3), {"smoothness": (1.0, 0.5, 2.0), "n_passes": 2}
    with transcript() as steps:
        weights(problem, rows("squared", 60, 3), **options)
    assert {step.name for step in steps} == {"passes"}
    releases = Coordinate(**options).at(problem).releases(0.7)
    assert [r.name for r in releases] == ["passes"]
    assert releases[0].share == 0.7


def released_constants(problem, data, seed=0):
    """The constants, and the deviation of the noise they were released with."""
    smoothness = Smoothness.of(problem, "private")
    first, _ = smoothness.releases(1.0)
    with Gate(Plan(*first).calibrate(problem.budget, problem.unit, "test"), NoiseSource(seed)) as gate:
        found = smoothness.constants(Columns(problem, data), gate)
        size = math.sqrt(9.0 * max(problem.d, 9.0)) * (
            1.0 if problem.budget.adjacency == "add-remove" else math.sqrt(2)
        )
        return found, gate.multiplier("smoothness") * size / problem.n


def test_without_noise_constants_are_mean_squares():
    data = rows("squared", 200, 5, seed=11)
    Z = table(data) / 2.0  # inside the bound on a row's squares
    found, _ = released_constants(task("squared", 200, 5, epsilon=math.inf), bounded(Z, data.targets))
    np.testing.assert_allclose(found, [*(Z**2).mean(axis=0), 1.0], rtol=1e-8)


@either.adjacency
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 3.0])
def test_constants_are_floored_at_the_noise(epsilon, adjacency):
    data = rows("squared", 50, 6, seed=12)
    Z = table(data).copy()
    Z[:, 0] = 0.0
    for seed in range(5):
        problem = task("squared", 50, 6, epsilon=epsilon, adjacency=adjacency)
        found, error = released_constants(problem, bounded(Z, data.targets), seed)
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


def test_a_single_column_does_not_raise():
    data = rows("squared", 50, 1, seed=14)
    for epsilon in (0.1, 10.0, math.inf):
        assert np.all(np.isfinite(weights(task("squared", 50, 1, epsilon=epsilon), data)))


# --- rules and refusals -----------------------------------------------------------------------------------------------


def test_options_take_the_place_of_rules():
    problem = task("logistic", 1000, 8)
    found = Coordinate(n_passes=17, clip=0.3, step=0.7, averaging=4).at(problem)
    assert (found.passes, found.clip, found.step, found.loops) == (17, 0.3, 0.7, 4)
    assert found.releases(1.0)[-1].count == 17
    assert Coordinate(n_passes=0.2).at(problem).passes == 1
    assert Coordinate(averaging="last").at(problem).tail == 1


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
    ],
)
def test_options_out_of_range_are_refused_without_a_task(option, value):
    with pytest.raises(ValueError, match=f"{option} must"):
        Coordinate(**{option: value}).check()


def test_smoothness_has_one_number_for_each_feature():
    Coordinate(smoothness=[1.0, 2.0]).check()
    with pytest.raises(ValueError, match="smoothness must hold one number for each of 3 features, got 2"):
        Coordinate(smoothness=[1.0, 2.0]).at(task("squared", 50, 3))


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
