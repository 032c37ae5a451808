"""What happens once in 2^54 draws, brought about by scripted words; and buffers that end anywhere inside a draw."""

from fractions import Fraction

import numpy as np
import pytest

from tacit.privacy.noise import exact, kernels, samplers
from tacit.privacy.noise.tables import strips

from . import reference
from .support import OutOfWordsError, ScriptedSource, awkward_words, draw_until_the_end, random_words

TABLE = strips()
COLUMNS = reference.columns_of(TABLE)


def normal(read):
    return reference.normal(read, COLUMNS)


def agree_on_one_normal(words):
    """The draw of kernel with fallback, exact sampler and reference, which must agree; and the words it used."""
    expected = draw_once(normal, words)
    assert draw_once(lambda read: exact.strip_normal(read, TABLE), words) == expected
    for portion in (1, 2, 3, len(words)):
        source = ScriptedSource(words, portion)
        assert (int(samplers.normals(source, 1)[0]), source.at) == expected
    return expected


def draw_once(draw, words):
    source = ScriptedSource(words)
    return draw(source.word), source.at


def kernel_stops(words, start=0):
    """(draws made, next word's place, why it stopped) of the kernel alone, asked for one normal."""
    return kernels.strip_normals(np.array(words, dtype=np.uint64), start, TABLE, np.empty(1, dtype=np.int64), 0)


# The alias table: ties of drawn bits with a threshold


def column_word(column, bits, negative=0):
    return bits << 10 | negative << 9 | column


def tied_bits(column):
    """The bits drawn for a column, tied with its threshold's leading ones, then below, above, or tied to the end."""
    digits, _ = COLUMNS[column]
    for count in range(1, len(digits)):
        for last in (digits[count] - 1, digits[count] + 1):
            if 0 <= last < 2**64:
                yield [*digits[:count], last]
    yield list(digits)


@pytest.mark.parametrize(
    ("column", "drawn"),
    [(column, drawn) for column in (0, 1, 57, 200, 300, 431, 432, 511) for drawn in tied_bits(column)],
)
def test_threshold_ties(column, drawn):
    """Tied on 54, 118, 182 or 246 bits: the column's own strip only below its threshold."""
    digits, alias = COLUMNS[column]
    words = [column_word(column, drawn[0], negative=column % 2), *drawn[1:]]
    quick = [2**64 - 2**35 + 12345]  # U1 at its largest: accepted at once
    stream = words + quick + random_words(41, 20).tolist()
    assert kernel_stops(stream) == (0, 0, kernels.OPEN)
    value, used = agree_on_one_normal(stream)
    assert used == len(words) + 1
    below = tuple(drawn) < digits[: len(drawn)]
    strip = column if below else alias
    cell = strip << 35 | 12345
    assert value == (~cell if column % 2 else cell)


# The strip's acceptance: U1 too close to gamma to be told from it


def strip_words(strip):
    """Words that draw this strip from its own column, just below its threshold."""
    digits, _ = COLUMNS[strip]
    words = []
    for digit in digits:
        words.append(max(digit - 1, 0))
        if digit > 0:
            break
    return [column_word(strip, words[0]), *words[1:]]


def gamma(strip, place):
    return place * (2 * strip + place) / 2048


def test_gamma_is_the_log_of_the_density_ratio():
    strip, place = 17, Fraction(1, 3)
    start, x = Fraction(strip, 32), (strip + place) / 32
    assert gamma(strip, place) == (x * x - start * start) / 2


def slow_words(strip, place_words, u, u_words):
    """The words of a draw with these bits of position (35, then 64 each) and of U1 (29, then 64 each)."""
    first, *more = place_words
    u_parts = [u >> 64 * (u_words - k) for k in range(u_words + 1)]
    second = u_parts[0] << 35 | first
    assert second >> 35 << 17 < (first + 1) * (2 * strip + 1), "the quick test must not settle it"
    words = [*strip_words(strip), second]
    for place_word, part in zip(more, u_parts[1:], strict=True):
        words += [place_word, part % 2**64]
    return words


def value_of(bits):
    """A number from its first 35 bits and further words."""
    value, width = Fraction(bits[0], 2**35), Fraction(1, 2**35)
    for word in bits[1:]:
        value, width = value + width * Fraction(word, 2**64), width / 2**64
    return value


@pytest.mark.parametrize("strip", [1, 5, 100, 200])
@pytest.mark.parametrize("u", [1, 3, 1000, 2**15 + 1])
def test_the_quick_test_takes_only_what_every_completion_would_keep(strip, u):
    """The last position that is kept at once, and the first that is not: (X + 1)(2i + 1) just above u 2^17."""
    first_slow = (u << 17) // (2 * strip + 1)
    assert 0 < first_slow < 2**35
    for position, quick in ((first_slow - 1, True), (first_slow, False)):
        stream = [*strip_words(strip), u << 35 | position, *random_words(47, 60).tolist()]
        value, used = agree_on_one_normal(stream)
        assert (used == 2) is quick
        if quick:
            assert value == strip << 35 | position


@pytest.mark.parametrize("strip", [1, 5, 100, 431])
@pytest.mark.parametrize("offset", range(-3, 7))
def test_u_around_gamma_in_the_kernel(strip, offset):
    """The kernel takes what 64 bits settle, and only that; the verdict is the reference's."""
    place = [2**34 + 987654321, random_words(42, 1).tolist()[0]]
    leading = place[0] << 29 | place[1] >> 35
    low = (2 * strip * leading + (leading * leading >> 64)) >> 11
    u = (low + offset) << 29 | 2**28
    stream = slow_words(strip, place, u, 1) + random_words(43, 40).tolist()
    done, at, stopped = kernel_stops(stream)
    tied_in_table = len(strip_words(strip)) > 1
    if tied_in_table or 0 <= offset < 3:
        assert (done, at, stopped) == (0, 0, kernels.OPEN)
    else:
        assert stopped == kernels.DONE
    value, used = agree_on_one_normal(stream)
    if offset >= 3:
        assert value == strip << 35 | place[0]
        assert used == len(strip_words(strip)) + 3


@pytest.mark.parametrize("strip", [1, 100, 431])
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("offset", [-2, -1, 0, 1, 2, 3])
def test_u_tied_with_gamma_for_many_words(strip, depth, offset):
    """U1 agrees with gamma to 29 + 64 depth bits: each word more is read in turn, and then the verdict is right."""
    place = [2**34 + 13579, *random_words(44, depth + 1).tolist()]
    whole = int(gamma(strip, value_of(place)) * 2 ** (29 + 64 * depth)) + offset
    follow = random_words(45, 60).tolist()
    stream = slow_words(strip, place[: depth + 1], whole, depth) + follow
    assert kernel_stops(stream) == (0, 0, kernels.OPEN)
    value, used = agree_on_one_normal(stream)
    if offset >= 2:
        assert (value, used) == (strip << 35 | place[0], len(stream) - len(follow))
    elif offset >= -1:
        assert used >= len(stream) - len(follow)


# Von Neumann's run: equal words


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
@pytest.mark.parametrize("side", ["below", "above", "tied"])
def test_equal_words_in_the_run_of_a_strip(steps, side):
    """After `steps` descents a word equals the last number's first 64 bits, and further bits must decide."""
    strip, place = 100, [2**34 + 24680, 777]
    u = int(gamma(strip, value_of(place)) * 2**93) // 2
    assert 0 < u % 2**29 < 2**29 - 1
    run = [(u >> 29) // 2 ** (k + 1) for k in range(steps)]
    if steps == 0:
        last, rest = u >> 29, u % 2**29 << 35
        more = {"below": rest - 1, "above": rest + 2**35, "tied": rest + 5}[side]  # tied: U1 needs a word as well
    else:
        last = run[-1]
        more = {"below": 1, "above": 2**64 - 1, "tied": 2**63}[side]
    stream = slow_words(strip, place, u, 1) + run + [last, more]
    stream += ([2**63] if side == "tied" else []) + random_words(46, 60).tolist()
    assert kernel_stops(stream) == (0, 0, kernels.OPEN)
    agree_on_one_normal(stream)


SAMPLERS = {
    "normals": (normal, samplers.normals),
    "laplaces": (reference.laplace, samplers.laplaces),
}
PICK_SCORES = -np.array([0, 1 << 31, 1 << 32, 5 << 31, 40 << 31, (31 << 32) + 5, 33 << 32, (96 << 32) + 1, 1, 2])
SAMPLERS["picks"] = (
    reference.Picker(PICK_SCORES.tolist()).pick,
    lambda source, size: samplers.Candidates(PICK_SCORES).pick(source, size),
)


# Extreme words and the table's own thresholds.
SPECIAL = [0, 1, 2**64 - 1, 2**63, int(kernels._LN2), int(kernels._LN2) // 2, *(int(w) for w in TABLE[::37, 0])]
SPECIAL += [int(w) for w in TABLE[::101, 1]]


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("seed", range(8))
def test_streams_full_of_ties(name, seed):
    one, many = SAMPLERS[name]
    words = awkward_words(50 + seed, 3000, SPECIAL, 0.25)
    draws, used = draw_until_the_end(one, words)
    assert len(draws) > 150
    for portion in (1, 2, 3, 5, 64, len(words)):
        source = ScriptedSource(words, portion)
        assert many(source, len(draws)).tolist() == draws
        assert source.at == used[-1]
        assert source.single_words > 0  # the fallback was needed


@pytest.mark.parametrize("name", SAMPLERS)
def test_buffers_that_end_anywhere(name):
    """Every length of the first window, and every size of the later ones, gives the same draws."""
    one, many = SAMPLERS[name]
    words = random_words(60, 600)
    words[random_words(61, 600) % np.uint64(2) == 0] >>= np.uint64(12)  # long runs and slow paths
    draws, used = draw_until_the_end(one, words)
    for portion in range(1, 40):
        for head in (0, portion // 2):
            source = ScriptedSource(words, portion)
            source.visible = head
            assert many(source, len(draws)).tolist() == draws
            assert source.at == used[-1]


@pytest.mark.parametrize("name", SAMPLERS)
def test_kernels_stop_at_the_start_of_a_draw_and_go_on_from_there(name):
    words = random_words(62, 400)
    words[random_words(63, 400) % np.uint64(2) == 0] >>= np.uint64(12)
    one, _ = SAMPLERS[name]
    draws, used = draw_until_the_end(one, words)
    step = kernel_step(name)
    for length in range(len(words) + 1):
        out = np.full(len(draws) + 1, -77, dtype=np.int64)
        done, at, stopped = step(words[:length], 0, out, 0)
        assert stopped == kernels.SHORT
        assert done == np.searchsorted(used, length, side="right")
        assert out[:done].tolist() == draws[:done]
        assert np.all(out[done:] == -77)
        assert (used[done - 1] if done else 0) <= at <= length  # rejected attempts may lie before `at`
        done, at, stopped = step(words, at, out, done)
        assert (done, stopped) == (len(draws), kernels.SHORT)
        assert out[:done].tolist() == draws


def kernel_step(name):
    if name == "normals":
        return lambda words, at, out, done: kernels.strip_normals(words, at, TABLE, out, done)
    if name == "laplaces":
        return kernels.laplaces
    candidates = samplers.Candidates(PICK_SCORES)
    return lambda words, at, out, done: kernels.pick_candidates(
        words, at, candidates._gaps, candidates._counts, out, done
    )


@pytest.mark.parametrize("name", SAMPLERS)
def test_no_draws_asked_for_use_no_words(name):
    source = ScriptedSource([])
    assert SAMPLERS[name][1](source, 0).tolist() == []
    with pytest.raises(OutOfWordsError):
        SAMPLERS[name][1](source, 1)


# The octave's acceptance


@pytest.mark.parametrize("fraction", [1, 2**31, 2**32 - 1, 987654321])
@pytest.mark.parametrize("offset", range(-2, 5))
def test_u_around_gamma_of_an_octave(fraction, offset):
    """Two candidates, the second proposed; its U1 lies `offset` from the kernel's lower bound of gamma."""
    scores = np.array([0, -fraction])
    low = fraction * exact.ln2(64) >> 32
    proposal = 2**63 + 2**31 + 5  # the envelope is 2^32, so these are its low bits: the second candidate
    stream = [proposal, max(low + offset, 0), *random_words(64, 60).tolist()]
    candidates = samplers.Candidates(scores)
    result = kernels.pick_candidates(
        np.array(stream, dtype=np.uint64), 0, candidates._gaps, candidates._counts, np.empty(1, dtype=np.int64), 0
    )
    if 0 <= offset < 2 and low + offset >= 0:
        assert result == (0, 0, kernels.OPEN)
    expected = draw_once(reference.Picker(scores.tolist()).pick, stream)
    for portion in (1, 2, len(stream)):
        source = ScriptedSource(stream, portion)
        assert (int(candidates.pick(source, 1)[0]), source.at) == expected
    if offset >= 2:
        assert expected == (1, 2)


def test_words_that_would_make_a_remainder_uneven_are_passed_over():
    scores = np.zeros(3, dtype=np.int64)
    tickets = 3 << 31
    excess = 2**64 % tickets
    assert excess > 0
    for word in (0, excess - 1):
        source = ScriptedSource([word, excess + 2**32, 9])
        assert samplers.Candidates(scores).pick(source, 1).tolist() == [(excess + 2**32) % tickets >> 31]
        assert source.at == 3
    source = ScriptedSource([excess, 9])
    assert samplers.Candidates(scores).pick(source, 1).tolist() == [excess >> 31]
    assert source.at == 2
