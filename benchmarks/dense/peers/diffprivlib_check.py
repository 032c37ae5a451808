"""Shows that diffprivlib's LinearRegression adds too little noise; run it in the environment `.venv-diffprivlib`.

benchmarks/dense/peers/.venv-diffprivlib/bin/python benchmarks/dense/peers/diffprivlib_check.py
"""

import math
import warnings
from unittest import mock

import numpy as np
from diffprivlib.models import LinearRegression
from diffprivlib.models import linear_regression as source
from diffprivlib.tools import utils

N, REPEATS = 1_000, 300


def diagonal_noise(X: np.ndarray, y: np.ndarray, fit_intercept: bool) -> float:
    """Standard deviation, over fits, of the released sum of squares of the only column (before the fold at 0)."""
    bounds = {"bounds_X": (0.0, 1.0), "bounds_y": (0.0, 1.0), "fit_intercept": fit_intercept}
    sums = []
    with mock.patch.object(source, "mean", lambda array, **_: np.mean(array, axis=0)):  # exact means: one noise only
        for seed in range(REPEATS):
            model = LinearRegression(epsilon=1.0, random_state=seed, **bounds).fit(X, y)
            sums.append(model._obj_coefs[2][0, 0])
    return float(np.std(sums))


def spent(X: np.ndarray, y: np.ndarray, epsilon: float) -> float:
    """The sum of the epsilons of every mechanism that one fit builds."""
    used: list[float] = []

    def counted(mechanism: type) -> type:
        class Counted(mechanism):
            def __init__(self, *, epsilon: float, **rest: object) -> None:
                used.append(epsilon)
                super().__init__(epsilon=epsilon, **rest)

        return Counted

    with (
        mock.patch.object(source, "Laplace", counted(source.Laplace)),
        mock.patch.object(source, "LaplaceFolded", counted(source.LaplaceFolded)),
        mock.patch.object(utils, "LaplaceTruncated", counted(utils.LaplaceTruncated)),
    ):
        LinearRegression(epsilon=epsilon, bounds_X=(0.0, 1.0), bounds_y=(0.0, 1.0)).fit(X, y)
    return sum(used)


def main() -> None:
    """Print what a fit releases and what it would have to."""
    rng = np.random.default_rng(0)
    x, y = rng.uniform(0.0, 0.2, size=(N, 1)), rng.uniform(size=N)
    # One column: three released coefficients, each with a third of what the fit leaves for them.
    plain = diagonal_noise(x, y, fit_intercept=False)
    print(f"no intercept, column in [0, 1]: standard deviation {plain:.3f}, needed {math.sqrt(2.0) * 3.0:.3g}")
    centred = diagonal_noise(x, y, fit_intercept=True)
    reach = max(x.mean(), 1.0 - x.mean()) ** 2
    needed = math.sqrt(2.0) * 3.0 / 0.5 * reach
    print(f"intercept, mean {x.mean():.2f}: standard deviation {centred:.3g}, needed {needed:.3g}")
    for d in (1, 4, 9):
        total = spent(rng.uniform(size=(N, d)), y, epsilon=1.0)
        print(f"{d} columns: epsilon 1 asked for, {total:.3f} spent, 1 + 1 / (d + 1) = {1 + 1 / (d + 1):.3f}")


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main()
