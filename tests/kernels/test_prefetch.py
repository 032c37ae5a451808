"""Asking for memory early: the instruction is there, for the right address, and changes no result."""

import numba
import numpy as np
import pytest

from tacit.kernels.prefetch import prefetch


@numba.njit
def total(array, places):
    found = array[0] - array[0]
    for k in range(len(places)):
        prefetch(array, places[k])
    for k in range(len(places)):
        found += array[places[k]]
    return found


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize("places", [np.int32, np.int64])
@pytest.mark.parametrize("stride", [1, 3])
def test_sums_are_the_same_with_the_instruction_in_place(kind, places, stride):
    array = np.arange(300, dtype=kind)[::stride]
    chosen = np.array([0, 99, 7, 50], dtype=places)
    assert total(array, chosen) == array[chosen].sum()
    code = total.inspect_llvm(total.signatures[-1])
    assert "llvm.prefetch" in code


def test_fields_of_records_are_addressed_by_their_strides():
    rows = np.zeros(5, dtype=[("margin", "f8"), ("since", "i4")])
    rows["since"] = np.arange(5)
    assert total(rows["since"], np.arange(5)) == 10
