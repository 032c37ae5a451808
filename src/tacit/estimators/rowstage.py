"""A step of scikit-learn that follows a private one: it treats each row by itself, so it costs nothing.

It must not stop a pipeline once something was released. So all that it could refuse is refused before: a function that
is infinite at 0 or 1, which is what an encoder hands on, and missing values where the step takes none, be they in the
table or made by a function before it. What is too large for a float is as large as one can be.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import special
from sklearn.preprocessing import Binarizer, FunctionTransformer

from tacit._types import Floats
from tacit.estimators.stage import Facts, Stage
from tacit.estimators.stateless import Stateless
from tacit.privacy import Gate, Guarantee, Promise

NUMBERS_FOR_ALL = frozenset(
    {
        *(np.absolute, np.fabs, np.negative, np.positive, np.sign, np.square, np.cbrt, np.exp, np.exp2, np.expm1),
        *(np.ceil, np.floor, np.rint, np.trunc, np.sin, np.cos, np.tan, np.sinh, np.cosh, np.tanh),
        *(np.arctan, np.arcsinh, np.deg2rad, np.rad2deg),
        *(special.expit, special.erf, special.erfc, special.ndtr),
    }
)
"""Functions that make a number, or infinity, of every number: others make holes (the logarithm of -2)."""


class RowStage(Stage):
    """A step that releases nothing, and hands on as many columns as reach it."""

    solver = ""
    releases = ()
    values = 1

    def __init__(self, name: str, step: Any, facts: Facts) -> None:
        self.rows = Rows(name, step)
        super().__init__(name, self.rows.step)
        is_function = type(step) is FunctionTransformer
        if is_function and step.func is not None:
            self._check_finite()
        self._makes_holes = is_function and step.func is not None and step.func not in NUMBERS_FOR_ALL
        if not is_function or step.validate:
            self._check_whole(facts)
        self.out = self.after(replace(facts, known=self.rows.fit_transform(facts.known)))

    def follows(self, facts: Facts) -> bool:  # noqa: ARG002
        """Always."""
        return True

    def after(self, facts: Facts) -> Facts:
        """As many columns, of which nothing is known but that a `Binarizer` gives zeros and ones."""
        side, binary = np.ones(facts.d), type(self.step) is Binarizer
        low, high = (0.0 * side, side) if binary else (-np.inf * side, np.inf * side)
        names = ("",) * facts.d if binary or facts.names is None else facts.names
        return replace(facts, names=names, low=low, high=high, has_holes=facts.has_holes or self._makes_holes)

    def run(self, X: Any, gate: Gate) -> None:
        """Learn how many columns there are, from a made-up row."""
        del gate
        self._width = X.shape[1]
        self.rows.fit_transform(np.zeros((1, self._width)))

    @property
    def width(self) -> int:
        """As many as reach it."""
        return self._width

    def transform(self, X: Any) -> Floats:
        """The rows, each by itself."""
        return self.rows.transform(X)

    def keep(self, promise: Promise, guarantee: Guarantee) -> None:
        """It states nothing."""

    def _check_finite(self) -> None:
        """Zeros and ones are among what reaches it."""
        if not np.isfinite(self.rows.fit_transform(np.array([[0.0, 1.0]]), held=False)).all():
            raise ValueError(
                f"step {self.name!r}, {self.step.func.__name__}, is not finite at 0 or 1, which an encoder hands on:"
                " let it come before the private steps, for columns of numbers alone"
            )

    def _check_whole(self, facts: Facts) -> None:
        if facts.has_holes or np.isnan(facts.known).any():
            raise ValueError(
                f"step {self.name!r}, {type(self.step).__name__}, takes no missing values, and there may be some:"
                " fill them in beforehand with a constant, or leave the step out. A function before it that is not a"
                " number everywhere, such as np.log1p, makes some"
            )


class Rows(Stateless):
    """The same step as a function of arrays, for what comes after a release."""

    def fit_transform(self, X: Any, *, held: bool = True) -> Floats:
        """The rows, each by itself; if `held`, in numbers that a float holds."""
        return _numbers(super().fit_transform(X), held=held)

    def transform(self, X: Any) -> Floats:
        """The rows, each by itself, in numbers that a float holds."""
        return _numbers(super().transform(X), held=True)


def _numbers(out: Any, *, held: bool) -> Floats:
    array = np.asarray(out, dtype=np.float64)
    return np.nan_to_num(array, nan=np.nan) if held else array
