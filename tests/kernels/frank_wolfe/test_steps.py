"""Whole gradients that follow the steps: slopes within their tolerance, sweeps, what is noted."""

import itertools

import numpy as np
import pytest

from tacit.kernels.frank_wolfe import follow
from tacit.kernels.frank_wolfe import steps as kernels
from tacit.privacy.noise.vertices import empty_buckets

from .support import CURVATURE, D, Run, T, either_loss, table, targets


@either_loss
@pytest.mark.parametrize("tolerance", [0.0, 0.05, 0.3])
@pytest.mark.parametrize("spare", [0.0, 0.5])
def test_slopes_are_never_off_by_more_than_the_tolerance(loss, tolerance, spare):
    rng = np.random.default_rng(3)
    radius = 0.6 / CURVATURE[loss]
    run = Run(table(), targets(), loss, tolerance=tolerance, spare=spare, limit=99.0, radius=radius)
    off = []
    for t in range(1, T):
        run.step(t, rng.integers(D), rng.choice([-1, 1]))
        off.append(np.abs(run.slopes - run.exact_slopes).max())
        np.testing.assert_array_equal(run.scores, run.whole(run.slopes))
    assert max(off) <= tolerance + 1e-12
    always = tolerance == 0.0 or (spare == 0.0 and tolerance == 0.05)  # all rows are put right in most steps
    assert always or max(off) > tolerance / 10  # elsewhere rows are left alone in between


def test_a_look_leaves_slopes_that_are_near_enough():
    """With part of the tolerance to spare fewer slopes change; margins are up to date all the same."""
    changed = []
    for spare in (0.0, 0.5):
        rng = np.random.default_rng(8)
        run, count = Run(table(), targets(), tolerance=0.1, spare=spare), 0
        for t in range(1, T):
            before = run.slopes.copy()
            run.step(t, rng.integers(D), rng.choice([-1, 1]))
            count += np.count_nonzero(run.slopes != before)
        changed.append(count)
        np.testing.assert_allclose(run.path[1][T - 1] * run.margins, run.entries @ run.w, atol=1e-12)
    assert 0 < 2 * changed[1] < changed[0]


def test_rows_are_met_once():
    rng = np.random.default_rng(4)
    run = Run(table(), targets())
    for t in range(1, T):
        run.step(t, rng.integers(D), rng.choice([-1, 1]))
        met = run.met[: run.met[-1]]
        assert len(set(met)) == len(met)
        assert set(np.flatnonzero(run.margins)) <= set(met)


def every_way(run, t, changed):
    """The scores by each way to follow the slopes, from the same start."""
    entries, columns = run.listed
    told = empty_buckets(0, 0), (run.noted, np.zeros(D, dtype=np.int32))
    start = run.scores.copy()
    for name in ("put right", "add", "columns", "rows"):
        scores = start.copy()
        if name == "put right":
            follow.put_right(t, changed, follow.NOTED, entries, run.unit, run.slopes, run.changes, (scores, *told))
        elif name == "add":
            follow.add_rows(changed, entries, run.unit, run.slopes, run.changes, scores)
        elif name == "columns":
            follow.sum_columns(columns, entries[-1], run.unit, run.slopes, scores)
        else:
            follow.sum_rows(entries, run.unit, run.slopes, scores)
        yield scores


@pytest.mark.parametrize("bits", [0, 2])
def test_every_way_to_follow_the_slopes_comes_to_the_same_numbers(bits):
    """So which one is taken may follow from the data."""
    rng = np.random.default_rng(6)
    run = Run(table(), targets(), bits=bits)
    for t in range(1, T):
        state = (run.margins, run.slopes, run.anchors), run.met, run.changes
        changed, _ = kernels._look(
            t, rng.integers(D), run.gains[t], (run.listed, run.rule, run.path, run.allowed), state
        )
        found = list(every_way(run, t, changed))
        for scores in found:
            np.testing.assert_array_equal(scores, run.whole(run.slopes))
        run.scores[:] = found[0]


def test_a_step_notes_every_score_that_it_changes_once():
    rng = np.random.default_rng(5)
    run = Run(table(), targets())
    for t in range(1, T):
        before = run.scores.copy()
        noted = run.noted[: run.step(t, rng.integers(D))].tolist()
        assert len(noted) == len(set(noted))
        assert set(np.flatnonzero(run.scores != before)) <= set(noted)


def test_octaves_that_differ_are_told():
    edges = [s * (h * 2**32 + e) for s in (-1, 1) for h in (0, 1, 2, 5) for e in (-2, -1, 0, 1, 2)]
    for one, other in itertools.product(edges, repeat=2):
        if follow.whole_octave(one) != follow.whole_octave(other):
            assert follow.other_octave(one, other)
    assert not follow.other_octave(3, 2**32 - 1)
    assert not follow.other_octave(-1, 1 - 2**32)
