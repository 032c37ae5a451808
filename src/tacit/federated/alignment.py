"""Rows of different parties, brought into one order that tells the coordinator nothing.

Parties share a secret that the coordinator does not have. A row's tag is HMAC-SHA256(secret, id); rows are sorted by
their tags, which is a random order to whoever lacks the secret; and the HMAC of the study and all sorted tags is what
the coordinator compares. It learns whether the parties hold the same ids, and nothing of the ids, not even by trying
all of them. Those who hold the secret can test guesses of a whole set of ids.
"""

import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

SECRET_BYTES = 16  # the shortest secret that is taken

_ROW, _ALL = b"tacit.federated row:", b"tacit.federated rows:"


@dataclass(frozen=True, eq=False, repr=False)
class Alignment:
    """The order that rows are to be taken in, and what the tags of all rows come to under a study."""

    order: NDArray[np.int64]
    _secret: bytes
    _tags: bytes

    @classmethod
    def of(cls, ids: Iterable[Any], secret: bytes | str) -> "Alignment":
        """The alignment of a party's ids, which must be whole numbers or text, each of them once."""
        key = checked_secret(secret)
        tags = [hmac.digest(key, _ROW + _spelled(value), "sha256") for value in _plain(ids)]
        if len(set(tags)) < len(tags):
            raise ValueError("ids must be unique; some appear more than once")
        order = sorted(range(len(tags)), key=tags.__getitem__)
        return cls(np.array(order, dtype=np.int64), key, b"".join(tags[i] for i in order))

    def tag(self, study: str) -> bytes:
        """Equal for parties that hold the same ids, in any order; another study's tags cannot be compared with it."""
        return hmac.digest(self._secret, _ALL + study.encode() + hashlib.sha256(self._tags).digest(), "sha256")


def checked_secret(secret: bytes | str) -> bytes:
    if not isinstance(secret, bytes | str):
        raise TypeError(f"secret must be bytes or text, got {type(secret).__name__}")
    key = secret.encode() if isinstance(secret, str) else secret
    if len(key) < SECRET_BYTES:
        raise ValueError(f"secret must have at least {SECRET_BYTES} bytes: ids can be found by trying short ones")
    return key


def _plain(ids: Iterable[Any]) -> list[Any]:
    """The ids as Python's own values."""
    values = ids.tolist() if hasattr(ids, "tolist") else ids.to_list() if hasattr(ids, "to_list") else list(ids)
    if not isinstance(values, list) or any(isinstance(value, list) for value in values):
        raise ValueError("ids must be one column")
    return values


def _spelled(value: Any) -> bytes:
    """An id as bytes: 17 and "17" are the same one, whichever way a table was read."""
    if value is None or value == "" or value != value:
        raise ValueError("ids must not be missing; some are")
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"ids must be whole numbers or text, some are {type(value).__name__}")
    return str(int(value)).encode()
