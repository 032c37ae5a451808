"""Protocol "feature-sharing": exactness without noise, plans, sensitivities, refusals and audits of the transcript."""

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from benchmarks.federated.block_frank_wolfe import Balls, block_frank_wolfe
from tacit.federated import FeatureSharing, Member, Party, RefusedError, Sketching, Study
from tacit.federated.protocols import feature_sharing
from tacit.federated.protocols.base import Answer, Holding, Question
from tacit.federated.protocols.feature_sharing import FeatureSharingProtocol
from tacit.federated.protocols.feature_sharing.model import shrinkage
from tacit.federated.protocols.feature_sharing.residuals import Residuals, View, residuals
from tacit.federated.protocols.feature_sharing.rules import Rules
from tacit.federated.protocols.feature_sharing.samplings import (
    Distributed,
    Sampling,
    Subsets,
    TauNice,
    elementary,
    uniform_serial,
)
from tacit.federated.sketches import Identity, SparseSign
from tacit.privacy import Gate, NoiseSource, PlanViolationError, audit, epsilon_of
from tacit.privacy.mechanisms import GaussianVector, Selection, SignedVertex
from tacit.privacy.public import PublicDraws
from tacit.problems import LOGISTIC, SQUARED, SQUARED_HINGE

LOSSES = {loss.name: loss for loss in (SQUARED, LOGISTIC, SQUARED_HINGE)}
GEOMETRIES = ["product", "serial", "best"]


def a_study(sizes: tuple[int, ...], n_rows: int, **changes: Any) -> Study:
    """Options of the protocol and the size of the sketch are given flat."""
    options = {name: changes.pop(name) for name in FeatureSharing().get_params() if name in changes}
    protocol, sketch = FeatureSharing(**options), Sketching(size=changes.pop("sketch_size", None))
    sketched = changes.get("labels") == "sketched"
    members = [Member(f"p{k}", size, not sketched or k == len(sizes) - 1) for k, size in enumerate(sizes)]
    loss = changes.pop("loss", "squared")
    values = {"l1_radius": 2.0, "protocol": protocol, "sketch": sketch, "entry_bound": 1.0, "fit_intercept": False}
    values |= {"y_bounds": (-3.0, 3.0)} if loss == "squared" else {"classes": (0, 1)}
    return Study("s", loss, tuple(members), n_rows, **(values | changes))


def holdings(study: Study, X: Any, y: Any) -> dict[str, Holding]:
    edges = np.cumsum([0, *(member.n_features for member in study.members)])
    blocks = [X[:, low:high] for low, high in pairwise(edges)]
    return {
        member.name: Party(block, y if member.labels else None, name=member.name).holding(study)
        for member, block in zip(study.members, blocks, strict=True)
    }


class Run:
    """The rounds of a study without network or disk, one gate for each party."""

    def __init__(
        self, protocol: FeatureSharingProtocol, data: dict[str, Holding], seed: int, calibrated: Any = None
    ) -> None:
        calibrated = calibrated or protocol.promise
        self.gates = {
            name: Gate(calibrated.part(f"{name}/"), NoiseSource(1000 * seed + k)) for k, name in enumerate(data)
        }
        self.memory: dict[str, dict[str, Any]] = {name: {} for name in data}
        self.said: list[tuple[str, str, Any]] = []
        self.asked: list[tuple[str, Question]] = []
        rounds = protocol.coordinate()
        questions = next(rounds)
        while True:
            answers = {}
            for name, question in questions.items():
                answer = protocol.answer(data[name], question, self.gates[name], self.memory[name])
                self.asked.append((name, question))
                self.memory[name] |= answer.memory
                self.said += [(name, release, value) for release, value in answer.releases.items()]
                answers[name] = answer.releases
            try:
                questions = rounds.send(answers)
            except StopIteration as end:
                self.model = end.value
                break

    @property
    def coef(self) -> Any:
        return np.concatenate(list(self.model.coefs.values()))


def some_data(loss: str, n: int = 60, d: int = 9, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, size=(n, d)) * (rng.random((n, d)) < 0.7)
    score = X @ rng.normal(size=d) + 0.3 * rng.normal(size=n)
    return X, np.clip(score, -3, 3) if loss == "squared" else (score > 0).astype(int)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("geometry", ["product", "best"])
def test_without_noise_the_iterates_are_those_of_plain_frank_wolfe(loss: str, geometry: str) -> None:
    X, y = some_data(loss)
    study = a_study((4, 3, 2), len(y), loss=loss, geometry=geometry, epsilon=math.inf, n_iter=25)
    labels = y if loss == "squared" else 2.0 * y - 1.0
    groups = [range(4), range(4, 7), range(7, 9)] if geometry == "product" else [range(9)]
    plain = block_frank_wolfe(
        lambda x, at: X[:, at].T @ LOSSES[loss].derivative(X @ x, labels),
        Balls(groups, 2.0 / len(groups)),
        elementary(len(groups)),
        25,
        PublicDraws(0),
    )
    for table in (X, sparse.csc_array(X)):
        run = Run(FeatureSharingProtocol(study), holdings(study, table, y), seed=0)
        np.testing.assert_allclose(run.coef, plain, atol=1e-12)


SETS = ((0.5, (0, 3)), (0.2, (1,)), (0.3, (2, 4, 5)))
SAMPLINGS: dict[str, tuple[dict[str, Any], Sampling]] = {
    "one": ({"sampling": "one"}, uniform_serial(6)),
    "nice": ({"sampling": "nice", "tau": 4}, TauNice(6, 4)),
    "distributed": ({"sampling": "distributed", "tau": 1}, Distributed(np.arange(6).reshape(3, 2), 1)),
    "sets": ({"sampling": SETS}, Subsets(6, [blocks for _, blocks in SETS], [share for share, _ in SETS])),
}


@pytest.mark.parametrize("labels", ["shared", "sketched"])
@pytest.mark.parametrize("name", SAMPLINGS)
def test_without_noise_blocks_move_as_in_block_coordinate_frank_wolfe(name: str, labels: str) -> None:
    """Two blocks at each of three parties; the same public seed draws the same blocks."""
    X, y = some_data("logistic")
    told, sampling = SAMPLINGS[name]
    study = a_study(
        (4, 3, 2), len(y), loss="logistic", labels=labels, geometry="product", blocks=2, seed=8, epsilon=math.inf,
        n_iter=40, **told,
    )  # fmt: skip
    plain = block_frank_wolfe(
        lambda x, at: X[:, at].T @ LOSSES["logistic"].derivative(X @ x, 2.0 * y - 1.0),
        Balls([range(2), range(2, 4), range(4, 6), [6], [7], [8]], 2.0 / 6),
        sampling,
        40,
        PublicDraws(8),
    )
    run = Run(FeatureSharingProtocol(study), holdings(study, X, y), seed=0)
    np.testing.assert_allclose(run.coef, plain, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_without_noise_sketched_labels_change_nothing(loss: str) -> None:
    X, y = some_data(loss)
    values = {"loss": loss, "epsilon": math.inf, "n_iter": 12, "fit_intercept": True}
    runs = [
        Run(FeatureSharingProtocol(study), holdings(study, X, y), seed=0)
        for study in (a_study((4, 5), len(y), labels=labels, **values) for labels in ("shared", "sketched"))
    ]
    np.testing.assert_allclose(runs[0].coef, runs[1].coef, atol=1e-12)
    assert runs[0].model.intercept == pytest.approx(runs[1].model.intercept, abs=1e-12)


@pytest.mark.parametrize("geometry", ["serial", "best"])
def test_without_noise_the_whole_ball_is_reached_with_an_intercept(geometry: str) -> None:
    """The truth lies in one party: a serial run that mixed the parties evenly would stay far from it."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(200, 6)) + 0.3
    y = 1.2 * X[:, 0] - 0.8 * X[:, 1] + 0.7
    study = a_study(
        (2, 2, 2), 200, geometry=geometry, epsilon=math.inf, n_iter=400, fit_intercept=True, entry_bound=2.0
    )
    run = Run(FeatureSharingProtocol(study), holdings(study, X, y), seed=0)
    np.testing.assert_allclose(run.coef, [1.2, -0.8, 0, 0, 0, 0], atol=0.06)
    assert run.model.intercept == pytest.approx(0.7, abs=0.06)
    assert np.abs(run.coef).sum() <= 2.0 + 1e-9


@pytest.mark.parametrize("labels", ["shared", "sketched"])
@pytest.mark.parametrize("geometry", [*GEOMETRIES, *SAMPLINGS])
def test_what_runs_is_what_was_planned(geometry: str, labels: str) -> None:
    X, y = some_data("squared")
    told: dict[str, Any] = {"geometry": geometry}
    if geometry in SAMPLINGS:
        told = {"geometry": "product", "blocks": 3, "seed": 4} | SAMPLINGS[geometry][0]
    study = a_study(
        (4, 5), 60, labels=labels, n_iter=6, n_shared=2, fit_intercept=True, entry_bound=None,
        y_bounds=None, sketch_size=8, delta=1e-3, **told,
    )  # fmt: skip
    protocol = FeatureSharingProtocol(study)
    calibrated = protocol.promise
    assert epsilon_of(calibrated.event, study.delta) <= study.epsilon
    run = Run(protocol, holdings(study, X, y), seed=1, calibrated=calibrated)
    made = Counter((name, release) for name, release, _ in run.said)
    for name, gate in run.gates.items():
        own = {release.name: release.count for release in calibrated.part(f"{name}/").plan.releases}
        assert {what for who, what in made if who == name} <= set(own)
        for release, count in own.items():
            unused = count - made[name, release] if release == "column" else 0  # paid for, whether shared or not
            assert gate.left(release) == unused
    shapes = {"index": (1,), "value": (1,), "intercept": (1,), "reach": (1,), "column": (8,), "labels": (8,)}
    for _, release, value in run.said:
        assert value.shape == shapes.get(release, value.shape)
    assert run.model.facts["y_bounds"][0] < run.model.facts["y_bounds"][1]
    assert set(run.model.facts["entry_bounds"]) == {"p0", "p1"}


def test_columns_are_shared_once_and_only_as_many_as_planned() -> None:
    X, y = some_data("squared")
    study = a_study((4, 5), 60, geometry="product", n_iter=12, n_shared=2, epsilon=1.0, delta=1e-3, sketch_size=8)
    run = Run(FeatureSharingProtocol(study), holdings(study, X, y), seed=3)
    drawn = {name: [abs(int(v[0])) - 1 for who, what, v in run.said if (who, what) == (name, "index")] for name in ("p0", "p1")}  # fmt: skip  # noqa: E501
    for name, columns in drawn.items():
        assert len(set(columns[:-1])) == 2  # with a budget of nothing it would draw almost any
        assert sorted(set(columns[:-1])) == run.memory[name]["shared"].tolist()
    assert Counter(what for _, what, _ in run.said)["column"] == 4


def test_equal_seeds_give_equal_bits_and_one_party_sketches_nothing() -> None:
    X, y = some_data("logistic")
    study = a_study((9,), 60, loss="logistic", delta=1e-3, fit_intercept=True)
    first, again, other = (Run(FeatureSharingProtocol(study), holdings(study, X, y), seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.coef, again.coef)
    assert not np.array_equal(first.coef, other.coef)
    assert {what for _, what, _ in first.said} == {"index", "intercept"}


def test_a_large_budget_comes_close_to_no_noise() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(4_000, 8))
    y = X @ np.array([1.0, 0, 0, -0.6, 0, 0.4, 0, 0]) + 0.1 * rng.normal(size=4_000)
    losses = []
    for epsilon in (0.1, 1_000.0):
        study = a_study((4, 4), 4_000, epsilon=epsilon, delta=1e-4, n_iter=16, geometry="best")
        runs = [Run(FeatureSharingProtocol(study), holdings(study, X, y), seed=seed) for seed in range(3)]
        losses.append(np.mean([np.mean((X @ run.coef - y) ** 2) for run in runs]))
    assert losses[1] < 0.06 < losses[0]


# --- sensitivities --------------------------------------------------------------------------------------------------


@contextmanager
def recorded(values: list[tuple[str, float, Any]], absent: int | None) -> Iterator[None]:
    """Collects, of every release, how much a row may change it and what it is before noise; draws are all the first.

    A row that is absent has no residual: an empty row, whose label and prediction are those of others, would have one.
    """

    def without(*arguments: Any) -> Residuals:
        found = residuals(*arguments)
        values = found.values.copy()
        values[[] if absent is None else absent] = 0.0
        return replace(found, values=values)

    def noted(size: str, first: Any) -> Any:
        def draw(self: Any, grant: Any, value: Any) -> Any:
            grant.take()
            values.append((grant.name, getattr(self, size).under(grant.adjacency), np.asarray(value, dtype=np.float64)))
            return np.asarray(value, dtype=np.float64) if first is None else first

        return draw

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feature_sharing, "residuals", without)
        patch.setattr(GaussianVector, "draw", noted("sensitivity", None))
        patch.setattr(SignedVertex, "draw", noted("entry", (0, 1)))
        patch.setattr(Selection, "draw", noted("spread", 0))
        yield


numbers = st.floats(-50, 50)


@settings(max_examples=100, deadline=None)
@given(
    loss=st.sampled_from(list(LOSSES)),
    geometry=st.sampled_from(GEOMETRIES),
    labels=st.sampled_from(["shared", "sketched"]),
    adjacency=st.sampled_from(["add-remove", "replace-one"]),
    party=st.integers(0, 1),
    public=st.lists(numbers, min_size=16, max_size=16),
    bound=st.floats(0.01, 5.0),
    seed=st.integers(0, 2**32),
)
def test_no_question_makes_a_row_count_for_more_than_its_sensitivity(
    loss: str, geometry: str, labels: str, adjacency: str, party: int, public: list[float], bound: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    n = 12
    study = a_study(
        (3, 2), n, loss=loss, geometry=geometry, labels=labels, adjacency=adjacency, sketch_size=5, n_iter=4,
        fit_intercept=True, delta=1e-3,
    )  # fmt: skip
    protocol, name = FeatureSharingProtocol(study), f"p{party}"
    plan = protocol.promise.part(f"{name}/")
    X, y = rng.standard_cauchy((n, 5)), rng.standard_cauchy(n) if loss == "squared" else rng.integers(0, 2, n)
    low, high = min(public[:2]), max(public[:2]) + 0.1
    arrays: dict[str, Any] = {
        "numbers": np.array([bound, low, high, public[2], abs(public[3]) + 0.01]),
        "others": np.array(public[4:9]),
        "columns": np.array([1, 0], dtype=np.int32),
        "weights": np.array(public[9:11]),
    }
    if labels == "sketched" and party == 0:
        arrays["labels"] = np.array(public[11:16])
    questions = [Question("draw", arrays)] + [Question("labels", arrays)] * (party == 1)
    row = int(rng.integers(n))
    other_X, other_y = X.copy(), y.copy()
    absent = adjacency == "add-remove"
    other_X[row] = 0.0 if absent else -X[row]
    other_y[row] = (low + high) / 2 if loss == "squared" else y[row]  # the middle, to the last bit
    if not absent:
        other_y[row] = -other_y[row] if loss == "squared" else 1 - y[row]
    worlds = []
    for table, targets, missing in ((X, y, None), (other_X, other_y, row if absent else None)):
        values: list[tuple[str, float, Any]] = []
        data = holdings(study, table, targets)[name]
        with recorded(values, missing):
            for question in questions:
                gate = Gate(plan, NoiseSource(5))
                answer = protocol.answer(data, question, gate, {})
                if geometry == "best" and "index" in answer.releases:
                    shared = Question("share", {"bound": np.array([bound]), "column": np.zeros(1, dtype=np.int32)})
                    protocol.answer(data, shared, gate, answer.memory)
        worlds.append(values)
    assert {what for what, _, _ in worlds[0]} >= {"index", "column"}
    for (what, size, value), (same, same_size, other) in zip(*worlds, strict=True):
        assert (what, size) == (same, same_size)  # what is public decides the noise
        change = other - value
        if what == "index" and geometry == "serial":
            assert np.ptp(change) <= size
        else:
            assert (np.abs(change).max() if what == "index" else np.linalg.norm(change)) <= size


def test_residuals_reach_the_limit_and_noise_widens_it() -> None:
    X, y = some_data("squared")
    study = a_study((4, 5), 60, geometry="product", epsilon=50.0, delta=1e-3, sketch_size=8, n_iter=3)
    run = Run(FeatureSharingProtocol(study), holdings(study, X, 0.3 * y), seed=0)
    limits = [float(question.arrays["numbers"][-1]) for _, question in run.asked]
    reach = next(float(value[0]) for _, what, value in run.said if what == "reach")
    assert limits[:3] == [3.0, reach, reach]  # the half-width of the range until more is known
    assert reach < 3.0
    assert max(limits[3:]) > reach  # predictions of the other party are noisy
    view = View(1.0, -3.0, 3.0, 0.0, np.empty(0, dtype=int), np.empty(0), np.zeros(8), None, 2.0)
    found = residuals(study, np.ones((60, 1)), np.full(60, -9.0), view, FeatureSharingProtocol(study).sketch)
    np.testing.assert_array_equal(found.values, 2.0)


def test_shrinkage_keeps_what_is_exact_and_drops_what_is_noise() -> None:
    total = np.full(100, 2.0)
    same, error = shrinkage(total, 0.0, Identity(100))
    np.testing.assert_array_equal(same, total)
    assert error == 0.0
    none, error = shrinkage(total, 5.0, Identity(100))  # less than what noise alone would be
    assert not none.any()
    assert error == 0.0
    some, error = shrinkage(total, 0.0, SparseSign(400, 100, 0))
    assert 0.0 < some[0] < 2.0
    assert error > 0.0


# --- refusals -------------------------------------------------------------------------------------------------------


def _asked(**changes: Any) -> tuple[FeatureSharingProtocol, Holding, Any, dict[str, Any]]:
    X, y = some_data("squared")
    study = a_study((4, 5), 60, n_iter=3, sketch_size=8, delta=1e-3, **changes)
    protocol = FeatureSharingProtocol(study)
    gate = Gate(protocol.promise.part("p0/"), NoiseSource(0))
    arrays: dict[str, Any] = {"numbers": np.array([1.0, -1.0, 1.0, 1.0, 1.0]), "others": np.zeros(8)}
    arrays |= {"columns": np.array([2], dtype=np.int32), "weights": np.ones(1)}
    return protocol, holdings(study, X, y)["p0"], gate, arrays


@pytest.mark.parametrize(
    "changes",
    [
        {"numbers": np.array([0.0, -1.0, 1.0, 1.0, 1.0])},
        {"numbers": np.array([np.inf, -1.0, 1.0, 1.0, 1.0])},
        {"numbers": np.ones(4)},
        {"others": np.zeros(7)},
        {"others": np.full(8, np.nan)},
        {"others": np.full(8, 1e300)},
        {"columns": np.array([4], dtype=np.int32)},
        {"columns": np.array([-1], dtype=np.int32)},
        {"columns": np.array([1.0])},
        {"weights": np.ones(2)},
        {"numbers": np.array([1.0, 1.0, 1.0, 1.0, 1.0])},
        {"numbers": np.array([1.0, -1.0, 1.0, 1.0, -1.0])},
        {"numbers": np.array([1.0, -1.0, 1.0, 1.0, 1.0], dtype=np.float32)},
        {"labels": np.zeros(8)},
    ],
)
def test_questions_of_another_form_are_refused_before_anything_is_released(changes: dict[str, Any]) -> None:
    protocol, holding, gate, arrays = _asked()
    with pytest.raises(RefusedError):
        protocol.answer(holding, Question("draw", arrays | changes), gate, {})
    assert gate.left("index") == 3


def test_a_party_shares_only_what_it_drew_and_only_once() -> None:
    protocol, holding, gate, arrays = _asked(geometry="best")
    answer: Answer = protocol.answer(holding, Question("draw", arrays), gate, {})
    column = abs(int(answer.releases["index"][0])) - 1
    asked = {"bound": np.ones(1), "column": np.array([column], dtype=np.int32)}
    with pytest.raises(RefusedError, match="drew itself"):
        protocol.answer(
            holding, Question("share", asked | {"column": np.array([(column + 1) % 4])}), gate, answer.memory
        )
    shared = protocol.answer(holding, Question("share", asked), gate, answer.memory)
    with pytest.raises(RefusedError, match="once"):
        protocol.answer(holding, Question("share", asked), gate, shared.memory)
    for step in ("labels", "bounds", "unknown"):
        with pytest.raises(RefusedError):
            protocol.answer(holding, Question(step, arrays), gate, {})
    for _ in range(2):
        protocol.answer(holding, Question("draw", arrays), gate, {})
    with pytest.raises((RefusedError, PlanViolationError)):
        protocol.answer(holding, Question("draw", arrays), gate, {})


def test_a_coordinator_does_not_believe_every_answer() -> None:
    study = a_study((2, 2), 60, loss="logistic", geometry="product", n_iter=2, delta=1e-3, sketch_size=8)
    for index in (np.array([3], dtype=np.int32), np.array([1.0]), np.array([1, 2], dtype=np.int32)):
        rounds = FeatureSharingProtocol(study).coordinate()
        next(rounds)
        with pytest.raises(RefusedError, match="columns"):
            rounds.send({name: {"index": index, "column": np.zeros(8)} for name in study.names})


@pytest.mark.parametrize("geometry", ["product", "serial"])
def test_a_party_that_leaves_out_the_sketch_of_its_column_is_named(geometry: str) -> None:
    told = {"sampling": "cyclic"} if geometry == "serial" else {}
    study = a_study((2, 2), 60, loss="logistic", geometry=geometry, n_iter=2, delta=1e-3, sketch_size=8, **told)
    rounds = FeatureSharingProtocol(study).coordinate()
    asked = next(rounds)
    said: dict[str, dict[str, Any]] = {name: {"index": np.array([1], dtype=np.int32)} for name in asked}
    if geometry == "product":
        said["p1"]["column"] = np.zeros(8)
    with pytest.raises(RefusedError, match="party 'p0' did not answer with the sketch of a column"):
        rounds.send(said)


def test_a_cyclic_study_gives_every_party_a_turn() -> None:
    with pytest.raises(ValueError, match="n_iter must be at least 2"):
        FeatureSharingProtocol(a_study((2, 2), 60, geometry="serial", sampling="cyclic", n_iter=1))
    turns = Rules.of(a_study((2, 2), 60, geometry="serial", sampling="cyclic", n_iter=5)).turns
    assert [block.party for (block,) in turns] == ["p0", "p1", "p0", "p1", "p0"]


def test_a_party_that_nothing_would_be_asked_of_is_named_before_anything_is_read() -> None:
    rare = ((0.5, (0,)), (0.499999, (2,)), (0.000001, (1,)))
    study = a_study((2, 2, 2), 60, sampling=rare, n_iter=6, seed=1)
    with pytest.raises(ValueError, match="no block of p1 is drawn in 6 iterations"):
        FeatureSharingProtocol(study).plan()


@pytest.mark.parametrize(
    ("told", "match"),
    [
        ({"sampling": "some"}, "sampling must be one of"),
        ({"sampling": "nice"}, "tau goes with"),
        ({"sampling": "one", "tau": 1}, "tau goes with"),
        ({"sampling": "nice", "tau": 3}, "at most the number of blocks"),
        ({"sampling": "distributed", "tau": 2}, "at least tau"),
        ({"sampling": ()}, "pairs of a probability"),
        ({"sampling": ((0.5, ()), (0.5, (0, 1)))}, "pairs of a probability"),
        ({"sampling": ((0.5, (0,)), (0.4, (1,)))}, "add up to 1"),
        ({"sampling": ((-0.5, (0,)), (1.5, (1,)))}, "probability of sampling"),
        ({"sampling": ((1.0, (0,)),)}, "draws each of its blocks"),
        ({"sampling": ((1.0, (0, 1, 2)),)}, "blocks from 0 to 1"),
        ({"sampling": "one", "geometry": "best"}, "geometry='best'"),
        ({"sampling": "all", "geometry": "serial"}, "single blocks"),
        ({"sampling": ((1.0, (0, 1)),), "geometry": "serial"}, "single blocks"),
        ({"blocks": 2, "geometry": "best"}, "balls of their own"),
        ({"blocks": 3}, "at most a party's columns"),
        ({"choosing": 1.0}, "choosing"),
        ({"seed": -1}, "seed"),
    ],
)
def test_samplings_that_make_no_sense_are_refused(told: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        FeatureSharingProtocol(a_study((2, 3), 60, **({"geometry": "product"} | told)))


# --- public blocks --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("told", [{"geometry": "serial"}, {"geometry": "product", "sampling": SETS, "blocks": 2}])
def test_noise_is_that_of_the_releases_that_are_made(told: dict[str, Any]) -> None:
    """Parties with few turns pay for few: all draws have the same noise, and the budget is spent to the last."""
    for seed in range(8):
        study = a_study((4, 3, 2), 60, seed=seed, n_iter=7, delta=1e-3, **told)
        protocol = FeatureSharingProtocol(study)
        promise, rules = protocol.promise, protocol.rules
        planned = {release.name: release for release in promise.plan.releases}
        drawn = Counter(block.party for turn in rules.turns for block in turn)
        assert {name: planned[f"{name}/index"].count for name in drawn} == drawn
        assert not any(f"{name}/index" in planned for name in set(study.names) - set(drawn))
        noises = [promise.multiplier(f"{name}/index") for name in drawn]
        np.testing.assert_allclose(noises, noises[0], rtol=1e-9)
        assert 0.99 * study.epsilon < epsilon_of(promise.event, study.delta) <= study.epsilon
    assert len({Rules.of(a_study((4, 3, 2), 60, seed=seed, n_iter=7, **told)).turns for seed in range(8)}) > 4


def test_a_party_keeps_to_the_public_order_of_blocks_whatever_it_is_asked() -> None:
    """Two blocks of two columns; the coordinator cannot make it draw more often in one of them."""
    X, y = some_data("logistic")
    study = a_study(
        (4, 5), 60, loss="logistic", geometry="product", blocks=2, sampling="distributed", tau=1, n_iter=9, seed=2,
        epsilon=1.0, delta=1e-3, sketch_size=8,
    )  # fmt: skip
    protocol = FeatureSharingProtocol(study)
    holding, gate = holdings(study, X, y)["p0"], Gate(protocol.promise.part("p0/"), NoiseSource(0))
    arrays: dict[str, Any] = {"numbers": np.array([1.0, -1.0, 1.0, 0.0, 1.0]), "others": np.zeros(8)}
    arrays |= {"columns": np.empty(0, dtype=np.int32), "weights": np.empty(0)}
    memory: dict[str, Any] = {}
    for block in protocol.rules.draws("p0"):
        answer = protocol.answer(holding, Question("draw", arrays), gate, memory)
        memory |= answer.memory
        assert ("p0", abs(int(answer.releases["index"][0])) - 1) in block
    assert gate.left("index") == 0
    with pytest.raises(RefusedError, match="as often as the study says"):
        protocol.answer(holding, Question("draw", arrays), gate, memory)


def test_a_column_outside_the_block_is_not_believed() -> None:
    study = a_study((2, 2), 60, loss="logistic", geometry="product", blocks=2, sampling="one", n_iter=4, delta=1e-3)
    protocol = FeatureSharingProtocol(study)
    rounds = protocol.coordinate()
    ((name, _),) = next(rounds).items()
    ((block,), *_) = protocol.rules.turns
    other = 2 - block.start  # columns 0 and 1, counted from 1
    with pytest.raises(RefusedError, match="that it was asked for"):
        rounds.send({name: {"index": np.array([other], dtype=np.int32), "column": np.zeros(64)}})


def test_columns_are_shared_once_and_only_as_many_as_planned_of_each_block() -> None:
    X, y = some_data("squared", d=12)
    study = a_study(
        (6, 6), 60, geometry="product", blocks=2, n_iter=9, n_shared=2, epsilon=1.0, delta=1e-3, sketch_size=8
    )
    run = Run(FeatureSharingProtocol(study), holdings(study, X, y), seed=3)
    assert Counter(what for _, what, _ in run.said)["column"] == 8
    for memory in run.memory.values():
        assert [int(np.sum(memory["shared"] // 3 == block)) for block in (0, 1)] == [2, 2]


def test_more_for_choosing_is_less_for_sketches() -> None:
    def multipliers(**told: Any) -> tuple[float, float, float]:
        promise = FeatureSharingProtocol(a_study((4, 5), 60, geometry="best", n_iter=4, delta=1e-3, **told)).promise
        return tuple(promise.multiplier(f"p0/{name}") for name in ("index", "value", "column"))  # type: ignore[return-value]

    half, most = multipliers(choosing=0.5), multipliers(choosing=0.9)
    np.testing.assert_allclose(np.array(half) / most, np.sqrt([1.8, 1.8, 0.2]), rtol=1e-3)


# --- audits ---------------------------------------------------------------------------------------------------------

AUDITED = a_study((2, 2), 40, geometry="product", n_iter=2, epsilon=1.0, delta=1e-3, sketch_size=3)


def _transcripts(trials: int) -> audit.Outputs:
    """Everything that is said in two rounds, with and without one row that is as large as rows can be."""
    calibrated = FeatureSharingProtocol(AUDITED).promise
    protocol = FeatureSharingProtocol(AUDITED)
    present, absent = np.zeros((40, 4)), np.zeros((40, 4))
    present[7] = 1.0
    y = np.zeros(40)
    y[7] = -3.0
    seeds = iter(range(10**9))

    def transcript(data: dict[str, Holding]) -> Any:
        said = Run(protocol, data, next(seeds), calibrated).said
        parts = [value if what == "column" else [float(value[0])] for _, what, value in said]
        return np.pad(np.concatenate(parts), (0, 12 - sum(map(len, parts))))

    worlds = holdings(AUDITED, present, y), holdings(AUDITED, absent, np.zeros(40))
    return audit.run(transcript, *worlds, trials)


def test_an_audit_of_the_transcript_does_not_refute_the_guarantee() -> None:
    assert audit.epsilon_lower_bound(_transcripts(200), AUDITED.delta) <= AUDITED.epsilon


def test_an_audit_finds_the_exact_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    real = SignedVertex.draw

    def leaky(self: Any, grant: Any, gradient: Any) -> tuple[int, int]:
        j, _ = real(self, grant, gradient)
        return j, -1 if gradient[j] > 0 else 1  # in the world without the row it is the sign of zero

    monkeypatch.setattr(SignedVertex, "draw", leaky)
    assert audit.epsilon_lower_bound(_transcripts(100), AUDITED.delta) > AUDITED.epsilon


def test_an_audit_finds_column_noise_over_n(monkeypatch: pytest.MonkeyPatch) -> None:
    real = SparseSign.sensitivity
    monkeypatch.setattr(SparseSign, "sensitivity", lambda self, bound: real(self, bound / self.n_rows))
    assert audit.epsilon_lower_bound(_transcripts(100), AUDITED.delta) > AUDITED.epsilon
