"""Noise that survives floating point: a cryptographic key stream, exact samplers, and releases on a grid.

stream    ChaCha20 words
source    `NoiseSource`: one per fit, never copied, pickled or shared
kernels   compiled samplers, whole numbers only
exact     the same samplers in Python's unbounded integers: the specification, and the kernels' last resort
samplers  bulk draws from a source
grid      Gaussian and Laplace releases of float arrays
vertices  compiled draws of signed vertices whose scores change a few at a time
affine    the same for scores that are linear in a number that falls
"""

from tacit.privacy.noise.grid import gaussian
from tacit.privacy.noise.source import NoiseSource

__all__ = ["NoiseSource", "gaussian"]
