"""Algorithm 3 of the paper: the largest entry of a whole gradient that changes, by a heap of |score| with stale keys.

The paper uses a Fibonacci heap, for its cheap way to raise a key. A binary heap raises one in log d steps at most, and
in fewer as a rule; both leave keys that are too large in place until they come to the top. For comparison only: the
library has no use for it, as without noise it takes the gradient anew from all rows.
"""

import numpy as np

from tacit._types import Integers, Places
from tacit.problems.compiled import kernel


@kernel
def _swap(one: int, other: int, heap: Places, place: Places) -> None:
    heap[one], heap[other] = heap[other], heap[one]
    place[heap[one]], place[heap[other]] = one, other


@kernel
def _sink(at: int, heap: Places, place: Places, keys: Integers) -> None:
    while True:
        child = 2 * at + 1
        if child >= len(heap):
            return
        if child + 1 < len(heap) and keys[heap[child + 1]] > keys[heap[child]]:
            child += 1
        if keys[heap[child]] <= keys[heap[at]]:
            return
        _swap(at, child, heap, place)
        at = child


@kernel
def heapify(scores: Integers, heap: Places, place: Places, keys: Integers) -> None:
    """A binary heap of all coordinates by |score|, the largest on top."""
    for j in range(len(scores)):
        heap[j] = place[j] = j
        keys[j] = abs(scores[j])
    for at in range(len(heap) // 2 - 1, -1, -1):
        _sink(at, heap, place, keys)


@kernel
def lift(places: Integers, scores: Integers, heap: Places, place: Places, keys: Integers) -> None:
    """Bring up coordinates whose |score| rose. Those whose |score| fell keep their old key, which is too large."""
    for j in places:
        if abs(scores[j]) > keys[j]:
            keys[j] = abs(scores[j])
            at = place[j]
            while at > 0 and keys[heap[(at - 1) >> 1]] < keys[j]:
                _swap(at, (at - 1) >> 1, heap, place)
                at = (at - 1) >> 1


@kernel
def largest(scores: Integers, heap: Places, place: Places, keys: Integers) -> tuple[int, int]:
    """The coordinate of the largest |score|, and how many came to the top before it was found.

    Keys are never too small. So once the key on top is true, it is at least as large as all others are.
    """
    pops = 0
    while True:
        j, pops = heap[0], pops + 1
        if keys[j] == abs(scores[j]):
            return j, pops
        keys[j] = abs(scores[j])
        _sink(0, heap, place, keys)


class Heap:
    """Finds the best vertex of scores that others change."""

    def __init__(self, scores: Integers) -> None:
        self._scores, self.pops = scores, 0
        self._heap, self._place = (np.empty(len(scores), dtype=np.int32) for _ in range(2))
        self._keys = np.empty_like(scores)
        heapify(scores, self._heap, self._place, self._keys)

    def changed(self, places: Integers) -> None:
        """Take note that the scores at these places changed; due before the next look."""
        lift(places, self._scores, self._heap, self._place, self._keys)

    def best(self) -> tuple[int, int]:
        """(j, sign) of the vertex along which the gradient falls most steeply."""
        j, pops = largest(self._scores, self._heap, self._place, self._keys)
        self.pops += pops
        return int(j), -1 if self._scores[j] > 0 else 1
