"""Fingerprints of numbers: any change of a byte, of the order or of the length is another one."""

import numpy as np
import pytest

from tacit.kernels.fingerprint import fingerprint

NUMBERS = np.random.default_rng(0).normal(size=(11, 5))


def test_every_single_bit_counts():
    found = {fingerprint(NUMBERS)}
    for place in range(8 * NUMBERS.nbytes):
        other = NUMBERS.copy()
        other.reshape(-1).view(np.uint8)[place // 8] ^= 1 << place % 8
        found.add(fingerprint(other))
    assert len(found) == 8 * NUMBERS.nbytes + 1


@pytest.mark.whole
@pytest.mark.parametrize(
    "numbers",
    [NUMBERS, np.where(NUMBERS > 0.0, 1.0, -1.0), np.arange(55.0).reshape(11, 5), NUMBERS.astype(np.float32)],
    ids=["normal", "signs", "whole", "single precision"],
)
def test_other_orders_of_rows_are_others(numbers):
    rng = np.random.default_rng(1)
    orders = [np.arange(11), np.arange(11)[::-1], *(rng.permutation(11) for _ in range(50))]
    tables = {numbers[order].tobytes() for order in orders}
    assert len({fingerprint(numbers[order]) for order in orders}) == len(tables)


def test_what_is_shorter_by_some_bytes_is_another():
    some = np.frombuffer(b"\0" * 40, dtype=np.uint8)
    assert len({fingerprint(some[:count]) for count in range(40)}) == 40


def test_how_an_array_lies_in_memory_does_not_matter():
    wanted = fingerprint(NUMBERS)
    shifted = np.empty(NUMBERS.nbytes + 1, dtype=np.uint8)[1:].view(np.float64).reshape(NUMBERS.shape)
    shifted[:] = NUMBERS
    fixed = NUMBERS.copy()
    fixed.setflags(write=False)
    for same in (np.asfortranarray(NUMBERS), np.tile(NUMBERS, 2)[:, :5], shifted, fixed):
        assert fingerprint(same) == wanted
