"""What a party told others exactly, with no noise over it: kept in a file of its own, beside its journals.

Alignments are kept here too, because each is a disclosure: what was matched for a study, and that it is not matched
again; between two parties also the keys, and what was heard first. The coordinator keeps how many people there are.

What holds: a disclosure is stored before the bytes leave, and never deleted. The people of a study are fixed once, by
`bind`; others are refused for ever.
"""

from datetime import UTC, datetime
from typing import NamedTuple

from tacit.federated.protocols.base import RefusedError
from tacit.federated.store import Store


class Disclosure(NamedTuple):
    """What was told, when and in which study: in words, with how many people or rows it is about."""

    at: str
    study: str
    what: str
    size: int


class Bound(NamedTuple):
    """An alignment as far as it came: which ids a party has, which are common, and how many when all agreed."""

    ids: bytes
    common: bytes | None
    n_rows: int | None


class DisclosureStore(Store):
    """Alignments and disclosures of one party, or of the coordinator. Studies go by the digests of their proposals."""

    _owner = "a party"
    _tables = """
CREATE TABLE alignments (digest TEXT PRIMARY KEY, ids BLOB NOT NULL, common BLOB, n_rows INTEGER);
CREATE TABLE disclosures (at TEXT NOT NULL, study TEXT NOT NULL, what TEXT NOT NULL, size INTEGER NOT NULL,
    about BLOB NOT NULL, UNIQUE (study, what, about));
"""
    _mark = 0x54616333
    _pairs = "CREATE TABLE IF NOT EXISTS pairs (study TEXT, what TEXT, value BLOB NOT NULL, PRIMARY KEY (study, what))"

    def _open(self) -> None:
        super()._open()
        self._database.execute(self._pairs)  # files of earlier versions do not have it

    def begin(self, study: str, ids: bytes) -> None:
        """Offer these ids, by their fingerprint; others may take their place until the common ones are bound."""
        with self.transaction():
            bound = self.bound(study)
            if bound is None or (bound.common is None and bound.ids != ids):
                self._database.execute("INSERT OR REPLACE INTO alignments VALUES (?, ?, NULL, NULL)", [study, ids])
            elif bound.ids != ids:
                raise ValueError(
                    "this study was aligned with other ids than now; put back the ids that it was aligned with, or"
                    " agree on a new study"
                )

    def bound(self, study: str) -> Bound | None:
        """Where an alignment is; None before it was begun."""
        row = self._first("SELECT ids, common, n_rows FROM alignments WHERE digest = ?", study)
        return None if row is None else Bound(*row)

    def bind(self, study: str, ids: bytes, common: bytes) -> None:
        """Fix the common ids of a study."""
        with self.transaction():
            bound = self.bound(study)
            if bound is None or bound.ids != ids:
                raise RefusedError("the party offered other ids in another process; this one answers no more")
            if bound.common not in (None, common):
                raise RefusedError("the common people of this study were fixed before, and are others")
            self._database.execute("UPDATE alignments SET common = ? WHERE digest = ?", [common, study])

    def fix(self, study: str, what: str, value: bytes) -> bytes:
        """Keep something of an alignment of two parties; if it was kept before, that is the one that stays."""
        with self.transaction():
            self._database.execute("INSERT OR IGNORE INTO pairs VALUES (?, ?, ?)", [study, what, value])
            return self._first("SELECT value FROM pairs WHERE study = ? AND what = ?", study, what)[0]

    def kept(self, study: str, what: str) -> bytes | None:
        """What `fix` kept."""
        row = self._first("SELECT value FROM pairs WHERE study = ? AND what = ?", study, what)
        return None if row is None else row[0]

    def agree(self, study: str, n_rows: int) -> None:
        """All hold the same people, this many."""
        with self.transaction():
            self._database.execute("UPDATE alignments SET n_rows = ? WHERE digest = ?", [n_rows, study])

    def disclose(self, study: str, what: str, size: int, about: bytes) -> None:
        """Keep what is about to be told; the same again, by the fingerprint `about`, is one disclosure."""
        row = [datetime.now(UTC).isoformat(timespec="seconds"), study, what, size, about]
        with self.transaction():
            self._database.execute("INSERT OR IGNORE INTO disclosures VALUES (?, ?, ?, ?, ?)", row)

    def disclosures(self) -> list[Disclosure]:
        """All of them, in the order in which they were made."""
        rows = self._database.execute("SELECT at, study, what, size FROM disclosures ORDER BY rowid")
        return [Disclosure(*row) for row in rows]
