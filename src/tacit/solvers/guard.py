"""Keeps a regression from being worse than a constant: its weights are drawn to zero as far as they do not agree.

Where there is much noise, weights are made of it, and predict worse than the centre of the target does. So the sums S1
of margins times targets and S2 of squared margins are released at the end, and the weights are multiplied by what
makes the squared error least, S1 / S2, if that is below 1. Weights of zero predict the centre of the target, which was
released before. The noise s of both sums is known: they are drawn to zero by it, to S1 (1 - s^2 / S1^2) and for 1 / S2
to S2 / (S2^2 + s^2), as sums that are lost in the noise say nothing for the weights.

Margins are divided by about 1.5 of their root mean square, as far as the released second moments tell it, targets by
1.5 of their scale, and both are clipped to [-1, 1]. Of a good fit this takes away little, and less of the margins than
of the targets that they stand for; the ratio comes out above 1 then.

Privacy. One vector of two numbers, which is a sum over rows. `tacit.blocks.agreement` derives its sensitivity: sqrt(2),
and 2 for replace-one. Weights and what margins are divided by are functions of what was released before.

Rules (in n, d, epsilon, delta and what is declared). It is due where the target has no declared bounds and
nu = (d + 1) / (n mu) is above a quarter. It gets 8% of what the algorithm may spend, or less where n mu is above 280:
as much as tells the ratio to a few hundredths. Where the noise of a sum is above 0.3 of n nothing can be told, and
weights are zero.
"""

import math
from dataclasses import replace

import numpy as np

from tacit._types import Floats
from tacit.blocks import ExactPasses, Passes
from tacit.blocks.agreement import AGREEMENT
from tacit.privacy import Gate, Release
from tacit.privacy.mechanisms import GaussianVector
from tacit.problems import SQUARED
from tacit.problems.task import LinearTask
from tacit.solvers.curvature import Curvature

NAME = "agreement"
_NOISY = 0.25  # nu from which on it is due
_MANY, _CALM = 0.02, 0.001  # weights for each row from which on it is due as well, but for nu below that
_SHARE, _ENOUGH = 0.25, 30.0  # of the algorithm's part; n mu of which all of that part would do
_SURE = 3.0  # deviations
_CLIPPED = 0.47  # of a product of normal numbers, little correlated, when both are clipped to one deviation
_BLIND = 0.3  # of n: noise of a sum that says nothing


def is_due(task: LinearTask) -> bool:
    """Whether there is so much noise that a constant may be better; from public numbers alone.

    The middle of declared bounds is no such constant: nothing is known of the target then but by the intercept.
    """
    if task.loss != SQUARED or task.y_bounds is not None:
        return False
    return task.nu > _NOISY or (task.nu > _CALM and task.width > _MANY * task.n)


def planned(task: LinearTask, releases: tuple[Release, ...]) -> tuple[Release, ...]:
    """These releases, and where it is due that of the guard: all together get the same part of the budget."""
    if not is_due(task):
        return releases
    part = min(_SHARE, (_ENOUGH / (task.n * task.budget.mu)) ** 2)
    whole = sum(release.share or 0.0 for release in releases)
    others = (replace(release, share=(1.0 - part) * (release.share or 0.0)) for release in releases)
    return (*others, Release(NAME, "gaussian", share=part * whole))


def kept(task: LinearTask, passes: Passes | ExactPasses, w: Floats, said: tuple[Curvature, float], gate: Gate) -> Floats:
    """The weights `w`, as far as they are kept.

    `said` are the second moments, and how many weights the rows have had a say in.
    """
    n, (moments, free) = task.n, said
    noisy = task.nu > _NOISY
    part = np.ones(task.d + 1)
    part[-1] = float(noisy)
    size = max(math.sqrt(moments.square_of_margins(w * part)), 1e-150)
    deviation = gate.noise(NAME, AGREEMENT) / n
    mechanism = GaussianVector(AGREEMENT, bound=math.sqrt(2.0) * n)
    product, half = (gate.release(NAME, mechanism, passes.agreement(w * part, size)) / n).tolist()
    if not noisy:
        own = _CLIPPED * free / (n * size)
        factor = min(max(product - own, 0.0) / max(_SURE * deviation, 1e-300), 1.0)
    elif deviation > _BLIND or product <= 0.0:
        factor = 0.0
    else:
        square = min(max(2.0 * half, 0.0), 1.0)
        shown = max(0.0, 1.0 - (deviation / product) ** 2)
        ratio = shown * product * square / max(square**2 + (2.0 * deviation) ** 2, 1e-300)
        factor = min(ratio / size, 1.0)
    return np.where(part > 0.0, factor * w, w)
