"""Releases about people who were held out: the worst person absent or replaced, under any question; masks; mutants."""

import math
from itertools import combinations, pairwise
from unittest.mock import patch

import numpy as np
import pytest

from tacit.federated import Marginals
from tacit.federated.protocols import directions, protocol_for
from tacit.federated.protocols import evaluated as protocol_module
from tacit.federated.protocols.base import Holding, Question, RefusedError
from tacit.federated.protocols.evaluated import PREFIX
from tacit.federated.protocols.judged import Judge, Noisy
from tacit.federated.protocols.marginals import held_out as local
from tacit.federated.protocols.marginals.masked import held_out as masked
from tacit.federated.protocols.marginals.masked import party, words
from tacit.federated.protocols.marginals.masked.losses import HALF, MIDDLE, within_interval
from tacit.federated.sketches import Sketch
from tacit.privacy import Gate, NoiseSource
from tests.federated import test_evaluation as studies
from tests.federated.test_evaluation import SECRET, SIZES, table

ROWS = 60
ALL = {"protocol": Marginals(n_selected=4)}  # columns
SMALL = 2.0**58  # sums and noise are below it in these studies; of uniform words one in 64 is


def a_study(way, rows, **changes):
    return studies.a_study(way, rows, **((ALL if way == "local" else {}) | changes))


class Exact(Gate):
    """A gate that adds no noise, and keeps how far each mechanism says that a row can move it."""

    def __init__(self, promise):
        super().__init__(promise, NoiseSource(0))
        self.found = {}

    def release(self, name, mechanism, *values):
        out = np.asarray(values[0])
        self.found[name] = out, mechanism.sensitivity
        return out.copy()


REMEMBERED = {"row norm": np.array([2.0]), "y bounds": np.array([-4.0, 4.0]), "label mean": np.array([0.5])}
FAR = [np.zeros(3), np.full(3, 1e6), np.array([-1e6, 1e6, 0.0]), np.array([0.3, 0.1, -0.2])]


def released(way, name, rows, labels, question, study):
    """What a party releases about these people, exactly."""
    part = protocol_for(study)._part
    gate = Exact(part.promise.part(f"{name}/"))
    holding = Holding(name, rows, labels, SECRET)
    memory = REMEMBERED | {"selected": np.arange(rows.shape[1])}
    if way != "local":
        memory = REMEMBERED | {party.SEED: np.zeros(32, np.uint8)}
    with patch.object(Sketch, "apply", with_empty_place):
        part.answer(holding, question, gate, memory)
    return gate.found


APPLY = Sketch.apply


def with_empty_place(sketch, rows):
    """The place of row 4 stays where that person is absent."""
    return APPLY(sketch, np.insert(rows, 4, 0.0, axis=0) if len(rows) < sketch.n_rows else rows)


def asked(way, seed, size):
    """A question that anybody could ask: of a usual size, huge, or nothing."""
    rng = np.random.default_rng(seed)
    if way == "logistic":
        return Question(
            masked.LOSSES, {"direction": size * rng.standard_normal(2), "place": size * rng.standard_normal(3)}
        )
    own = {"directions 1": size * rng.standard_normal((3, 3)), "offset 1": size * rng.standard_normal(3)}
    return Question(local.MARGINS, own)


def furthest(way, adjacency, change=lambda found: found):
    """The largest distance of two worlds in each release, over what its mechanism says that it can be."""
    study, name = a_study(way, ROWS, adjacency=adjacency), "b" if way == "logistic" else "a"
    part = protocol_for(study)._part
    n, found = part.study.n_rows, {}
    rng = np.random.default_rng(0)
    width = SIZES[name]
    X, y = rng.standard_normal((n, width)), np.where(rng.random(n) < 0.5, 1.0, -1.0) * (4.0 if way == "local" else 1.0)
    people = (
        [(far[:width], label) for far in FAR for label in (-1e6, 1e6)]
        if way == "local"
        else [(far[:width], label) for far in FAR for label in (-1.0, 1.0)]
    )
    for seed, size in ((0, 1.0), (1, 1e90), (2, 0.0), (3, 3.0)):
        worlds = [(np.delete(X, 4, axis=0), np.delete(y, 4))] if adjacency == "add-remove" else []
        for row, label in people:
            other, labels = X.copy(), y.copy()
            other[4], labels[4] = row, label
            worlds.append((other, labels))
        told = [released(way, name, rows, labels, asked(way, seed, size), study) for rows, labels in worlds]
        pairs = [(told[0], one) for one in told[1:]] if adjacency == "add-remove" else list(combinations(told, 2))
        for one, other in pairs:
            for what, (value, sensitivity) in one.items():
                distance = float(np.linalg.norm(value - other[what][0]))
                if what == "moments" and value.ndim == 2:
                    distance = float(np.linalg.norm(value - other[what][0], "fro"))
                ratio = distance / change(sensitivity.under(adjacency))
                found[what] = max(found.get(what, 0.0), ratio)
    return found


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("way", ["local", "logistic"])
def test_no_person_moves_a_release_further_than_it_says_under_any_question(way, adjacency):
    found = furthest(way, adjacency)
    assert set(found) == ({"losses"} if way == "logistic" else {"correlations", "moments", "cross"})
    assert max(found.values()) <= 1.0
    if adjacency == "add-remove":
        assert min(found.values()) > 0.9


@pytest.mark.parametrize("way", ["local", "logistic"])
def test_a_sensitivity_over_the_root_of_two_is_caught(way):
    found = furthest(way, "add-remove", lambda size: size / math.sqrt(2.0))
    assert min(found.values()) > 1.0


def test_a_clip_that_is_missing_is_caught():
    """Rows of functions that may be longer than 1, and losses that may be anything."""
    unit_rows = local.columns.unit_rows
    with patch.object(local.columns, "unit_rows", lambda rows, norm: 2.0 * unit_rows(rows, norm)):
        assert furthest("local", "add-remove")["moments"] > 1.0
    with patch.object(masked, "within_interval", lambda centres, *_: np.abs(centres) / HALF):
        assert furthest("logistic", "add-remove")["losses"] > 1.0


def test_the_square_of_the_label_is_released_by_the_party_that_speaks_for_it():
    study = a_study("local", ROWS)
    part = protocol_for(study)._part
    n = part.study.n_rows
    found = []
    for label in (None, 4.0, -4.0):
        y = np.zeros(n) if label is None else np.append(np.zeros(n - 1), label)
        shape = SIZES["c"], 3
        question = Question("margins", {"directions 3": np.zeros(shape), "offset 3": np.zeros(3)})
        found.append(released("local", "c", np.zeros((n, 4)), y, question, study)["label square"])
    size = found[0][1].under("add-remove")
    assert all(np.linalg.norm(found[0][0] - other[0]) <= size for other in found[1:])
    assert max(np.linalg.norm(found[0][0] - other[0]) for other in found[1:]) > 0.4 * size


# Masks.


def masked_run(seed=0, absent=None, way="masked", **changes):
    """A whole study, party by party: blocks, answers and memory; `absent`: this person, held out, is in no table."""
    study = a_study(way, ROWS, **changes)
    protocol = protocol_for(study)
    X, y = table(way, ROWS)
    held = np.flatnonzero(protocol.held_out)
    y = np.asarray(y, dtype=float)
    gates = {n: Gate(protocol.promise.part(f"{n}/"), NoiseSource(10 * seed + k)) for k, n in enumerate(study.names)}
    blocks, answers, memory = {}, [], {name: {} for name in study.names}
    whole, rows_of = party.whole_block, protocol_module.rows_of

    def block(agreed, holding, remembered):
        found = whole(agreed, holding, remembered)
        about = agreed is protocol._part
        if absent is not None and about:
            found = np.insert(found, int(np.searchsorted(held, absent)), np.uint64(0), axis=0)
        blocks[holding.name, about] = found
        return found

    def without(holding, places):
        keep = places.copy()
        keep[absent if absent is not None else []] = False
        return rows_of(holding, keep)

    rounds = protocol.coordinate()
    with patch.object(party, "whole_block", block), patch.object(protocol_module, "rows_of", without):
        asked = next(rounds)
        while True:
            told = {}
            for name, question in asked.items():
                holding = Holding(name, X[name], y if name == "b" else None, SECRET)
                answer = protocol.answer(holding, question, gates[name], memory[name])
                memory[name] |= answer.memory
                told[name] = {**answer.releases, **answer.beside}
            answers.append((asked, told))
            try:
                asked = rounds.send(told)
            except StopIteration as end:
                return protocol, blocks, answers, end.value


def products_of(answers, prefix):
    """What was sent in the round of products, under names without the prefix."""
    (found,) = [told for _, told in answers if all(f"{prefix}rows" in one for one in told.values())]
    return {n: {k.removeprefix(prefix): v for k, v in arrays.items()} for n, arrays in found.items()}


def small(values):
    return float(np.mean(np.abs(words.signed(values)) < SMALL))


def test_shares_about_people_held_out_open_to_their_products_and_hide_their_rows():
    protocol, blocks, answers, _ = masked_run()
    part, told = protocol._part, products_of(answers, PREFIX)
    for one, other in combinations(SIZES, 2):
        rows = [told[name][party.ROWS].view(np.uint64) for name in (one, other)]
        shares = told[one][part.share_name(other)].view(np.uint64), told[other][part.share_name(one)].view(np.uint64)
        left = shares[0] + shares[1] + words.product(*rows) - words.product(blocks[one, True], blocks[other, True])
        assert small(left) == 1.0  # noise
        assert small(shares[0] + words.product(blocks[one, True], rows[1])) < 0.5
        assert small(rows[0]) < 0.25


def test_masks_of_both_parts_and_of_other_questions_are_other_streams():
    """The mask of a block is what is sent less the block: of the training, of those held out, of another question."""
    _, blocks, answers, _ = masked_run()
    masks = {}
    for prefix, about in (("", False), (PREFIX, True)):
        told = products_of(answers, prefix)
        masks[about] = told["a"][party.ROWS].view(np.uint64) - blocks["a", about]
    rows, width = masks[True].shape
    assert not np.any(masks[True] == masks[False][:rows, :width])
    margins = next(questions for questions, _ in answers if questions["a"].step == f"{PREFIX}margins")
    digests = {masked._digest(margins[name].arrays).tobytes() for name in SIZES}
    assert len(digests) == 1  # all parties are asked alike, or their masks would not meet
    other = {**margins["a"].arrays, "offset 3": margins["a"].arrays["offset 3"] + 1.0}
    assert masked._digest(other).tobytes() not in digests


@pytest.mark.parametrize("way", ["masked", "logistic"])
def test_a_person_held_out_who_is_absent_moves_their_sums_and_nothing_of_the_training(way):
    protocol, full, answers, _ = masked_run(way=way, epsilon=100.0)
    absent = int(np.flatnonzero(protocol.held_out)[5])
    _, less, others, _ = masked_run(absent=absent, way=way, epsilon=100.0)
    part = protocol._part
    for one, other in combinations(SIZES, 2):
        np.testing.assert_array_equal(full[one, False], less[one, False])
        change = [words.signed(words.product(b[one, True], b[other, True])) for b in (full, less)]
        steps = part.products_of(one, other).add_remove * part.grid.steps**2
        assert 0.01 * steps < np.linalg.norm(change[0] - change[1]) <= steps
    for (asked_one, told_one), (_, told_other) in zip(answers, others, strict=True):
        if not next(iter(asked_one.values())).step.startswith(PREFIX):
            for name, arrays in told_one.items():
                for what, values in arrays.items():
                    if what not in ("key", "code", "boxes", "rows") and "products" not in what:
                        np.testing.assert_array_equal(values, told_other[name][what])


def test_rows_of_functions_stay_within_norm_one_whatever_is_asked():
    part = protocol_for(a_study("masked", ROWS))._part
    rng = np.random.default_rng(0)
    for size in (1.0, 1e90):
        memory = REMEMBERED | {"functions": size * rng.standard_normal((3, 3)), "offset": size * rng.standard_normal(3)}
        holding = Holding("a", 10.0 * rng.standard_normal((part.study.n_rows, 3)), None, SECRET)
        block = words.signed(party.whole_block(part, *part._transformed(holding, memory)))
        assert np.linalg.norm(block, axis=1).max() <= part.grid.steps
        assert np.linalg.norm(block, axis=1).max() > 0.99 * part.grid.steps


@pytest.mark.parametrize("way", ["local", "masked", "logistic"])
def test_questions_of_another_form_or_before_their_turn_are_refused(way):
    study = a_study(way, ROWS)
    part = protocol_for(study)._part
    name = "b" if way == "logistic" else "a"
    holding = Holding(name, np.zeros((part.study.n_rows, SIZES[name])), np.zeros(part.study.n_rows), SECRET)
    gate = Gate(part.promise.part(f"{name}/"), NoiseSource(0))
    ready = REMEMBERED | {"selected": np.arange(SIZES[name]), party.SEED: np.zeros(32, np.uint8)}
    good = {"directions 1": np.zeros((3, 3)), "offset 1": np.zeros(3)}
    step = masked.LOSSES if way == "logistic" else "margins"
    if way == "logistic":
        good = {"direction": np.zeros(2), "place": np.zeros(3)}
    if way == "masked":
        good |= {f"{what} {k}": np.zeros(1) for k in (2, 3) for what in ("directions", "offset")}
    bad = [{}, {**good, "more": np.zeros(1)}]
    for what in list(good)[:2]:
        bad += [{**good, what: np.zeros(9)}, {**good, what: np.full_like(good[what], 1e200)}]
        bad += [{**good, what: good[what].astype(np.float32)}]
    for arrays in bad:
        with pytest.raises(RefusedError):
            part.answer(holding, Question(step, arrays), gate, ready)
    for other in ("products", "slopes", "units"):
        with pytest.raises(RefusedError):
            part.answer(holding, Question(other, {}), gate, ready)
    with pytest.raises(RefusedError):
        part.answer(holding, Question(step, good), gate, {})
    assert not any(gate.made.values())
    part.answer(holding, Question(step, good), gate, ready)


# What is made of it.


def test_functions_span_the_margins_of_all_models_and_fit_in_norm_one():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2_000, 6)) @ rng.standard_normal((6, 6)) + 3.0
    X /= np.linalg.norm(X, axis=1).max()
    wanted = np.column_stack([np.append(radius * rng.standard_normal(3), np.zeros(3)) for radius in (1, 2, 4, 8)])
    wanted[:, 3] = wanted[:, 2] * 1.5  # one of them is another's multiple
    covariance, mean = np.cov(X.T, bias=True), X.mean(axis=0)
    for reach in (math.inf, 2.5):
        made = directions.Functions.spanning(wanted, covariance, mean, 1.0, 4, reach)
        rows = directions.applied(X, made.directions, made.offset)
        np.testing.assert_allclose(rows @ made.parts, (X - mean) @ wanted, atol=1e-9)
        assert (np.linalg.norm(rows, axis=1).max() <= 1.0) == (reach == math.inf)
    assert np.mean(np.linalg.norm(rows, axis=1) > 1.0) < 0.1
    none = directions.Functions.spanning(np.zeros((6, 2)), covariance, mean, 1.0, 2, 2.5)
    assert not none.directions.any()


def test_the_noise_that_is_told_of_a_form_is_that_of_drawn_matrices():
    """Symmetric noise on two columns, and noise on their products with a third: against 20,000 draws."""
    rng = np.random.default_rng(1)
    own, pair = Noisy(np.arange(2), np.arange(2), 0.3), Noisy(np.arange(2), np.array([2]), 0.7)
    weights, draws = np.array([1.0, -2.0, 0.5]), np.zeros((20_000, 3, 3))
    diagonal, off = 0.3 * rng.standard_normal((20_000, 2)), 0.3 / math.sqrt(2) * rng.standard_normal(20_000)
    draws[:, [0, 1], [0, 1]] = diagonal
    draws[:, 0, 1] = draws[:, 1, 0] = off
    cross = 0.7 * rng.standard_normal((20_000, 2))
    draws[:, :2, 2] = draws[:, 2, :2] = cross
    forms = np.einsum("i,nij,j->n", weights, draws, weights)
    assert math.sqrt(own.variance(weights) + pair.variance(weights)) == pytest.approx(forms.std(), rel=0.03)
    one, other = np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 2.0])
    between = np.einsum("i,nij,j->n", one, draws, other)
    told = math.sqrt(own.variance_between(one, other) + pair.variance_between(one, other))
    assert told == pytest.approx(between.std(), rel=0.03)


def test_a_judge_says_what_rows_say():
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((300, 3)), rng.standard_normal(300)
    mean, unit, w, b = 0.2, 2.0, np.array([0.5, -1.0, 0.2]), 0.4
    full = np.column_stack([X, (y - mean) / unit, np.ones(300)])
    judge = Judge(full.T @ full / 300, [], mean, unit)
    error = np.mean(np.square(y - b - X @ w))
    assert judge.squared_error(w, b).value == pytest.approx(error)
    assert judge.r2(w, b).value == pytest.approx(1.0 - error / np.var(y))


def test_losses_are_those_of_margins_within_their_interval():
    targets = np.array([1.0, -1.0, 1.0])
    found = MIDDLE + HALF * within_interval(np.array([0.3, 0.3, 1e6]), 0.0, targets)
    np.testing.assert_allclose(found[:2], np.logaddexp(0.0, [-0.3, 0.3]))
    assert found[2] == pytest.approx(-math.log(0.99))
    wide = MIDDLE + HALF * within_interval(np.zeros(1), 2.0, np.ones(1))
    draws = np.logaddexp(0.0, 2.0 * np.random.default_rng(0).standard_normal(200_000))
    assert wide[0] == pytest.approx(draws.mean(), abs=0.01)
    steps = [float(within_interval(np.array([c]), 1.0, np.ones(1))[0]) for c in (-3.0, 0.0, 3.0)]
    assert all(one > other for one, other in pairwise(steps))
