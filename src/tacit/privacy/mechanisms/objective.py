"""Objective perturbation: a random linear term in a convex problem, whose minimiser is then private.

The problem is `sum_i loss(z_i.w, t_i) + public(w) + b.w`, with b Gaussian and kept secret, and `public` convex, the
same whatever the data is, and strongly convex with modulus at least Lambda. The minimiser w is what is private.

Privacy
-------
A row's gradient is parallel to z, at most `gradient` long, and its Hessian is h z z^T with norm at most `curvature`.
With s the deviation of b write mu = gradient / s and tau = curvature / Lambda. One row present or absent:

    D_a(P || Q) <= a (mu^2 + c tau^2) / 2      for every order a > 1, both ways, c = 2.35,

that is zCDP with rho = (mu^2 + c tau^2) / 2. With b_P(w) = -(gradient of the rest of the objective at w) and J_P its
Jacobian, the density of w is phi(b_P(w)) |det J_P(w)|. As phi is Gaussian, phi(b_P)^a phi(b_Q)^(1-a) is phi of
b_mix = a b_P + (1 - a) b_Q, times exp(a (a-1) |b_P - b_Q|^2 / (2 s^2)), which gives the first term. What is left is the
integral of phi(b_mix) |det J_P|^a |det J_Q|^(1-a), and it is at most the largest value of
|det J_P|^a |det J_Q|^(1-a) / |det J_mix| where b_mix is one-to-one. J_P and J_Q differ by h z z^T, so with
t = h z.(J^-1 z) <= tau, J of the world without the row:

- P with the row: (1 + t)^a / (1 + a t), and a log(1 + t) - log(1 + a t) <= a (a-1) t^2 / 2. J_mix = J + a h z z^T is
  positive definite, so b_mix is one-to-one.
- P without it: (1 + t)^(1-a) / (1 - (a-1) t), while (a-1) tau < 1, which keeps J_mix positive definite. With
  x = (a-1) tau its logarithm is at most -x - log(1 - x) + (a-1) tau^2 / 2. For any a, the ratio of determinants helps,
  |b_P - b_Q| <= gradient along a fixed direction, and exp of |normal| is at most a sum of two terms: log 2 in all. The
  smaller of -x - log(1 - x) and log 2 is at most c x^2 / 2 where they meet at x^2 = 2 log 2 / c.

The same holds where Hessians exist almost everywhere (Huber): all maps are Lipschitz. Replacing a row is removing one
and adding another, and zCDP for a group of two costs four times as much: twice the noise and twice Lambda.

Approximate minimisers. Let w~ have a gradient of at most `error` where b is known to a rounding of `resolution`. Then
|w~ - w| <= (error + resolution) / Lambda, and given w (hence b, hence w~) releasing w~ - w with Gaussian noise for
twice that is a Gaussian release; w~ plus this noise is a function of the two. So w~ never leaves without that noise.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from tacit._types import Floats
from tacit.privacy.checks import Adjacency
from tacit.privacy.events import OBJECTIVE_RATIO
from tacit.privacy.gate import Grant
from tacit.privacy.mechanisms.sensitivity import Sensitivity
from tacit.privacy.noise.grid import noisy
from tacit.privacy.plan import Kind


class Perturbed(Protocol):
    """A convex problem that waits for its linear term; all of it is secret."""

    def gradient(self, w: Floats, linear: Floats) -> Floats:
        """Of the whole objective, at these weights."""

    def minimiser(self, linear: Floats) -> Floats:
        """Weights at which that is nearly zero."""


@dataclass(frozen=True)
class ObjectivePerturbation:
    """The secret linear term, and the strong convexity that it needs.

    Parameters
    ----------
    gradient : float
        The longest gradient of one row's loss.
    curvature : float
        The largest norm of its Hessian.
    """

    gradient: float
    curvature: float
    kind: ClassVar[Kind] = "objective"

    @property
    def sensitivity(self) -> Sensitivity:
        """Of the gradient of the sum of losses, in the l2 norm: what the linear term hides."""
        return Sensitivity.vector(self.gradient)

    def convexity(self, multiplier: float, adjacency: Adjacency) -> float:
        """Lambda: the least modulus of the public part, tau = OBJECTIVE_RATIO mu. Public."""
        return Sensitivity.vector(1.0).under(adjacency) * self.curvature * multiplier / OBJECTIVE_RATIO

    def draw(self, grant: Grant, size: int, problem: Perturbed) -> Floats:
        """What the search found, which is private for its own noise, but for how far it stopped from the minimiser.

        The linear term stays secret; it is off the ideal normal by at most `resolution` in norm.
        """
        source = grant.take()
        spread = self.sensitivity.under(grant.adjacency)
        return problem.minimiser(noisy(np.zeros(size), spread, grant.multiplier, source, bound=None))

    @staticmethod
    def resolution(deviation: float, size: int) -> float:
        """How far a term of this deviation is from the ideal normal: the grid steps of all coordinates."""
        return math.sqrt(size) * math.ldexp(2.0 * deviation, -40)
