"""The bounding step of a linear model: which scales are released, for which part of the budget, and the way back."""

import math
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from scipy.sparse import csc_array, csr_array

from tacit._types import Floats
from tacit.blocks import Bounded, Bounder, Scaling, Source, TableRows, TargetUnits, clip_rows
from tacit.bounding.declared import DeclaredScale, RawScale, SparseScale
from tacit.bounding.norms import MomentScale, NormScale
from tacit.bounding.scales import LEAST_SHARE, MagnitudeScale, PooledScale
from tacit.bounding.target import LabelScale
from tacit.kernels.given import Csr
from tacit.kernels.rows import sparse_norms
from tacit.privacy import Gate, Release
from tacit.problems import SQUARED, Penalty
from tacit.problems.task import LinearTask

_LABEL_PART = 0.2  # of what finding scales is worth: the target is one column, but it matters most
_LABEL_MOST, _LABEL_ROWS = 0.3, 16.0  # its largest share of the budget, and n mu below which it gets that or nearly so
_LABEL_ALONE, _LABEL_BIN = 0.7, 0.10  # the same where few rows are left over, which keeps noise of a bin to that part
_CONTRASTS = 2.0  # of classes, up to which units are worth what they are of two classes; wine chose it
_HEARD = 2.0  # n mu / K, below which a class has too few rows for units to be worth less; leaves chose it
_ENTRY_OF_NORM = 0.1  # what entries of sparse rows are clipped to, over the bound on row norms
_ENTRY_OF_SCALE = 1.5  # and those of dense rows, over a column's scale

Features = MagnitudeScale | PooledScale | MomentScale | NormScale | DeclaredScale | SparseScale | RawScale


class Found(Protocol):
    """Weights on bounded data and their noise, as an algorithm returns them."""

    @property
    def weights(self) -> Floats:
        """Of shape (outputs, d + 1), the intercept last."""

    @property
    def noise(self) -> Floats:
        """The deviation that the noise alone gives each of them."""

    @property
    def path(self) -> Floats | None:
        """The weights on the way there, of shape (iterates, d + 1), where they are told."""


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A linear model in the user's units."""

    coef: Floats
    intercept: Floats
    coef_noise: Floats
    y_bounds: tuple[float, float] | None  # what the target of a regression was clipped to
    path: tuple[Floats, Floats] | None = None  # the coefficients and intercepts on the way there


@dataclass(frozen=True, eq=False)
class Units:
    """The units that a linear model was found in: all released or declared."""

    features: Scaling  # without a limit for sparse rows, which are bounded by their norm
    target: Scaling | None  # of a regression
    y_bounds: tuple[float, float] | None

    def model(self, found: Found, penalty: Penalty) -> LinearModel:
        """The model in the user's units; the bounds of the penalty hold there, whatever a change of units rounds."""
        coef, intercept = self._of(found.weights)
        coef_noise, _ = self._of(found.noise)
        path = None
        if found.path is not None:
            coefs, intercepts = self._of(found.path)
            path = np.clip(coefs, penalty.low, penalty.high), intercepts
        return LinearModel(np.clip(coef, penalty.low, penalty.high), intercept, coef_noise, self.y_bounds, path)

    def weights(self, coef: Floats, intercept: float | None) -> Floats:
        """The weights on bounded rows of a model in the user's units, its intercept last: the way back of `_of`.

        With x = centre + scale z and y = m + s t, an intercept b and coefficients c predict
        t = (b + c centre - m) / s + (c scale / s) z. An intercept of None is the one that predicts t = 0 at z = 0.
        """
        centre, size = (0.0, 1.0) if self.target is None else (self.target.centre[0], self.target.scale[0])
        first = 0.0 if intercept is None else (intercept + float(coef @ self.features.centre) - centre) / size
        return np.append(coef * self.features.scale / size, first)

    def _of(self, weights: Floats) -> tuple[Floats, Floats]:
        """Weights on (x - centre) / scale, turned into weights on x; on y where the target was scaled."""
        coef = weights[:, :-1] / self.features.scale
        intercept = weights[:, -1] - coef @ self.features.centre
        if self.target is not None:
            coef, intercept = coef * self.target.scale, intercept * self.target.scale + self.target.centre
        return coef, intercept

    @property
    def warning(self) -> str | None:
        """What was lost in the noise, and what to declare; None where nothing was."""
        features, d = self.features, len(self.features.scale)
        lost = [f"{features.lost} of {d} columns (declare row_norm)"] if features.lost else []
        if self.target is not None and self.target.lost:
            lost.append("the target (declare y_bounds)")
        told = []
        if features.pooled and not features.lost:
            told.append(
                f"the budget is too small to find a scale for each of {d} columns (declare row_norm, or spend more"
                " epsilon); one scale was used for all of them"
            )
        if lost:
            told.append(
                f"the budget is too small to find the scale of {' and of '.join(lost)}; a pooled scale or 1 was used"
            )
        return ". ".join(told) if told else None


@dataclass(frozen=True)
class LinearBounding:
    """Which scales are released, and what part of the budget is left for the algorithm."""

    task: LinearTask
    layout: str
    features: Features | None  # None: entries are clipped to `entry_bound`, which is declared and costs nothing
    label: LabelScale | None
    entry_bound: float
    releases: tuple[Release, ...]
    left: float

    @classmethod
    def of(cls, task: LinearTask, layout: str, entry_bound: float | None, *, raw: bool = False) -> "LinearBounding":
        """By what is declared, how the data is stored, and what the algorithm asks for: `raw`, the user's units."""
        label = LabelScale.of(task.n, task.y_bounds, task.budget) if task.loss == SQUARED else None
        bounds = task.bounds
        if bounds is not None and entry_bound is None and layout == "entries" and bounds.are_whole:
            entry_bound = float(bounds.reach.max()) if task.sparse else bounds.entry
        features: Features | None
        # Without an intercept nothing is centred, and of a regression the histograms need all of it.
        means = layout == "grid" and task.fit_intercept and task.loss != SQUARED
        if entry_bound is not None:
            features = None
        elif bounds is not None and task.sparse:
            features = SparseScale.of(task.n, bounds)
        elif bounds is not None and raw:
            features = RawScale(bounds)
        elif bounds is not None:
            pools = task.budget if layout == "columns" else None
            features = DeclaredScale.of(task.n, bounds, pools, means=means)
        elif task.sparse:
            features = NormScale(task.n, task.d, task.row_norm)
        elif task.row_norm is not None:
            features = MomentScale(task.n, task.d, task.row_norm)
        elif layout == "columns" and PooledScale.is_due(task.n, task.d, task.budget):
            # Algorithms that move one weight at a time suffer most from a column whose scale is false.
            features = PooledScale(task.n, task.d)
        else:
            features = MagnitudeScale(task.n, task.d, means=means)
        # The target takes a fifth of what finding scales is worth, or up to half.
        hidden = label is not None and task.y_bounds is None
        worth = 0.0 if features is None else features.share(task.budget, task.d + hidden)
        if means and not isinstance(features, NormScale | MomentScale | SparseScale | None):
            worth = _beside_weights(task, worth)
        part, least = 0.5 if isinstance(features, PooledScale) else _LABEL_PART, 0.02
        if bounds is not None and features is not None:  # the target may be all that is left to find
            least = _LABEL_PART * MagnitudeScale(task.n, 1).share(task.budget, 1)
        if hidden:  # with few rows over the noise, the target comes first
            signal = task.n * task.budget.mu
            least = max(least, min(_LABEL_MOST, 2.0 * (_LABEL_ROWS / signal) ** 2))
            least = max(least, min(_LABEL_ALONE, 2.0 / (_LABEL_BIN * signal) ** 2))
        label_share = max(part * worth, least) if hidden else 0.0
        share = worth - min(label_share, worth / 2)
        releases = () if features is None else features.releases(share)
        releases += () if label is None else label.releases(label_share)
        return cls(task, layout, features, label, entry_bound or math.inf, releases, 1.0 - share - label_share)

    def run(self, table: Any, gate: Gate) -> Bounded:
        """Bounded rows of the table (X, targets)."""
        if isinstance(table, Source):
            scaling, target = self._scaling(table, gate), self._target(table.target, gate)
            Z: Any = table.kept(Bounder(scaling, target, float(self.task.fit_intercept)))
            return self._bounded(Z, np.empty(0), scaling, target)
        X, targets = table
        scaling, Z = self._rows(X, gate)
        target = self._target(targets, gate)
        return self._bounded(Z, targets if target is None else target.of(targets), scaling, target)

    def _target(self, y: Any, gate: Gate) -> TargetUnits | None:
        """The released units of a regression's target."""
        if self.label is None:
            return None
        target = self.label.run(gate, y)
        found = float(target.low[0]), float(target.high[0])
        return TargetUnits(self.label.bounds, found, target if self.task.fit_intercept else _uncentred(target))

    def _bounded(self, Z: Any, targets: Floats, scaling: Scaling, units_of_target: TargetUnits | None) -> Bounded:
        target = None if units_of_target is None else units_of_target.scaling
        units = Units(scaling, target, None if units_of_target is None else units_of_target.found)
        scale = 1.0 if target is None else float(target.scale[0])
        standardised = not (self.task.sparse or isinstance(self.features, RawScale))
        penalty = self.task.penalty.on(scaling.scale, scale, standardised=standardised)
        return Bounded(Z, targets, penalty, scaling.farthest, units)

    def _rows(self, X: Any, gate: Gate) -> tuple[Scaling, Any]:
        """The released units of the rows, and the rows in them, bounded."""
        features, d = self.features, self.task.d
        if isinstance(X, TableRows) and self.layout != "grid":
            X = X.toarray()
        if features is None:
            scaling = _unscaled(d, self.entry_bound)
        elif isinstance(features, NormScale):
            norms = np.empty(X.shape[0])
            sparse_norms(Csr(X.data, X.indices, X.indptr), 0.0, norms)
            bound = features.run(gate, norms)
            if self.layout != "entries":
                scale = bound / math.sqrt(d)
                Z = csr_array(clip_rows(X, bound))
                Z.data = Z.data / scale
                scaling = Scaling(np.zeros(d), np.full(d, scale), math.inf)
                return scaling, csc_array(Z) if self.layout == "columns" else Z
            scaling = _unscaled(d, _ENTRY_OF_NORM * bound)
        elif isinstance(features, SparseScale):
            bound = features.run(gate, X)
            if self.layout != "entries":
                scaling, Z = features.rows(X, bound)
                return scaling, csc_array(Z) if self.layout == "columns" else Z
            scaling = _unscaled(d, max(_ENTRY_OF_NORM * bound, features.bounds.farthest))
        else:
            scaling = features.run(gate, X)
            if self.layout == "entries":
                scaling = replace(scaling, limit=_ENTRY_OF_SCALE, bounds=self.task.bounds)
        if not self.task.fit_intercept:
            scaling = _uncentred(scaling)
        return scaling, X if self.task.sparse else scaling.transform(X, self.layout)

    def _scaling(self, source: Source, gate: Gate) -> Scaling:
        """The released units of dense rows in parts, for exact sums."""
        if self.layout != "grid" or not isinstance(self.features, MagnitudeScale | MomentScale | DeclaredScale):
            raise TypeError(f"rows in parts cannot be stored as {self.layout!r}")
        scaling = self.features.run(gate, source)
        return scaling if self.task.fit_intercept else _uncentred(scaling)


def _beside_weights(task: LinearTask, share: float) -> float:
    """What of the budget units are worth where noise is large, if there are weights of many classes to find in them.

    What an error of units costs falls with their share as 1 / share. What the noise of weights costs falls as
    1 / (1 - share), and each column has K - 1 of them to tell K classes apart: the sum is least where the odds of the
    share fall with the root of that. They were chosen for few classes; and what is left where noise is small stays.
    """
    if task.n * task.budget.mu <= _HEARD * task.classes or task.classes - 1 <= _CONTRASTS:
        return share
    odds = share / (1.0 - share) * math.sqrt(_CONTRASTS / (task.classes - 1))
    return max(min(share, LEAST_SHARE), odds / (1.0 + odds))


def _unscaled(d: int, bound: float) -> Scaling:
    """The user's units, with entries clipped to a bound."""
    return Scaling(np.broadcast_to(0.0, d), np.broadcast_to(1.0, d), bound)


def _uncentred(scaling: Scaling) -> Scaling:
    """The same reach from zero, for a model without an intercept: widen the scale by the distance of the centre."""
    reach = np.abs(scaling.centre) + scaling.limit * scaling.scale
    return replace(scaling, centre=np.zeros_like(scaling.centre), scale=reach / scaling.limit)
