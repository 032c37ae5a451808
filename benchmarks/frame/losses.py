"""Losses of a margin and a target, written down once more, apart from the library; and problems made of them."""

import warnings
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from sklearn.svm import LinearSVC

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
    outputs = 1

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

    @property
    def clip_unit(self) -> float:
        """What clips of gradients are multiples of."""
        return 1.0

    @cached_property
    def solution(self) -> Floats:
        """The minimiser, by scikit-learn."""
        n, unit = len(self.y), 1.0
        plain: Any
        if self.loss == "squared" and self.l1:
            plain = Lasso(alpha=self.l1, fit_intercept=False, tol=1e-12, max_iter=1_000_000)
        elif self.loss == "squared":
            plain = Ridge(alpha=n * self.l2, fit_intercept=False)
        elif self.loss == "logistic":
            plain = LogisticRegression(C=1.0 / (n * self.l2), fit_intercept=False, solver="newton-cholesky", tol=1e-10)
        else:
            unit = float(np.linalg.norm(self.X, axis=1).max())  # liblinear likes rows of norm 1
            strength = unit**2 / (n * self.l2)
            plain = LinearSVC(loss="hinge", C=strength, fit_intercept=False, max_iter=5_000, random_state=0)
        return np.ravel(fitted(plain, self.X / unit, self.y).coef_) / unit

    @cached_property
    def optimum(self) -> float:
        """The objective at the minimiser."""
        return float(self.objectives(self.solution)[0])

    def slopes(self, margins: Any, y: Any) -> Any:
        """The derivative of the loss in the margin."""
        return slopes(self.loss, margins, y)

    def clipped_slopes(self, margins: Any, y: Any, limits: Floats) -> Any:
        """The same, held within these limits."""
        return np.clip(self.slopes(margins, y), -limits, limits)

    def objectives(self, w: Floats) -> Floats:
        """Of each column of `w`; infinite where the weights are not numbers any more."""
        w = w.reshape(len(w), -1)
        with np.errstate(all="ignore"):
            loss = values(self.loss, self.X @ w, self.y[:, None]).mean(axis=0)
            found = loss + self.l1 * np.abs(w).sum(axis=0) + 0.5 * self.l2 * (w**2).sum(axis=0)
        return np.where(np.isfinite(found), found, np.inf)


def fitted(model: Any, X: Any, y: Any) -> Any:
    """A model of scikit-learn, whose tolerance is below what it can tell, or which stops within its iterations."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)
