"""Bytes on the wire: requests, replies and refusals, in one compact form that has no two spellings.

A message is a fixed head (mark, wire version, kind, the study's digest, the round), short texts, and named arrays,
sorted by name, as little-endian numbers. Nothing in it is evaluated, and everything is checked: what is cut short, too
long, out of order, of an unknown type or not finite is refused. Equal messages have equal bytes.

    head      2s B B 32s I     mark, version, kind, digest of the study, round
    text      B, bytes         length, UTF-8
    array     text, B, B, I*   name, code of the type, number of dimensions, the dimensions; then the numbers
    request   head, party, package version, digest of the replies held (32s), step, arrays
    reply     head, party, package version, digest of the request (32s), arrays
    refusal   head, party, package version, digest of the request (32s), reason
    restart   head, party, package version, digest of the request (32s)
    farewell  head, party, package version, 32 zeros, arrays

A request says which replies of that party the coordinator holds, by one digest of them all (`held_after`). A party
compares it with its journal: a journal that was rolled back shows.
"""

import hashlib
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit import __version__
from tacit.federated.members import LONGEST_TEXT
from tacit.federated.protocols.base import Arrays, RefusedError
from tacit.federated.study import WIRE_VERSION

_MARK = b"TF"
_HEAD = struct.Struct("<2sBB32sI")
_DIGEST_BYTES = 32
HOLDS_NOTHING = bytes(_DIGEST_BYTES)  # what a request says before there is a reply
_TYPES = tuple(np.dtype(code) for code in ("<f8", "<f4", "<i8", "<i4", "<i2", "|i1", "|u1"))
_CODES = {kind: code for code, kind in enumerate(_TYPES)}
_SHAPES = tuple(struct.Struct(f"<{dimensions}I") for dimensions in range(5))
_LARGEST_EMPTY = 2**20  # the sum of the dimensions of an array without numbers


@dataclass(frozen=True, eq=False)
class Message:
    """What every message says: the study by its digest, the party, its round, and the sender's version of Tacit."""

    study: str
    party: str
    round: int
    version: str = field(default=__version__, kw_only=True)


@dataclass(frozen=True, eq=False)
class Request(Message):
    """What the coordinator asks a party."""

    step: str
    arrays: Arrays = field(default_factory=dict)
    held: bytes = HOLDS_NOTHING


@dataclass(frozen=True, eq=False)
class Reply(Message):
    """What the party sends back: the digest of the request it answers, and its releases."""

    request: bytes
    arrays: Arrays = field(default_factory=dict)


@dataclass(frozen=True)
class Refusal(Message):
    """What it sends back when it will not answer."""

    request: bytes
    reason: str


@dataclass(frozen=True)
class Restart(Message):
    """What it sends back when its data was mended since the greeting that the coordinator holds."""

    request: bytes


@dataclass(frozen=True, eq=False)
class Farewell(Message):
    """What the coordinator says when a study is done, with the model or a part of it."""

    arrays: Arrays = field(default_factory=dict)


_KINDS: dict[type[Message], int] = {Request: 1, Reply: 2, Refusal: 3, Restart: 4, Farewell: 5}


def digest(message: bytes) -> bytes:
    """What a reply names the request by."""
    return hashlib.sha256(message).digest()


def held_after(held: bytes, reply: bytes) -> bytes:
    """The digest of all replies held, after one more."""
    return digest(held + digest(reply))


def write(message: Message) -> bytes:
    """The message as bytes."""
    head = _HEAD.pack(_MARK, WIRE_VERSION, _KINDS[type(message)], bytes.fromhex(message.study), message.round)
    parts = [head, _text(message.party), _text(message.version)]
    if isinstance(message, Request):
        parts += [message.held, _text(message.step), write_arrays(message.arrays)]
    if isinstance(message, Reply | Refusal | Restart):
        parts.append(message.request)
    if isinstance(message, Farewell):
        parts.append(HOLDS_NOTHING)
    if isinstance(message, Reply | Farewell):
        parts.append(write_arrays(message.arrays))
    if isinstance(message, Refusal):
        parts.append(_text(message.reason))
    return b"".join(parts)


def read(data: bytes) -> Message:
    """The message that `write` wrote; anything else is refused."""
    if len(data) < _HEAD.size or not data.startswith(_MARK):
        raise RefusedError("not a message of a federated study")
    _, version, kind, study, number = _HEAD.unpack_from(data)
    if version != WIRE_VERSION:
        raise RefusedError(f"the message is of wire version {version}, and this is version {WIRE_VERSION}")
    rest = _Reader(data, _HEAD.size)
    party, package = rest.text(), rest.text()
    if kind not in _KINDS.values():
        raise RefusedError("a message of unknown kind")
    named = rest.take(_DIGEST_BYTES)  # of the replies held, or of the request
    message: Message
    if kind == _KINDS[Request]:
        message = Request(study.hex(), party, number, rest.text(), rest.arrays(), named, version=package)
    elif kind == _KINDS[Reply]:
        message = Reply(study.hex(), party, number, named, rest.arrays(), version=package)
    elif kind == _KINDS[Refusal]:
        message = Refusal(study.hex(), party, number, named, rest.text(), version=package)
    elif kind == _KINDS[Farewell]:
        if named != HOLDS_NOTHING:
            raise RefusedError("a farewell names nothing")
        message = Farewell(study.hex(), party, number, rest.arrays(), version=package)
    else:
        message = Restart(study.hex(), party, number, named, version=package)
    rest.end()
    return message


def write_arrays(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Named arrays as bytes, sorted by name."""
    parts = []
    for name in sorted(arrays):
        values = np.asarray(arrays[name])
        code = _CODES.get(values.dtype)
        if code is None:
            values = values.astype(values.dtype.newbyteorder("<"), copy=False)
            code = _CODES.get(values.dtype)
        if code is None or values.ndim >= len(_SHAPES):
            raise TypeError(f"array {name!r} is of a type or shape that messages do not carry: {values.dtype}")
        if not _finite(values):
            raise ValueError(f"array {name!r} holds numbers that are not finite")
        parts += [_text(name), bytes((code, values.ndim)), _SHAPES[values.ndim].pack(*values.shape), values.tobytes()]
    return b"".join(parts)


def read_arrays(data: bytes) -> dict[str, NDArray[Any]]:
    """The arrays that `write_arrays` wrote; they are read-only."""
    return _Reader(data, 0).arrays()


@lru_cache(maxsize=256)  # texts are few: names, steps, versions
def _text(text: str) -> bytes:
    data = text.encode()
    if len(data) > LONGEST_TEXT:
        raise ValueError(f"a text in a message has at most {LONGEST_TEXT} bytes")
    return bytes([len(data)]) + data


def _finite(values: NDArray[Any]) -> bool:
    return values.dtype.kind != "f" or 0 not in np.isfinite(values).tobytes()  # the fastest way, for few numbers


def _decoded(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise RefusedError("a text in the message is not UTF-8") from None


class _Reader:
    """Takes a message apart from front to back."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data, self._at = data, at

    def take(self, size: int) -> bytes:
        if len(self._data) - self._at < size:
            raise RefusedError("the message is cut short")
        self._at += size
        return self._data[self._at - size : self._at]

    def text(self) -> str:
        return _decoded(self.take(self.take(1)[0]))

    def arrays(self) -> dict[str, NDArray[Any]]:
        found: dict[str, NDArray[Any]] = {}
        last = None
        while self._at < len(self._data):
            head = self.take(self._data[self._at] + 3)
            name, code, dimensions = _decoded(head[1:-2]), head[-2], head[-1]
            if last is not None and name <= last:
                raise RefusedError("the arrays of the message are not sorted by name")
            if code >= len(_TYPES) or dimensions >= len(_SHAPES):
                raise RefusedError("an array in the message is of an unknown type")
            kind, form = _TYPES[code], _SHAPES[dimensions]
            shape = form.unpack(self.take(form.size))
            size = math.prod(shape)
            if size == 0 and sum(shape) > _LARGEST_EMPTY:
                raise RefusedError("an array in the message has an impossible shape")
            values = np.frombuffer(self.take(size * kind.itemsize), dtype=kind)
            if not _finite(values):
                raise RefusedError("an array in the message holds numbers that are not finite")
            found[name] = values if dimensions == 1 else values.reshape(shape)
            last = name
        return found

    def end(self) -> None:
        if self._at != len(self._data):
            raise RefusedError("the message is longer than it says")
