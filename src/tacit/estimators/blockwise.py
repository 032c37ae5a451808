"""Fits of linear models: on a table in memory, on one that is mapped from a file, on blocks, on a cluster."""

from collections.abc import Callable
from dataclasses import replace
from mmap import mmap
from typing import Any, ClassVar, Self

import numpy as np

from tacit._types import Floats
from tacit.blocks.here import ThisMachine, in_slices
from tacit.blocks.lazy import told
from tacit.blocks.partitions import opened_lazily
from tacit.blocks.reading import Reading, Seen, Targets, opened
from tacit.blocks.validate import is_lazy, refuse_lazy
from tacit.estimators.base import PrivateLinearModel
from tacit.estimators.fit import private_fit
from tacit.problems import Loss
from tacit.problems.task import LinearTask, PenaltyName
from tacit.solvers import check_streams, choose

_WIDEST_SPARSE = 2_000  # columns of sparse blocks, which are stored as dense rows


class Scored:
    """`score` of scikit-learn's mixins, which come next."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The score of scikit-learn on rows in memory: a release, if the rows are private."""
        refuse_lazy(self, X, y)
        return float(super().score(X, y, sample_weight))  # type: ignore[misc]


class FitsBlocks(PrivateLinearModel):
    """`fit` and `fit_blocks` of linear models."""

    _reads: ClassVar[Targets]

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the model, spending the whole budget.

        A dense array that is mapped from a file is read as often as needed, and never copied as a whole. Dask arrays
        and data frames stay on the workers of the active client; without a client this machine computes them, a
        partition at a time.
        """
        if is_lazy(X) or is_lazy(y):
            self._check_before_reading()
            with opened_lazily(X, y) as reading:
                return self._fit_reading(reading)
        X, y = self._validated(X, y, **({"y_numeric": True} if self._reads == "numbers" else {}))
        task, targets = self._asked(X, y)
        solver = choose(self.solver, task)
        with ThisMachine() as place:
            table: Any = (X, targets)
            if solver.serves.streams and is_mapped(X):
                table = in_slices(X, targets, place)
            fitted = private_fit(task, solver, table, seed=self.random_state, verbose=int(self.verbose))
        return self._learned(task, fitted)

    def fit_blocks(self, blocks: Any, target: str | None = None) -> Self:
        """Fit on rows that together may be larger than memory, spending the whole budget.

        Parameters
        ----------
        blocks : files, table, or iterable of blocks
            Paths of Parquet or CSV files, with `*` for any letters; a pyarrow table or dataset; a polars lazy frame; or
            blocks of rows: data frames, or pairs (X, y), in a list, an object whose `__iter__` starts over or a
            function that returns a generator. They give the same rows whenever they are read again.
        target : str, optional
            The column to predict, where blocks are not pairs.

        Returns
        -------
        self
            The model that `fit` finds on the same rows with the same `random_state`, to the last bit.
        """
        self._check_before_reading()
        with opened(blocks, target) as reading:
            return self._fit_reading(reading)

    def _check_before_reading(self) -> None:
        """Refuse what can be refused without a row: parameters, and a solver that does not serve rows in parts."""
        self._check_parameters()
        name = "frank-wolfe" if self._wants_ball else self._solver_name
        penalties: list[PenaltyName] = ["l1" if self._has_l1 else "l2"]
        penalties += ["bounds"] if self.coef_bounds is not None else []
        check_streams(name, self._some_loss, penalties, self.adjacency)

    def _fit_reading(self, reading: Reading) -> Self:
        """Fit on parts that were opened: a pass that checks them, then those that releases need."""
        seen = reading.seen(self._reads, trusted=bool(self.trust_dtypes))
        columns = seen.columns or 0
        check_width(seen)
        told(self, seen)
        task, _ = self._asked(np.broadcast_to(0.0, (seen.rows, columns)), seen.targets)
        task = replace(task, streamed=True)
        solver = choose(self.solver, task)
        source = reading.source(columns, self._encoder())
        fitted = private_fit(task, solver, source, seed=self.random_state, verbose=int(self.verbose))
        return self._learned(task, fitted)

    @property
    def _has_l1(self) -> bool:
        """Whether coefficients have an l1 penalty."""
        return float(getattr(self, "l1_ratio", 0.0)) > 0.0

    @property
    def _some_loss(self) -> Loss:
        """What is minimised, for two classes where there are classes."""
        raise NotImplementedError

    def _encoder(self) -> Callable[[Any], Floats]:
        """What makes numbers of targets: a function that can be sent to where they are."""
        return as_floats

    def _asked(self, X: Any, y: Any) -> tuple[LinearTask, Floats]:
        raise NotImplementedError

    def _learned(self, task: LinearTask, fitted: Any) -> Self:
        raise NotImplementedError


def check_width(seen: Seen) -> None:
    """Refuse sparse rows in parts of too many columns."""
    columns = seen.columns or 0
    if seen.sparse and columns > _WIDEST_SPARSE:
        raise ValueError(
            f"blocks of sparse rows may have at most {_WIDEST_SPARSE:,} columns, got {columns:,}; fit takes CSR rows of"
            " any width that are in memory"
        )


def as_floats(y: Any) -> Floats:
    """Numbers as they are."""
    return np.asarray(y, dtype=np.float64)


def is_mapped(X: Any) -> bool:
    """Whether an array is mapped from a file."""
    while isinstance(X, np.ndarray):
        X = X.base
    return isinstance(X, mmap)
