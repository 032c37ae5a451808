"""Frank-Wolfe over sparse rows: a whole gradient that changes only where a step changes it.

A step shrinks all weights and adds to one of them. Margins are kept over the product of all factors so far, `scales`,
so shrinking changes none of them and only rows with an entry in the column are looked at.

A look works out a row's margin. A slope that is off by more than `spare` there is put right; any other stays as it is.
It is off by at most `curvature` times the way from its anchor, the margin that it was taken at, so most need no look at
the loss. In sweeps, at iterations that are fixed before, all rows that have a margin are looked at
(`tacit.solvers.frank_wolfe.path.Path.sweeps`). They are so close that shrinking cannot move a slope by more than what
the tolerance has over `spare` in between: at all times a slope is off by at most the tolerance. When a row is looked
at, and what it then adds, depends on that row and on public history alone.

What belongs together comes in plain tuples, in this order:
problem    listed (see `columns`), rule (see `rows`), path, allowed: nothing of it changes
path       gains, scales, anew, sweeps: what each iteration adds to a weight, but for the sign, and the product of all
           factors; where that begins again, what was left, and 0 elsewhere; which iterations look at all rows
allowed    curvature, spare
state      rows, met, changes (see `follow`)
rows       margins over the scale, slopes, anchors; a row that was never looked at has an infinite anchor
met        the rows that were looked at, in the order of their first look; the last entry is how many
"""

import math

import numpy as np

from tacit._types import Flags, Floats, Integers, Places
from tacit.kernels.frank_wolfe.columns import Listed, entry
from tacit.kernels.frank_wolfe.follow import IN_BUCKETS, NOTED, Changes, Told, follow
from tacit.kernels.frank_wolfe.rows import Rule, clipped, slope_at
from tacit.kernels.prefetch import prefetch
from tacit.privacy.noise.kernels import DONE, Words
from tacit.privacy.noise.vertices import draw_from_buckets
from tacit.problems.compiled import kernel

Path = tuple[Floats, Floats, Floats, Flags]
Allowed = tuple[float, float]
Problem = tuple[Listed, Rule, Path, Allowed]
Rows = tuple[Floats, Floats, Floats]
State = tuple[Rows, Places, Changes]

_NEAR = 2**16  # rows, whose state fits a fast memory: they need not be asked for

__all__ = ["IN_BUCKETS", "NOTED", "sparse_step", "sparse_walk"]


@kernel
def _ask_ahead(j: int, listed: Listed, margins: Floats, targets: Floats) -> None:
    """On large tables most of the time is spent waiting for memory: what will be needed is asked for all at once."""
    (data, indices, indptr, _), (bits, starts, rows, values) = listed
    mask = (1 << bits) - 1
    low, high = starts[j >> bits], starts[(j >> bits) + 1]
    for q in range(low, high):
        if rows[q] & mask == j & mask:
            prefetch(indptr, rows[q] >> bits)
            prefetch(margins, rows[q] >> bits)
            prefetch(targets, rows[q] >> bits)
    if len(values) == 0:
        for q in range(low, high):
            if rows[q] & mask == j & mask:
                prefetch(indices, indptr[rows[q] >> bits])
                prefetch(data, indptr[rows[q] >> bits])


@kernel
def _look(t: int, j: int, gain: float, problem: Problem, state: State) -> tuple[int, int]:
    """Bring margins and slopes up to date; how many slopes changed, and how many entries their rows have."""
    listed, rule, (_, scales, anew, sweeps), (curvature, spare) = problem
    entries, (bits, starts, rows, values) = listed
    (margins, slopes, anchors), met, (moved, were) = state
    indptr, mask, scale = entries[2], (1 << bits) - 1, scales[t]
    if len(margins) > _NEAR:
        _ask_ahead(j, listed, margins, rule[0])
    if anew[t] != 0.0:
        for k in range(met[-1]):
            margins[met[k]] *= anew[t]
    p, end = np.uint64(starts[j >> bits]), np.uint64(starts[(j >> bits) + 1])
    count, held, following = 0, 0, 0
    while True:
        # The rows of column j; then, in a sweep, all that were looked at. One loop for both: a call for each row would
        # cost as much as what it does.
        while p < end and rows[p] & mask != j & mask:
            p += np.uint64(1)
        if p < end:
            row = rows[p] >> bits
            i = np.uint64(row)
            value = clipped(np.float64(values[p]), entries[3]) if len(values) > 0 else entry(row, j, entries)
            margins[i] += gain / scale * value
            p += np.uint64(1)
            if anchors[i] == math.inf:
                anchors[i] = 0.0
                met[met[-1]] = i
                met[-1] += 1
        elif sweeps[t] and following < met[-1]:
            row = met[following]
            i = np.uint64(row)
            following += 1
        else:
            return count, held
        margin = scale * margins[i]
        if curvature * abs(margin - anchors[i]) > spare:
            steep = slope_at(row, margin, rule)
            if abs(steep - slopes[i]) > spare:
                moved[count], were[count] = i, slopes[i]
                slopes[i], anchors[i] = steep, margin
                count, held = count + 1, held + indptr[i + np.uint64(1)] - indptr[i]


@kernel
def sparse_step(t: int, j: int, gain: float, kind: int, problem: Problem, state: State, told: Told) -> int:
    """Iteration t: shrink all weights, add `gain` to weight j, and bring the whole gradient up to date.

    Scores that changed are put right in their buckets at once, or their places are left in `noted`, as `kind` says;
    returns how many are there.
    """
    listed, rule, _, _ = problem
    (_, slopes, _), _, changes = state
    count, held = _look(t, j, gain, problem, state)
    return follow(t, (count, held), kind, listed, rule[-1], slopes, changes, told)


@kernel
def sparse_walk(
    words: Words, at: int, picks: Integers, done: int, stop: int, problem: Problem, state: State, told: Told
) -> tuple[int, int, int, int]:
    """Draw a vertex by the scores, step to it, and so on, until `stop` are drawn; none is stepped to at the very end.

    Vertices go to `picks`, of which `done` are there. Returns how many are there now, and where and why the last draw
    stopped, as `draw_from_buckets` does; all vertices in `picks` are then stepped to.
    """
    gains = problem[2][0]
    scores, (standing, at_least), _ = told
    vertex, stopped = -1, DONE
    while done < stop:
        vertex, at, stopped = draw_from_buckets(words, at, scores, standing, at_least)
        if stopped != DONE:
            break
        picks[done] = vertex
        done += 1
        if done < len(picks):
            gain = -gains[done] if vertex & 1 else gains[done]
            sparse_step(done, vertex >> 1, gain, IN_BUCKETS, problem, state, told)
    return done, vertex, at, stopped
