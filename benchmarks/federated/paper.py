"""What the noise of Lou and Cheung's Algorithm 2 is worth, by the library's accountant.

The paper gives a shared column J a noise of standard deviation (formula 17)

    pi = sigma(J) sqrt(K T) sqrt(2 (ln(1/delta) + epsilon/2)) / (n epsilon/2),

with sigma(J) the leading singular value, for K T columns. One person's entry, of size at most 1, moves a sketched
column by that entry times a column of J: by up to c_J, the largest norm of one, and there is no 1/n in it. So each
column is a Gaussian release with mu = c_J / pi, exactly. Signed indices get Laplace noise of scale (section IV-C.2)

    b = (2 G eta / (K n)) sqrt(2 T ln(2/delta)) / (epsilon / (4 K)),

and the index with the largest noisy value is reported. A value moves by B R / n at most; we take G eta for B R, in the
paper's favour, so that a report costs 2 G eta / (n b), and compose the K T reports as zCDP.
"""

import math
from functools import lru_cache

import numpy as np

from tacit.federated.sketches import Gaussian
from tacit.privacy import gdp

Setting = dict[str, float]

SETTINGS: list[Setting] = [
    *({"n": n, "m": n // 10, "K": 4, "T": 100, "epsilon": 1.0} for n in (200, 800, 2_000, 10_000)),
    *({"n": 800, "m": m, "K": 4, "T": 100, "epsilon": 1.0} for m in (8, 400)),
    *({"n": 800, "m": 80, "K": 4, "T": 100, "epsilon": epsilon} for epsilon in (0.001, 0.1, 10.0)),
]


def named() -> dict[str, Setting]:
    """The settings by the names of their records."""
    return {", ".join(f"{key} = {value:g}" for key, value in setting.items()): setting for setting in SETTINGS}


@lru_cache
def sketch_norms(n: int, m: int) -> tuple[float, float]:
    """The largest column norm and the leading singular value of a Gaussian sketch."""
    J = Gaussian(n, m, seed=0).back(np.eye(m)).T
    leading = float(np.linalg.eigvalsh(J @ J.T)[-1])
    return float(np.linalg.norm(J, axis=0).max()), math.sqrt(leading)


def column_noise(n: int, K: int, T: int, epsilon: float, delta: float, leading: float) -> float:
    """Formula (17)."""
    return leading * math.sqrt(K * T) * math.sqrt(2.0 * (math.log(1.0 / delta) + epsilon / 2.0)) / (n * epsilon / 2.0)


def paper_true_epsilon(
    n: int, K: int, T: int, epsilon: float, delta: float, m: int, shared: int | None = None
) -> float:
    """The epsilon, at the same delta, of the shared columns alone: less than that of everything that is sent.

    `shared` is the number of different columns, K T unless given.
    """
    largest, leading = sketch_norms(n, m)
    columns = K * T if shared is None else shared
    mu = math.sqrt(columns) * largest / column_noise(n, K, T, epsilon, delta, leading)
    return gdp.epsilon_from_mu(mu, delta)


def index_epsilon(n: int, K: int, T: int, epsilon: float, delta: float) -> float:
    """An upper bound on the epsilon of all signed indices, where G eta bounds entry times residual."""
    scale = 2.0 / (K * n) * math.sqrt(2.0 * T * math.log(2.0 / delta)) / (epsilon / (4.0 * K))  # for G eta = 1
    rho = K * T * (2.0 / (n * scale)) ** 2 / 2.0
    return rho + 2.0 * math.sqrt(rho * math.log(1.0 / delta))


def true_epsilons(n: float, m: float, K: float, T: float, epsilon: float) -> dict[str, float]:
    """For one of the paper's settings, delta = 1/n: what is claimed, and what it is."""
    rows, workers, rounds, delta = int(n), int(K), int(T), 1.0 / n
    return {
        "claimed": epsilon,
        "true, all columns": paper_true_epsilon(rows, workers, rounds, epsilon, delta, int(m)),
        "true, one column": paper_true_epsilon(rows, workers, rounds, epsilon, delta, int(m), shared=1),
        "indices, at most": index_epsilon(rows, workers, rounds, epsilon, delta),
    }
