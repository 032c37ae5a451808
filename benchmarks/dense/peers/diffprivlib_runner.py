"""diffprivlib on one problem; run by the benchmark in the environment `.venv-diffprivlib`.

    python diffprivlib_runner.py problem.npz

Rows come with norm at most 1 for classes, and with features and targets in [-1, 1] for regression.
"""

import time
import warnings
from typing import Any

import problem
from diffprivlib.models import LinearRegression, LogisticRegression
from threadpoolctl import threadpool_limits


def fit(arrays: dict[str, Any], settings: dict[str, Any], epsilon: float, point: dict[str, float]) -> dict[str, float]:
    """Fit at one epsilon with one setting, and score on the test rows."""
    classes = settings["kind"] == "classification"
    if classes:
        model = LogisticRegression(epsilon=epsilon, data_norm=1.0, random_state=settings["seed"], **point)
    else:
        bounds = (-1.0, 1.0)
        model = LinearRegression(epsilon=epsilon, bounds_X=bounds, bounds_y=bounds, random_state=settings["seed"])
    start = time.perf_counter()
    model.fit(arrays["X_train"], arrays["y_train"])
    seconds = time.perf_counter() - start
    if classes:
        scores = problem.classification(arrays["y_test"], model.predict_proba(arrays["X_test"])[:, 1])
    else:
        scores = problem.regression(arrays["y_test"], model.predict(arrays["X_test"]))
    return {**scores, "seconds": seconds}


if __name__ == "__main__":
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        problem.run(fit)
