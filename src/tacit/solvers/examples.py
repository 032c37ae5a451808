"""The example that docstrings of solvers end with: a public table, a fit by that solver, and what it shows."""

from collections.abc import Callable
from typing import TypeVar

from tacit.solvers.base import Solver

Kind = TypeVar("Kind", bound=type[Solver])

_CANCER = """
    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from tacit import LogisticRegression
    >>> from tacit.solvers import {solver}
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LogisticRegression(epsilon=3.0, solver={solver}({options})).fit(X, y)
    >>> model.score(X, y) > {told}
    True
    """

_DIGITS = """
    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from tacit import PCA
    >>> from tacit.solvers.pca import {solver}
    >>> X, _ = load_digits(return_X_y=True)
    >>> pca = PCA(n_components=3, solver={solver}({options}), epsilon=5.0{told}).fit(X)
    >>> pca.components_.shape
    (3, 64)
    """


def on_cancer(options: str = "", *, score: float) -> Callable[[Kind], Kind]:
    """Show a logistic regression, and a score that it is above."""
    return _ending_with(_CANCER, options, score)


def on_digits(options: str = "", more: str = "") -> Callable[[Kind], Kind]:
    """Show a PCA, with `more` parameters."""
    return _ending_with(_DIGITS, options, more)


def _ending_with(example: str, options: str, told: object) -> Callable[[Kind], Kind]:
    def ended(kind: Kind) -> Kind:
        kind.__doc__ = f"{kind.__doc__}{example.format(solver=kind.__name__, options=options, told=told)}"
        return kind

    return ended
