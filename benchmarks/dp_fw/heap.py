"""The largest entry of a whole gradient that changes: a binary heap of |score| with stale keys."""

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
def largest(scores: Integers, heap: Places, place: Places, keys: Integers) -> int:
    """The coordinate of the largest |score|.

    Keys are never too small. So once the key on top is true, it is at least as large as all others are.
    """
    while True:
        j = heap[0]
        if keys[j] == abs(scores[j]):
            return j
        keys[j] = abs(scores[j])
        _sink(0, heap, place, keys)
