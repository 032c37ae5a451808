"""How kernels are compiled: no value of a row is rounded otherwise in vector code; sums may be taken in any order."""

import os
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from llvmlite import binding

import tacit
from tacit.kernels import columns, rows
from tacit.privacy import float_sum_slack

ROWS_ALONE = Path(__file__).with_name("test_rows_alone.py")
EXPONENTIAL = Path(__file__).parents[1] / "problems" / "test_exponential.py"


def test_the_slack_covers_sums_in_any_order():
    """Against exact sums, for terms of many magnitudes and signs, with the first row present and absent."""
    n = 2 * rows.BLOCK + 77
    rng = np.random.default_rng(0)
    column = np.clip(rng.normal(size=n) * 2.0 ** rng.integers(-40, 3, size=n), -1.0, 1.0)
    values = rng.choice([-1.0, 1.0 - 2.0**-30, 2.0**-20], size=n)
    column[0] = values[0] = 1.0
    half = Fraction(float_sum_slack(n, 1.0, rows.sum_depth(n))) / 2
    found = []
    for first in (0, 1):
        x, v = column[first:], values[first:]
        out, squares = np.empty(2), np.empty(1)
        columns.dense_products(x[None], v, out)
        columns.dense_squares(x[None], np.abs(v), 1.0, squares)
        exact = sum(Fraction(a) * Fraction(b) for a, b in zip(x.tolist(), v.tolist(), strict=True))
        square = sum(Fraction(a) ** 2 * abs(Fraction(b)) for a, b in zip(x.tolist(), v.tolist(), strict=True))
        assert abs(Fraction(float(out[0])) - exact) <= half
        assert abs(Fraction(float(out[1])) - sum(map(Fraction, v.tolist()))) <= half
        assert abs(Fraction(float(squares[0])) - square) <= half
        found.append(out[0])
    assert abs(found[0] - found[1]) <= 1.0 + 2.0 * float(half)


def test_no_function_is_compiled_with_fastmath():
    """Its flags let the compiler round a row's numbers in one way in vector code and in another next to it."""
    source = Path(tacit.__file__).parent
    told = {flag for path in source.rglob("*.py") for flag in re.findall(r"fastmath=(\w+|\{.*?\})", path.read_text())}
    assert told == {"False"}


@pytest.mark.slow
@pytest.mark.parametrize("processor", ["generic", "nehalem", "haswell", "znver3"])
def test_values_are_those_of_the_row_alone_on_other_processors(processor, tmp_path):
    """As far as this one can stand in for them: code compiled for it, which must run here."""
    place = {"NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(tmp_path)}
    if processor != "generic" and not runs_here(processor):
        pytest.skip(f"this processor does not run code for {processor}")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider", ROWS_ALONE, EXPONENTIAL],
        env={**os.environ, **place},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]


def runs_here(processor):
    """Whether the features that set this processor apart are there."""
    asked = {"nehalem": ["sse4.2"], "haswell": ["avx2", "fma"], "znver3": ["avx2", "fma", "vaes"]}[processor]
    return all(binding.get_host_cpu_features().get(feature) for feature in asked)
