"""Asking for memory before it is read, where the processor does not see by itself what comes next.

It guesses the next lines of a stream, but a loop that reads some rows twice stops its stream again and again. To ask
changes no number, and what is asked for may lie past the end.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tacit._types import Table
from tacit.problems.compiled import kernel

_LINE = 64  # bytes that come at a time
_WHOLE, _READ, _NEAREST, _DATA = ir.IntType(32), 0, 3, 1  # what the instruction is told


@intrinsic  # type: ignore[misc]
def _ask(_: Any, table: Any, ___: Any) -> Any:
    """Ask for the entry of a table at this place of its storage."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        entries = context.make_array(signature.args[0])(context, builder, args[0]).data
        address = builder.bitcast(builder.gep(entries, [args[1]]), ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [address.type, _WHOLE, _WHOLE, _WHOLE])
        ask = builder.module.declare_intrinsic("llvm.prefetch", [address.type], kind)
        builder.call(ask, [address, _WHOLE(_READ), _WHOLE(_NEAREST), _WHOLE(_DATA)])
        return context.get_dummy_value()

    return types.void(table, types.intp), generate


@kernel
def ask_for(Z: Table, start: int, end: int) -> None:
    """Ask for these entries of a table, counted along its rows."""
    for at in range(start, end, _LINE // Z.itemsize):
        _ask(Z, at)
