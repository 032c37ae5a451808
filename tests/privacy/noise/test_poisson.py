"""Poisson sampling: one independent coin for every row, with exactly the probability asked for.

Every test of fit would fail a fresh seed with probability `FALSE_ALARM` at most.
"""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from tacit.privacy.noise import NoiseSource, kernels
from tacit.privacy.noise.samplers import Coins, poisson_sample

from .reference import WORD, Uniform
from .support import FALSE_ALARM, OutOfWordsError, ScriptedSource, binomial_tail, chi_square_tail, random_words

HIGHEST = WORD - 1  # the first coin shows heads, whatever its probability (above 2^-64)
PROBABILITIES = [0.5, 0.25, 1 / 3, 0.05, 1e-3, 1e-12, 2.0**-64, 1e-30, 0.999, 1 - 2.0**-53, np.nextafter(0.5, 0)]


def tail(probability):
    """1 - q, as a fraction."""
    return 1 - Fraction(float(probability))


def most_tails(probability):
    """How many tails one number can stand for."""
    return math.ceil(min(4096, 8.0 / float(probability)))


def digits(value, size):
    """The first words of a number in [0, 1)."""
    whole = (value.numerator << 64 * size) // value.denominator
    return [whole >> 64 * (size - 1 - k) & HIGHEST for k in range(size)]


def reference_sample(read, n, probability):
    """The specification once more, in fractions; compared with every power in turn."""
    powers = [tail(probability) ** (k + 1) for k in range(most_tails(probability))]
    rows, row = [], 0
    while row < n:
        u, tails = Uniform(read), 0
        u.refine()
        while tails < len(powers):
            while u.low < powers[tails] < u.high:
                u.refine()
            if u.low >= powers[tails]:
                break
            tails += 1
        row += tails
        if tails < len(powers) and row < n:
            rows.append(row)
            row += 1
    return rows


# The law, exactly


@pytest.mark.parametrize("probability", PROBABILITIES)
def test_the_number_of_tails_changes_exactly_at_the_powers(probability):
    """A number that lies 2^-600 below (1-q)^k, or on it, stands for at least k tails, or for fewer."""
    most = most_tails(probability)
    for k in sorted({1, 2, 3, 5, 9, most // 2, most - 1, most} & set(range(1, most + 1))):
        power = tail(probability) ** k
        for distance, expected in ((1, k), (0, k - 1)):
            words = [*digits(power - Fraction(distance, 2**600), 10), *[HIGHEST] * (k + 3)]
            rows = poisson_sample(ScriptedSource(words), k, probability)
            assert (rows[0] if len(rows) else k) == expected


def runs(n, probability):
    """All sequences of numbers of tails that settle n coins, with their probabilities."""
    if n <= 0:
        yield (), Fraction(1)
        return
    p, most = tail(probability), most_tails(probability)
    for tails in range(min(n, most) + 1):
        last = tails in (n, most)
        weight = p**tails if last else p**tails - p ** (tails + 1)
        for rest, more in runs(n - tails - (not last), probability):
            yield (tails, *rest), weight * more


def words_for(tails, probability):
    """The fewest words that tell a number in the middle of those that stand for so many tails."""
    high = tail(probability) ** tails
    low = tail(probability) ** (tails + 1) if tails < most_tails(probability) else Fraction(0)
    for size in range(1, 20):
        words = digits((low + high) / 2, size)
        start = sum(Fraction(word, WORD ** (k + 1)) for k, word in enumerate(words))
        if low <= start and start + Fraction(1, WORD**size) <= high:
            return words
    raise AssertionError("an interval this narrow was not meant to be tested")


@pytest.mark.parametrize(
    ("n", "probability"), [(1, 0.3), (5, 0.3), (6, 0.5), (4, 1e-5), (11, 0.999), (10, 1 - 2.0**-53)]
)
def test_every_subset_has_its_probability(n, probability):
    """In exact fractions, over all sequences of numbers of tails; the last two pass the table's end and start anew."""
    found = {}
    for sequence, weight in runs(n, probability):
        source = ScriptedSource([word for tails in sequence for word in words_for(tails, probability)])
        rows = tuple(poisson_sample(source, n, probability).tolist())
        assert source.at == len(source.script)
        found[rows] = found.get(rows, 0) + weight
    p = tail(probability)
    subsets = [rows for size in range(n + 1) for rows in combinations(range(n), size)]
    assert found == {rows: (1 - p) ** len(rows) * p ** (n - len(rows)) for rows in subsets}


def awkward_words(seed, size, probability):
    """Random words, and between them the powers' leading words, those next to them, and both ends."""
    rng = np.random.default_rng(seed)
    powers = [digits(tail(probability) ** k, 3) for k in range(1, min(most_tails(probability), 40) + 1)]
    words = random_words(seed + 1000, size).tolist()
    for i in np.flatnonzero(rng.random(size) < 0.5)[:-3]:
        first, *more = powers[rng.integers(len(powers))]
        words[i] = min(max(first + int(rng.integers(-2, 4)), 0), HIGHEST)
        if rng.random() < 0.5:  # tied for two words more
            words[i : i + 3] = [first, more[0], min(max(more[1] + int(rng.integers(-1, 2)), 0), HIGHEST)]
        elif rng.random() < 0.1:
            words[i] = int(rng.choice([0, 1])) * HIGHEST
    return words[:size]


@pytest.mark.parametrize("probability", [0.5, 0.25, 1 / 3, 0.05, 0.9, 1 - 2.0**-53, np.nextafter(0.5, 0)])
@pytest.mark.parametrize("seed", range(3))
def test_agreement_with_the_reference_on_streams_full_of_ties(probability, seed):
    """Row for row and word for word, however the words come in."""
    words = awkward_words(110 + seed, 600, probability)
    n = int(250 / probability)
    expected = ScriptedSource(words)
    rows = reference_sample(expected.word, n, probability)
    for portion in (1, 2, 3, 64, len(words)):
        source = ScriptedSource(words, portion)
        assert poisson_sample(source, n, probability).tolist() == rows
        assert source.at == expected.at
        assert source.single_words > 0  # `exact` was needed


@pytest.mark.parametrize("probability", [1e-3, 1e-12])
def test_after_the_tables_end_the_coins_start_anew(probability):
    """The least words stand for 4,096 tails, and no head after them."""
    n = 3 * 4096 + 10
    source = ScriptedSource([0, 1, 0, HIGHEST, 0])
    assert poisson_sample(source, n, probability).tolist() == [3 * 4096]
    assert source.at == 5
    assert poisson_sample(ScriptedSource([0, 0, 0]), 3 * 4096, probability).tolist() == []
    assert poisson_sample(ScriptedSource([0, 0, HIGHEST]), 2 * 4096 + 1, probability).tolist() == [2 * 4096]


@pytest.mark.parametrize(("word", "tails"), [(HIGHEST, 0), (2**63 + 2**57, 31), (2**62 + 2**57, 47)])
def test_many_powers_with_the_same_leading_bits(word, tails):
    """With q = 2^-70 the first 63 powers begin with 64 ones: a number that does too is told from all of them."""
    source = ScriptedSource([HIGHEST, word])
    assert poisson_sample(source, tails + 1, 2.0**-70).tolist() == [tails]
    assert source.at == 2


# The table


@pytest.mark.parametrize("probability", PROBABILITIES)
def test_thresholds_lie_less_than_two_below_the_powers(probability):
    thresholds = Coins(probability)._thresholds.tolist()
    assert len(thresholds) == most_tails(probability)
    assert thresholds == sorted(thresholds, reverse=True)
    for k in {1, 2, 3, len(thresholds) // 2, len(thresholds)}:
        a, b = (tail(probability) ** k).as_integer_ratio()
        assert thresholds[k - 1] * b <= a << 64 < (thresholds[k - 1] + 2) * b


@pytest.mark.parametrize("probability", PROBABILITIES)
def test_the_search_never_begins_beyond_its_end(probability):
    coins = Coins(probability)
    thresholds = coins._thresholds.tolist()
    for leading, start in enumerate(coins._guide.tolist()):
        largest = (leading + 1 << 54) - 1
        assert start == 0 or largest < thresholds[start - 1]
        assert start == len(thresholds) or largest >= thresholds[start]  # nor before it needs to


@pytest.mark.parametrize("probability", [5e-324, 1e-300, 1e-17])
def test_the_smallest_probabilities(probability):
    source = NoiseSource(109)
    assert poisson_sample(source, 100_000, probability).tolist() == []


# Buffers


@pytest.mark.parametrize("words", [[HIGHEST], [digits(tail(1e-4), 1)[0], HIGHEST]], ids=["settled", "tied"])
def test_any_number_of_heads_finds_room(words):
    """All rows take part, where hardly any were expected: rooms that fill up just before, at, and after the end."""
    for n in range(36):  # the room is 16, then 32
        source = ScriptedSource(words * n, portion=7)
        assert poisson_sample(source, n, 1e-4).tolist() == list(range(n))
        assert source.at == len(source.script)


def test_the_last_places_of_64_bits():
    """No place is added to that could pass 2^63 - 1."""
    coins, last = Coins(1e-12), 2**63 - 1
    for word, end, place in ((0, 5, None), (0, 5000, None), (HIGHEST, 1, last - 1)):
        out = np.zeros(3, dtype=np.int64)
        words = np.array([word, 0, 0], dtype=np.uint64)
        done, flip, at, stopped = kernels.coin_flips(
            words, 0, coins._thresholds, coins._guide, last, last - end, out, 0
        )
        assert (flip, stopped) == (last, kernels.DONE)
        assert at == (2 if end == 5000 else 1)
        assert out[:done].tolist() == ([] if place is None else [place])


@pytest.mark.parametrize("n", [2**63, 10**30])
def test_more_rows_than_can_be_counted_are_refused(n):
    with pytest.raises(ValueError, match="n must be at most 9,223,372,036,854,775,807"):
        poisson_sample(ScriptedSource([]), n, 0.5)


# The law, by tests of fit


@pytest.mark.parametrize("probability", [0.5, 0.01, 1e-4, 0.3, 0.999, 1 / 3])
def test_frequency(probability):
    rows = poisson_sample(NoiseSource(101), 1_000_000, probability)
    assert binomial_tail(len(rows), 1_000_000, probability) > FALSE_ALARM


@pytest.mark.parametrize(("n", "probability"), [(1_000_000, 0.3), (4_000_000, 0.05), (300_000_000, 1 / 3000)])
def test_gaps_are_geometric_and_independent(n, probability):
    """With the smallest probability a quarter of the gaps are longer than the table."""
    rows = poisson_sample(NoiseSource(110), n, probability)
    gaps = np.diff(rows, prepend=-1) - 1
    assert (gaps.max() > 4096) == (probability < 1e-3)
    edges = np.unique(np.geomspace(1, 10 / probability, 60).astype(np.int64))
    cells = np.searchsorted(edges, gaps, side="right")
    below = stats.geom.cdf(edges, probability)  # fewer than `edge` tails
    counts = np.bincount(cells, minlength=len(edges) + 1)
    assert chi_square_tail(counts, np.diff(below, prepend=0.0, append=1.0)) > FALSE_ALARM
    long = gaps > np.median(gaps)
    assert stats.chi2_contingency(np.histogram2d(long[:-1], long[1:], 2)[0]).pvalue > FALSE_ALARM


def test_neighbours_are_independent():
    """Eight cells of three neighbours."""
    n, q = 1_000_000, 0.3
    taken = np.zeros((n, 3), dtype=np.int64)
    taken.reshape(-1)[poisson_sample(NoiseSource(111), 3 * n, q)] = 1
    cells = np.bincount(taken @ [4, 2, 1], minlength=8)
    ones = np.array([bin(cell).count("1") for cell in range(8)])
    assert chi_square_tail(cells, q**ones * (1 - q) ** (3 - ones)) > FALSE_ALARM


def test_rows_are_equally_likely_and_independent():
    n, rounds, q = 64, 20_000, 0.2
    source = NoiseSource(102)
    taken = np.zeros((rounds, n), dtype=bool)
    for row in taken:
        row[poisson_sample(source, n, q)] = True
    per_row = taken.sum(axis=0)
    scores = (per_row - rounds * q) / math.sqrt(rounds * q * (1 - q))
    assert stats.chi2.sf(np.sum(scores**2), n) > FALSE_ALARM
    sizes = np.bincount(taken.sum(axis=1), minlength=n + 1)  # independent rows: the batch size is binomial
    assert chi_square_tail(sizes, stats.binom.pmf(np.arange(n + 1), n, q)) > FALSE_ALARM
    standard = (taken - q) / math.sqrt(q * (1 - q))
    products = standard.T @ standard / math.sqrt(rounds)
    assert np.abs(products[np.triu_indices(n, 1)]).max() < 7.0  # 2016 pairs at 3e-12
    between = np.sum(standard[:-1] * standard[1:]) / math.sqrt(standard[1:].size)
    assert abs(between) < 6.0  # 2e-9


# What is given and asked


def test_certain_rows():
    source = ScriptedSource([])
    rows = poisson_sample(source, 1000, 1.0)
    assert rows.tolist() == list(range(1000))
    assert rows.dtype == np.int64
    assert poisson_sample(source, 1000, 1).tolist() == list(range(1000))


def test_rows_come_in_order_as_integers():
    rows = poisson_sample(NoiseSource(104), 1000, 0.5)
    assert rows.dtype == np.int64
    assert np.all(np.diff(rows) > 0)
    assert rows.min() >= 0
    assert rows.max() < 1000


def test_no_rows_use_no_words():
    assert poisson_sample(ScriptedSource([]), 0, 0.5).tolist() == []
    assert poisson_sample(ScriptedSource([]), 0, 1.0).tolist() == []
    with pytest.raises(OutOfWordsError):
        poisson_sample(ScriptedSource([]), 1, 0.5)


def test_a_seed_repeats_a_sample_and_calls_do_not():
    first, again, other = (poisson_sample(NoiseSource(seed), 1000, 0.5).tolist() for seed in (106, 106, 107))
    assert first == again
    assert first != other
    source = NoiseSource(106)
    assert poisson_sample(source, 1000, 0.5).tolist() == first
    assert poisson_sample(source, 1000, 0.5).tolist() != first


def test_a_sample_is_the_callers_own():
    """The table is shared between calls; what is handed out is not."""
    source = NoiseSource(112)
    kept = poisson_sample(source, 1000, 0.1)
    before = kept.tolist()
    poisson_sample(source, 1000, 0.1)[:] = -1
    assert kept.tolist() == before


@pytest.mark.parametrize("probability", [0.0, -0.1, 1.0000001, math.nan, math.inf])
def test_probabilities_outside_0_to_1_are_refused(probability):
    with pytest.raises(ValueError, match="probability must"):
        poisson_sample(NoiseSource(107), 10, probability)


@pytest.mark.parametrize("n", [-1, 2.5, True])
def test_row_counts_that_are_not_counts_are_refused(n):
    with pytest.raises((TypeError, ValueError), match="n must be"):
        poisson_sample(NoiseSource(108), n, 0.5)
