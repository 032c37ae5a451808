"""What the solvers that multiply by a few vectors share: starting, orthonormal columns, and the last two releases.

Privacy
-------
After its steps a solver has orthonormal V of p columns, a function of what was released. It then releases

- "small matrix": V^T A V, of Frobenius sensitivity R^2 (sqrt(2) R^2 for replace-one): V^T x x^T V is an outer product
  of norm at most R^2. Its eigenvectors turn V into components, its eigenvalues say what they capture (Rayleigh and
  Ritz).
- "total": the sum of |x|^2, a number between 0 and R^2 for each row: R^2 for both adjacencies.
"""

import math

import numpy as np
from scipy.linalg import eigh, svd

from tacit._types import Floats
from tacit.bounding.centring import PcaRows
from tacit.privacy import Gate, Release
from tacit.privacy.mechanisms import GaussianMatrix, GaussianVector
from tacit.problems.task import ComponentsTask
from tacit.solvers.pca.spectrum import Spectrum, cleared, upright

_SMALL, _TOTAL = 0.09, 0.01
STEPS_SHARE = 1.0 - _SMALL - _TOTAL
STEPS_WITHOUT_NOISE = 400  # where noise does not limit them: until a ratio of .9 between eigenvalues is resolved


def last_releases(share: float) -> tuple[Release, Release]:
    """A tenth of the solver's share."""
    return (
        Release("small matrix", "gaussian", share=_SMALL * share),
        Release("total", "gaussian", share=_TOTAL * share),
    )


def columns(task: ComponentsTask) -> int:
    """How many directions are followed: twice as many as are asked for, if there are."""
    return min(2 * task.k, task.d)


def random_start(task: ComponentsTask, gate: Gate) -> Floats:
    """Orthonormal columns in random directions, which see no data and need not be secret."""
    p = columns(task)
    draws = gate.publicly(2**32, task.d * p) / 2.0**32
    return orthonormal(draws.reshape(task.d, p) - 0.5)


def orthonormal(M: Floats) -> Floats:
    """The orthonormal columns nearest to M: its polar factor."""
    scale = float(np.abs(M).max())
    left, _, right = svd(M / scale if scale > 0.0 else M, full_matrices=False)
    return np.ascontiguousarray(left @ right)


def spectrum_in(task: ComponentsTask, rows: PcaRows, M: Floats, noise: float, gate: Gate) -> Spectrum:
    """The last two releases in the span of M, and the components they give.

    `noise` is the standard deviation that was added to each entry of M, by which the reliability of a direction c is
    judged: noise alone has |M^T c| up to noise (sqrt(d) + sqrt(p)), and the squared cosine that is left is about one
    less the square of this over |M^T c|.
    """
    V = orthonormal(M)
    p = V.shape[1]
    small = rows.inner_sensitivity()
    matrix = gate.release("small matrix", GaussianMatrix(small, bound=rows.bound), rows.inner(V))
    values, turn = eigh(matrix)
    values, turn = values[::-1][: task.k], turn[:, ::-1][:, : task.k]
    square = rows.square_sensitivity()
    total = float(gate.release("total", GaussianVector(square, bound=rows.bound), rows.squares()))
    floor = math.sqrt(2.0 * p) * gate.multiplier("small matrix") * small.under(gate.adjacency)
    above = values > floor
    captured = cleared(values, floor)
    components = upright((V @ turn).T)
    edge = noise * (math.sqrt(task.d) + math.sqrt(p))
    strength = np.linalg.norm(components @ M, axis=1)
    reliability = np.where(strength > edge, 1.0 - (edge / np.maximum(strength, 1e-300)) ** 2, 0.0)
    told = np.where(above, captured, np.nan) if floor > 0.0 else np.maximum(values, 0.0)
    return Spectrum(components, told, reliability, total, floor)
