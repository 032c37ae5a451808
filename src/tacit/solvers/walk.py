"""What was released on a walk of noisy gradient steps, and the weights that follow from all of it together.

The mean of the second half of the iterates is where the walk ends whatever the curvature is. But it has much of the
noise of some gradients and little of others: the last ones have hardly moved anything when it is over. Were the
curvature known to be H, each slope g at v would tell the same thing, the slope H v - g that there is at zero; the mean
of these over all steps has the least noise that there can be. What this walk makes of such a slope are weights as well:
as far on their way to a minimum as the others, with less noise.

They are wrong where H is, and nobody knows it: it is a bound, and falls as weights grow. So both are weighed. If H is
right they differ by no more than the noise that the first have and the second do not, which is known. What they differ
by beyond that is wrong in the second, and these are taken in the proportion that makes the squared error of margins
least: one estimate has noise, the other a bias (Green and Strawderman). How long the margins are, which is where a
wrong H shows first, is told by the first ones alone. Without noise nothing is taken.

Regressions return the mean iterate alone: ames loses by the others (`benchmarks.rules.walks`).

Nothing is released for that: it follows from slopes that were released, at places that follow from those before them.
"""

from dataclasses import dataclass

import numpy as np

from tacit._types import Floats
from tacit.solvers.curvature import Curvature


@dataclass(frozen=True, eq=False)
class Walk:
    """Steps from `begin`, each made by one of the `bounds`; all of it released or public.

    `mean` is that of the second half of the iterates, `tail` of them; `place` and `slope` are the means of where
    gradients were taken and of what they were, over all steps. Each goes on by `momentum` of the one before.
    """

    begin: Floats
    mean: Floats
    place: Floats
    slope: Floats
    bounds: list[Curvature]
    tail: int
    momentum: float

    @property
    def first(self) -> Curvature:
        """The bound that the first step was made for."""
        return self.bounds[0]

    def together(self, noise: float, part: float) -> tuple[Floats, float]:
        """Weights from the mean iterate and from all slopes together, and what of the former's own noise they have.

        Slopes have this `noise` in each entry, and there is likely to be this `part` of the curvature.
        """
        first = self.first
        moments, likely = first.moments, part * first.h * first.moments
        near = (self.mean - self.begin) @ first.vectors
        at_zero = likely * ((self.place - self.begin) @ first.vectors) - self.slope @ first.vectors
        all_slopes = self._reached(part) * at_zero
        size = float(np.sum(np.square(all_slopes) @ moments))
        all_slopes *= max(0.0, float(np.sum((near * all_slopes) @ moments))) / max(size, 1e-300)
        apart = near - all_slopes
        whole, shared = self._variances(noise, part)
        expected = len(apart) * float(moments @ (whole - shared))
        taken = min(1.0, expected / max(float(np.sum(np.square(apart) @ moments)), 1e-300))
        return self.mean - taken * (apart @ first.vectors.T), 1.0 - taken

    def variance(self, noise: float, part: float, own: float) -> float:
        """What this noise of slopes puts into a margin, by weights with this part of the mean iterate's `own` noise."""
        whole, shared = self._variances(noise, part)
        return float(self.first.moments @ (shared + own**2 * (whole - shared)))

    def _variances(self, noise: float, part: float) -> tuple[Floats, Floats]:
        """That of the mean iterate in each direction, and what weights from all slopes together have of it."""
        whole = np.square(noise * self.left(self.first.moments, part))
        return whole, np.minimum(whole, np.square(noise * self._reached(part)) / len(self.bounds))

    def _reached(self, part: float) -> Floats:
        """Where the mean is in each direction if the slope at zero is -1, and there is this part of the curvature."""
        likely = part * self.first.h * self.first.moments + self.first.penalty
        w, ahead, mean = np.zeros((3, len(self.first.moments)))
        for step, bound in enumerate(self.bounds):
            before, w = w, ahead + bound.inverse - np.minimum(bound.inverse * likely, 1.0) * ahead
            ahead = w + self.momentum * (w - before)
            mean += w / self.tail if step >= len(self.bounds) - self.tail else 0.0
        return np.asarray(mean)

    def come(self, part: float = 1.0) -> Floats:
        """How far the mean comes towards a minimum in each direction, if there is this part of the curvature."""
        moments, h = self.first.moments, self.first.h
        w, ahead, come = np.zeros((3, len(moments)))
        for step, bound in enumerate(self.bounds):
            before, w = w, ahead + np.minimum(part * h * moments * bound.inverse, 1.0) * (1.0 - ahead)
            ahead = w + self.momentum * (w - before)
            come += w / self.tail if step >= len(self.bounds) - self.tail else 0.0
        return np.asarray(come)

    def left(self, moments: Floats, part: float = 1.0) -> Floats:
        """The deviation that unit noise in every gradient leaves in the mean, for these second moments.

        There is this `part` of the curvature that the first step was made for. An iterate is 1 - c times where its step
        began, c = inverse * curvature. So it reaches the next one 1 + beta times that, and the one after it -beta
        times.
        """
        likely = part * self.first.h * moments + self.first.penalty
        squares, next_kept, after_kept = np.zeros((3, len(moments)))
        for step, inverse in reversed(list(enumerate(bound.inverse for bound in self.bounds))):
            late = float(step >= len(self.bounds) - self.tail)
            reach = late + (1.0 + self.momentum) * next_kept - self.momentum * after_kept
            squares += np.square(inverse * reach)  # what the noise of this step moves in the sum of the second half
            next_kept, after_kept = (1.0 - np.minimum(inverse * likely, 1.0)) * reach, next_kept
        return np.asarray(np.sqrt(squares) / self.tail)
