"""Losses of a margin and a target, written down once more, apart from the library."""

from typing import Any

import numpy as np
from scipy.special import expit


def values(loss: str, margins: Any, y: Any, corner: float = 0.0) -> Any:
    """Half the square, the logistic loss, the hinge (rounded over `corner`) or its square."""
    if loss == "squared":
        return 0.5 * (margins - y) ** 2
    if loss == "logistic":
        return np.logaddexp(0.0, -y * margins)
    room = 1.0 - y * margins
    inside = np.clip(room / max(corner, 1e-300), 0.0, 1.0)
    return np.square(np.maximum(room, 0.0)) if loss == "squared hinge" else inside * (room - corner * inside / 2)


def slopes(loss: str, margins: Any, y: Any, corner: float = 0.0) -> Any:
    """The derivative in the margin."""
    if loss == "squared":
        return margins - y
    if loss == "logistic":
        return -y * expit(-y * margins)
    room = 1.0 - y * margins
    if loss == "squared hinge":
        return -2.0 * y * np.maximum(room, 0.0)
    return -y * np.clip(room / max(corner, 1e-300), 0.0, 1.0)
