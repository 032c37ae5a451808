"""Results as JSON lines, one for each table, set, model, epsilon and seed, so that a run can stop and go on."""

import json
import statistics
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

Key = tuple[str, str, str, str, int]


@dataclass(frozen=True)
class Record:
    """The test scores of one fit; of a peer, of one fit for each point of its grid."""

    table: str
    set: str
    model: str
    epsilon: float | None  # None: not private
    seed: int
    scores: dict[str, list[float]]
    seconds: list[float]
    note: str = ""  # the solver that "auto" took, or the grid of a peer
    refused: str = ""  # why there are no scores
    size: tuple[int, ...] = field(default=())  # rows, columns and classes of the set

    @property
    def key(self) -> Key:
        """What names this record."""
        return self.table, self.set, self.model, repr(self.epsilon), self.seed


class Store:
    """A file of records. Later lines win over earlier ones of the same key."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._records: dict[Key, Record] = {}
        if path.exists():
            for line in path.read_text(encoding="utf8").splitlines():
                row = json.loads(line)
                record = Record(**{**row, "size": tuple(row["size"])})
                self._records[record.key] = record

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records.values())

    def get(self, key: Key) -> Record | None:
        """The record of that key, if there is one."""
        return self._records.get(key)

    def add(self, record: Record) -> None:
        """Keep a record, in memory and at the end of the file."""
        self._records[record.key] = record
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf8") as file:
            file.write(json.dumps(asdict(record)) + "\n")

    def drop(self, unwanted: Callable[[Record], bool]) -> None:
        """Forget records, and write the file anew if there were any."""
        kept = {key: record for key, record in self._records.items() if not unwanted(record)}
        if len(kept) < len(self._records):
            self._records = kept
            lines = [json.dumps(asdict(record)) + "\n" for record in self]
            self.path.write_text("".join(lines), encoding="utf8")


class Results:
    """Records, found by where they are: table, set, model and epsilon, or the first few of these."""

    def __init__(self, records: Iterable[Record]) -> None:
        self._found: dict[tuple[Any, ...], list[Record]] = {}
        for record in records:
            where = (record.table, record.set, record.model, record.epsilon)
            for length in range(5):
                self._found.setdefault(where[:length], []).append(record)

    def rows(self, *where: Any) -> list[Record]:
        """The records there."""
        return self._found.get(where, [])

    def values(self, score: str, *where: Any, **at: float) -> list[float]:
        """One score over the seeds, of those that have it: the first, or the one `at` a value of another score."""
        found = [record.scores for record in self.rows(*where) if score in record.scores]
        for key, value in at.items():
            return [scores[score][scores[key].index(value)] for scores in found if value in scores[key]]
        return [scores[score][0] for scores in found]

    def seconds(self, *where: Any) -> float | None:
        """The median."""
        found = [record.seconds[0] for record in self.rows(*where) if record.seconds]
        return statistics.median(found) if found else None

    def distinct(self, field: str, *where: Any, order: Iterable[Any] = ()) -> list[Any]:
        """All values of a field there: those of the order first, then as they were found."""
        found = dict.fromkeys(getattr(record, field) for record in self.rows(*where))
        known = [value for value in order if value in found]
        return known + [value for value in found if value not in known]

    def sets(self, table: str, order: Iterable[str] = ()) -> list[str]:
        """The sets of a table."""
        return self.distinct("set", table, order=order)

    def epsilons(self, *where: Any) -> list[float]:
        """The budgets that were run, smallest first."""
        return sorted(epsilon for epsilon in self.distinct("epsilon", *where) if epsilon is not None)

    def size(self, *where: Any) -> tuple[int, ...]:
        """Of the first that has one."""
        return next(record.size for record in self.rows(*where) if record.size)

    def most(self, table: str) -> int:
        """The most records of any cell of a table."""
        return max(
            (len(rows) for where, rows in self._found.items() if len(where) == 4 and where[0] == table), default=0
        )
