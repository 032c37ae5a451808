"""Sums whose terms the compiler may add in any order, so that a loop over them becomes vector code.

Only the addition itself is free. What is added keeps every rounding that is written: the flags of a whole function
("fastmath") would let the compiler round a row's own numbers in one way in the middle of an array and in another at its
end.
"""

from typing import Any

from numba import types
from numba.extending import intrinsic

from tacit._types import Floats, Table
from tacit.problems.compiled import kernel


@intrinsic  # type: ignore[misc]
def add_in_any_order(_: Any, __: Any, ___: Any) -> Any:
    """Total + term, both float64."""

    def generate(_: Any, builder: Any, __: Any, args: Any) -> Any:
        return builder.fadd(*args, flags=("reassoc", "nsz"))

    return types.float64(types.float64, types.float64), generate


@intrinsic  # type: ignore[misc]
def add_product_in_any_order(_: Any, __: Any, ___: Any, ____: Any) -> Any:
    """Total + one * other, all float64, in one rounding or two. For exact sums, which neither changes."""

    def generate(_: Any, builder: Any, __: Any, args: Any) -> Any:
        product = builder.fmul(args[1], args[2], flags=("contract",))
        return builder.fadd(args[0], product, flags=("reassoc", "nsz", "contract"))

    return types.float64(types.float64, types.float64, types.float64), generate


@kernel
def dot_in_any_order(one: Table, other: Floats) -> float:
    """The inner product."""
    total = 0.0
    for i in range(len(one)):
        total = add_in_any_order(total, one[i] * other[i])
    return total
