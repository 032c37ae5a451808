"""The iterates of coordinate descent: in which order coordinates are visited, and which average is returned.

Everything here is a function of public numbers and of what was released.

The order of the rule is "jittered": that of the table, in which each pass moves every column by a random part of half
the table's width. Columns that tell of one thing (levels of a category, lengths and areas) mostly stand next to each
other, and a pass that goes through them together settles them between themselves; where columns stand by chance the
order is as good as any. A fixed order has, on some tables, a direction along which it hardly moves, the slower the
more columns there are, and random changes of the order break it (Lee and Wright, "Random permutations fix a worst case
for cyclic coordinate descent", 2019). Such a direction is what many columns have in common that are not centred:
there, above 100 of them, every pass is in a new random order, as it was before this rule. Orders by smoothness were
tried and did not hold on other sets. Measured in `benchmarks/rules/order.py`.

Periodic averaging is that of the paper on DP-CD (Mangold et al. 2022, Algorithm 1): T outer loops of K updates, each of
which starts from the mean of all iterates of the one before. Its Theorem 3.3 has two cases. If the objective is
mu-strongly convex in the norm |w|_M^2 = sum_j h M_j w_j^2, which a penalty of strengths l2_j makes it for
mu = min_j l2_j / (h M_j), loops have K = 2 d' (1 + 1 / mu) updates, which is 2 (1 + 1 / mu) passes: each halves the
excess, and as many are made as there are passes for. If it is convex and no more, or K is more than all passes, T = 1:
the mean of all iterates. (The theorem's number of loops holds the unknown excess of the start; the number of passes is
the solver's or the user's. The intercept, which no penalty holds, is not counted.)
"""

import math

import numpy as np

from tacit._types import Floats, Integers
from tacit.privacy import Gate

ORDERS = ("jittered", "permuted", "cyclic", "random")
_JITTER = 0.5  # of the width: how far a column may move back in a pass
_MANY = 100  # columns

_FINE = 1 << 20  # steps of a draw between 0 and 1


def usual_order(columns: int, *, centred: bool) -> str:
    """The order of the rule: near the table's, but for many columns that are not centred."""
    return "jittered" if centred or columns <= _MANY else "permuted"


def coordinates(order: str, width: int, gate: Gate) -> Integers:
    """The coordinates of one pass; but for "random" ones, each once."""
    if order == "random":
        return gate.publicly(width, width)
    if order == "permuted":
        return gate.publicly(width)
    places = np.arange(width, dtype=np.float64)
    if order == "jittered":
        places += _JITTER * width * gate.publicly(_FINE, width) / _FINE
    return np.argsort(places, kind="stable").astype(np.int64, copy=False)


def outer_loops(averaging: str | int, passes: int, convexity: float) -> int:
    """How often periodic averaging starts again, in passes of an objective of this strong convexity; 0: it does not."""
    if isinstance(averaging, int):
        return min(averaging, passes)
    if averaging != "periodic":
        return 0
    longest = 2.0 * (1.0 + 1.0 / convexity) if convexity > 0.0 else math.inf
    return max(1, math.floor(passes / longest))


class Average:
    """The average of iterates that is returned: over the last passes, or over each of the paper's outer loops.

    Parameters
    ----------
    passes : int
        How many there will be.
    loops : int
        Of periodic averaging; 0: the mean over the last passes instead.
    averaging : str or int
        Of "tail" the last passes are a half of them, of all else the last one.
    """

    def __init__(self, passes: int, loops: int, averaging: str | int) -> None:
        self._passes, self._loops = passes, loops
        self._tail = passes - passes // 2 if averaging == "tail" else 1
        self._total: Floats | float = 0.0
        self._count = 0
        self.value = np.empty(0)

    def add(self, done: int, start: Floats, order: Integers, changes: Floats, w: Floats) -> bool:
        """Take in a pass from `start` to `w`; whether it moved `w`, because an outer loop is over."""
        if self._loops == 0:
            if done > self._passes - self._tail:
                self._take(w, 1)
                self.value = np.asarray(self._total) / self._count
            return False
        sum_over_updates = start * len(order)
        np.add.at(sum_over_updates, order, changes * np.arange(len(order), 0, -1))  # a change stays until the end
        self._take(sum_over_updates, len(order))
        if done * self._loops // self._passes == (done - 1) * self._loops // self._passes:
            return False
        self.value = np.asarray(self._total) / self._count
        self._total, self._count = 0.0, 0
        w[:] = self.value
        return True

    def _take(self, total: Floats, count: int) -> None:
        self._total = self._total + total
        self._count += count

    def amplification(self, held: float) -> float:
        """The deviation of a returned weight over that of one step's noise, of which a step leaves the part `held`."""
        reach = np.cumsum(held ** np.arange(self._passes))  # of noise k passes before the end, on the sum of iterates
        tail = self._tail if self._loops == 0 else -(-self._passes // self._loops)
        reach[tail:] -= reach[:-tail].copy() if tail < self._passes else 0.0
        return float(np.linalg.norm(reach)) / tail
