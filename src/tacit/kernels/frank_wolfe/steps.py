"""Frank-Wolfe over sparse rows: a whole gradient that changes only where a step changes it.

A step shrinks all weights and adds to one of them. Only rows with an entry there are looked at; the margins of all
others shrink by a public factor, which is kept once for all of them: m_i is as of iteration `since[i]`, and shrink[t]
is the logarithm of the product of all factors up to t.

Due dates. A row's slope is left as it is until the shrinking could have moved it by `tolerance`: shrinking m to r m
moves it by at most curvature |m| (1 - r). The iteration at which that is passed is the row's due date, and the rows
of one due date form a doubly linked list. A look at a row brings its margin up to date; a slope that is found off by no
more than `spare`, a part of the tolerance, is left as it is, and the due date is set by what remains. So at all times a
slope is off by at most `tolerance`. When a row is looked at, and what it then adds, depends on that row and on public
history alone.

What belongs together comes in plain tuples, in this order:
problem    listed (see `columns`), rule (see `rows`), path, dates: nothing of it changes
path       gains, shrink: what each iteration adds to a weight, but for the sign, and what is left of those before
dates      curvature, tolerance, spare
state      margins, since, slopes, due, heads, after, before: of rows, but for the heads of the lists of due dates
told       scores, held, notes: the whole gradient, and where it is told what changed
held       the memory of a `Buckets`
notes      noted, marks: places of the scores that changed, and when each was noted last
"""

import math

from tacit._types import Floats, Integers, Places
from tacit.kernels.frank_wolfe.columns import Listed, entry
from tacit.kernels.frank_wolfe.rows import Rule, clipped, slope_at
from tacit.kernels.prefetch import prefetch
from tacit.privacy.noise.kernels import DONE, Words
from tacit.privacy.noise.vertices import Held, buckets_in, draw_from_buckets, promote, whole_octave
from tacit.problems.compiled import kernel

Path = tuple[Floats, Floats]
Dates = tuple[float, float, float]
Problem = tuple[Listed, Rule, Path, Dates]
State = tuple[Floats, Places, Floats, Places, Places, Places, Places]
Notes = tuple[Integers, Places]
Told = tuple[Integers, Held, Notes]

IN_BUCKETS, NOTED = 0, 1  # what becomes of a score that changed


# Due dates


@kernel
def due_date(margin: float, t: int, shrink: Floats, curvature: float, tolerance: float) -> int:
    """The first iteration after t at which a slope could be off by more than the tolerance; 0 if there is none."""
    move = curvature * abs(margin)
    if not move > tolerance:
        return 0
    least = shrink[t] + math.log1p(-tolerance / move)
    low, high = t + 1, len(shrink)
    while low < high:
        middle = (low + high) >> 1
        if shrink[middle] < least:
            high = middle
        else:
            low = middle + 1
    return low if low < len(shrink) else 0


@kernel
def _move(i: int, date: int, due: Places, heads: Places, after: Places, before: Places) -> None:
    """Take row i out of the list it is in, if any, and put it into that of its new due date."""
    if due[i] == date:
        return
    if due[i] != 0:
        if before[i] >= 0:
            after[before[i]] = after[i]
        else:
            heads[due[i]] = after[i]
        if after[i] >= 0:
            before[after[i]] = before[i]
    due[i] = date
    if date != 0:
        first = heads[date]
        after[i], before[i] = first, -1
        if first >= 0:
            before[first] = i
        heads[date] = i


# Steps


@kernel
def other_octave(one: int, other: int) -> bool:
    """True where two scores have different whole octaves, and where their signs differ; false for nearly all others.

    Octaves end with a whole multiple of 2^32 above zero, and begin with one below.
    """
    return ((one ^ other) | ((one - 1) ^ (other - 1))) >> 32 != 0


@kernel
def sparse_step(t: int, j: int, gain: float, kind: int, problem: Problem, state: State, told: Told) -> int:
    """Iteration t: shrink all weights, add `gain` to weight j, and bring the whole gradient up to date.

    Scores that changed are put right in their buckets at once, or their places are left in `noted`, as `kind` says;
    returns how many are there.
    """
    (entries, (bits, starts, rows)), rule, (_, shrink), (curvature, tolerance, spare) = problem
    data, indices, indptr, bound = entries
    targets, unit = rule[0], rule[-1]
    margins, since, slopes, due, heads, after, before = state
    scores, (standing, at_least), (noted, marks) = told
    buckets = buckets_in(standing, at_least)
    count, mask = 0, (1 << bits) - 1
    last, left = 0, math.exp(shrink[t])  # what is left of a margin as of iteration `last`; often the same for many rows
    p, end = starts[j >> bits], starts[(j >> bits) + 1]
    # On large tables most of the time is spent waiting for memory: what will be needed is asked for all at once.
    for q in range(p, end):
        if rows[q] & mask == j & mask:
            prefetch(indptr, rows[q] >> bits)
            prefetch(margins, rows[q] >> bits)
            prefetch(targets, rows[q] >> bits)
    for q in range(p, end):
        if rows[q] & mask == j & mask:
            prefetch(indices, indptr[rows[q] >> bits])
            prefetch(data, indptr[rows[q] >> bits])
    while True:
        # The rows of column j, then those that are due. One loop for both: a call for each row would cost as much as
        # what it does.
        while p < end and rows[p] & mask != j & mask:
            p += 1
        if p < end:
            i = rows[p] >> bits
            added = gain * entry(i, j, entries)
            p += 1
        elif heads[t] >= 0:
            i = heads[t]
            added = 0.0
        else:
            return count
        if since[i] != last:
            last = since[i]
            left = math.exp(shrink[t] - shrink[last])
        margin = margins[i] * left + added
        margins[i], since[i] = margin, t
        steep = slope_at(i, margin, rule)
        off = abs(steep - slopes[i])
        if off <= spare:
            _move(i, due_date(margin, t, shrink, curvature, tolerance - off), due, heads, after, before)
            continue
        _move(i, due_date(margin, t, shrink, curvature, tolerance), due, heads, after, before)
        old, new, slopes[i] = unit * slopes[i], unit * steep, steep
        for k in range(indptr[i], indptr[i + 1]):
            prefetch(scores, indices[k])
        for k in range(indptr[i], indptr[i + 1]):
            # What the row adds now, less what it added before.
            x = clipped(data[k], bound)
            change = int(new * x) - int(old * x)
            column = indices[k]
            was = scores[column]
            now = was + change
            scores[column] = now
            if kind == IN_BUCKETS:
                # A bucket is never below its score, so most need not be looked up.
                if other_octave(was, now) and whole_octave(now) > whole_octave(was):
                    promote(column, now, buckets)
            elif change != 0 and marks[column] != t:
                marks[column] = t
                noted[count] = column
                count += 1


@kernel
def sparse_walk(
    words: Words, at: int, picks: Integers, done: int, stop: int, problem: Problem, state: State, told: Told
) -> tuple[int, int, int, int]:
    """Draw a vertex by the scores, step to it, and so on, until `stop` are drawn; none is stepped to at the very end.

    Vertices go to `picks`, of which `done` are there. Returns how many are there now, and where and why the last draw
    stopped, as `draw_from_buckets` does; all vertices in `picks` are then stepped to.
    """
    _, _, (gains, _), _ = problem
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
