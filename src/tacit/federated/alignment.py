"""Rows of different parties, brought into one order that tells the coordinator nothing.

Parties share a secret that the coordinator does not have. A row's tag is keyed BLAKE2b of its id; rows are sorted by
their tags, which is a random order to whoever lacks the secret; and the HMAC of the study and all sorted tags is what
the coordinator compares. It learns whether the parties hold the same ids, and nothing of the ids, not even by trying
all of them. Those who hold the secret can test guesses of a whole set of ids.

Where ids are to be intersected (`matching`), a row has a second tag, keyed by the study as well. The coordinator sees
those, and so which of them match; it never sees the first, which decide the order of rows, nor can it compare the tags
of two studies.
"""

import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

SECRET_BYTES = 16  # the shortest secret that is taken

TAG_BYTES = 16  # of a row's tag in a study: among 10^9 of them two are alike with probability 10^-21

_ROW, _ALL = b"tacit.federated row:", b"tacit.federated rows:"
_STUDY, _SEAL = b"tacit.federated study tags:", b"tacit.federated seal:"
_PEOPLE, _CHANNEL = b"tacit.federated secret of people:", b"tacit.federated channel:"
_ROW_BYTES = 32


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
        row = hmac.digest(key, _ROW, "sha256")
        tags = [hashlib.blake2b(_spelled(value), key=row, digest_size=_ROW_BYTES).digest() for value in _plain(ids)]
        table = np.frombuffer(b"".join(tags), dtype=np.uint8).reshape(-1, _ROW_BYTES)
        order = sorted_places(table)
        table = table[order]
        if np.any(np.all(table[1:] == table[:-1], axis=1)):
            raise ValueError("ids must be unique; some appear more than once")
        return cls(order, key, table.tobytes())

    def tag(self, study: str) -> bytes:
        """Equal for parties that hold the same ids, in any order; another study's tags cannot be compared with it."""
        return self._keyed(_ALL + study.encode())

    def seal(self, study: str, party: str) -> bytes:
        """What a party says of its rows to the others: who lacks the secret cannot make another party's."""
        return self._keyed(_SEAL + study.encode() + b":" + party.encode() + b":")

    def secret(self, study: str) -> bytes:
        """The parties' secret for a study of these people: those who hold others have another one."""
        return self._keyed(_PEOPLE + study.encode() + b":")

    def channel(self, study: str) -> bytes:
        """The parties' secret for what they say before they know whom they have in common."""
        return hmac.digest(self._secret, _CHANNEL + study.encode(), "sha256")

    def _keyed(self, text: bytes) -> bytes:
        return hmac.digest(self._secret, text + hashlib.sha256(self._tags).digest(), "sha256")

    def study_tags(self, study: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """The rows' tags under a study, sorted, and the place of each in `order`."""
        key = hmac.digest(self._secret, _STUDY + study.encode(), "sha256")
        starts = range(0, len(self._tags), _ROW_BYTES)
        tags = (hashlib.blake2b(self._tags[i : i + _ROW_BYTES], key=key, digest_size=TAG_BYTES) for i in starts)
        table = np.frombuffer(b"".join(tag.digest() for tag in tags), dtype=np.uint8).reshape(-1, TAG_BYTES)
        places = sorted_places(table)
        return table[places], places

    def only(self, places: NDArray[np.int64]) -> "Alignment":
        """The same of some rows, given by their places in `order`: still sorted by the first tags."""
        kept = np.sort(places)
        tags = np.frombuffer(self._tags, dtype=np.uint8).reshape(-1, _ROW_BYTES)[kept]
        return Alignment(self.order[kept], self._secret, tags.tobytes())

    def in_order(self) -> "Alignment":
        """The same of a table whose rows were brought into this order."""
        return Alignment(np.arange(len(self.order)), self._secret, self._tags)


def sorted_places(tags: NDArray[np.uint8]) -> NDArray[np.int64]:
    """The places of tags in the order of their bytes."""
    return np.lexsort(words(tags)[::-1])


def words(tags: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Tags as whole numbers of eight bytes, one row for each place of them, which are in the order of the bytes."""
    return np.ascontiguousarray(np.ascontiguousarray(tags).view(">u8").astype(np.uint64).T)


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
    if isinstance(value, str) and value:
        return value.encode()
    if value is None or value == "" or value != value:
        raise ValueError("ids must not be missing; some are")
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"ids must be whole numbers or text, some are {type(value).__name__}")
    return str(int(value)).encode()
