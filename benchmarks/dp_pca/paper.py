"""What the DP-PCA paper prints, and the noise it adds: one row a step, drawn evenly, n steps, gradients below G."""

import math
import tomllib
from pathlib import Path

import dp_accounting
from dp_accounting.pld import PLDAccountant

EPSILON, DELTA = 0.1, 1e-3
ROWS = {"a9a": 32_561, "MNIST": 60_000}

_TOLD = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf8"))
TABLE_3, WANTED, KEPT = _TOLD["table_3"], _TOLD["wanted"], _TOLD["kept"]


def spca_multiplier(n: int, epsilon: float, part: float = 0.5) -> float:
    """lambda_1 / G of DP-SPCA (Lemma 1) with T = n; `part` is its free constant mu."""
    order = math.log(1.0 / DELTA) / ((1.0 - part) * epsilon) + 1.0
    return math.sqrt(20.0 * n * order / (n**2 * epsilon * part))


def vrpca_multiplier(n: int, epsilon: float, epochs: int = 1) -> float:
    """lambda_2 / G of DP-VRPCA (Theorem 3) with T = n."""
    return math.sqrt(n * epochs * math.log(1.0 / DELTA)) / (n * epsilon)


def multipliers(n: int) -> dict[str, tuple[float, float]]:
    """Noise over G, and what a row changes over G."""
    reduced = vrpca_multiplier(n, EPSILON)
    return {
        "DP-SPCA": (spca_multiplier(n, EPSILON), 1.0),
        "DP-VRPCA": (reduced, 1.0),
        "DP-VRPCA, real sensitivity": (reduced, 2.0),
    }


def true_epsilon(n: int, multiplier: float, steps: int) -> float:
    """Of steps that each see a row with probability 1 / n, at the paper's delta; coarser where it is in the tens."""
    accountant = PLDAccountant(value_discretization_interval=1e-4 if multiplier > 0.5 else 1e-2)
    event = dp_accounting.PoissonSampledDpEvent(1.0 / n, dp_accounting.GaussianDpEvent(multiplier))
    accountant.compose(event, steps)
    return float(accountant.get_epsilon(DELTA))
