"""What a solver releases of the classes themselves: their counts beforehand, and what is left over of them at the end.

Steps that are safe for any share of the classes are far too short for a rare one. With one row in two hundred of a
class the intercept would still be on its way when the last step is made, and probabilities would be twice too high. So
class counts are released first, and the intercept starts at their log-odds. As weights grow, the best intercept moves
away from there. So the sum of all residuals is released last: as many rows of each class should be predicted as there
are, and the intercept is moved by what is missing, as far as the noise allows to tell.

Counts also give the weights of classes where `class_weight="balanced"` asks for them, and tell how long steps may be
where there are several classes.

Privacy. A row is of one class. The counts of K classes are a sum of one-hot vectors: sensitivity 1, and sqrt(2) for
replace-one. Of two classes one count tells both, as n is public: a number that a row moves by 1 under either relation.
Counts are whole numbers, so their sums are exact. Weights are public: declared, or computed from released counts. Let v
be the largest, and u the next one. Of two classes, rows of one have residuals from -1 to 0, those of the other from 0
to 1, times their weights: sensitivity v, and u + v. Residuals of several classes, w_y (p - e_y) with p a probability
vector, have norm at most sqrt(2) v; two of one class are at most sqrt(2) v apart, two of the classes j and k at most
sqrt(2) (w_j + w_k), which p = e_k and e_j attain: sqrt(2) v, and sqrt(2) (u + v).
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize_scalar

from tacit._types import Floats
from tacit.blocks import Bounded, ExactPasses, Passes
from tacit.privacy import Gate, Release
from tacit.privacy.mechanisms import GaussianVector, Sensitivity
from tacit.problems import LOGISTIC, MULTINOMIAL
from tacit.problems.task import LinearTask

COUNTS, SURPLUS = "class counts", "surplus"
_SHARES = 0.02, 0.03  # of what the algorithm may spend
_SURE = 4.0  # deviations of a count, if the whole budget went to it, that a class may have more than is known
ENOUGH = 50.0  # n mu / K, from which on noise leaves much of a class of n / K rows
_SOME = 5.0  # the same, from which on it can be told whether a few of many classes have most of the rows
_OFF = 0.7  # by which the log-odds of a rare class tend to be off after the last step
_FARTHEST = 4.0
_LIGHTEST, _HEAVIEST = 0.1, 10.0  # weight of a class, where weights are to balance classes


def are_due(task: LinearTask) -> bool:
    """Whether the intercept starts and ends by class counts; from public numbers alone."""
    return task.loss in (LOGISTIC, MULTINOMIAL) and _told_apart(task, ENOUGH)


def are_counted(task: LinearTask) -> bool:
    """Whether class counts are released for the intercept or for the length of steps; from public numbers alone."""
    return are_due(task) or (task.loss == MULTINOMIAL and _told_apart(task, _SOME))


def _told_apart(task: LinearTask, signal: float) -> bool:
    return task.fit_intercept and task.n * task.budget.mu > signal * task.classes


def planned(task: LinearTask, share: float, *between: Release, counted: bool, calibrated: bool) -> tuple[Release, ...]:
    """These releases, whose shares add up to 1, with those of the classes: all together get `share` of the budget.

    Counts come before them, if classes are to be `counted` or if weights follow from counts; where the intercept is
    `calibrated` the surplus comes after them.
    """
    first, last = (part * share for part in _SHARES)
    counts = (Release(COUNTS, "gaussian", share=first),) if counted or task.balanced else ()
    surplus = (Release(SURPLUS, "gaussian", share=last),) if calibrated else ()
    left = share - first * len(counts) - last * len(surplus)
    return *counts, *(replace(one, share=left * (one.share or 0.0)) for one in between), *surplus


@dataclass(frozen=True, eq=False)
class Classes:
    """What was released of the classes: the part of the rows that is of each, and what its rows weigh."""

    parts: Floats
    weights: Floats

    @property
    def mass(self) -> float:
        """What a row weighs on average."""
        return float(self.parts @ self.weights)

    @property
    def weighted(self) -> Floats:
        """The part of each class in what all rows weigh."""
        return self.parts * self.weights / self.mass

    @property
    def log_odds(self) -> Floats:
        """Intercepts of a model that knows these parts alone: of the second of two classes, or of each of several."""
        logs = np.log(self.weighted)
        return np.asarray(logs[1:] - logs[0] if len(logs) == 2 else logs - logs.mean())


def classes_of(task: LinearTask, data: Bounded, gate: Gate, *, counted: bool) -> Classes:
    """The classes, as released; equal parts where nothing is. Weights are declared, or balance these parts."""
    K = task.classes
    parts = _parts(task, data, gate) if counted or task.balanced else np.full(K, 1.0 / K)
    if task.balanced:
        return Classes(parts, np.clip(1.0 / (K * parts), _LIGHTEST, _HEAVIEST))
    return Classes(parts, np.ones(K) if task.class_weight is None else np.array(task.class_weight, dtype=np.float64))


def believable(found: Floats, deviation: float, n: int) -> Floats:
    """The parts that classes have of n rows, from noisy ones.

    They are drawn towards equal ones, the more the noisier they are (James and Stein). None is below the noise of a
    count, or below one row.
    """
    K = len(found)
    even = np.full(K, 1.0 / K)
    away = found - even
    kept = max(0.0, 1.0 - K * deviation**2 / max(float(away @ away), 1e-300))
    parts = np.maximum(even + kept * away, max(deviation, 1.0 / n))
    return np.asarray(parts / parts.sum())


def _parts(task: LinearTask, data: Bounded, gate: Gate) -> Floats:
    """The part of each class, released."""
    n, K = task.n, task.classes
    counts = data.class_counts(K)[1 if K == 2 else 0 :]
    sensitivity = Sensitivity.non_negative(1.0) if K == 2 else Sensitivity.one_hot(1)
    deviation = gate.noise(COUNTS, sensitivity) / n
    found = gate.release(COUNTS, GaussianVector(sensitivity, bound=float(n)), counts.astype(np.float64)) / n
    return believable(np.array([1.0 - found[0], found[0]]) if K == 2 else found, deviation, n)


def curvature(task: LinearTask, parts: Floats) -> float:
    """The least second derivative of the loss in the margins that steps are made for, if classes have these parts.

    A model that knows the parts p alone has diag(p) - p p^T at every row. Its largest eigenvalue is 1/2 if two classes
    have all rows, which is the most that any model can have, and 1/K if all have the same: steps for ten classes can be
    five times as long. 1/K is the least that is taken. Where nearly all rows are of one class it could be less, but
    longer steps bring more noise than signal into the margins of the rare ones.

    A part may be more than is known, by the noise of its count. As weights grow the curvature falls in most directions,
    but there are data where it rises to 1/2: where columns tell two classes from all others and not from each other.
    Steps that have met that are made shorter (`tacit.solvers.curvature`). Where noise allows many steps they need not
    be long: the more there are, the nearer they are to what is safe for any data, and without noise they are that. How
    long they are between the two depends on the noise of the second moments as well (`Curvature.spared`).
    """
    top, K = task.loss.curvature, task.classes
    if task.loss != MULTINOMIAL or not task.fit_intercept:
        return top
    start = max(1.0 / K, float(np.linalg.eigvalsh(np.diag(parts) - np.outer(parts, parts))[-1]))
    return min(top, (start + _SURE / (task.n * task.budget.mu)) * math.cbrt(1.0 + task.calm))


def shift(task: LinearTask, found: Classes, passes: Passes | ExactPasses, w: Floats, gate: Gate) -> Floats:
    """What to add to the intercepts of weights `w`, so that as much of each class is predicted as there is.

    A class that is much rarer than others tends to be off by `_OFF`; of equal classes none is. The noise is known, so
    both together tell how far to go.
    """
    n, K = task.n, task.classes
    second, heaviest = np.sort(found.weights)[-2:].tolist()
    size = 1.0 if K == 2 else math.sqrt(2.0)
    sensitivity = passes.residual_moves(size * heaviest, size * (heaviest + second))
    mechanism = GaussianVector(sensitivity, bound=n * size * heaviest)
    deviation = gate.noise(SURPLUS, sensitivity) / (n * found.mass)
    surplus = gate.release(SURPLUS, mechanism, passes.residuals(w)) / (n * found.mass)
    parts = found.weighted
    predicted = parts + (np.array([-surplus[0], surplus[0]]) if K == 2 else surplus)
    typical = _OFF * np.minimum(np.abs(1.0 - K * K * parts * (1.0 - parts) / (K - 1.0)), 1.0)
    off = np.array([_likely(*of, deviation) for of in zip(parts, predicted, typical, strict=True)])
    return -(off[1:] if K == 2 else off - off.mean())


def _likely(part: float, predicted: float, typical: float, deviation: float) -> float:
    """How far log-odds are off, if so much of the rows is predicted where `part` is right; the latter is noisy."""
    if typical == 0.0:
        return 0.0
    ratio = typical / max(deviation, 1e-15 * typical)

    def unlikely(off: float) -> float:
        moved = 1.0 / (1.0 + (1.0 / part - 1.0) * math.exp(-off))
        return off * off + (ratio * (predicted - moved)) ** 2

    found = minimize_scalar(unlikely, bounds=(-_FARTHEST, _FARTHEST), method="bounded", options={"xatol": 1e-10})
    return float(found.x)
