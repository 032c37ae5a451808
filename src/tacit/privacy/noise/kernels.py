"""Compiled samplers: whole numbers in, whole numbers out; floats only where they are rounded to whole numbers.

Each sampler reads words from a buffer and stops when they run out (`SHORT`) or when the first 64 bits of a random
number do not settle a comparison (`OPEN`). It then leaves the place at the start of the unfinished draw, so that the
caller can refill the buffer, or finish that one draw with `exact`. The words a draw uses never depend on block sizes.

uint64 constants are spelled out because numba would turn a mix of signed and unsigned words into floats.
"""

import numpy as np
from numpy.typing import NDArray

from tacit.compilation import compiled

Words = NDArray[np.uint64]

DONE, SHORT, OPEN = 0, 1, 2  # how a kernel came to stop
_ACCEPT, _REJECT, _SHORT, _OPEN = 0, 1, 2, 3  # how a decision inside a draw came out

_0, _1, _2, _3 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3)
_9, _10, _11, _17, _24, _29, _31, _32, _35, _40, _53, _54 = (
    np.uint64(k) for k in (9, 10, 11, 17, 24, 29, 31, 32, 35, 40, 53, 54)
)
_MASK9 = np.uint64(2**9 - 1)
_MASK32 = np.uint64(2**32 - 1)
_MASK35 = np.uint64(2**35 - 1)
_LN2 = np.uint64(0xB17217F7D1CF79AB)  # floor(2^64 ln 2)

LAST_OCTAVE = 31
_FARTHEST = np.uint64(2**62 - 1)  # a weight of 2^-(2^30): no draw can tell it from any smaller one


kernel = compiled(nogil=True)


@kernel
def high_product(a: np.uint64, b: np.uint64) -> np.uint64:
    """The upper 64 bits of the 128-bit product."""
    a_low, a_high = a & _MASK32, a >> _32
    b_low, b_high = b & _MASK32, b >> _32
    middle = a_high * b_low + ((a_low * b_low) >> _32)
    other = a_low * b_high + (middle & _MASK32)
    return a_high * b_high + (middle >> _32) + (other >> _32)


@kernel
def _even_run(words: Words, at: int, last: np.uint64) -> tuple[int, int]:
    """Accept if the descending run that begins with `last` has even length."""
    even = False
    while True:
        if at >= len(words):
            return _SHORT, at
        new = words[at]
        at += 1
        if new == last:
            return _OPEN, at
        if new > last:
            return (_ACCEPT if even else _REJECT), at
        even = not even
        last = new


@kernel
def _strip_decision(words: Words, at: int, strip: np.uint64, x: np.uint64, u: np.uint64) -> tuple[int, int]:
    """Accept with probability exp(-gamma), gamma = y (2 strip + y) / 2048, from 64 bits of y and of U1."""
    if at + 2 > len(words):
        return _SHORT, at
    y = x << _29 | words[at] >> _35
    first = u << _35 | words[at + 1] >> _29
    at += 2
    # 2^64 gamma lies in [low, low + 3): the product below, over 2^11, with each truncation below one.
    product_high = high_product(_2 * strip, y)
    product_low = _2 * strip * y
    square = high_product(y, y)
    total = product_low + square
    if total < product_low:
        product_high += _1
    low = product_high << _53 | total >> _11
    if first >= low + _3:
        return _ACCEPT, at
    if first < low:
        return _even_run(words, at, first)
    return _OPEN, at


@kernel
def release_one(value: float, noise: int, step: float, bound: float) -> float:
    """(rint(value / step) + noise) step, the value clipped to `bound`; as it is where the step is 0, without noise.

    What is not a number counts as zero.
    """
    if not abs(value) <= bound:
        value = 0.0 if value != value else (bound if value > 0.0 else -bound)
    if step == 0.0:
        return value
    return np.float64(np.int64(np.rint(value / step)) + noise) * step


@kernel
def release_on_grid(
    values: NDArray[np.float64],
    noise: NDArray[np.int64],
    bound: float,
    step: float,
    shift: int,
    out: NDArray[np.float64],
) -> bool:
    """Out = (rint(values / step) + floor(noise / 2^shift)) step, values clipped to `bound`; whether all were inside it.

    What is not a number counts as zero.
    """
    inside = True
    for j in range(len(values)):
        inside = inside and not abs(values[j]) > bound
        out[j] = release_one(values[j], noise[j] >> shift, step, bound)
    return inside


@kernel
def strip_normals(words: Words, at: int, table: Words, out: NDArray[np.int64], done: int) -> tuple[int, int, int]:
    """Fill out[done:] with floor(2^40 Z); return how far it came, the next word's place, and why it stopped."""
    while done < len(out):
        if at + 2 > len(words):
            return done, at, SHORT
        word = words[at]
        head = table[word & _MASK9, 0]
        bits, threshold = word >> _10, head >> _10
        if bits == threshold:
            return done, at, OPEN
        strip = (word if bits < threshold else head) & _MASK9
        second = words[at + 1]
        x, u = second & _MASK35, second >> _35
        after = at + 2
        if u << _17 < (x + _1) * (_2 * strip + _1):
            decision, after = _strip_decision(words, after, strip, x, u)
            if decision == _REJECT:
                at = after
                continue
            if decision != _ACCEPT:
                return done, at, SHORT if decision == _SHORT else OPEN
        magnitude = np.int64(strip << _35 | x)
        out[done] = ~magnitude if word >> _9 & _1 else magnitude
        done += 1
        at = after
    return done, at, DONE


@kernel
def _exp_decision(words: Words, at: int, gamma: np.uint64) -> tuple[int, int]:
    """Accept with probability exp(-gamma / 2^64), where gamma is exact."""
    if at >= len(words):
        return _SHORT, at
    first = words[at]
    if first >= gamma:
        return _ACCEPT, at + 1
    return _even_run(words, at + 1, first)


@kernel
def _exp_of_one_decision(words: Words, at: int) -> tuple[int, int]:
    """Accept with probability exp(-1)."""
    if at >= len(words):
        return _SHORT, at
    return _even_run(words, at + 1, words[at])


@kernel
def laplaces(words: Words, at: int, out: NDArray[np.int64], done: int) -> tuple[int, int, int]:
    """Fill out[done:] with floor(2^40 L), L of the Laplace law of scale 1."""
    while done < len(out):
        if at >= len(words):
            return done, at, SHORT
        word = words[at]
        fraction = word >> _24
        decision, after = _exp_decision(words, at + 1, fraction << _24)
        if decision == _REJECT:
            at = after
            continue
        whole = 0
        while decision == _ACCEPT:
            decision, after = _exp_of_one_decision(words, after)
            whole += 1
        if decision != _REJECT:
            return done, at, SHORT if decision == _SHORT else OPEN
        magnitude = np.int64(whole - 1) << 40 | np.int64(fraction)
        out[done] = ~magnitude if word & _1 else magnitude
        done += 1
        at = after
    return done, at, DONE


@kernel
def _octave_decision(words: Words, at: int, fraction: np.uint64) -> tuple[int, int]:
    """Accept with probability 2^-(fraction / 2^32)."""
    if at >= len(words):
        return _SHORT, at
    first = words[at]
    low = high_product(fraction << _32, _LN2)  # 2^64 gamma lies in [low, low + 2)
    if first >= low + _2 or fraction == _0:
        return _ACCEPT, at + 1
    if first < low:
        return _even_run(words, at + 1, first)
    return _OPEN, at + 1


@kernel
def _coins_decision(words: Words, at: int, coins: int) -> tuple[int, int]:
    """Accept with probability 2^-coins."""
    while coins > 0:
        if at >= len(words):
            return _SHORT, at
        some = min(coins, 64)
        if words[at] >> np.uint64(64 - some) != _0:
            return _REJECT, at + 1
        coins -= some
        at += 1
    return _ACCEPT, at


@kernel
def _gap_decision(words: Words, at: int, gap: int) -> tuple[int, int]:
    """Accept with probability 2^-(gap / 2^32): coins, then the fraction; if that stays open, stop before it."""
    decision, at = _coins_decision(words, at, gap >> 32)
    if decision != _ACCEPT:
        return decision, at
    decision, after = _octave_decision(words, at, np.uint64(gap) & _MASK32)
    return decision, (at if decision == _OPEN else after)


@kernel
def whole_scores(scores: NDArray[np.float64], factor: float, limit: float, out: NDArray[np.int64]) -> None:
    """Scores times `factor`, clipped to `limit` and rounded; what is not a number counts as zero."""
    for j in range(len(scores)):
        score = scores[j] * factor
        if not abs(score) <= limit:
            score = 0.0 if score != score else (limit if score > 0.0 else -limit)
        out[j] = np.int64(np.rint(score))


@kernel
def octave_counts(scores: NDArray[np.int64], gaps: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
    """Gaps below the best score, and how many candidates each octave holds; the last takes the rest.

    A gap counts 2^-32 octaves; candidate j has weight 2^-(gaps[j] / 2^32), and octave a the gaps from a 2^32 on.
    """
    best = scores.max()
    tally = np.zeros((4, LAST_OCTAVE + 1), dtype=np.int64)  # four, so that runs of one octave do not wait on themselves
    for j in range(len(scores)):
        gap = min(np.uint64(best - scores[j]), _FARTHEST)
        gaps[j] = np.int64(gap)
        tally[np.uint64(j) & _3, min(gap >> _32, _31)] += 1
    counts[:] = tally.sum(axis=0)


@kernel
def _candidate_in_octave(gaps: NDArray[np.int64], octave: int, rank: int) -> int:
    """The candidate of this octave that `rank` others of it stand before."""
    low = np.int64(octave) << 32
    high = low + (np.int64(1) << 32) if octave < LAST_OCTAVE else np.int64(2**62)
    for j in range(len(gaps)):
        if low <= gaps[j] < high:
            if rank == 0:
                return j
            rank -= 1
    return -1


@kernel
def pick_candidates(
    words: Words,
    at: int,
    gaps: NDArray[np.int64],
    counts: NDArray[np.int64],
    out: NDArray[np.int64],
    done: int,
) -> tuple[int, int, int]:
    """Fill out[done:] with independent candidates, each drawn with probability in proportion to its weight.

    A proposal has the weight 2^-a of its octave a (a whole number over 2^31), and is kept with the rest of its weight.
    """
    envelope = _0
    for octave in range(LAST_OCTAVE + 1):
        envelope += np.uint64(counts[octave]) << np.uint64(LAST_OCTAVE - octave)
    excess = (_0 - envelope) % envelope  # 2^64 modulo the envelope: words below it would make the remainder uneven
    while done < len(out):
        if at >= len(words):
            return done, at, SHORT
        word = words[at]
        after = at + 1
        if word < excess:
            at = after
            continue
        rest = word % envelope
        octave = 0
        while True:
            weight = np.uint64(counts[octave]) << np.uint64(LAST_OCTAVE - octave)
            if rest < weight:
                break
            rest -= weight
            octave += 1
        candidate = _candidate_in_octave(gaps, octave, int(rest >> np.uint64(LAST_OCTAVE - octave)))
        decision, after = _gap_decision(words, after, gaps[candidate] - (octave << 32))
        if decision == _REJECT:
            at = after
        elif decision == _ACCEPT:
            out[done] = candidate
            done += 1
            at = after
        else:
            return done, at, SHORT if decision == _SHORT else OPEN
    return done, at, DONE


@kernel
def coin_flips(
    words: Words,
    at: int,
    thresholds: Words,
    guide: NDArray[np.int64],
    flips: int,
    flip: int,
    out: NDArray[np.int64],
    done: int,
) -> tuple[int, int, int, int]:
    """Write the places of heads among `flips` coins, from place `flip` on, into out[done:], while there is room.

    A word tells the tails before the next head: as many as there are powers 2^64 (1-q)^k, k = 1, 2, ..., above it.
    thresholds[k-1] is the power rounded down to a whole number less than 2 below it; a word that near is left `OPEN`. A
    word below the last threshold stands for as many tails as there are thresholds, and new coins. guide[b] is how many
    thresholds all words with leading ten bits b lie below: where the search begins. Returns how far it came, the next
    place and word, and why it stopped.
    """
    most = len(thresholds)
    while flip < flips and done < len(out):
        if at >= len(words):
            return done, flip, at, SHORT
        word = words[at]
        tails = guide[word >> _54]
        while tails < most and word < thresholds[tails]:
            tails += 1
        if tails < most and word - thresholds[tails] < _2:
            return done, flip, at, OPEN
        at += 1
        if tails >= flips - flip:
            flip = flips
        elif tails == most:
            flip += tails
        else:
            out[done] = flip + tails
            done += 1
            flip += tails + 1
    return done, flip, at, DONE
