"""Keeps a regression from being worse than a constant: its weights are drawn to zero as far as they do not agree.

Where there is much noise, weights are made of it, and predict worse than the centre of the target does. So the sums S1
of margins times targets and S2 of squared margins are released at the end. Margins are divided by their root mean
square, as far as the released second moments tell it, targets by their scale, and both are clipped to [-1, 1]: of all
such clips that is about where a sum of products stands farthest out of its noise.

In much noise all weights are multiplied by what makes the squared error least, S1 / S2, if that is below 1. Weights of
zero predict the centre of the target, which was released before. The noise s of both sums is known: they are drawn to
zero by it, to S1 (1 - s^2 / S1^2) and for 1 / S2 to S2 / (S2^2 + s^2), as sums that are lost in the noise say nothing
for the weights.

In little noise, but with many weights for the rows, margins agree with the targets that they were found from even where
they predict nothing: k weights that rows have had a say in explain the part k / n of any target. So slopes are kept
whole where S1 is above that by two deviations of its noise, and in proportion below it. The intercept stays: it has
hardly any noise.

Privacy. One vector of two numbers, which is a sum over rows. `tacit.blocks.agreement` derives its sensitivity:
sqrt(5 / 4), and 2 for replace-one. Weights and what margins are divided by are functions of what was released before.

Rules (in n, d, epsilon, delta and what is declared). It is due where the target has no declared bounds and
nu = (d + 1) / (n mu) is above a quarter, or there is a weight for every fifty rows and nu is above 0.001. It gets a
quarter of what the algorithm may spend, or less where n mu is above 60: as much as tells the sums to a twentieth. In
little noise it gets 8%, or less where n mu is above 180: as much as tells them to a fortieth.
Where the noise of a sum is above 0.3 of n nothing can be told, and weights are zero.
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
_MANY, _CALM = 0.02, 0.001  # weights for each row from which on it is due as well; but for nu below that
_SHARE, _ENOUGH = 0.25, 30.0  # of the algorithm's part; n mu of which all of that part would do
_SMALL, _MORE = 0.08, 50.0  # the same where it is due in little noise
_SURE = 2.0  # deviations
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
    most, enough = (_SHARE, _ENOUGH) if task.nu > _NOISY else (_SMALL, _MORE)
    part = min(most, (enough / (task.n * task.budget.mu)) ** 2)
    whole = sum(release.share or 0.0 for release in releases)
    others = (replace(release, share=(1.0 - part) * (release.share or 0.0)) for release in releases)
    return (*others, Release(NAME, "gaussian", share=part * whole))


def kept(
    task: LinearTask, passes: Passes | ExactPasses, w: Floats, moments: Curvature, free: float, gate: Gate
) -> Floats:
    """The weights `w`, as far as they are kept; rows have had a say in as many of them as `free`."""
    n, noisy = task.n, task.nu > _NOISY
    asked = w.copy()
    asked[:, -1] *= noisy
    size = max(math.sqrt(moments.square_of_margins(asked)), 1e-150)
    deviation = gate.noise(NAME, AGREEMENT) / n
    mechanism = GaussianVector(AGREEMENT, bound=math.sqrt(1.25) * n)
    product, half = (gate.release(NAME, mechanism, passes.agreement(asked, size)) / n).tolist()
    if not noisy:
        outstanding = max(product - _CLIPPED * free / (n * size), 0.0)
        asked *= min(outstanding / max(_SURE * deviation, 1e-300), 1.0)
        asked[:, -1] = w[:, -1]
        return asked
    if deviation > _BLIND or product <= 0.0:
        return np.zeros_like(w)
    square = min(max(2.0 * half, 0.0), 1.0)
    shown = max(0.0, 1.0 - (deviation / product) ** 2)
    ratio = shown * product * square / max(square**2 + (2.0 * deviation) ** 2, 1e-300)
    return w * min(ratio / size, 1.0)
