"""Sums of whole numbers by BLAS have the same bits with every kernel that OpenBLAS has for this machine."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.blocks.test_exact import SUMS, passes_over, weights_for
from tests.solvers.support import rows

LOSSES = "logistic", "multinomial"


def digest():
    """Of all sums, the last row absent or not."""
    found = hashlib.sha256()
    for loss in LOSSES:
        for n in (4_000, 3_999):
            passes = passes_over(loss, rows(loss, 4_000, 33, seed=1).some(np.arange(n)), weights_for(loss))
            for of in SUMS.values():
                found.update(np.ascontiguousarray(of(passes, 33)).tobytes())
    return found.hexdigest()


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["Prescott", "Nehalem", "Sandybridge", "Haswell", "Zen"])
def test_sums_have_the_same_bits_with_other_kernels(kernel):
    """With fused products and without; where OpenBLAS does not have one, it takes its own."""
    root = str(Path(__file__).parents[2])
    for threads in ("1", "2"):
        place = {"OPENBLAS_CORETYPE": kernel, "OPENBLAS_NUM_THREADS": threads}
        done = subprocess.run(
            [sys.executable, "-c", "from tests.blocks.test_processors import digest; print(digest())"],
            env={**os.environ, **place},
            cwd=root,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == digest()
