"""The path of one fit: plan, calibrate, bound, run, report.

Everything up to `calibrate` sees public numbers only. What comes after sees data, and gives back released numbers only.
"""

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from tacit._types import Floats
from tacit.estimators.progress import tell_progress
from tacit.kernels.gradient import sparse_norms
from tacit.preprocessing.scales import (
    EntryScale,
    LabelScale,
    MagnitudeScale,
    MomentScale,
    NormScale,
    PooledScale,
    Scaling,
)
from tacit.privacy import Gate, Guarantee, Plan, Promise
from tacit.problems import SQUARED, Penalty, clip_rows
from tacit.solvers import Rows, Solver, Task, limits
from tacit.solvers.task import Layout


def planned(request: "Request") -> Promise:
    """Every release of the fit with its noise, before any data is read.

    A budget whose noise does not fit the 64-bit grids of releases is refused here, and more steps than are of use.
    """
    task = request.task
    budget, told = task.budget, f"epsilon={task.budget.epsilon!r} with delta={task.budget.delta!r} is too"
    if budget.mu < 1e-30:
        raise ValueError(f"{told} small for any useful noise")
    plan = _Bounding.of(request).plan(request)
    limits.check_steps(plan, task.options)
    promise = plan.calibrate(budget, task.unit, request.solver.name)
    values = (task.d + 1) * max(100, task.outputs, min(task.d, 2_000))  # no release holds more
    if max(promise.multipliers) * math.sqrt(values) > 2.0**38:
        raise ValueError(f"{told} small for any useful noise")
    if budget.is_private and task.n / min(promise.multipliers) > 2.0**58:
        raise ValueError(f"{told} large: use float('inf') for the non-private limit")
    return promise


_LABEL_PART = 0.2  # of what finding scales is worth: the target is one column, but it matters most
_ENTRY_OF_NORM = 0.1  # what entries of sparse rows are clipped to, over the bound on row norms
_ENTRY_OF_SCALE = 1.5  # and those of dense rows, over a column's scale


@dataclass(frozen=True)
class Request:
    """What an estimator asks of a fit, all of it public."""

    task: Task
    solver: Solver
    penalty: Penalty  # dense columns' strengths are for standardised columns; all else is in the user's units
    row_norm: float | None
    y_bounds: tuple[float, float] | None
    random_state: int | None
    verbose: int


@dataclass(frozen=True, eq=False)
class Fit:
    """What a fit releases: weights in the user's units, the clip they are valid in, and what that cost."""

    coef: Floats
    coef_noise: Floats
    intercept: Floats
    clip_low: Floats
    clip_high: Floats
    y_bounds: tuple[float, float] | None
    plan: Promise
    guarantee: Guarantee


class FewRowsWarning(UserWarning):
    """The budget was too small for the number of rows to find out what was not declared."""


def private_fit(request: Request, X: NDArray[np.floating] | csr_array, targets: Floats) -> Fit:
    """Fit one linear model, spending the whole budget."""
    task = request.task
    bounding, promise = _Bounding.of(request), planned(request)
    progress = tell_progress if request.verbose else None
    with Gate.open(promise, seed=request.random_state, progress=progress, stacklevel=5) as gate:
        rows, scaling, label, y_bounds = bounding.run(gate, X, targets, request.solver.layout)
        target = 1.0 if label is None else float(label.scale[0])
        penalty = request.penalty.on(scaling.scale, target, standardised=not task.sparse)
        solution = request.solver.run(task, rows, penalty, gate)
    _warn_of_lost(scaling, label)
    coef, intercept = _in_user_units(solution.weights, scaling, label)
    coef = np.clip(coef, request.penalty.low, request.penalty.high)  # which a change of units may leave by a rounding
    coef_noise, _ = _in_user_units(solution.noise, scaling, label)
    if task.sparse and request.solver.layout != "entries":
        low, high = np.full(task.d, -math.inf), np.full(task.d, math.inf)
    else:
        low, high = scaling.low, scaling.high
    return Fit(coef, coef_noise, intercept, low, high, y_bounds, promise, gate.guarantee)


@dataclass(frozen=True)
class _Bounding:
    """The bounding step: which scales are released, and for which part of the budget."""

    features: MagnitudeScale | PooledScale | MomentScale | NormScale | EntryScale
    label: LabelScale | None
    task: Task

    @classmethod
    def of(cls, request: Request) -> "_Bounding":
        task = request.task
        label = LabelScale(task.n, request.y_bounds) if task.loss == SQUARED else None
        if task.options.entry_bound is not None:
            return cls(EntryScale(task.d, task.options.entry_bound), label, task)
        if task.sparse:
            return cls(NormScale(task.n, task.d, request.row_norm), label, task)
        if request.row_norm is not None:
            return cls(MomentScale(task.n, task.d, request.row_norm), label, task)
        # Solvers that move one weight at a time suffer most from a column whose scale is false.
        if request.solver.layout == "columns" and PooledScale.is_due(task.n, task.d, task.budget):
            return cls(PooledScale(task.n, task.d), label, task)
        return cls(MagnitudeScale(task.n, task.d), label, task)

    def plan(self, request: Request) -> Plan:
        """All releases of the fit; an unknown label takes a fifth of what finding scales is worth, or up to half."""
        hidden = self.label is not None and self.label.bounds is None
        share = self.features.share(self.task.budget, self.task.d + hidden)
        part = 0.5 if isinstance(self.features, PooledScale) else _LABEL_PART
        label_share = max(part * share, 0.02) if hidden else 0.0
        share -= min(label_share, share / 2)
        releases = self.features.releases(share)
        if self.label is not None and hidden:
            releases += self.label.releases(label_share)
        rest = request.solver.plan(self.task, 1.0 - share - label_share)
        return Plan(*releases) + rest if releases else rest

    def run(
        self, gate: Gate, X: Any, targets: Floats, layout: Layout
    ) -> tuple[Rows, Scaling, Scaling | None, tuple[float, float] | None]:
        """Bounded rows, the scales they were bounded with, and what the target was clipped to."""
        label, y_bounds = None, None
        Z: Any
        if layout == "entries":
            scaling = _entry_scaling(self.features, gate, X)
            if not self.task.fit_intercept:
                scaling = _uncentred(scaling)
            Z = X if self.task.sparse else scaling.transform(X, layout)
        elif isinstance(self.features, NormScale):
            Z, scaling = _bounded_sparse(self.features, gate, X)
            Z = csc_array(Z) if layout == "columns" else Z
        else:
            scaling = self.features.run(gate, X)
            if not self.task.fit_intercept:
                scaling = _uncentred(scaling)
            Z = scaling.transform(X, layout)
        if self.label is not None:
            label = self.label.run(gate, targets)
            if self.label.bounds is not None:
                targets = np.clip(targets, *self.label.bounds)
            y_bounds = float(label.low[0]), float(label.high[0])
            targets = np.clip(targets, *y_bounds)
            if not self.task.fit_intercept:
                label = _uncentred(label)
            targets = label.transform(targets[:, None])[:, 0]
        return Rows(Z, targets, scaling.limit), scaling, label, y_bounds


def _entry_scaling(
    features: MagnitudeScale | PooledScale | MomentScale | NormScale | EntryScale, gate: Gate, X: Any
) -> Scaling:
    """Scales for a solver that wants entries bounded."""
    if isinstance(features, NormScale):
        bound = _ENTRY_OF_NORM * features.run(gate, _row_norms(X))
        return EntryScale(features.d, bound).run(gate, X)
    if isinstance(features, EntryScale):
        return features.run(gate, X)
    return replace(features.run(gate, X), limit=_ENTRY_OF_SCALE)


def _row_norms(X: csr_array) -> Floats:
    norms = np.empty(X.shape[0])
    sparse_norms(X.data, X.indptr, 0.0, norms)
    return norms


def _bounded_sparse(features: NormScale, gate: Gate, X: csr_array) -> tuple[csr_array, Scaling]:
    bound = features.run(gate, _row_norms(X))
    scale = bound / math.sqrt(features.d)
    Z = csr_array(clip_rows(X, bound))
    Z.data = Z.data / scale
    return Z, Scaling(np.zeros(features.d), np.full(features.d, scale), math.inf)


def _uncentred(scaling: Scaling) -> Scaling:
    """The same reach from zero, for a model without an intercept: widen the scale by the distance of the centre."""
    reach = np.abs(scaling.centre) + scaling.limit * scaling.scale
    return replace(scaling, centre=np.zeros_like(scaling.centre), scale=reach / scaling.limit)


def _in_user_units(weights: Floats, scaling: Scaling, label: Scaling | None) -> tuple[Floats, Floats]:
    """Weights on (x - centre) / scale, turned into weights on x; on y where the label was scaled."""
    coef = weights[:, :-1] / scaling.scale
    intercept = weights[:, -1] - coef @ scaling.centre
    if label is not None:
        coef, intercept = coef * label.scale, intercept * label.scale + label.centre
    return coef, intercept


def _warn_of_lost(scaling: Scaling, label: Scaling | None) -> None:
    lost = [f"{scaling.lost} of {len(scaling.scale)} columns (declare row_norm)"] if scaling.lost else []
    if label is not None and label.lost:
        lost.append("the target (declare y_bounds)")
    told = []
    if scaling.pooled and not scaling.lost:
        told.append(
            f"the budget is too small to find a scale for each of {len(scaling.scale)} columns (declare row_norm, or"
            " spend more epsilon); one scale was used for all of them"
        )
    if lost:
        told.append(
            f"the budget is too small to find the scale of {' and of '.join(lost)}; a pooled scale or 1 was used"
        )
    if told:
        warnings.warn(". ".join(told), FewRowsWarning, stacklevel=5)
