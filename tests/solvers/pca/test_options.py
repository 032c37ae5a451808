"""The options of the solvers of PCA: what they change in the plan and in the run, and which are refused."""

import math

import numpy as np
import pytest

from tacit.metrics import captured_variance_ratio, principal_angles
from tacit.solvers.pca import Power, Stochastic, VarianceReduced, steps

from .support import fitted, spiked

pytestmark = pytest.mark.filterwarnings("ignore:random_state is set:UserWarning")

OPTIONS = [
    (Power(n_iter=7), {"products": 7}),
    (Stochastic(n_iter=5, sampling_rate=0.5), {"steps": 5}),
    (Stochastic(sampling_rate=1.0, clip=0.4), {"steps": 20}),
    (Stochastic(n_iter=30, step_size=2.0), {"steps": 30}),
    (VarianceReduced(n_snapshots=3, n_inner=4), {"snapshots": 3, "corrections": 12}),
    (VarianceReduced(n_snapshots=5, n_inner=0, clip=0.4), {"snapshots": 5}),
    (VarianceReduced(sampling_rate=1.0, step_size=5.0), {"snapshots": 16, "corrections": 16}),
]


@pytest.mark.parametrize(("solver", "counts"), OPTIONS, ids=[str(solver) for solver, _ in OPTIONS])
def test_options_are_what_is_planned_and_run(solver, counts):
    X = spiked()
    model = fitted(solver, X, 8.0)
    planned = {release.name: release for release in model.plan_.plan.releases}
    steps = {"products", "steps", "snapshots", "corrections"}
    assert {name: release.count for name, release in planned.items() if name in steps} == counts
    rate = getattr(solver, "sampling_rate", None)
    assert {release.sampling for release in planned.values()} <= {1.0, 0.25 if rate is None else rate}
    assert ("lengths" in planned) == (hasattr(solver, "clip") and solver.clip is None)
    assert captured_variance_ratio(model.components_, X, center=False) > 0.9


def test_steps_of_gradient_ascent_are_those_of_the_formula():
    # Without noise and with all rows: V <- polar(V + s A V / (n R^2)), from where the first product leads.
    X = spiked(500)
    solver = Stochastic(n_iter=3, step_size=0.7)
    model = fitted(solver, X, math.inf)
    V = fitted(Stochastic(n_iter=1, step_size=1e-12), X, math.inf)  # where it starts
    start = _span(V, X)
    A = X.T @ X / 500
    for _ in range(3):
        start = steps.orthonormal(start + 0.7 * A @ start)
    inner = start.T @ A @ start
    expected = (start @ np.linalg.eigh(inner)[1][:, ::-1]).T[:2]
    assert principal_angles(model.components_, expected).max() < 1e-6


def _span(model, X):
    """All columns that a fit without noise follows, of which it gives only k: from the same public draws."""
    seen = []
    honest = steps.orthonormal
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steps, "orthonormal", lambda M: seen.append(honest(M)) or seen[-1])
        fitted(model.solver, X, math.inf)
    return seen[-1]


@pytest.mark.parametrize(
    ("solver", "message"),
    [
        (Power(n_iter=0), "n_iter must be at least 1"),
        (Power(n_iter=10**6), "at most 100,000 for the power solver"),
        (Stochastic(sampling_rate=0.0), r"sampling_rate must lie in \(0, 1\]"),
        (Stochastic(step_size=-1.0), "step_size"),
        (VarianceReduced(n_inner=-1), "n_inner must be at least 0"),
        (VarianceReduced(n_snapshots=1_000, n_inner=1_000), "1,000,000 corrections"),
        (VarianceReduced(clip=0.0), "clip"),
    ],
)
def test_options_that_no_task_can_have_are_refused(solver, message):
    with pytest.raises(ValueError, match=message):
        fitted(solver, spiked(100))


@pytest.mark.parametrize("scale", [1e-90, 1e90])
@pytest.mark.parametrize("solver", [Stochastic(n_iter=3), VarianceReduced(n_snapshots=2, step_size=3.0)])
def test_the_units_of_the_rows_change_nothing(solver, scale):
    model = fitted(solver, spiked(), 8.0)
    scaled = fitted(solver, scale * spiked(), 8.0, row_norm=scale)
    np.testing.assert_allclose(np.abs(np.sum(model.components_ * scaled.components_, axis=1)), 1.0, rtol=1e-3)
    np.testing.assert_allclose(scaled.reliability_, model.reliability_, atol=1e-3)


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
@pytest.mark.parametrize("solver", [Stochastic(n_iter=3, step_size=0.5), VarianceReduced(n_snapshots=2, step_size=0.5)])
def test_rows_of_zeros_end_no_step(solver, epsilon):
    # An error would tell that no row differs from zero, after releases were made.
    model = fitted(solver, np.zeros((50, 6)), epsilon)
    np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(2), atol=1e-9)
