"""Ask memory for an entry of an array before it is needed: nothing but the time taken depends on it."""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

_BYTES, _WHOLE = cgutils.voidptr_t, cgutils.int32_t
_FOR_READING, _KEEP, _DATA = (ir.Constant(_WHOLE, code) for code in (0, 3, 1))


@intrinsic  # type: ignore[misc]
def prefetch(_: Any, array: Any, at: Any) -> Any:
    """Have array[at] near at hand soon; `at`, an index or a pair of them, must be in range."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind, place = signature.args
        held = context.make_array(kind)(context, builder, args[0])
        pair = hasattr(place, "types")
        given = zip(cgutils.unpack_tuple(builder, args[1]), place, strict=True) if pair else [(args[1], place)]
        index = [context.cast(builder, one, its, types.intp) for one, its in given]
        entry = cgutils.get_item_pointer(context, builder, kind, held, index, wraparound=False)
        form = ir.FunctionType(ir.VoidType(), [_BYTES, _WHOLE, _WHOLE, _WHOLE])
        fetch = cgutils.get_or_insert_function(builder.module, form, "llvm.prefetch.p0i8")
        builder.call(fetch, [builder.bitcast(entry, _BYTES), _FOR_READING, _KEEP, _DATA])
        return context.get_dummy_value()

    return types.void(array, at), generate
