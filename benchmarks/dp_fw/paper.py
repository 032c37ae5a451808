"""Algorithm 1 of the sparse DP Frank-Wolfe paper as it is best written with NumPy and SciPy, and its printed noise.

An iteration is two products, X w and X^T q with X^T stored by rows, D Laplace draws, and the largest of the noisy
entries. With the noisy sign (`sign="drawn"`) it is private: where the noise on an entry has scale b and one row moves
every entry by at most c, a row moves what the winner is compared with by c and the winner by c, so a draw is a pure
2 c / b. Its noise is NumPy's, in float64 and from no secure source: for comparison only.

With the sign of the exact gradient (`sign="exact"`), as printed, no epsilon holds.
"""

import time
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from benchmarks.dp_fw.problems import Split


class AlgorithmOne:
    """No intercept, entries clipped to `bound`; `scale` is that of the noise on the sum of gradients.

    Products are in single precision where the rows are. The gap, which the paper works out and does not use, is left
    out.
    """

    def __init__(
        self,
        split: Split,
        radius: float,
        bound: float,
        scale: float,
        sign: str = "drawn",
        seed: int = 0,
        loss: str = "logistic",
    ) -> None:
        self._X, self._y, self.radius, self._scale = _clipped(split.X, bound), split.y, radius, scale
        self._turned = csr_array(self._X.T) if issparse(self._X) else self._X.T
        self._exact, self._rng, self._loss = sign == "exact", np.random.default_rng(seed), loss
        self._kind = self._X.dtype
        self.weights = np.zeros(self._X.shape[1], dtype=self._kind)
        self.drawing = 0.0  # seconds that went into draws

    def step(self, t: int) -> tuple[int, int]:
        """Iteration t: the vertex drawn."""
        y, margins = self._y.astype(self._kind), self._X @ self.weights
        slopes = margins - y if self._loss == "squared" else -y / (1.0 + np.exp(y * margins))
        alpha = self._turned @ slopes
        start = time.process_time()
        noisy = alpha + self._rng.laplace(scale=self._scale, size=len(alpha)) if self._scale > 0.0 else alpha
        self.drawing += time.process_time() - start
        j = int(np.abs(noisy).argmax())
        sign = -1 if (alpha if self._exact else noisy)[j] > 0.0 else 1
        eta = 2.0 / (t + 2.0)
        self.weights *= 1.0 - eta
        self.weights[j] += eta * self.radius * sign
        return j, sign

    def seconds(self, count: int, at_least: float, fewest: int = 5) -> tuple[float, int]:
        """The processor's seconds of one iteration, and how many were timed after one to warm up."""
        self.step(1)
        self.drawing, start, made = 0.0, time.process_time(), 0
        while made < count - 1 and (made < fewest or time.process_time() - start < at_least):
            self.step(made + 2)
            made += 1
        return (time.process_time() - start) / made, made


def _clipped(X: Any, bound: float) -> Any:
    if not issparse(X):
        return np.clip(X, -bound, bound)
    return csr_array((np.clip(X.data, -bound, bound), X.indices, X.indptr), shape=X.shape)
