"""Names for the types of arrays."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Table = NDArray[np.floating[Any]]
"""Numbers in single or in double precision."""

Places = NDArray[np.integer[Any]]
"""Indices in as many bits as they need."""
