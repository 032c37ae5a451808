"""What `bounds` may be, and what it says of each column."""

import numpy as np
import pytest

from tacit.problems.bounds import Bounds

INF = np.inf


@pytest.mark.parametrize(
    ("told", "low", "high"),
    [
        ((0, 1), [0, 0], [1, 1]),
        (np.array([-2.0, 5.0]), [-2, -2], [5, 5]),
        ([(0, 1), (2, 3)], [0, 2], [1, 3]),
        (np.array([[0, 1], [2, 3]]), [0, 2], [1, 3]),
        ([None, (2, 3)], [-INF, 2], [INF, 3]),
        ({1: (2, 3)}, [-INF, 2], [INF, 3]),
        ({np.int64(0): (2, 3)}, [2, -INF], [3, INF]),
        ({"b": (2, 3)}, [-INF, 2], [INF, 3]),
        ({"b": (2, 3), 0: [0, 1]}, [0, 2], [1, 3]),
    ],
)
def test_every_spelling_says_what_each_column_lies_between(told, low, high):
    bounds = Bounds.of(told, 2, ["a", "b"])
    np.testing.assert_array_equal(bounds.low, low)
    np.testing.assert_array_equal(bounds.high, high)
    np.testing.assert_array_equal(bounds.declared, np.isfinite(low))
    assert bounds.are_whole == bool(np.isfinite(low).all())


@pytest.mark.parametrize("told", [None, {}, [None, None]])
def test_nothing_declared_is_none(told):
    assert Bounds.of(told, 2) is None


@pytest.mark.parametrize(
    ("told", "names", "message"),
    [
        ({"c": (0, 1)}, ["a", "b"], "bounds names the column 'c', which X does not have"),
        ({"a": (0, 1)}, None, "X has no names"),
        ({2: (0, 1)}, None, "columns 0 to 1"),
        ({"a": (0, 1), 0: (0, 2)}, ["a", "b"], "twice"),
        ({True: (0, 1)}, None, "texts or whole numbers"),
        ([(0, 1)] * 3, None, "each of 2 columns, got 3"),
        ((3, 2), None, "low < high"),
        ((0.0, 1e-120), None, "low < high"),
        ({"a": (0, float("nan"))}, ["a", "b"], r"bounds\['a'\]"),
        ({"a": 3}, ["a", "b"], "must be a pair"),
        (5, None, "one pair for each column"),
    ],
)
def test_what_no_column_can_have_is_refused(told, names, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Bounds.of(told, 2, names)


def test_a_bound_on_all_entries_alike():
    assert Bounds.of((-2, 2), 3).entry == 2.0
    assert Bounds.of((-2, 1), 3).entry is None
    assert Bounds.of([(-2, 2), (-1, 1)], 2).entry is None
    assert Bounds.of({0: (-2, 2)}, 2).entry is None
