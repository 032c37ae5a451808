"""The alias table of the strip sampler, shipped as data and verified when it is loaded.

`tools/make_strip_table.py` says what the words mean, and makes them again.
"""

import hashlib
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

STRIPS_SHA256 = "41226a7b97c2b4cc5412286245a11f625509b3389098e625ea0c1632a7089947"


@cache
def strips() -> NDArray[np.uint64]:
    """Thresholds and aliases of the 512 columns, of shape (512, 4); read-only."""
    data = files(__name__).joinpath("strips.bin").read_bytes()
    if hashlib.sha256(data).hexdigest() != STRIPS_SHA256:
        raise RuntimeError("the strip table of tacit.privacy.noise is damaged; reinstall tacit before drawing noise")
    return np.frombuffer(data, dtype="<u8").reshape(512, 4).astype(np.uint64, copy=False)
