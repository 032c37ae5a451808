"""Blocks of rows that a fit reads several times: checked in a first pass, before any budget is spent."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from sklearn.utils import check_array

from tacit.blocks.table import Table, canonical, is_sparse
from tacit.blocks.validate import validated

FLOATS = [np.float64, np.float32]
ROWS: dict[str, Any] = {"accept_sparse": "csr", "dtype": FLOATS, "ensure_all_finite": "allow-nan"}
"""What a table may be: arrays or CSR, with NaN for what is missing."""


def starting_over(blocks: Any) -> Callable[[], Iterable[Any]]:
    """A function that starts reading the blocks; refuses what can be read once only."""
    if isinstance(blocks, Iterator):
        raise ValueError("blocks must be readable several times: pass a list or a function that returns a generator")
    if not callable(blocks) and not isinstance(blocks, Iterable):
        raise TypeError(f"blocks must be an iterable of blocks of rows, got {type(blocks).__name__}")
    return blocks if callable(blocks) else lambda: blocks


def stream(estimator: Any, start: Callable[[], Iterable[Any]]) -> Table:
    """The rows of all blocks. What is bad in any block raises here, in the first pass."""
    n, sparse = 0, False
    first = True
    for block in start():
        checked = validated(estimator, block, **ROWS, ensure_min_samples=0, reset=first)
        if not first and is_sparse(checked) != sparse:
            raise ValueError("blocks must be all dense or all sparse")
        first, sparse = False, is_sparse(checked)
        n += checked.shape[0]
    if n < 2:
        raise ValueError(f"blocks must hold at least two rows together, got {n}")

    d = int(estimator.n_features_in_)

    def read() -> Iterator[Any]:
        seen = 0
        for block in start():
            again = _read_again(block)
            if again is not None:
                seen += again.shape[0]
            if again is None or seen > n or again.shape[1] != d or is_sparse(again) != sparse:
                raise ValueError("blocks must give the same rows whenever they are read again")
            yield again

    return Table(n, d, sparse, read)


def _read_again(block: Any) -> Any:
    """A block as numbers; None if it holds none, in place of an error that would quote what it holds."""
    try:
        return canonical(
            check_array(block, ensure_all_finite=False, accept_sparse="csr", dtype=FLOATS, ensure_min_samples=0)
        )
    except (TypeError, ValueError, OverflowError):
        return None
