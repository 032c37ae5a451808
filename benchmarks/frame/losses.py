"""Losses of a margin and a target, written down once more, apart from the library; and problems made of them."""

from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit

from benchmarks.frame import Floats
from tacit.problems import LOSSES


def values(loss: str, margins: Any, y: Any, corner: float = 0.0) -> Any:
    """Half the square, the logistic loss, the hinge (rounded over `corner`) or its square."""
    if loss == "squared":
        return 0.5 * (margins - y) ** 2
    if loss == "logistic":
        return np.logaddexp(0.0, -y * margins)
    room = 1.0 - y * margins
    inside = np.clip(room / max(corner, 1e-300), 0.0, 1.0)
    return np.square(np.maximum(room, 0.0)) if loss == "squared_hinge" else inside * (room - corner * inside / 2)


def slopes(loss: str, margins: Any, y: Any, corner: float = 0.0) -> Any:
    """The derivative in the margin."""
    if loss == "squared":
        return margins - y
    if loss == "logistic":
        return -y * expit(-y * margins)
    room = 1.0 - y * margins
    if loss == "squared_hinge":
        return -2.0 * y * np.maximum(room, 0.0)
    return -y * np.clip(room / max(corner, 1e-300), 0.0, 1.0)


class Linear:
    """What problems without an intercept share: min over w of mean loss + l1 |w|_1 + l2 / 2 |w|^2."""

    loss: str
    X: Floats
    y: Floats
    l1: float
    l2: float

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        rows, columns = self.X.shape
        return rows, columns

    @cached_property
    def global_smoothness(self) -> float:
        """The largest curvature; of the hinge, which has none, that of half the square of the margin."""
        gram = self.X.T @ self.X / len(self.y)
        return float(np.linalg.eigvalsh(gram)[-1]) * LOSSES[self.loss].curvature + self.l2

    def slopes(self, margins: Any, y: Any) -> Any:
        """The derivative of the loss in the margin."""
        return slopes(self.loss, margins, y)

    def objectives(self, w: Floats) -> Floats:
        """Of each column of `w`; infinite where the weights are not numbers any more."""
        w = w.reshape(len(w), -1)
        with np.errstate(all="ignore"):
            loss = values(self.loss, self.X @ w, self.y[:, None]).mean(axis=0)
            found = loss + self.l1 * np.abs(w).sum(axis=0) + 0.5 * self.l2 * (w**2).sum(axis=0)
        return np.where(np.isfinite(found), found, np.inf)
