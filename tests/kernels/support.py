"""What the kernel tests share: small problems of each loss, and calls that return what a kernel writes."""

import numpy as np
from hypothesis import settings
from scipy.sparse import csr_array

from tacit.kernels import gradient as kernels

repeatable = settings(derandomize=True, deadline=None, max_examples=150, database=None)

LOSSES = {"squared": kernels.SQUARED, "logistic": kernels.LOGISTIC, "multinomial": kernels.MULTINOMIAL}
SHRINK = 1.0 - 2.0**-30


def problem(loss, n, d, K=3, seed=0, density=1.0):
    """Rows, targets and weights of shape (outputs, d + 1)."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, d)) * (rng.random((n, d)) < density)
    outputs = K if loss == "multinomial" else 1
    targets = {
        "squared": rng.normal(size=n),
        "logistic": rng.choice([-1.0, 1.0], size=n),
        "multinomial": rng.integers(0, K, size=n).astype(np.float64),
    }[loss]
    return Z, targets, rng.normal(size=(outputs, d + 1))


def dense(Z, targets, W, loss, clip, bias):
    Z = np.ascontiguousarray(Z)
    norms, out = np.empty(len(Z)), np.empty_like(W)
    kernels.dense_norms(Z, bias, norms)
    kernels.dense_gradient(Z, norms, bias, targets, W, LOSSES[loss], clip, out)
    return out


def sparse(Z, targets, W, loss, clip, bias):
    table = csr_array(Z)
    indptr = table.indptr.astype(np.int64)
    norms, out = np.empty(table.shape[0]), np.empty_like(W)
    kernels.sparse_norms(table.data, indptr, bias, norms)
    kernels.sparse_gradient(
        table.data, table.indices.astype(np.int64), indptr, norms, bias, targets, W, LOSSES[loss], clip, out
    )
    return out


FORMS = {"dense": dense, "sparse": sparse}
