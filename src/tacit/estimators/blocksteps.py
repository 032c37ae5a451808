"""A pipeline on rows that are not all in memory."""

from abc import abstractmethod
from functools import partial
from typing import Any, Self

from tacit.blocks.lazy import BlockTable, Changed
from tacit.blocks.reading import Reading, Targets, opened
from tacit.estimators.blockwise import check_width
from tacit.estimators.composition import NamedSteps
from tacit.estimators.pca import PCA
from tacit.estimators.stages import MODELS, PRIVATE
from tacit.estimators.stateless import Stateless, is_skipped, ready
from tacit.preprocessing import PrivateEncoder
from tacit.preprocessing.blocks import look, texts_of


class BlockSteps(NamedSteps):
    """Steps that are fitted on rows in parts."""

    def fit_blocks(self, blocks: Any, target: str | None = None) -> Self:
        """Fit on rows that together may be larger than memory, spending the whole budget.

        Rows with text are read a few times, and held in a scratch file as numbers once they are encoded.

        Parameters
        ----------
        blocks : files, table, or iterable of blocks
            As for the estimators. Columns of a CSV file have no types: those that the encoder names in `parse` and
            `categories` are read as text, and all others as numbers.
        target : str, optional
            The column to predict, where blocks are not pairs.

        Returns
        -------
        self
            The pipeline that `fit` finds on the same rows with the same `random_state`, to the last bit.
        """
        self._check_parameters()
        encoder = next((step for _, step in self.steps if type(step) is PrivateEncoder), None)
        with opened(blocks, target, () if encoder is None else texts_of(encoder)) as reading:
            return self._fit_reading(reading)

    def _fit_reading(self, reading: Reading) -> Self:
        """Fit on parts that were opened: a pass that checks them, then those that the steps need."""
        if self._before():
            reading.check_here("a step before the first private one")
        before, private = self._before(), [step for _, step in self.steps if type(step) in PRIVATE]
        first = private[0]
        if before:
            changes = ready(before, reading)
            reading.parts = [Changed(part, changes) for part in reading.parts]
        targets: Targets = getattr(private[-1], "_reads", "none")
        if type(first) is PrivateEncoder:
            table = BlockTable.looked_at(reading, partial(look, first), targets)
        else:
            takes_sparse = type(first) in (PCA, *MODELS)
            table = BlockTable.of(reading, targets, trusted=bool(first.trust_dtypes), sparse=takes_sparse)
            check_width(table.seen)
        return self._fit_table(table, table.seen.targets, before)

    def _before(self) -> list[Stateless]:
        """The steps before the first private one."""
        steps = [(name, step) for name, step in self.steps if not is_skipped(step)]
        first = next(k for k, (_, step) in enumerate(steps) if type(step) in PRIVATE)
        return [Stateless(name, step) for name, step in steps[:first]]

    @abstractmethod
    def _check_parameters(self) -> None:
        """Everything that can be refused without data."""

    @abstractmethod
    def _fit_table(self, table: Any, y: Any, before: list[Stateless]) -> Self:
        """Fit the steps from the first private one on."""
