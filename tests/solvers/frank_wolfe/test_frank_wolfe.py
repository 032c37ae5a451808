"""Frank-Wolfe: steps and averages, the ladder of the paper, the squared loss exactly, laws of whole runs, rules."""

import itertools
import math
from collections import Counter
from unittest.mock import patch

import numpy as np
import pytest
from scipy.sparse import csr_array

from tacit.blocks import Bounded
from tacit.privacy import Gate, NoiseSource
from tacit.privacy.mechanisms import VertexWalk, Vertices
from tacit.privacy.mechanisms.affine import LARGEST_PART, AffineBucketSampler
from tacit.privacy.mechanisms.vertices import SAMPLERS
from tacit.privacy.noise.vertices import whole_octave
from tacit.problems import LOSSES, L1Ball, Penalty
from tacit.solvers import FrankWolfe
from tacit.solvers.frank_wolfe.path import Path
from tacit.solvers.frank_wolfe.plain import PlainScores
from tacit.solvers.frank_wolfe.rows import Scoring
from tacit.solvers.frank_wolfe.scores import DenseScores, LazyScores, SteppedScores
from tests.privacy.mechanisms.test_additive import open_gate
from tests.privacy.noise.support import FALSE_ALARM, chi_square_tail
from tests.solvers import support
from tests.solvers.support import either, objective, promise, solved, table, task

SERVED = ("squared", "logistic", "squared_hinge")
every_loss = pytest.mark.parametrize("loss", SERVED)
every_sampler = pytest.mark.parametrize("sampler", SAMPLERS)


def rows_of(Z, targets, entry=1.0):
    """Rows with a bound on entries; the ball takes the place of a penalty."""
    return Bounded(Z, targets, Penalty(), entry)


def rows(loss, n, d, sparse=False, seed=0, entry=1.0):
    """Rows as a fit hands them over: dense ones are clipped, sparse ones as they came."""
    data = support.rows(loss, n, d, sparse, seed)
    return rows_of(data.Z if sparse else np.clip(data.Z, -entry, entry), np.clip(data.targets, -3.0, 3.0), entry)


def bounded(data):
    """The same, clipped."""
    return rows_of(np.clip(table(data), -data.entry, data.entry), data.targets, data.entry)


def fit(problem, data, seed=0, **options):
    return solved(FrankWolfe(**options), problem, data, seed).weights


def scoring(loss, units=2**35, bound=1.5, limit=20.0, tolerance=0.0):
    return Scoring(LOSSES[loss].code, bound, limit, LOSSES[loss].curvature, units, tolerance=tolerance)


# --- steps and averages ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [0.3, 1.0, 2.0, 4.5])
@pytest.mark.parametrize("averaging", ["last", "tail"])
@pytest.mark.parametrize("count", [1, 2, 7])
def test_weights_are_those_of_the_steps(step, averaging, count):
    rng = np.random.default_rng(0)
    picks = [(int(rng.integers(4)), int(rng.choice([-1, 1]))) for _ in range(count)]
    path = Path(count, 2.5, step)
    w, iterates = np.zeros(4), []
    for t, (j, sign) in enumerate(picks, 1):
        eta = step / (t + step) if step >= 1 else step
        assert path.lengths[t] == pytest.approx(eta)
        w = (1 - eta) * w
        w[j] += eta * 2.5 * sign
        iterates.append(w)
    expected = w if averaging == "last" else np.mean(iterates[count // 2 :], axis=0)
    chosen, weights = path.weights(picks, averaging)
    assert chosen.tolist() == sorted({j for j, _ in picks})
    np.testing.assert_allclose(weights, expected[chosen], atol=1e-12)
    assert np.abs(weights).sum() <= 2.5 * (1 + 1e-10)


def test_long_paths_with_constant_steps_do_not_underflow():
    path = Path(5_000, 1.0, 0.5)
    _, weights = path.weights([(t % 3, 1) for t in range(5_000)])
    np.testing.assert_allclose(weights.sum(), 1.0)
    assert np.all(np.isfinite(path.shrink))


@pytest.mark.parametrize("step", [0.02, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("allowed", [0.0, 0.01, 0.3, 9.0])
def test_sweeps_are_as_close_as_they_must_be_and_no_closer(step, allowed):
    path, steepness = Path(200, 2.0, step), 0.5
    marks = [0, *np.flatnonzero(path.sweeps(steepness, allowed)).tolist(), path.count + 1]
    gone = [-np.expm1(path.shrink[after - 1] - path.shrink[before]) for before, after in itertools.pairwise(marks)]
    assert max(gone) * steepness * path.radius <= allowed * (1 + 1e-9)
    for before, after in itertools.pairwise(marks[:-1]):
        assert -np.expm1(path.shrink[after] - path.shrink[before]) * steepness * path.radius >= allowed * (1 - 1e-9)


def test_scales_begin_again_before_they_underflow():
    path = Path(2_000, 1.0, 0.5)
    scales, anew = path.scales
    begun = np.flatnonzero(anew)
    assert len(begun) > 3
    assert scales.min() > 1e-90
    assert np.all(scales[begun] == 1.0)
    left = np.cumsum(np.log(np.where(anew > 0.0, anew, 1.0)))
    np.testing.assert_allclose(np.log(scales) + left, path.shrink, rtol=1e-12)


# --- the ladder of the paper -----------------------------------------------------------------------------------------


def best_picks(kind, data, rule, path):
    """The steepest vertex of every step, by the scores that a form keeps."""
    if kind is PlainScores:
        scores = PlainScores(data.Z, data.targets, rule, path)
        best = scores.best
    else:
        scores = kind.of(data.Z, data.targets, rule, path, "gumbel")

        def best():
            whole = whole_scores(scores.sampler)
            j = int(np.abs(whole).argmax())
            return j, -1 if whole[j] > 0 else 1

    picks = []
    for t in range(1, path.count + 1):
        picks.append(best())
        scores.step(t, *picks[-1])
    return picks


@pytest.mark.parametrize(
    ("kind", "loss"),
    [*itertools.product((SteppedScores, PlainScores), SERVED), (LazyScores, "squared")],
    ids=str,
)
def test_without_noise_the_picks_are_those_of_the_dense_algorithm(kind, loss):
    data, path = rows(loss, 200, 25, sparse=True, entry=1.5), Path(300, 3.0)
    ours = best_picks(kind, data, scoring(loss), path)
    theirs = best_picks(DenseScores, rows_of(table(data), data.targets), scoring(loss), path)
    assert Counter(ours) == Counter(theirs)
    assert len(set(ours)) > 5
    values = []
    for picks in (ours, theirs):
        w = np.zeros((1, 26))
        chosen, w[0, chosen] = path.weights(picks)  # left to right: the columns, then their weights
        values.append(objective(loss, bounded(data), w))
    assert values[0] == pytest.approx(values[1], rel=1e-6)


@every_loss
def test_a_tolerance_costs_little(loss):
    """Slopes that may be off by 0.01 lead to nearly the same objective."""
    data, path = rows(loss, 200, 25, sparse=True, entry=1.5), Path(300, 3.0)
    values = []
    for tolerance in (0.0, 0.01):
        w = np.zeros((1, 26))
        chosen, w[0, chosen] = path.weights(best_picks(SteppedScores, data, scoring(loss, tolerance=tolerance), path))
        values.append(objective(loss, bounded(data), w))
    assert values[1] == pytest.approx(values[0], rel=2e-3)


def reference(loss, Z, y, radius):
    """The least mean loss on the ball, by accelerated projected gradient."""
    ball, plain = L1Ball(radius), LOSSES[loss]
    step = len(y) / (LOSSES[loss].curvature * np.linalg.norm(Z, 2) ** 2)
    w = ahead = np.zeros(Z.shape[1])
    for k in range(5_000):
        new = ball.project(ahead - step * Z.T @ plain.derivative(Z @ ahead, y) / len(y))
        w, ahead = new, new + k / (k + 3) * (new - w)
    return float(plain.value(Z @ w, y).mean())


@every_loss
@either.table
def test_with_more_budget_it_comes_to_the_best_point_of_the_ball(loss, sparse):
    n, d, radius = 400, 12, 2.0
    data = rows(loss, n, d, sparse, entry=2.0)
    best = reference(loss, table(bounded(data)), data.targets, radius)
    found = []
    for epsilon in (1.0, 30.0, 1e4, math.inf):
        count = 1_000 if epsilon > 100 else None
        asked = task(loss, n, d, sparse, fit_intercept=False, epsilon=epsilon, l1_radius=radius)
        w = fit(asked, data, n_iter=count)
        assert np.abs(w).sum() <= radius * (1 + 1e-9)
        found.append(objective(loss, bounded(data), w))
    zero = objective(loss, bounded(data), np.zeros((1, d + 1)))
    assert found[3] <= best + 2e-3 * (zero - best)
    assert best - 1e-9 <= found[3] <= found[2] + 1e-3 * (zero - best)
    assert found[2] < best + 0.03 * (zero - best)
    assert found[2] < found[1] < zero + (found[0] - best)


# --- the squared loss, exactly ---------------------------------------------------------------------------------------


@every_sampler
@pytest.mark.parametrize("step", [2.0, 0.5])
def test_lazy_scores_are_exact_at_every_iteration(sampler, step):
    n, d, count = 80, 15, 150  # enough for the margins to be taken anew several times
    data, path, units = rows("squared", n, d, sparse=True), Path(count, 2.0, step), 2**33
    rule = scoring("squared", units, bound=1.2, limit=2.0 * 1.2 + 5.0)
    lazy = LazyScores.of(data.Z, data.targets, rule, path, sampler)
    entries, w = np.clip(table(data), -1.2, 1.2), np.zeros(d)
    rng, source, sorts = np.random.default_rng(1), NoiseSource(1), []
    for t in range(1, count):
        j, sign = int(rng.integers(d)), int(rng.choice([-1, 1]))
        w = (1 - path.lengths[t]) * w
        w[j] += path.gain(t, sign)
        lazy.step(t, j, sign)
        exact = lazy._scoring.unit * entries.T @ (entries @ w - data.targets)
        scores = whole_scores(lazy.sampler)
        np.testing.assert_allclose(scores, exact, rtol=0, atol=2 * n + 2)  # each row truncates twice
        drawn, _ = lazy.sampler.draw(source)
        assert 0 <= drawn < d
        if sampler == "bucket":
            assert np.all([whole_octave(s) for s in scores] <= lazy.sampler.buckets.octave)
            sorts.append(lazy.sampler._lowest)
    assert sampler != "bucket" or len(set(sorts)) > 5


def whole_scores(sampler):
    """The scores a sampler draws from."""
    if isinstance(sampler, AffineBucketSampler):
        parts = np.rint(sampler._scale * sampler._rates).astype(np.int64)
        assert np.abs(parts).max() <= LARGEST_PART
        return parts + sampler._constants
    return sampler._scores.copy()


# --- laws of whole runs ----------------------------------------------------------------------------------------------


def path_law(loss, data, path, e0, limit):
    """The probability of every sequence of vertices, by enumeration."""
    Z, y = table(bounded(data)), data.targets
    d = Z.shape[1]
    vertices = [(j, sign) for j in range(d) for sign in (1, -1)]
    law = {}
    for picks in itertools.product(vertices, repeat=path.count):
        w, chance = np.zeros(d), 1.0
        for t, (j, sign) in enumerate(picks, 1):
            slopes = np.clip(LOSSES[loss].derivative(Z @ w, y), -limit, limit)
            scores = e0 / (2.0 * data.entry * limit) * (Z.T @ slopes)
            weights = {v: math.exp(-v[1] * scores[v[0]]) for v in vertices}
            chance *= weights[j, sign] / sum(weights.values())
            w = (1 - path.lengths[t]) * w
            w[j] += path.gain(t, sign)
        law[picks] = chance
    return law


LAWS = [(loss, "bucket", True) for loss in SERVED]
LAWS += [
    pytest.param(*law, marks=pytest.mark.slow) for law in itertools.product(SERVED, ("two-level", "gumbel"), [True])
]
LAWS += [pytest.param("logistic", "bucket", False, marks=pytest.mark.slow)]


@pytest.mark.parametrize(("loss", "sampler", "sparse"), LAWS)
def test_whole_runs_have_the_law_of_brute_force(loss, sampler, sparse, monkeypatch):
    d, count = (2, 3) if loss == "logistic" else (3, 2)
    data = rows(loss, 12, d, sparse)
    asked = task(loss, 12, d, sparse, fit_intercept=False, epsilon=6.0, l1_radius=2.0)
    solver = FrankWolfe(n_iter=count, sampler=sampler)
    monkeypatch.setattr("tacit.solvers.frank_wolfe._TOLERANCE", 0.0)
    calibrated, algorithm = promise(solver, asked), solver.at(asked)
    path = algorithm.path(data.entry)
    law = path_law(loss, data, path, 1.0 / calibrated.multiplier("vertices"), algorithm.slope_limit(2.0, 0.0))
    seen, walk = [], VertexWalk.draw

    def noted(self, *given):
        seen[:] = walk(self, *given)
        return seen

    counts, source = Counter(), NoiseSource(5)
    with patch.object(VertexWalk, "draw", noted):
        for _ in range(2_500):
            with Gate(calibrated, source) as gate:
                algorithm.run(data, gate)
            counts[tuple(seen)] += 1
    assert max(law.values()) > 3 * min(law.values())
    paths = list(law)
    assert chi_square_tail(np.array([counts[p] for p in paths]), np.array([law[p] for p in paths])) > FALSE_ALARM


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_a_compiled_walk_draws_what_single_steps_draw(loss, monkeypatch):
    """From the same words, also where they come in small blocks, and through sweeps."""
    data, path, units = rows(loss, 300, 40, sparse=True), Path(400, 1.0), 2**30
    rule = scoring(loss, units, bound=1.0, limit=2.0, tolerance=0.08 * LOSSES[loss].curvature)
    monkeypatch.setattr("tacit.privacy.noise.source.BLOCK_WORDS", 50)
    found = []
    for compiled in (True, False):
        stepped = SteppedScores.of(data.Z, data.targets, rule, path, "bucket")
        gate = open_gate("exponential", 1.0, count=path.count, seed=3)
        rounds = stepped.rounds if compiled else None
        assert compiled == (rounds is not None)
        picks = gate.release("r", VertexWalk(Vertices(stepped.sampler, units)), path.count, stepped.step, rounds)
        gate.finish()
        found.append((picks, stepped.scores, stepped._slopes, *stepped.sampler.buckets, gate._source.words(3)))
    assert found[0][0] == found[1][0]
    for one, other in zip(found[0][1:], found[1][1:], strict=True):
        np.testing.assert_array_equal(one, other)
    assert len(set(found[0][0])) > 20
    assert 5 < np.count_nonzero(path.sweeps(rule.curvature, rule.tolerance / 2)) < path.count - 5


# --- rules and options -----------------------------------------------------------------------------------------------


def test_rules_follow_the_budget():
    def rules(options=None, **facts):
        usual = {"loss": "logistic", "n": 2_000, "d": 10_000, "delta": 2_000**-1.5}
        return FrankWolfe(**(options or {})).at(task(**(usual | facts)))

    usual = rules()
    assert 10 <= usual.count <= 25
    assert (usual.averaging, usual.step, usual.sampler) == ("tail", 2.0, "bucket")
    assert rules(epsilon=0.1).count == 3
    assert rules(epsilon=0.1).reach == 1.0
    assert rules(adjacency="replace-one").count < usual.count < rules(epsilon=3.0).count
    assert usual.path(0.1) == Path(usual.count, 10.0 * usual.reach, 2.0)
    limit = rules(epsilon=math.inf)
    assert (limit.count, limit.reach) == (1_000, 10.0)
    assert limit.tolerance < usual.tolerance == 0.1
    assert rules(sparse=True).tolerance == rules(epsilon=0.1).tolerance == 0.2  # the second takes few steps
    asked = rules({"n_iter": 7, "step": 0.2, "averaging": "last", "sampler": "gumbel", "entry_bound": 2}, l1_radius=4.0)
    assert asked.path(0.1) == Path(7, 4.0, 0.2)
    assert (asked.averaging, asked.sampler) == ("last", "gumbel")
    assert (asked.entry_bound, usual.entry_bound) == (2.0, None)


@pytest.mark.parametrize("value", [0.0, -1.0, math.inf])
def test_a_radius_out_of_range_is_refused_before_data_is_read(value):
    with pytest.raises(ValueError, match="l1_radius must be"):
        FrankWolfe().at(task("logistic", 100, 5, l1_radius=value))


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("n_iter", 0),
        ("n_iter", 1_000_001),
        ("entry_bound", 0.0),
        ("step", 0.0),
        ("clip", 0.0),
        ("averaging", "periodic"),
        ("averaging", 3),
        ("sampler", "fastest"),
    ],
)
def test_options_out_of_range_are_refused_before_data_is_read(option, value):
    solver = FrankWolfe(**{option: value})
    for refuse in (solver.check, lambda: solver.at(task("logistic", 100, 5))):
        with pytest.raises(ValueError, match=f"{option} must be"):
            refuse()


def test_limits_of_slopes():
    def limit(loss, offset=0.0, epsilon=1.0, **options):
        return FrankWolfe(**options).at(task(loss, 100, 5, epsilon=epsilon)).slope_limit(1.0, offset)

    assert limit("logistic") == pytest.approx(1 / (1 + math.exp(-1)))
    assert limit("logistic", -2.0) == pytest.approx(1 / (1 + math.exp(-3)))
    assert limit("logistic", clip=0.3) == 0.3
    assert limit("squared") == 4.0
    assert limit("squared", clip=1.5) == 1.5
    assert limit("squared_hinge") == 2.0
    assert limit("squared_hinge", 0.5, epsilon=math.inf) == 5.0


@every_loss
@either.adjacency
def test_plans(loss, adjacency):
    for fit_intercept in (True, False):
        asked = task(loss, 100, 5, adjacency=adjacency, fit_intercept=fit_intercept)
        releases = FrankWolfe(n_iter=9).at(asked).releases(0.5)
        ends = fit_intercept and loss != "squared"
        assert [r.name for r in releases] == (["class share"] * ends + ["vertices"] + ["threshold"] * ends)
        assert sum(r.share for r in releases) == pytest.approx(0.5)
        assert releases[ends].count == 9


# --- data of every kind ----------------------------------------------------------------------------------------------


@every_loss
@either.table
@every_sampler
def test_a_model_with_an_intercept_learns(loss, sparse, sampler):
    n, d = 3_000, 6
    data = rows(loss, n, d, sparse)
    if loss != "squared":  # one class more common than the other
        data = rows_of(data.Z, np.where(table(data).sum(axis=1) > 1.5, 1.0, -1.0), data.entry)
    w = fit(task(loss, n, d, sparse, epsilon=5.0), data, sampler=sampler)
    margins = table(bounded(data)) @ w[0, :-1] + w[0, -1]
    if loss == "squared":
        assert w[0, -1] == 0.0
        assert np.mean((margins - data.targets) ** 2) < 0.8 * np.mean(data.targets**2)
    else:
        majority = max(np.mean(data.targets > 0), np.mean(data.targets < 0))
        assert np.mean(np.sign(margins) == data.targets) > majority + 0.4 * (1 - majority)


@every_loss
def test_sparse_and_dense_rows_give_the_same_model(loss):
    """The draws of one sampler, from the same whole numbers but for a rounding of margins."""
    n, d = 300, 8
    data = rows(loss, n, d, sparse=True)
    asked = {"loss": loss, "n": n, "d": d, "fit_intercept": False, "epsilon": 3.0}
    options = {"sampler": "gumbel", "n_iter": 15}
    with patch("tacit.solvers.frank_wolfe._TOLERANCE", 0.0):
        ours = fit(task(sparse=True, **asked), data, **options)
        theirs = fit(task(sparse=False, **asked), bounded(data), **options)
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def storages(Z):
    """The same table in other ways."""
    wide = Z.copy()
    wide.indices, wide.indptr = Z.indices.astype(np.int64), Z.indptr.astype(np.int64)
    zeros = csr_array(Z.toarray() + 1.0)
    zeros.data -= 1.0
    places = np.concatenate([np.arange(a, b)[::-1] for a, b in itertools.pairwise(Z.indptr)])
    turned = csr_array((Z.data[places], Z.indices[places], Z.indptr), shape=Z.shape)
    twice = np.repeat(np.arange(Z.nnz), 2)
    doubled = csr_array((Z.data[twice] / 2, Z.indices[twice], 2 * Z.indptr), shape=Z.shape)
    return {"64-bit places": wide, "stored zeros": zeros, "not sorted": turned, "entries in two parts": doubled}


@every_loss
def test_how_rows_are_stored_changes_nothing_and_is_left_alone(loss):
    n, d = 200, 9
    data = rows(loss, n, d, sparse=True)
    plain = table(data)
    plain[3], plain[:, 4] = 0.0, 0.0
    asked = task(loss, n, d, True, epsilon=3.0)
    usual = fit(asked, rows_of(csr_array(plain), data.targets), sampler="gumbel")
    for name, Z in storages(csr_array(plain)).items():
        before = Z.data.copy(), Z.indices.copy(), Z.indptr.copy()
        given = data.targets.copy()
        np.testing.assert_array_equal(fit(asked, rows_of(Z, given), sampler="gumbel"), usual, err_msg=name)
        for one, other in zip(before, (Z.data, Z.indices, Z.indptr), strict=True):
            np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(given, data.targets)


@every_loss
def test_threads_and_runs_of_columns_change_nothing(loss, monkeypatch):
    data = rows(loss, 300, 40, sparse=True)
    asked = task(loss, 300, 40, True, epsilon=3.0)
    usual = fit(asked, data, sampler="gumbel")
    monkeypatch.setattr("tacit.solvers.frank_wolfe.rows._MUCH_WORK", 0)
    monkeypatch.setattr("tacit.solvers.frank_wolfe.rows._FEW_RUNS", 8)
    np.testing.assert_array_equal(fit(asked, data, sampler="gumbel"), usual)


@either.table
def test_single_precision_is_served(sparse):
    data = rows("logistic", 400, 6, sparse)
    short = rows_of(data.Z.astype(np.float32), data.targets, 1.0)
    asked = task("logistic", 400, 6, sparse, epsilon=3.0)
    ours, theirs = (fit(asked, one, sampler="gumbel") for one in (short, data))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


@every_loss
def test_rows_without_entries_are_served(loss):
    data = rows_of(csr_array((20, 4)), np.ones(20), 1.0)
    w = fit(task(loss, 20, 4, True), data)
    assert np.all(np.isfinite(w))


# --- where it is the right tool --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_few_signs_out_of_many_are_found():
    """Rows of 10,000 signs, 5 of which matter: with the defaults, and a declared bound on entries."""
    n, d, scores = 2_000, 10_000, []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        Z = rng.integers(0, 2, (n + 1_000, d), dtype=np.int8).astype(np.float32) * 2 - 1
        y = np.where(rng.random(len(Z)) < 1 / (1 + np.exp(-Z[:, :5].sum(axis=1))), 1.0, -1.0)
        asked = task("logistic", n, d, delta=n**-1.5)
        w = fit(asked, rows_of(Z[:n], y[:n]), seed)[0]
        scores.append(np.mean(np.sign(Z[n:] @ w[:-1] + w[-1]) == y[n:]))
    assert np.mean(scores) >= 0.78
