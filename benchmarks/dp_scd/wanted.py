"""The scores that the DP-SCD benchmark is to reach."""

from typing import NamedTuple


class Wanted(NamedTuple):
    """A score to reach: where, at most how much (or 2% above that without privacy), and whom the verdict is on."""

    problem: str
    epsilon: float
    delta: str
    most: float | None
    judged: tuple[str, ...]
    asked: str


WANTED = [
    Wanted("Logistic, phishing", 0.1, "n^-2", 0.085, ("rule", "fit", "tuned"), "test error at most .085"),
    Wanted("SVM, adult", 0.1, "1e-3", 0.17, ("rule", "fit"), "test error at most .17"),
    Wanted(
        "Ridge, california_housing", 1.0, "1e-3", None, ("rule", "fit", "tuned"), "MSE at most 2% above not private"
    ),
]
