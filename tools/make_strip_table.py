"""Make the alias table of the strip sampler, exactly, and print its checksum.

    python tools/make_strip_table.py            # compare with the shipped table
    python tools/make_strip_table.py --write    # replace it; its checksum is in tacit/privacy/noise/tables

Strip i of the half-normal is drawn with weight exp(-(i/32)^2 / 2), i = 0 .. 431. The weights become whole numbers
that add up to 512 * 2^246 (mpmath at 600 bits; the largest takes the rounding), and the alias method packs them into
512 columns of 2^246 each. Column j gives strip j below its threshold and strip alias[j] from there on.

A row of the file is four little-endian 64-bit words: the threshold's leading 54 bits shifted left by 10 with the alias
in the low bits, then the threshold's remaining 192 bits, leading word first.
"""

import argparse
import hashlib
import sys
from pathlib import Path

import mpmath
import numpy as np

STRIPS = 432
COLUMNS = 512
LEADING_BITS = 54
THRESHOLD_BITS = LEADING_BITS + 3 * 64
CAPACITY = 1 << THRESHOLD_BITS
TARGET = Path(__file__).resolve().parents[1] / "src" / "tacit" / "privacy" / "noise" / "tables" / "strips.bin"


def strip_weights() -> list[int]:
    """Whole weights in proportion to exp(-(i/32)^2 / 2) that add up to COLUMNS * CAPACITY."""
    with mpmath.workprec(600):
        exact = [mpmath.exp(-((mpmath.mpf(i) / 32) ** 2) / 2) for i in range(STRIPS)]
        unit = COLUMNS * CAPACITY / mpmath.fsum(exact)
        weights = [int(mpmath.nint(w * unit)) for w in exact]
    weights[0] += COLUMNS * CAPACITY - sum(weights)
    return weights


def alias_columns(weights: list[int]) -> list[tuple[int, int]]:
    """(threshold, alias) of each column, by Vose's method on whole numbers."""
    left = weights + [0] * (COLUMNS - len(weights))
    small = [j for j in range(COLUMNS) if left[j] < CAPACITY]
    large = [j for j in range(COLUMNS) if left[j] >= CAPACITY]
    columns = [(CAPACITY, j) for j in range(COLUMNS)]
    while small and large:
        taker, giver = small.pop(), large.pop()
        columns[taker] = (left[taker], giver)
        left[giver] -= CAPACITY - left[taker]
        (small if left[giver] < CAPACITY else large).append(giver)
    if any(left[j] != CAPACITY for j in small + large):
        raise AssertionError("the columns do not fill exactly")
    return columns


def table() -> np.ndarray:
    """The file's words, of shape (COLUMNS, 4)."""
    words = np.zeros((COLUMNS, 4), dtype="<u8")
    for j, (threshold, alias) in enumerate(alias_columns(strip_weights())):
        # A full column's threshold, 2^246, has no room; it is its own alias, so one less draws the same strip.
        bits = min(threshold, CAPACITY - 1)
        words[j, 0] = (bits >> 192) << 10 | alias
        for k in range(3):
            words[j, 1 + k] = bits >> (128 - 64 * k) & (2**64 - 1)
    return words


def main() -> int:
    """Write or compare, and print the checksum."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="replace the shipped table")
    data = table().tobytes()
    if parser.parse_args().write:
        TARGET.parent.mkdir(exist_ok=True)
        TARGET.write_bytes(data)
    same = TARGET.exists() and TARGET.read_bytes() == data
    print(f"{hashlib.sha256(data).hexdigest()}  {TARGET.name}: {'equal' if same else 'DIFFERENT'}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
