"""The queue, against the largest of all."""

import numpy as np

from tacit.kernels.frank_wolfe import queue


def test_the_queue_finds_the_largest_after_every_change():
    rng = np.random.default_rng(7)
    d = 57
    scores = rng.integers(-100, 100, d)
    heap, place, keys = np.empty(d, dtype=np.int32), np.empty(d, dtype=np.int32), np.empty(d, dtype=np.int64)
    queue.heapify(scores, heap, place, keys)
    for _ in range(500):
        places = rng.integers(0, d, rng.integers(1, 8))
        scores[places] = rng.integers(-100, 100, len(places)) // rng.choice([1, 10, 100])
        queue.lift(places, scores, heap, place, keys)
        found = queue.largest(scores, heap, place, keys)
        assert abs(scores[found]) == np.abs(scores).max()
        np.testing.assert_array_equal(place[heap], np.arange(d))
