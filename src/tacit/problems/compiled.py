"""How a formula is compiled, and how the same formula is applied to whole arrays."""

from collections.abc import Callable
from typing import TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from tacit._types import Floats
from tacit.compilation import compiled

_Function = TypeVar("_Function", bound=Callable[..., object])


def kernel(function: _Function) -> _Function:
    """Compile `function` at its first call and keep the result on disk.

    Never with fastmath: a sum is taken in the order in which it is written, so the result for a row is a
    function of that row alone, to the last bit.
    """
    return compiled()(function)


class Elementwise:
    """The formula of a scalar kernel as a function of float64 arrays, which broadcast.

    The formula is written once. In a compiled loop its NumPy functions act on numbers; here they act on
    arrays, without a compiler. A formula for both has no branches and calls no other kernel: it speaks in
    `minimum`, `maximum`, `abs` and arithmetic.
    """

    def __init__(self, scalar: Callable[..., float]) -> None:
        self._formula = cast(Callable[..., Floats], getattr(scalar, "py_func", scalar))

    def __call__(self, *operands: ArrayLike) -> Floats:
        """Apply the formula to each element."""
        return self._formula(*(np.asarray(operand, dtype=np.float64) for operand in operands))
