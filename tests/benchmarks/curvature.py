"""Intervals as sets, and the expected curvature of the paper's Propositions 3 and 4, by which they converge.

For f(x) = |A x - y|^2 / 2 it is the largest mean of |sum over drawn blocks of A_i (s_i - x_i)|^2. Two points of a block
differ by a vector in the hull of +-w_j e_j, with w_j the width of the set along coordinate j. So products of the
columns w_j A_j bound it.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from benchmarks.federated.block_frank_wolfe import Domain
from tacit.federated.protocols.feature_sharing.samplings import Distributed, Sampling, Subsets, TauNice
from tacit.privacy.public import PublicDraws

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_CHUNK = 1 << 9


class Intervals(Domain):
    """Each coordinate is a block and lies in an interval."""

    def __init__(self, low: ArrayLike, high: ArrayLike) -> None:
        self.low, self.high = (np.array(values, dtype=np.float64) for values in np.broadcast_arrays(low, high))
        if self.low.ndim != 1 or not np.all(np.isfinite(self.high - self.low)) or not np.all(self.low <= self.high):
            raise ValueError("intervals need finite ends, the lower one first")
        self.block_of = np.arange(len(self.low))
        self.widths = self.high - self.low

    def start(self) -> Floats:
        return np.clip(np.zeros(len(self.low)), self.low, self.high)

    def coordinates(self, blocks: Integers) -> Integers:
        return blocks

    def oracle(self, gradient: Floats, blocks: Integers) -> Floats:
        return np.where(gradient > 0.0, self.low[blocks], self.high[blocks])


def counted_marginals(sampling: Sampling, draws: int, source: PublicDraws) -> Floats:
    """How often each block was in one of `draws` sets, relatively."""
    counts = np.zeros(sampling.n_blocks)
    for _ in range(draws):
        counts[sampling.draw(source)] += 1.0
    return counts / draws


def curvature_bound(columns: Any, domain: Domain, sampling: Sampling) -> float:
    """An upper bound on the expected curvature of |A x - y|^2 / 2, for dense or sparse columns A.

    With mu_1 the largest |w_j A_j|^2 and mu_2 the largest product of two such columns in different blocks:
    E|T| mu_1 + E|T|(|T| - 1) mu_2 for a drawn set T, which for tau-nice sampling is Proposition 3. For
    (K, tau)-distributed sampling, Proposition 4: K tau mu_1 + K tau (tau - 1) mu_2 + K (K - 1) tau^2 mu_3, where mu_2
    is taken over blocks of one worker and mu_3 over blocks of different workers.
    """
    if isinstance(sampling, Distributed):
        owner = np.empty(sampling.n_blocks, dtype=np.int64)
        for worker, part in enumerate(sampling.parts):
            owner[part] = worker
        K, tau = len(sampling.parts), sampling.tau
        one, within, across = _largest_products(columns, domain, owner)
        return K * tau * (one + (tau - 1) * within + (K - 1) * tau * across)
    one, both, _ = _largest_products(columns, domain, np.zeros(domain.n_blocks, dtype=np.int64))
    if isinstance(sampling, TauNice):
        return sampling.tau * (one + (sampling.tau - 1) * both)
    if isinstance(sampling, Subsets):
        sizes = np.array([len(subset) for subset in sampling.subsets], dtype=np.float64)
        return float(sampling.probabilities @ (sizes * (one + np.maximum(sizes - 1.0, 0.0) * both)))
    raise TypeError(f"no bound is known for a sampling of type {type(sampling).__name__}: use sampled_curvature")


def sampled_curvature(
    columns: Any, domain: Domain, sampling: Sampling, x: Floats, s: Floats, draws: int, source: PublicDraws
) -> float:
    """The mean over drawn sets T of |A_T (s - x)_T|^2: what the expected curvature is at these two points."""
    move = np.asarray(s, dtype=np.float64) - np.asarray(x, dtype=np.float64)
    total = 0.0
    for _ in range(draws):
        kept = np.zeros_like(move)
        at = domain.coordinates(sampling.draw(source))
        kept[at] = move[at]
        total += float(np.square(columns @ kept).sum())
    return total / draws


def _largest_products(columns: Any, domain: Domain, owner: Integers) -> tuple[float, float, float]:
    """The largest products of columns w_j A_j: with itself, across blocks of one owner, across owners."""
    scaled = columns * domain.widths if isinstance(columns, np.ndarray) else columns.multiply(domain.widths).tocsc()
    block, worker = domain.block_of, owner[domain.block_of]
    largest = [0.0, 0.0, 0.0]
    for start in range(0, scaled.shape[1], _CHUNK):
        part = slice(start, start + _CHUNK)
        product = scaled[:, part].T @ scaled
        sizes = np.abs(product if isinstance(product, np.ndarray) else product.toarray())
        here, same = np.arange(len(sizes)), worker[part, None] == worker
        largest[0] = max(largest[0], float(sizes[here, here + start].max()))
        sizes[block[part, None] == block] = 0.0
        largest[1] = max(largest[1], float(sizes[same].max(initial=0.0)))
        largest[2] = max(largest[2], float(sizes[~same].max(initial=0.0)))
    return largest[0], largest[1], largest[2]
