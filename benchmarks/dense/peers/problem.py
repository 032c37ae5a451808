"""A problem for a peer: an .npz with `X_train`, `X_test`, `y_train`, `y_test`, and its settings as JSON.

The settings hold `kind`, `epsilons`, `delta`, `seed` and, in table order, the `points` to try. A runner prints one JSON
object for each epsilon: the epsilon, a list of values for each metric, one for each point, and seconds of all fits.
"""

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np


def run(fit: Callable[[dict[str, Any], dict[str, Any], float, dict[str, float]], Any]) -> None:
    """Read the problem named on the command line, and print what `fit` reaches at each epsilon and point.

    `fit(arrays, settings, epsilon, point)` gives metrics of one model as a dict, with its `seconds`.
    """
    path = sys.argv[1]
    with np.load(path) as file:
        arrays = {name: file[name] for name in ("X_train", "X_test", "y_train", "y_test")}
        settings = json.loads(str(file["settings"]))
    for epsilon in settings["epsilons"]:
        rows = [fit(arrays, settings, epsilon, point) for point in settings["points"]]
        scores = {name: [round(row[name], 5) for row in rows] for name in rows[0] if name != "seconds"}
        seconds = [round(row["seconds"], 4) for row in rows]
        print(json.dumps({"epsilon": epsilon, "scores": scores, "seconds": seconds}), flush=True)


def classification(y: np.ndarray, probability: np.ndarray) -> dict[str, float]:
    """Accuracy, area under the ROC curve and log-loss of probabilities that y is 1."""
    tiny = np.finfo(np.float64).eps
    inside = np.clip(probability, tiny, 1.0 - tiny)
    log_loss = -np.mean(np.where(y == 1, np.log(inside), np.log1p(-inside)))
    accuracy = np.mean((probability > 0.5) == (y == 1))
    return {"accuracy": float(accuracy), "auc": _auc(y == 1, probability), "log_loss": float(log_loss)}


def regression(y: np.ndarray, prediction: np.ndarray) -> dict[str, float]:
    """R2, the part of the variance that the prediction explains."""
    return {"r2": float(1.0 - np.sum((y - prediction) ** 2) / np.sum((y - y.mean()) ** 2))}


def _auc(positive: np.ndarray, score: np.ndarray) -> float:
    """The chance that a positive row is ranked above a negative one, ties counting half."""
    _, place, counts = np.unique(score, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2.0)[place]
    p, n = int(positive.sum()), int((~positive).sum())
    return float((ranks[positive].sum() - p * (p + 1) / 2.0) / (p * n))
