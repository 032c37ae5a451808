"""Compiled draws of signed vertices by scores that are linear in one public number: a_j = rint(scale r_j) + b_j.

All scores move when the scale does, and none of them is written down. A coordinate stands in a bucket for every scale
from the present one down to `lowest`: between the two a score is monotone, so that |a_j| is at most the larger of its
values at both. The scale only falls, until it passes `lowest` and all coordinates are sorted anew. As in `vertices`, an
envelope that is too high costs rounds, and no envelope bends the law.

`Lines` are scale, lowest, rates, constants: what scores come from, now and down to the lowest scale.
"""

import numpy as np

from tacit.privacy.noise.kernels import SHORT, Words, kernel
from tacit.privacy.noise.vertices import (
    TURNED_DOWN,
    Buckets,
    Integers,
    Places,
    Round,
    buckets_in,
    judge,
    lower,
    promote,
    propose,
    vertex_of,
)

Lines = tuple[float, float, Integers, Integers]


@kernel
def score_at(scale: float, rate: int, constant: int) -> int:
    """rint(scale rate) + constant."""
    return int(np.rint(scale * rate)) + constant


@kernel
def _largest_between(scale: float, lowest: float, rate: int, constant: int) -> int:
    return max(abs(score_at(scale, rate, constant)), abs(score_at(lowest, rate, constant)))


@kernel
def write_scores(scale: float, rates: Integers, constants: Integers, out: Integers) -> None:
    """All scores, at this scale."""
    for j in range(len(out)):
        out[j] = score_at(scale, rates[j], constants[j])


@kernel
def write_largest(lines: Lines, out: Integers) -> None:
    """The largest |score| of each coordinate between the two scales."""
    scale, lowest, rates, constants = lines
    for j in range(len(out)):
        out[j] = _largest_between(scale, lowest, rates[j], constants[j])


@kernel
def promote_rates(places: Integers, lines: Lines, buckets: Buckets) -> int:
    """Promote the coordinates at these places; returns the largest |rate| among them."""
    scale, lowest, rates, constants = lines
    steepest = 0
    for j in places:
        if not 0 <= j < len(rates):
            raise IndexError("a place is outside the scores")
        promote(j, _largest_between(scale, lowest, rates[j], constants[j]), buckets)
        steepest = max(steepest, abs(rates[j]))
    return steepest


@kernel
def draw_by_rates(words: Words, at: int, lines: Lines, scores: Integers, standing: Places, at_least: Places) -> Round:
    """Draw one vertex, as `draw_from_buckets` does; the score of every coordinate proposed is left in `scores`."""
    scale, lowest, rates, constants = lines
    buckets = buckets_in(standing, at_least)
    while True:
        proposal, envelope, at = propose(words, at, buckets)
        if proposal < 0:
            return -1, at, SHORT
        j = proposal >> 1
        scores[j] = score_at(scale, rates[j], constants[j])
        vertex = vertex_of(proposal, scores[j])
        at, stopped = judge(words, at, at + 1, vertex, envelope, scores[j])
        if stopped != TURNED_DOWN:
            return vertex, at, stopped
        lower(j, _largest_between(scale, lowest, rates[j], constants[j]), envelope, buckets)
