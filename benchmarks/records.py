"""Results as JSON lines, one for each table, set, model, epsilon and seed, so that a run can stop and go on."""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

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
