"""Log-losses of models on people who were held out, from what is known of their margins. Pure functions."""

import math

import numpy as np

from tacit._types import Floats
from tacit.federated.protocols.judged import Judge
from tacit.metrics.release import Reading

_CLIP = 0.01  # of probabilities, as in `tacit.metrics.LogLoss`
_LEAST, _MOST = -math.log1p(-_CLIP), -math.log(_CLIP)
MIDDLE, HALF = (_MOST + _LEAST) / 2.0, (_MOST - _LEAST) / 2.0
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


def as_normal(judge: Judge, weights: Floats, centre: float) -> Reading:
    """The log-loss if margins are normal in each class, with one variance; noise to first order."""
    form = np.append(weights, [0.0, 0.0])
    between = math.sqrt(sum(noisy.variance_between(form, judge.target) for noisy in judge.noise))
    value = _normal_loss(*_seen(judge, weights, centre))
    return Reading(value, moved(judge, weights, centre, judge.deviation(form), between))


def _seen(judge: Judge, weights: Floats, centre: float) -> tuple[float, float, float, float]:
    """The mean margin and the mean label, the margin's variance, and the covariance of both."""
    form, target = np.append(weights, 0.0), judge.target[:-1]
    mean = judge.target_mean + float(judge.means @ target)
    return (
        centre + float(judge.means @ form),
        mean,
        float(form @ judge.covariance @ form),
        float(form @ judge.covariance @ target),
    )


def moved(judge: Judge, weights: Floats, centre: float, variance: float, common: float) -> float:
    """How far errors of the margin's variance, and of its covariance with the label, move the log-loss."""
    middle, mean, *seen = _seen(judge, weights, centre)
    value = _normal_loss(middle, mean, *seen)
    more = (
        _normal_loss(middle, mean, seen[0] + variance, seen[1]),
        _normal_loss(middle, mean, seen[0], seen[1] - common),
    )
    return math.hypot(more[0] - value, more[1] - value)


def errors_between(judge: Judge, own: Floats, others: Floats) -> tuple[float, float]:
    """The noise in what is taken of other parties' margins: in their variance with the own one, and with the label."""
    form, mine = np.append(others, 0.0), np.append(own, 0.0)
    beside = math.sqrt(sum(noisy.variance_between(form, mine) for noisy in judge.noise))
    common = math.sqrt(sum(noisy.variance_between(form, judge.target) for noisy in judge.noise))
    return math.hypot(judge.deviation(form), 2.0 * beside), common


def _normal_loss(centre: float, mean: float, variance: float, common: float) -> float:
    """By the mean and the variance of margins, the mean of labels, and the covariance of both."""
    positive = min(0.999, max(0.001, (1.0 + mean) / 2.0))
    apart = common / (2.0 * positive * (1.0 - positive))
    within = math.sqrt(max(variance - positive * (1.0 - positive) * apart**2, 0.0))
    margins = within * _NODES
    upper, lower = centre + (1.0 - positive) * apart, centre - positive * apart
    losses = positive * np.logaddexp(0.0, -upper - margins) + (1.0 - positive) * np.logaddexp(0.0, lower + margins)
    return float(_WEIGHTS @ losses)


def within_interval(centres: Floats, deviation: float, targets: Floats) -> Floats:
    """Log-losses on average over normal margins, clipped to their interval and brought to [-1, 1]."""
    total = np.zeros(len(centres))
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        total += weight * np.logaddexp(0.0, -targets * (centres + deviation * node))
    return np.clip((np.clip(total, _LEAST, _MOST) - MIDDLE) / HALF, -1.0, 1.0)
