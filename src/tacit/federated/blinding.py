"""Ids as points of an elliptic curve that a party blinds with a key of its own: what `openmined-psi` is used for.

An id is hashed to a point of P-256, and the point multiplied by the key. Whoever lacks the key cannot tell such points
from random ones, nor try ids (decisional Diffie-Hellman, the hash as a random oracle). Two keys commute: points that
two parties have blinded one after the other are equal where the ids are.

The package takes points apart, and refuses what is none. Its messages are made here, never read from the network.
"""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.federated.protocols.base import RefusedError

POINT_BYTES = 33
KEY_BYTES = 32
_AT_ONCE = 4096  # in one call, beside which no other thread of this process runs


def require_psi() -> None:
    """Raise if the package is not installed."""
    if find_spec("private_set_intersection") is None:
        raise ImportError(
            "a private set intersection needs openmined-psi: pip install 'tacit[psi]'. It has wheels for Python 3.11 on"
            " Linux; parties without it are matched by keyed hashes"
        )


def new_key() -> bytes:
    """A key to blind with, drawn by the package."""
    return _package().client.CreateWithNewKey(True).GetPrivateKeyBytes()


class Blinder:
    """Blinds ids, and points that another party has blinded, with one key."""

    def __init__(self, key: bytes) -> None:
        package = _package()
        self._ids, self._points = package.client.CreateFromKey(key, True), package.server.CreateFromKey(key, True)
        self._request = package.Request

    def blind(self, ids: Sequence[str]) -> NDArray[np.uint8]:
        """The blinded points of ids, a row each, in their order."""
        found: list[bytes] = []
        for start in range(0, len(ids), _AT_ONCE):
            found += self._ids.CreateRequest(list(ids[start : start + _AT_ONCE])).encrypted_elements
        return _table(found)

    def again(self, points: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Points that another party has blinded, blinded once more, in their order."""
        found: list[bytes] = []
        for start in range(0, len(points), _AT_ONCE):
            rows = [row.tobytes() for row in points[start : start + _AT_ONCE]]
            request = self._request(reveal_intersection=True, encrypted_elements=rows)
            try:
                found += self._points.ProcessRequest(request).encrypted_elements
            except RuntimeError:  # not on the curve, or not spelled as a point
                raise RefusedError("the other party sent what are no blinded ids") from None
        return _table(found)


def _table(points: list[bytes]) -> NDArray[np.uint8]:
    return np.frombuffer(b"".join(points), dtype=np.uint8).reshape(-1, POINT_BYTES)


def _package() -> Any:
    require_psi()
    import private_set_intersection.python

    return private_set_intersection.python
