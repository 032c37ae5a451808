"""Random numbers that everybody may know: for choices that several parties must make alike, such as a sketch.

What holds: they come from an agreed number and hide nothing. Noise comes from a gate.
"""

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.noise import samplers
from tacit.privacy.noise.source import NoiseSource


class PublicDraws:
    """Draws that are the same for all who know the seed.

    Parameters
    ----------
    seed : int
        What was agreed.
    """

    def __init__(self, seed: int) -> None:
        self._source = NoiseSource(seed)

    def words(self, size: int) -> NDArray[np.uint64]:
        """The next words, uniform on 0 .. 2^64 - 1."""
        return self._source.words(size)

    def normals(self, size: int) -> NDArray[np.int64]:
        """The next standard normals, in whole units of 2^-40."""
        return samplers.normals(self._source, size)
