"""What each role sees of masked products: the coordinator, one party, all parties but one. And mutants of each step.

Every test that a mutant must fail is a function of a run, so that it is used on both.
"""

import math
from itertools import combinations
from unittest.mock import patch

import numpy as np
import pytest

from tacit.federated.protocols import columns
from tacit.federated.protocols.base import Holding, RefusedError
from tacit.federated.protocols.marginals.masked import MaskedProtocol, party, seals, words
from tacit.federated.protocols.marginals.party import Target
from tacit.privacy import Gate, NoiseSource
from tacit.privacy.mechanisms import GaussianWords
from tests.federated.protocols.masked_run import HOLDER, ROWS, SECRET, SIZES, masked_study, run, some_data

SMALL = 2.0**58  # sums and noise are below it in these studies; of uniform words one in 64 is
LOUD = masked_study(epsilon=0.05)  # noise that is far above the sums


def small(values):
    """The part of words that are no larger than honest sums are."""
    return float(np.mean(np.abs(words.signed(values)) < SMALL))


def hostile(seed=0, rows=ROWS):
    """Data with a person at row 7 who is as far out as can be, at all parties."""
    X, y = some_data(seed, rows)
    for x in X.values():
        x[7] = 1e6
    y[7] = -1e6
    return X, y


# The coordinator.


def looks_uniform(done):
    """Masked rows and first shares, even to one who guesses all blocks right: with the right rows of k, a first share
    without Z would be X_k' X_l + N, which is small."""
    for one, other in done.pairs:
        first = done.share(one, other) + words.product(done.blocks[one], done.rows(other))
        if small(first) > 0.5 or small(done.rows(one)) > 0.25 or small(done.rows(other)) > 0.25:
            return False
    return True


def test_the_coordinator_sees_uniform_words_and_opened_sums():
    assert looks_uniform(run(masked_study(), *some_data()))


def test_a_share_without_its_mask_is_caught():
    with patch.object(party.Masks, "between", lambda *_: np.uint64(0)):
        assert not looks_uniform(run(masked_study(), *some_data()))


def test_a_block_without_its_mask_is_caught():
    with patch.object(party.Masks, "mask", lambda self, name: np.zeros((ROWS, self.agreed.width(name)), np.uint64)):
        assert not looks_uniform(run(masked_study(), *some_data()))


def test_any_data_with_the_same_opened_sums_explains_what_the_coordinator_sees():
    """Masks M' = U - X' and Z' exist for other blocks X', and all of the transcript is the same but the opened sum."""
    done = run(masked_study(), *some_data())
    rng = np.random.default_rng(3)
    for one, other in done.pairs:
        X, Y = (rng.integers(-9, 9, done.rows(name).shape).view(np.uint64) for name in (one, other))
        noise = rng.integers(-9, 9, done.share(one, other).shape).view(np.uint64)
        mask_k, mask_l = done.rows(one) - X, done.rows(other) - Y
        Z = done.share(one, other) + words.product(X, mask_l) - noise
        second = -Z - words.product(mask_k, done.rows(other)) + noise
        opened = done.share(one, other) + second + words.product(done.rows(one), done.rows(other))
        np.testing.assert_array_equal(opened, words.product(X, Y) + noise + noise)


# Noise: what is left for the coordinator, and for those who know the noise of their own.


def noise_left(done, coalition):
    """The noise in opened sums that a coalition does not know, over what the plan says is left, by pairs."""
    found = []
    for one, other in done.pairs:
        honest = [name for name in (one, other) if name not in coalition]
        if not honest:
            continue
        left = done.opened(one, other) - words.product(done.blocks[one], done.blocks[other])
        for name, partner in ((one, other), (other, one)):
            if name in coalition:
                left = left - done.noise[name, done.protocol.share_name(partner)]
        found.append(words.signed(left) / math.sqrt(len(honest)) / 2.0**done.protocol.grid.bits)
    return np.concatenate([values.ravel() for values in found])


def enough_noise(runs, coalition):
    """Its mean square, by a test whose false alarms are one in a thousand (chi-square, by its normal limit)."""
    values = np.concatenate([noise_left(done, coalition) for done in runs])
    return float(np.mean(values**2)) > 1.0 - 3.1 * math.sqrt(2.0 / len(values))


COALITIONS = [(), ("a",), (HOLDER,), ("a", HOLDER), ("a", "c"), (HOLDER, "c")]


@pytest.fixture(scope="module")
def runs():
    return [run(LOUD, *some_data(seed), seed=seed) for seed in range(12)]


@pytest.mark.parametrize("coalition", COALITIONS, ids=str)
def test_every_coalition_is_left_with_the_noise_that_it_is_charged_for(runs, coalition):
    assert enough_noise(runs, coalition)


def test_noise_that_one_party_leaves_out_is_caught():
    draw = GaussianWords.draw

    def without(mechanism, grant, values):
        out = draw(mechanism, grant, values)
        return values.copy() if grant.name == "products with party 3" and len(values) == SIZES["a"] else out

    with patch.object(GaussianWords, "draw", without):
        quiet = [run(LOUD, *some_data(seed), seed=seed) for seed in range(12)]
    assert not enough_noise(quiet, ())
    assert not enough_noise(quiet, ("c",))


def test_parties_are_told_nothing_that_depends_on_data():
    """Questions hold keys and boxes, which are the same for other data but for what the operating system draws."""
    first, second = (run(masked_study(), *some_data(seed)) for seed in (0, 1))
    for one, other in zip(first.asked, second.asked, strict=True):
        for name in SIZES:
            assert one[name].step == other[name].step
            assert {k: v.shape for k, v in one[name].arrays.items()} == {
                k: v.shape for k, v in other[name].arrays.items()
            }
            assert set(one[name].arrays) <= {"keys", "codes", "boxes"}


# The person, present and absent.


def moved(study, X, y, other=None):
    """How far row 7 moves every sum, and every party's own moments, over what the plan says; units are given.

    `other`: instead of leaving the row out of all tables, those with another one in its place are compared.
    """
    protocol = MaskedProtocol(study)
    memory = {name: {"row norm": np.array([2.0])} for name in SIZES}
    mean = np.array([0.5] if study.outputs == 1 else [0.2, 0.3, 0.5])
    memory[HOLDER] |= {"y bounds": np.array([-4.0, 4.0]), "label mean": mean}
    here = np.arange(ROWS) != 7
    worlds = [(X, y), ({name: x[here] for name, x in X.items()}, y[here]) if other is None else other]
    blocks = [
        {n: party.whole_block(protocol, Holding(n, x[n], t if n == HOLDER else None), memory[n]) for n in SIZES}
        for x, t in worlds
    ]
    found = {}
    for name in SIZES:
        before, after = (party._own_moments(protocol, name, world[name])[1] for world in blocks)
        found[name] = np.linalg.norm(before - after) / protocol.moments_of(name).under(study.adjacency)
    for one, partner in combinations(SIZES, 2):
        before, after = (words.product(world[one], world[partner]) for world in blocks)
        change = np.linalg.norm(words.signed(before - after)) / protocol.grid.steps**2
        found[one, partner] = change / protocol.products_of(one, partner).under(study.adjacency)
    return found


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 1e4])
def test_a_person_who_is_absent_moves_sums_by_no_more_than_is_covered(epsilon):
    found = moved(masked_study(epsilon=epsilon), *hostile())
    assert max(found.values()) <= 1.0
    assert min(found.values()) > 0.99  # the worst person there is


def test_a_person_who_is_another_one_moves_sums_by_no_more_than_is_covered():
    X, y = hostile()
    opposite = {name: x.copy() for name, x in X.items()}
    opposite["a"][7] *= -1.0
    opposite["c"][7, 0] *= -1.0
    found = moved(masked_study(adjacency="replace-one"), X, y, (opposite, y))
    assert max(found.values()) <= 1.0
    assert found["a", HOLDER] > 0.99


def test_rows_that_are_not_clipped_are_caught():
    with patch.object(columns, "unit_rows", lambda X, norm: np.minimum(X / norm, 50.0)):
        assert max(moved(masked_study(), *hostile()).values()) > 1.5


def test_labels_that_are_not_clipped_are_caught():
    with (
        patch.object(Target, "of", lambda y, *_: Target(y, 4e4)),
        patch.object(np, "clip", lambda values, *_: values),
    ):
        assert max(moved(masked_study(), *hostile()).values()) > 1.5


# Two answers of one party: after a lost journal, and after one that was rolled back.


def answered(protocol, memory, question, X, y, name="a"):
    holding = Holding(name, X[name], y if name == HOLDER else None, SECRET)
    gate = Gate(protocol.promise.part(f"{name}/"), NoiseSource(1))
    memory = memory | {party.BLOCK: party.digest_of(party.whole_block(protocol, holding, memory))}
    return protocol.answer(holding, question, gate, memory).beside["rows"].view(np.uint64)


def two_pads(one, other):
    """Whether the difference of two masked blocks tells the difference of what they hide."""
    return small(one - other) > 0.5


def after_a_lost_journal():
    """Two enrolments of the same party, with the same secret and study."""
    first, second = (run(masked_study(), *some_data(seed)) for seed in (0, 1))
    return first.rows("a"), second.rows("a")


def test_another_enrolment_has_another_mask():
    assert not two_pads(*after_a_lost_journal())


def test_a_seed_from_the_secret_is_caught():
    known = party.Masks, "of", lambda agreed, *_: party.Masks(agreed, (SECRET,) * 3, b"of the study alone")
    with patch.object(*known):
        assert two_pads(*after_a_lost_journal())


def after_a_rolled_back_journal():
    """Party a answers twice with the same seed: to two sets of boxes, about two tables."""
    study = masked_study()
    protocol = MaskedProtocol(study)
    done = run(study, *some_data())
    memory, question = done.memory["a"], done.asked[-1]["a"]
    boxes = question.arrays["boxes"].copy()
    b = Holding("b", *(some_data()[0]["b"], some_data()[1]), SECRET)
    again = party.seeds(protocol, b, done.asked[1]["b"], done.memory["b"])
    boxes[1] = again.beside["boxes"]
    changed = type(question)(question.step, {**question.arrays, "boxes": boxes})
    return answered(protocol, memory, question, *some_data()), answered(protocol, memory, changed, *some_data(1))


def test_another_transcript_has_another_mask():
    assert not two_pads(*after_a_rolled_back_journal())


def test_a_label_without_the_transcript_is_caught():
    honest = seals.stream
    with patch.object(party, "stream", lambda seeds, label, _, shape: honest(seeds, label, b"", shape)):
        assert two_pads(*after_a_rolled_back_journal())


def test_a_block_that_is_rounded_differently_is_not_sent_under_the_same_mask():
    done = run(masked_study(), *some_data())
    X, _ = some_data()
    X["a"][3, 1] += 1e-3
    holding, question = Holding("a", X["a"], None, SECRET), done.asked[-1]["a"]
    gate = Gate(done.protocol.promise.part("a/"), NoiseSource(1))
    with pytest.raises(RefusedError, match="rounded differently"):
        done.protocol.answer(holding, question, gate, done.memory["a"])
    assert not any(gate.made.values())


def test_parties_that_were_told_different_things_do_not_open():
    """Different transcripts give independent masks: the coordinator gets garbage, and says so."""
    honest = party.transcript
    turns = iter(range(9))
    with (
        patch.object(party, "transcript", lambda *given: honest(*given)[:-1] + bytes([next(turns)])),
        pytest.raises(ValueError, match="do not open"),
    ):
        run(masked_study(), *some_data())
