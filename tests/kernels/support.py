"""What the kernel tests share: small problems of each loss, and calls that return what a kernel writes."""

import numpy as np
from hypothesis import settings
from scipy.sparse import csc_array, csr_array

from tacit import problems
from tacit.kernels import rows as kernels
from tacit.kernels.given import Block, Csc, Csr

repeatable = settings(derandomize=True, deadline=None, max_examples=150, database=None)

OBJECTS = {**problems.LOSSES, "huber": problems.HUBER}
LOSSES = {name: loss.code for name, loss in OBJECTS.items()}
SHAPE = 0.7  # where the Huber loss turns linear, and the width of the hinge's kink
SHRINK = 1.0 - 2.0**-30


def problem(loss, n, d, K=3, seed=0, density=1.0):
    """Rows, targets and weights of shape (outputs, d + 1)."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, d)) * (rng.random((n, d)) < density)
    outputs = K if loss == "multinomial" else 1
    if loss in ("squared", "huber"):
        targets = rng.normal(size=n)
    elif loss == "multinomial":
        targets = rng.integers(0, K, size=n).astype(np.float64)
    else:
        targets = rng.choice([-1.0, 1.0], size=n)
    return Z, targets, rng.normal(size=(outputs, d + 1))


def csr(Z, index=np.int64):
    """The rows of a table, as kernels take sparse ones."""
    table = csr_array(Z)
    return Csr(table.data, table.indices.astype(index), table.indptr.astype(index))


def csc(Z):
    """The columns of a table, as kernels take sparse ones."""
    table = csc_array(Z)
    return Csc(table.data, table.indices.astype(np.int64), table.indptr.astype(np.int64))


def dense(Z, targets, W, loss, clip, bias, shape=SHAPE):
    Z = np.ascontiguousarray(Z)
    norms, out = np.empty(len(Z)), np.empty_like(W)
    kernels.dense_norms(Z, bias, norms)
    kernels.dense_gradient(Block(Z, bias, targets, norms), W, LOSSES[loss], shape, clip, out)
    return out


def sparse(Z, targets, W, loss, clip, bias, shape=SHAPE):
    rows = csr(Z)
    norms, out = np.empty(len(Z)), np.empty_like(W)
    kernels.sparse_norms(rows, bias, norms)
    kernels.sparse_gradient(Block(rows, bias, targets, norms), W, LOSSES[loss], shape, clip, out)
    return out


FORMS = {"dense": dense, "sparse": sparse}
