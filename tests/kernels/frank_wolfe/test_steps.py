"""Whole gradients that follow the steps: slopes within their tolerance, due dates, what is noted."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.kernels.frank_wolfe import steps as kernels

from .support import CURVATURE, D, Run, T, either_loss, table, targets


@given(
    margin=st.floats(-20, 20),
    t=st.integers(1, T - 1),
    tolerance=st.sampled_from([0.0, 1e-3, 0.05, 1.0]),
    curvature=st.sampled_from([0.25, 1.0, 2.0]),
    step=st.sampled_from([0.02, 0.9, 1.0, 2.0]),
)
def test_a_due_date_is_the_first_at_which_the_bound_is_passed(margin, t, tolerance, curvature, step):
    lengths = step / (np.arange(T + 1) + step) if step >= 1 else np.full(T + 1, step)
    shrink = np.cumsum(np.log1p(-lengths * (np.arange(T + 1) > 0)))
    moved = curvature * abs(margin) * -np.expm1(shrink - shrink[t])
    due = kernels.due_date(margin, t, shrink, curvature, tolerance)
    end = due or T + 1
    assert np.all(moved[t:end] <= tolerance * (1 + 1e-9))
    assert due == 0 or moved[due] >= tolerance * (1 - 1e-9)


@either_loss
@pytest.mark.parametrize("tolerance", [0.0, 0.05, 0.3])
@pytest.mark.parametrize("spare", [0.0, 0.5])
def test_slopes_are_never_off_by_more_than_the_tolerance(loss, tolerance, spare):
    rng = np.random.default_rng(3)
    run = Run(table(), targets(), loss, tolerance=tolerance, spare=spare, limit=3.0)
    off = []
    for t in range(1, T):
        run.step(t, rng.integers(D), rng.choice([-0.5, 0.5]) / CURVATURE[loss])
        off.append(np.abs(run.slopes - run.exact_slopes).max())
        np.testing.assert_array_equal(run.scores, run.whole(run.slopes))
    assert max(off) <= tolerance + 1e-12
    assert tolerance == 0.0 or max(off) > tolerance / 10  # rows are left alone in between


def test_a_look_leaves_slopes_that_are_near_enough():
    """With part of the tolerance to spare fewer scores change; margins are up to date all the same."""
    changed = []
    for spare in (0.0, 0.5):
        rng = np.random.default_rng(8)
        run = Run(table(), targets(), tolerance=0.1, spare=spare)
        changed.append(sum(run.step(t, rng.integers(D), rng.choice([-0.5, 0.5])) for t in range(1, T)))
        kept = np.exp(run.shrink[T - 1] - run.shrink[run.since])
        np.testing.assert_allclose(kept * run.margins, run.entries @ run.w, atol=1e-12)
    assert 0 < 2 * changed[1] < changed[0]


def test_every_list_holds_the_rows_due_then():
    rng = np.random.default_rng(4)
    run = Run(table(), targets())
    for t in range(1, T):
        run.step(t, rng.integers(D), rng.choice([-6.0, 6.0]))
        for date in range(T + 1):
            listed, i, last = [], run.heads[date], -1
            while i >= 0:
                assert run.before[i] == last
                listed.append(int(i))
                last, i = i, run.after[i]
            assert sorted(listed) == (np.flatnonzero(run.due == date).tolist() if date else [])
        assert not np.any((run.due > 0) & (run.due <= t))


def test_a_step_notes_every_score_that_it_changes_once():
    rng = np.random.default_rng(5)
    run = Run(table(), targets())
    for t in range(1, T):
        before = run.scores.copy()
        noted = run.noted[: run.step(t, rng.integers(D), 5.0)].tolist()
        assert len(noted) == len(set(noted))
        assert set(np.flatnonzero(run.scores != before)) <= set(noted)


def test_octaves_that_differ_are_told():
    edges = [s * (h * 2**32 + e) for s in (-1, 1) for h in (0, 1, 2, 5) for e in (-2, -1, 0, 1, 2)]
    for one, other in itertools.product(edges, repeat=2):
        if kernels.whole_octave(one) != kernels.whole_octave(other):
            assert kernels.other_octave(one, other)
    assert not kernels.other_octave(3, 2**32 - 1)
    assert not kernels.other_octave(-1, 1 - 2**32)
