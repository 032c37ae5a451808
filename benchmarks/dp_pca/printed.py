"""Algorithms 1 and 2 of the DP-PCA paper as they are printed, for comparison. Neither has the guarantee it names.

One row at a time: n steps of size 1 / (2 n) or 1 / n from random directions, each with the noise of Lemma 1 or of
Theorem 3, and V (V^T V)^(-1/2) after each. The snapshot of Algorithm 2 is taken without noise, as printed.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.dp_pca import paper
from benchmarks.dp_pca.methods import random_components
from benchmarks.frame import Floats

EPOCHS = 1  # m of Algorithm 2, which the paper does not tell


def spca(X: Any, k: int, epsilon: float | None, seed: int) -> Floats:
    """Algorithm 1, DP-SPCA; without noise for no epsilon."""
    n = len(X)
    noise = 0.0 if epsilon is None else paper.spca_multiplier(n, epsilon)

    def gradient(V: Floats, x: Floats) -> Floats:
        return np.outer(x, x @ V)

    return _steps(X, _start(X, k, seed), gradient, 1.0 / (2 * n), noise, seed)


def vrpca(X: Any, k: int, epsilon: float | None, seed: int) -> Floats:
    """Algorithm 2, DP-VRPCA; without noise for no epsilon."""
    n, V = len(X), _start(X, k, seed)
    noise = 0.0 if epsilon is None else paper.vrpca_multiplier(n, epsilon, EPOCHS)
    for epoch in range(EPOCHS):
        anchor, snapshot = V, X.T @ (X @ V) / n

        def gradient(V: Floats, x: Floats, anchor: Floats = anchor, snapshot: Floats = snapshot) -> Floats:
            return np.outer(x, x @ (V - anchor)) + snapshot

        V = _steps(X, V, gradient, 1.0 / n, noise, seed + epoch).T
    return V.T


ALGORITHMS = {"DP-SPCA, Algorithm 1": spca, "DP-VRPCA, Algorithm 2": vrpca}


def _start(X: Any, k: int, seed: int) -> Floats:
    return random_components(X.shape[1], k, seed).T


def _steps(
    X: Any, V: Floats, gradient: Callable[[Floats, Floats], Floats], size: float, noise: float, seed: int
) -> Floats:
    """N steps along noisy gradients of single rows, with G = 1; the components as rows."""
    rng = np.random.default_rng(seed)
    for place in rng.integers(len(X), size=len(X)):
        G = gradient(V, X[place])
        if noise > 0.0:
            G = G + noise * rng.standard_normal(V.shape)
        V = V + size * G
        values, vectors = np.linalg.eigh(V.T @ V)
        V = V @ (vectors / np.sqrt(values)) @ vectors.T
    return V.T
