"""Kernels, exact samplers and an independent reference in fractions agree draw for draw and word for word."""

import mpmath
import numpy as np
import pytest

from tacit.privacy.noise import NoiseSource, exact, kernels, samplers
from tacit.privacy.noise.tables import strips

from . import reference
from .support import ScriptedSource, draw_until_the_end, random_words

# Few draws every day, many in the long run: what they compare is the same.
sizes = pytest.mark.parametrize("part", [8, pytest.param(1, marks=pytest.mark.slow)], ids=["few", "many"])


def next_words(source):
    return source.words(4).tolist()


@sizes
def test_normals_follow_the_reference(part):
    size = 40_000 // part
    source, other = NoiseSource(21), NoiseSource(21)
    columns = reference.columns_of(strips())
    words = iter(other.words(3 * size).tolist())
    assert samplers.normals(source, size).tolist() == [reference.normal(words.__next__, columns) for _ in range(size)]
    assert next_words(source) == [next(words) for _ in range(4)]


@sizes
def test_normals_follow_the_exact_sampler(part):
    size = 100_000 // part
    source, other = NoiseSource(22), NoiseSource(22)
    words = iter(other.words(3 * size).tolist())
    assert samplers.normals(source, size).tolist() == [
        exact.strip_normal(words.__next__, strips()) for _ in range(size)
    ]
    assert next_words(source) == [next(words) for _ in range(4)]


@sizes
def test_the_slow_path_follows_the_reference(part):
    """Words whose 29 bits of U1 are small, so that nearly every draw extends its bits and runs down."""
    size = 200_000 // part
    words = random_words(23, size) >> np.random.default_rng(23).integers(0, 30, size, dtype=np.uint64)
    columns = reference.columns_of(strips())
    draws, used = draw_until_the_end(lambda read: reference.normal(read, columns), words)
    assert len(draws) > 10_000 // part
    assert used[-1] > 4 * len(draws)  # where two words make a draw without it
    source = ScriptedSource(words)
    assert samplers.normals(source, len(draws)).tolist() == draws
    assert source.at == used[-1]
    assert draw_until_the_end(lambda read: exact.strip_normal(read, strips()), words) == (draws, used)


@sizes
def test_laplaces_follow_the_reference(part):
    size = 30_000 // part
    source, other = NoiseSource(25), NoiseSource(25)
    words = iter(other.words(10 * size).tolist())
    drawn = samplers.laplaces(source, size).tolist()
    assert drawn == [reference.laplace(words.__next__) for _ in range(size)]
    assert next_words(source) == [next(words) for _ in range(4)]
    words = iter(NoiseSource(25).words(10 * size).tolist())
    assert drawn == [exact.laplace(words.__next__) for _ in range(size)]


SCORES = {
    "flat": np.zeros(7, dtype=np.int64),
    "one": np.array([123], dtype=np.int64),
    "within an octave": np.linspace(0, 2**32, 50).astype(np.int64),
    "wide": -np.linspace(0, 20 * 2**32, 300).astype(np.int64),
    "whole octaves": -(np.arange(12, dtype=np.int64) << 32),
    "shuffled": np.random.default_rng(26).permutation(np.linspace(-(2**45), 2**45, 1000).astype(np.int64)),
    "last bucket": -((31 << 32) + np.random.default_rng(27).integers(0, 2**35, 5000)),
}


@sizes
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=[pytest.mark.slow] * (n in ("flat", "one", "whole octaves", "last bucket")))
        for n in SCORES
    ],
)
def test_picks_follow_the_reference(name, part):
    size = 6_000 // part
    scores = SCORES[name]
    words = NoiseSource(29).words(8 * size)
    if name == "last bucket":  # a best candidate far above, and words half of which point below it
        far = len(scores)
        words[random_words(28, len(words)) % np.uint64(2) == 0] %= np.uint64(far)
        words[words < far] += np.uint64(3 * (2**31 + far) - far)
        scores = np.concatenate([[0], scores])
    picker, candidates = reference.Picker(scores.tolist()), samplers.Candidates(scores)
    draws, used = draw_until_the_end(picker.pick, words)
    assert len(draws) > 1_000 // part
    if name == "last bucket":
        assert np.count_nonzero(draws) > 1_000 // part
    source = ScriptedSource(words)
    assert candidates.pick(source, len(draws)).tolist() == draws
    assert source.at == used[-1]
    source = ScriptedSource(words)
    assert [candidates._pick_exactly(source) for _ in draws] == draws
    assert source.at == used[-1]


def test_gaps_beyond_what_int64_holds_count_as_far_away():
    """The difference of two scores may need 64 bits; such a candidate is as good as never drawn, and -1 never is."""
    scores = np.full(9, -(2**62), dtype=np.int64)
    scores[3] = 2**62
    scores[5] = -(2**63)
    candidates = samplers.Candidates(scores)
    assert candidates._gaps.min() == 0
    # The ticket of a far one, 64 coins that all fall well, 64 that do not; then whatever comes.
    words = [3 * (2**31 + 8) - 1, 0, 2**63, *random_words(30, 100).tolist()]
    source = ScriptedSource(words)
    assert candidates.pick(source, 1).tolist() == [3]
    assert source.at > 3
    assert kernels._candidate_in_octave(candidates._gaps, kernels.LAST_OCTAVE, 0) == 0
    assert kernels._candidate_in_octave(candidates._gaps, kernels.LAST_OCTAVE, 7) == 8


# The arithmetic underneath


def test_high_product_is_the_upper_half():
    edges = np.array([0, 1, 2, 2**32 - 1, 2**32, 2**32 + 1, 2**63, 2**64 - 2, 2**64 - 1], dtype=np.uint64)
    a = np.concatenate([np.repeat(edges, len(edges)), random_words(31, 5000)])
    b = np.concatenate([np.tile(edges, len(edges)), random_words(32, 5000)])
    for x, y in zip(a, b, strict=True):
        assert int(kernels.high_product(x, y)) == int(x) * int(y) >> 64


@pytest.mark.parametrize("bits", [1, 64, 128, 192, 256, 1024])
def test_ln2_is_rounded_down(bits):
    with mpmath.workprec(bits + 200):
        assert exact.ln2(bits) == int(mpmath.floor(mpmath.ln(2) * mpmath.mpf(2) ** bits))


def test_the_kernel_has_64_bits_of_ln2():
    assert int(kernels._LN2) == exact.ln2(64)
