"""Arrays of numbers and of texts as JSON values, and back.

Numbers are bytes in base64, texts are lists. What holds: sizes are checked before room is made for them.
"""

import base64
import binascii
import math
from collections.abc import Set
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Json = Any

NUMBER_TYPES = frozenset(
    ("|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8"),
)
"""How arrays of numbers may be stored: little-endian, of a size that is the same everywhere."""

_FLOATS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_LONGEST_SIDE = 2**48
_MOST_CHARACTERS = 10_000_000  # that the arrays of texts of one width in a document may hold together


def fields(value: Json, names: Set[str], where: str, later: Set[str] = frozenset()) -> dict[str, Json]:
    """A JSON object with exactly these keys, of which `later` ones may be missing."""
    if not isinstance(value, dict) or not names - later <= set(value) <= names:
        raise ValueError(f"{where} must have exactly the keys {', '.join(sorted(names))}")
    return value


def written_float(value: float) -> Json:
    """A number; JSON has no name for those that are not finite."""
    return float(value) if math.isfinite(value) else {"float": str(float(value))}


def read_float(content: Json, where: str) -> float:
    """One that is not finite."""
    if not isinstance(content, str) or content not in _FLOATS:
        raise ValueError(f"{where} must be one of {', '.join(_FLOATS)} where it is no finite number")
    return _FLOATS[content]


def check_texts(document: Json) -> None:
    """Refuse a document whose arrays of texts, all as wide as the longest, would take far more room than it does."""
    characters, waiting = 0, [document]
    while waiting:
        content = waiting.pop()
        if isinstance(content, dict):
            texts = content.get("values")
            if isinstance(texts, list) and content.get("dtype") != "object":
                characters += len(texts) * _longest(texts)
            waiting.extend(content.values())
        elif isinstance(content, list):
            waiting.extend(content)
    if characters > _MOST_CHARACTERS:
        raise ValueError(f"its arrays of texts hold more than {_MOST_CHARACTERS:,} characters")


def _longest(texts: list[Json]) -> int:
    return max((len(text) for text in texts if isinstance(text, str)), default=0)


def written_array(array: NDArray[Any], where: str) -> Json:
    """An array; the error about one that cannot be written has its name."""
    if array.dtype.kind in "UO":
        return _written_texts(array, where)
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    if little.dtype.str not in NUMBER_TYPES:
        raise TypeError(f"{where} cannot be written to a model file: it is an array of type {array.dtype}")
    # The order in memory is kept: a product may round differently in another one.
    order: Literal["C", "F"] = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    data = base64.b64encode(little.tobytes(order=order)).decode("ascii")
    return {"dtype": little.dtype.str, "shape": list(array.shape), "order": order, "data": data}


def _written_texts(array: NDArray[Any], where: str) -> Json:
    """Texts, or single values in an array of objects, one by one."""
    values = array.ravel().tolist()
    if not all(isinstance(value, bool | str | int | float) for value in values):
        raise TypeError(
            f"{where} cannot be written to a model file: it is an array of objects other than texts, numbers"
        )
    name = "object" if array.dtype.kind == "O" else f"<U{max(1, _longest(values))}"
    return {
        "dtype": name,
        "shape": list(array.shape),
        "values": [written_float(value) if isinstance(value, float) else value for value in values],
    }


def read_array(content: Json, where: str) -> NDArray[Any]:
    """The array that `written_array` wrote; anything else raises ValueError."""
    if isinstance(content, dict) and "values" in content:
        return _read_texts(content, where)
    told = fields(content, {"dtype", "shape", "order", "data"}, where)
    if not isinstance(told["dtype"], str) or told["dtype"] not in NUMBER_TYPES:
        raise ValueError(f"{where} has an unknown dtype; known are {', '.join(sorted(NUMBER_TYPES))}")
    if told["order"] not in ("C", "F"):
        raise ValueError(f"{where} must have the order 'C' or 'F'")
    dtype, shape, data = np.dtype(told["dtype"]), shape_of(told["shape"], where), told["data"]
    length = math.prod(shape) * dtype.itemsize
    if not isinstance(data, str) or len(data) != 4 * ((length + 2) // 3):
        raise ValueError(f"{where} does not hold as many bytes as its shape and dtype say")
    try:
        raw = base64.b64decode(data.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise ValueError(f"{where} is not base64") from None
    if len(raw) != length:
        raise ValueError(f"{where} does not hold as many bytes as its shape and dtype say")
    if dtype.kind == "b" and raw.strip(b"\0\1"):
        raise ValueError(f"{where} holds truth values that are neither 0 nor 1")
    flat = np.frombuffer(raw, dtype)
    return flat.reshape(shape, order=told["order"]).astype(dtype.newbyteorder("="), order="K", copy=True)


def _read_texts(content: Json, where: str) -> NDArray[Any]:
    told = fields(content, {"dtype", "shape", "values"}, where)
    name, values, shape = told["dtype"], told["values"], shape_of(told["shape"], where)
    if not isinstance(values, list) or len(values) != math.prod(shape):
        raise ValueError(f"{where} does not hold as many values as its shape says")
    if name == "object":
        array = np.empty(len(values), dtype=object)
        array[:] = [_read_single(value, where) for value in values]
        return array.reshape(shape)
    width = _width(name)
    if width is None or not all(isinstance(value, str) and len(value) <= width for value in values):
        raise ValueError(f"{where} must hold texts, none of them longer than its dtype says")
    return np.array(values, dtype=f"U{max(1, _longest(values))}").reshape(shape)  # what a file says may be far wider


def _read_single(value: Json, where: str) -> bool | str | int | float:
    if isinstance(value, dict) and set(value) == {"float"}:
        return read_float(value["float"], where)
    if not isinstance(value, bool | str | int | float):
        raise ValueError(f"{where} must hold texts and numbers")
    return value


def _width(name: Json) -> int | None:
    """The number of characters of a dtype such as "<U5"."""
    digits = name[2:] if isinstance(name, str) and name.startswith("<U") else ""
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 9 else None


def shape_of(sides: Json, where: str) -> tuple[int, ...]:
    """The sides of an array, each of a size that there may be."""
    whole = isinstance(sides, list) and all(isinstance(side, int) and not isinstance(side, bool) for side in sides)
    if not whole or not 1 <= len(sides) <= 4 or not all(0 <= side <= _LONGEST_SIDE for side in sides):
        raise ValueError(f"{where} must have a shape of one to four whole numbers")
    return tuple(sides)
