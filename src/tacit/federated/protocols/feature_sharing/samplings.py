"""Which blocks of columns move in an iteration: samplings, drawn from a public seed.

The blocks of all iterations are drawn when a study is agreed on, from its seed and from nothing else: everybody works
out the same ones, and a plan counts what each party will release. They see no data and hide nothing, so the guarantee
holds for each of them and gains nothing from chance.

A step is 2 / (p_min t + 2), with p_min the smallest probability with which a block is drawn (Lou and Cheung, Theorem
1). That needs draws that are independent between iterations, as all of `Sampling` are.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from tacit._types import Floats, Integers
from tacit.privacy import checks
from tacit.privacy.public import PublicDraws


class Sampling(ABC):
    """How a random set of blocks is drawn, independently in every iteration."""

    def __init__(self, marginals: ArrayLike) -> None:
        p = np.array(marginals, dtype=np.float64)
        if p.ndim != 1 or not len(p) or not np.all((p > 0.0) & (p <= 1.0 + 1e-12)):
            raise ValueError("a sampling draws each of its blocks with a probability above 0 and at most 1")
        self.marginals: Floats = np.minimum(p, 1.0)

    @property
    def n_blocks(self) -> int:
        """How many blocks there are to draw from."""
        return len(self.marginals)

    @property
    def least_marginal(self) -> float:
        """p_min, the probability with which the rarest block is drawn."""
        return float(self.marginals.min())

    @abstractmethod
    def draw(self, source: PublicDraws) -> Integers:
        """A set of blocks, in increasing order."""


class TauNice(Sampling):
    """`tau` of the blocks, all sets of that size being equally likely."""

    def __init__(self, n_blocks: int, tau: int) -> None:
        n_blocks, self.tau = checks.count("n_blocks", n_blocks), checks.count("tau", tau)
        if self.tau > n_blocks:
            raise ValueError(f"tau must be at most the number of blocks, {n_blocks}, got {self.tau}")
        super().__init__(np.full(n_blocks, self.tau / n_blocks))

    def draw(self, source: PublicDraws) -> Integers:
        return _some(source, self.n_blocks, self.tau)


def elementary(n_blocks: int) -> TauNice:
    """All blocks in every iteration: plain Frank-Wolfe."""
    return TauNice(n_blocks, n_blocks)


def uniform_serial(n_blocks: int) -> TauNice:
    """One block, all being equally likely."""
    return TauNice(n_blocks, 1)


class Distributed(Sampling):
    """(K, tau)-distributed: each of K workers draws `tau` of its own blocks.

    A block of a worker that holds k of them is drawn with probability tau / k; with K equal parts of d blocks that is
    K tau / d.
    """

    def __init__(self, parts: Sequence[ArrayLike], tau: int) -> None:
        self.tau = checks.count("tau", tau)
        self.parts: list[Integers] = [np.array(part, dtype=np.int64) for part in parts]
        every = np.sort(np.concatenate(self.parts)) if self.parts else np.empty(0, dtype=np.int64)
        if not np.array_equal(every, np.arange(len(every))):
            raise ValueError("parts must hold every block from 0 on exactly once")
        if min(map(len, self.parts), default=0) < self.tau:
            raise ValueError(f"every part must hold at least tau = {self.tau} blocks")
        marginals = np.empty(len(every))
        for part in self.parts:
            marginals[part] = self.tau / len(part)
        super().__init__(marginals)

    def draw(self, source: PublicDraws) -> Integers:
        return np.sort(np.concatenate([part[_some(source, len(part), self.tau)] for part in self.parts]))


class Subsets(Sampling):
    """One of a few given sets of blocks, each with its own probability: any sampling there is."""

    def __init__(self, n_blocks: int, subsets: Sequence[ArrayLike], probabilities: ArrayLike) -> None:
        self.subsets: list[Integers] = [np.unique(np.array(subset, dtype=np.int64)) for subset in subsets]
        self.probabilities: Floats = np.array(probabilities, dtype=np.float64)
        n_blocks = checks.count("n_blocks", n_blocks)
        if self.probabilities.shape != (len(self.subsets),) or not np.all(self.probabilities > 0.0):
            raise ValueError("each subset needs a probability above 0")
        if abs(self.probabilities.sum() - 1.0) > 1e-9:
            raise ValueError(f"probabilities must add up to 1, got {self.probabilities.sum()!r}")
        if any(len(subset) and not 0 <= subset[0] <= subset[-1] < n_blocks for subset in self.subsets):
            raise ValueError(f"subsets must hold blocks from 0 to {n_blocks - 1}")
        marginals = np.zeros(n_blocks)
        for subset, probability in zip(self.subsets, self.probabilities, strict=True):
            marginals[subset] += probability
        super().__init__(marginals)

    def draw(self, source: PublicDraws) -> Integers:
        place = int(source.words(1)[0]) / 2.0**64
        at = np.searchsorted(np.cumsum(self.probabilities), place, side="right")
        return self.subsets[min(int(at), len(self.subsets) - 1)]


def _some(source: PublicDraws, size: int, count: int) -> Integers:
    """`count` of the numbers below `size`, all sets being equally likely; ties of 64-bit words apart."""
    words = source.words(size)
    return np.sort(np.argpartition(words, count - 1)[:count]).astype(np.int64)
