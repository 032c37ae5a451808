"""Block-coordinate Frank-Wolfe under arbitrary sampling (Lou and Cheung, section III). Not private.

No protocol runs it. Its samplings and its step are those of "feature-sharing", in `protocols.feature_sharing`.

Minimise a smooth convex f over a product of compact sets, one for each block of coordinates. In each iteration a random
set of blocks is drawn, and each of them moves towards the point of its set that minimises the linear part of f:

    x_i <- x_i + step_t (s_i - x_i),     step_t = 2 / (p_min t + 2),

where p_min is the smallest probability with which a block is drawn. Whatever the sampling is, if draws are independent,

    E f(x_t) - min f <= 2 (h_0 + (1 + rho) C / p_min) / (p_min t + 2),

with h_0 the first gap, C the expected curvature and rho = 0 for exact gradients and oracles: in expectation a step
gains at least step_t p_min (f(x_t) - min f) and loses at most step_t^2 C (1 + rho) / 2.

An l1 ball is not a product of balls. K blocks with a ball of radius r each allow an l1 norm of K r.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from tacit._types import Floats, Integers
from tacit.federated.protocols.feature_sharing.rules import universal_step
from tacit.federated.protocols.feature_sharing.samplings import Sampling
from tacit.privacy import checks
from tacit.privacy.public import PublicDraws
from tacit.problems import L1Ball

Gradient = Callable[[Floats, Integers], Floats]  # (x, coordinates) -> the partial gradient there, perhaps inexact
Oracle = Callable[[Floats, Integers], Floats]  # (partial gradient, blocks) -> points of these blocks' sets


class Custom(Sampling):
    """Any other sampling: a function that draws, and the probability with which it draws each block.

    The probabilities decide the step, and are taken as they are given.
    """

    def __init__(self, draw: Callable[[PublicDraws], ArrayLike], marginals: ArrayLike) -> None:
        super().__init__(marginals)
        self._draw = draw

    def draw(self, source: PublicDraws) -> Integers:
        return np.unique(np.asarray(self._draw(source), dtype=np.int64))


class Domain(ABC):
    """A product of compact convex sets, one for each block of coordinates.

    `block_of` is the block of each coordinate; `widths` bounds how far apart two points of its set can be: their
    difference lies in the hull of +-widths[j] e_j over the coordinates of the block.
    """

    block_of: Integers
    widths: Floats

    @cached_property
    def n_blocks(self) -> int:
        """How many blocks there are."""
        return int(self.block_of.max()) + 1

    @abstractmethod
    def start(self) -> Floats:
        """A point inside."""

    @abstractmethod
    def coordinates(self, blocks: Integers) -> Integers:
        """The coordinates of these blocks, block after block."""

    @abstractmethod
    def oracle(self, gradient: Floats, blocks: Integers) -> Floats:
        """The points of these blocks' sets that minimise the linear function with this partial gradient."""


class Balls(Domain):
    """Each block is a group of coordinates with an l1 ball of its own."""

    def __init__(self, groups: Sequence[ArrayLike], radii: ArrayLike) -> None:
        self.groups: list[Integers] = [np.array(group, dtype=np.int64) for group in groups]
        every = np.sort(np.concatenate(self.groups)) if self.groups else np.empty(0, dtype=np.int64)
        if not len(every) or not np.array_equal(every, np.arange(len(every))):
            raise ValueError("groups must hold every coordinate from 0 on exactly once")
        self.balls = [L1Ball(float(radius)) for radius in np.broadcast_to(radii, len(self.groups))]
        self.block_of = np.empty(len(every), dtype=np.int64)
        self.widths = np.empty(len(every))
        for block, (group, ball) in enumerate(zip(self.groups, self.balls, strict=True)):
            self.block_of[group] = block
            self.widths[group] = 2.0 * ball.radius

    def start(self) -> Floats:
        return np.zeros(len(self.block_of))

    def coordinates(self, blocks: Integers) -> Integers:
        return np.concatenate([np.empty(0, dtype=np.int64), *(self.groups[block] for block in blocks)])

    def oracle(self, gradient: Floats, blocks: Integers) -> Floats:
        ends = np.cumsum([len(self.groups[block]) for block in blocks])
        parts = np.split(gradient, ends[:-1]) if len(blocks) else []
        vertices = [np.zeros(len(part)) for part in parts]
        for block, part, vertex in zip(blocks, parts, vertices, strict=True):
            index, sign = self.balls[block].linear_oracle(part)
            vertex[index] = sign * self.balls[block].radius
        return np.concatenate([np.empty(0), *vertices])


def block_frank_wolfe(
    gradient: Gradient,
    domain: Domain,
    sampling: Sampling,
    n_iter: int,
    source: PublicDraws,
    *,
    start: ArrayLike | None = None,
    oracle: Oracle | None = None,
    watch: Callable[[int, Floats], None] | None = None,
) -> Floats:
    """Run block-coordinate Frank-Wolfe for `n_iter` sets of blocks, drawn from the source, and return the last point.

    `gradient(x, coordinates)` is the partial gradient at x, exact or not; it must not write to x. It starts at the
    point nearest to zero, or at the one given. `oracle(partial_gradient, blocks)` takes the place of `domain.oracle`.
    `watch(t, x)` is called with the point before iteration t, and at the end.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.federated.block_frank_wolfe import Balls, block_frank_wolfe
    >>> from tacit.federated.protocols.feature_sharing.samplings import Distributed
    >>> from tacit.privacy.public import PublicDraws
    >>> target = np.array([0.5, -0.25, 0.0, 1.0])
    >>> domain = Balls([[0, 1], [2, 3]], radii=[1.0, 1.0])
    >>> x = block_frank_wolfe(lambda x, at: (x - target)[at], domain, Distributed([[0], [1]], 1), 400, PublicDraws(0))
    >>> bool(np.abs(x - target).max() < 0.01)
    True
    """
    if sampling.n_blocks != domain.n_blocks:
        raise ValueError(f"the domain has {domain.n_blocks} blocks and the sampling draws from {sampling.n_blocks}")
    x = domain.start() if start is None else np.array(start, dtype=np.float64)
    if x.shape != domain.block_of.shape:
        raise ValueError(f"start must have one entry for each of {len(domain.block_of)} coordinates, got {x.shape}")
    best = domain.oracle if oracle is None else oracle
    for t in range(checks.count("n_iter", n_iter)):
        if watch is not None:
            watch(t, x)
        blocks = sampling.draw(source)
        at = domain.coordinates(blocks)
        x[at] += universal_step(sampling.least_marginal, t) * (best(gradient(x, at), blocks) - x[at])
    if watch is not None:
        watch(n_iter, x)
    return x
