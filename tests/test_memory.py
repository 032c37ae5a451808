"""What a fit on dense data holds besides the data."""

import tracemalloc
import warnings

import numpy as np
import pytest

from tacit import Lasso, LogisticRegression, Ridge
from tacit.solvers import Coordinate, Gradient


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(
    ("model", "copies"),
    [
        (Lasso(solver=Coordinate(n_passes=2)), 0.5),  # bounded rows and columns are in single precision
        (LogisticRegression(solver=Coordinate(n_passes=2)), 0.5),
        (Ridge(solver=Gradient(n_iter=2)), 0.5),
    ],
    ids=["lasso", "logistic regression", "ridge"],
)
def test_a_fit_holds_one_copy_of_the_data_and_little_else(model, copies, order):
    rng = np.random.default_rng(0)
    X = np.asarray(rng.standard_normal((20_000, 100)), order=order)
    y = X[:, 0] > 0 if isinstance(model, LogisticRegression) else X[:, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)  # what is made once, such as compiled code, is not counted
        tracemalloc.start()
        try:
            model.fit(X, y)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert copies < peak / X.nbytes < copies + 0.3


@pytest.mark.parametrize("kind", ["model", "pipeline"])
def test_memory_does_not_grow_with_the_rows_of_blocks(kind, monkeypatch):
    """Four times the rows, in blocks of one size: a scratch file holds what a scratch of 100 kB does not."""
    from tacit import PrivateScaler, make_private_pipeline
    from tacit.blocks import scratch

    monkeypatch.setattr(scratch, "IN_MEMORY", 100_000)

    def blocks(count):
        def start():
            for number in range(count):
                X = np.random.default_rng(number).standard_normal((5_000, 8))
                yield X, X[:, 0] > 0

        return start

    def peak(count):
        model = LogisticRegression(solver=Gradient(n_iter=2))
        model = make_private_pipeline(PrivateScaler(), model) if kind == "pipeline" else model
        tracemalloc.start()
        try:
            model.fit_blocks(blocks(count))
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(2)  # what is made once
    assert peak(96) < 1.1 * peak(24) < 24 * 5_000 * 8 * 8
