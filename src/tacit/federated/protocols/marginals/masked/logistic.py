"""The coordinator's side of slopes: from moments of the columns to the logistic loss. No data comes in here.

The loss has the gradient E z (sigma(m) - y) and, for normal columns, the second derivatives E[sigma'(m)] Cov(z). Steps
are Newton's, inside the l1 ball, with the gradient put together from what the parties release and from the products
with labels. Noise weighs most where columns vary least, so the second derivatives have a ridge of the size of the
noise. Most of it only makes steps shorter: as a penalty on weights all of it costs more than the noise that it holds
back, and a sixth of it is enough. One step from zero by moments alone, then three by slopes: with noise, more of them
gain little, and after many the average over unknown margins, which is only nearly right, drives the weights up.
"""

import math
from collections.abc import Generator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit._types import Floats
from tacit.federated.protocols import moments
from tacit.federated.protocols.base import Arrays, Question, largest_sum, taken
from tacit.federated.protocols.marginals.coordinator import Moments
from tacit.federated.protocols.marginals.masked.rules import SLOPES, SLOPES_COUNT, MaskedAgreement
from tacit.federated.protocols.marginals.masked.slopes import DIRECTION, PLACE, RELEASE, STEP
from tacit.federated.protocols.marginals.rules import SUMS

_CAUTION, _PENALTY = 1.5, 0.3  # on steps, on weights; in deviations of the noise of a gradient's entry
_LEAST_CURVATURE, _FURTHEST = 0.03, 1.0  # of the loss in the margin; of a step of the mean margin
_SINGULAR = 1e-10  # eigenvalues below this part of the largest are none

Asking = Generator[Mapping[str, Question], Mapping[str, Arrays], "Quadratic"]


@dataclass(frozen=True, eq=False)
class Quadratic:
    """The loss about where it was last looked at: w.curvature.w / 2 - slope.w, and the mean margin of its model."""

    given: Moments
    curvature: Floats
    slope: Floats
    centre: float

    def solved(self, radius: float) -> Floats:
        """The weights that are least in the l1 ball."""
        return moments.least_squares(self.curvature, self.slope, radius)

    def at(self, radius: float) -> tuple[dict[str, Floats], float]:
        """The weights of each party's columns, all of them in the l1 ball, and the intercept."""
        weights = self.solved(radius)
        return self.given.by_party(weights), self.given.intercept(weights, self.centre)


def corrected(agreed: MaskedAgreement, given: Moments, norms: Mapping[str, float]) -> Asking:
    """Rounds of slopes, and the last quadratic."""
    study = agreed.study
    units = np.concatenate([np.full(member.n_features, norms[member.name]) for member in study.members])
    noise, more = _noise_of_products(agreed), _noise(agreed, study.names[0])
    unit = math.hypot(noise, more) * units**2
    level = given.positive
    centre = math.log(level / (1.0 - level))
    squares = given.covariance if study.fit_intercept else given.covariance + np.outer(given.mean, given.mean)
    start = level * (1.0 - level) * squares + np.diag((_CAUTION + _PENALTY) * noise * units**2)
    weights = Quadratic(given, start, given.slope / 2.0, centre).solved(study.l1_radius)
    for _ in range(SLOPES_COUNT):
        centre = centre if study.fit_intercept else float(given.mean @ weights)
        asked = {name: _question(given, name, norms, weights, centre) for name in study.names}
        answers = yield asked
        gradient, level = _read(agreed, given, norms, answers)
        steepness = max(_LEAST_CURVATURE, moments.curvature(given.covariance, weights, centre))
        if study.fit_intercept:
            centre -= max(-_FURTHEST, min(_FURTHEST, (level - given.positive) / steepness))
        curvature = steepness * squares + np.diag((_CAUTION + _PENALTY) * unit)
        slope = curvature @ weights - gradient - _PENALTY * unit * weights
        last = Quadratic(given, curvature, slope, centre)
        weights = last.solved(study.l1_radius)
    return last


def _question(given: Moments, name: str, norms: Mapping[str, float], weights: Floats, centre: float) -> Question:
    """What a party's rows say of margins: by its own weights, and by regression on them of all others' margins."""
    own, others = _columns(given, name)
    covariance, mean = given.covariance, given.mean
    between, among = covariance[np.ix_(own, others)], covariance[np.ix_(others, others)]
    common = between @ weights[others]
    regressed, *_ = np.linalg.lstsq(covariance[np.ix_(own, own)], common, rcond=_SINGULAR)
    unexplained = float(weights[others] @ among @ weights[others]) - float(regressed @ common)
    direction = weights[own] + regressed
    place = np.array([centre - float(mean[own] @ direction), math.sqrt(max(unexplained, 0.0))])
    return Question(STEP, {DIRECTION: norms[name] * direction, PLACE: place})


def _read(
    agreed: MaskedAgreement, given: Moments, norms: Mapping[str, float], answers: Mapping[str, Arrays]
) -> tuple[Floats, float]:
    """The gradient in the weights, in the users' units, and the mean of sigma(m)."""
    study, n = agreed.study, agreed.study.n_rows
    gradient = -given.slope / 2.0
    levels = []
    for name in study.names:
        own, _ = _columns(given, name)
        most = largest_sum(n, SLOPES.add_remove, _noise(agreed, name) * n)
        *sums, total = taken(name, answers[name], RELEASE, (len(own) + 1,), most) / n
        level = float(total) / SUMS
        gradient[own] += norms[name] * np.array(sums)
        if study.fit_intercept:
            gradient[own] -= given.mean[own] * level
        levels.append(level + 0.5)
    return gradient, float(np.mean(levels))


def _columns(given: Moments, name: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The places of a party's columns among all, and those of the others'."""
    of = np.repeat(list(given.features), [len(columns) for columns in given.features.values()])
    return np.flatnonzero(of == name), np.flatnonzero(of != name)


def _noise(agreed: MaskedAgreement, name: str) -> float:
    """Of an entry of a party's slopes, per row, for rows of norm 1."""
    return agreed.noise(name, RELEASE, SLOPES) / agreed.study.n_rows


def _noise_of_products(agreed: MaskedAgreement) -> float:
    """Of half a product of a column with the labels of another party, in the same units."""
    if not agreed.study.budget.is_private:
        return 0.0
    share = math.ldexp(1.0, agreed.grid.bits) / agreed.grid.steps**2
    return math.sqrt(2.0) * share / (2.0 * agreed.label_weight * agreed.study.n_rows)
