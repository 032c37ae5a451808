"""What survives a crash: a party's rounds, memory and ledger, and a coordinator's exchanges, each in a SQLite file.

What holds, and must never change:

- A party's round is bound to one request, on disk, before anything is computed for it; another request for that round
  is refused for ever.
- A reply, what the party remembers of that round and what it cost are stored in one transaction, before the reply
  leaves. What was stored is what is sent, however often the round is asked for.
- Nothing is ever deleted from a ledger.

A party's file holds the key of its noise, and is as secret as its data. Losing it is losing the proof of what was
spent: a party must not take part in a study again whose journal it lost. A path of None keeps the journal in memory.
"""

import json
import os
import secrets
import sqlite3
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from tacit.federated.messages import read_arrays, write_arrays
from tacit.federated.protocols.base import Arrays, RefusedError
from tacit.federated.study import Study
from tacit.privacy.plan import Kind

_FORMAT = 1  # of the files
_SYNCHRONOUS = "FULL"  # what is stored is on the disk, also if the machine loses power
_WAIT = 60.0  # seconds for another process that writes to the same file

_PARTY_TABLES = """
CREATE TABLE studies (
    digest TEXT PRIMARY KEY, agreed TEXT NOT NULL, party TEXT NOT NULL, key BLOB NOT NULL, data BLOB NOT NULL);
CREATE TABLE rounds (
    study TEXT NOT NULL, round INTEGER NOT NULL, request BLOB NOT NULL, reply BLOB, PRIMARY KEY (study, round))
    WITHOUT ROWID;
CREATE TABLE memory (
    study TEXT NOT NULL, name TEXT NOT NULL, arrays BLOB NOT NULL, PRIMARY KEY (study, name)) WITHOUT ROWID;
CREATE TABLE ledger (
    study TEXT NOT NULL, round INTEGER NOT NULL, release TEXT NOT NULL, kind TEXT NOT NULL,
    count INTEGER NOT NULL, multiplier REAL NOT NULL, PRIMARY KEY (study, round, release)) WITHOUT ROWID;
"""

_COORDINATOR_TABLES = """
CREATE TABLE exchanges (
    study TEXT NOT NULL, exchange INTEGER NOT NULL, party TEXT NOT NULL, request BLOB NOT NULL, reply BLOB,
    PRIMARY KEY (study, exchange, party));
"""


@dataclass(frozen=True)
class Entry:
    """A line of a ledger: what a party released in a round, how often, and with how much noise."""

    study: str
    round: int
    release: str
    kind: Kind
    count: int
    multiplier: float


@dataclass(frozen=True, eq=False)
class Accepted:
    """A party's state as a round finds it: the reply if it was made before, what is remembered, what was released."""

    reply: bytes | None
    memory: Arrays
    made: Mapping[str, int]


@dataclass
class _Known:
    """What a journal knows of a study without looking: the round that is due, what it is bound to, and what it finds.

    It is right for as long as `version`, SQLite's number for what other connections wrote, is the file's.
    """

    version: int
    due: int
    bound: bytes | None
    memory: dict[str, NDArray[Any]] = field(default_factory=dict)
    made: Counter[str] = field(default_factory=Counter)


class _Transaction:
    """All or nothing, and nobody else writes in between."""

    def __init__(self, file: sqlite3.Connection) -> None:
        self._file = file

    def __enter__(self) -> None:
        self._file.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._file.execute("COMMIT" if kind is None else "ROLLBACK")


class _Journal:
    """A SQLite file, or one in memory."""

    _tables: str
    _mark: int

    def __init__(self, path: Path | str | None = None) -> None:
        if path is not None:
            path = Path(path)
            path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        self._shared = path is not None  # by other processes, perhaps
        self._file = sqlite3.connect(path or ":memory:", timeout=_WAIT, isolation_level=None)
        try:
            self._file.execute(f"PRAGMA synchronous = {_SYNCHRONOUS}")
            with self._transaction():
                self._open()
        except sqlite3.OperationalError:  # a full disk, a lock: not the file's fault
            self._file.close()
            raise
        except (sqlite3.DatabaseError, ValueError) as error:
            self._file.close()
            raise ValueError(f"{path} is not the journal that is needed: {error}") from error

    def _open(self) -> None:
        (application,), (version,) = (
            self._file.execute(f"PRAGMA {what}").fetchone() for what in ("application_id", "user_version")
        )
        empty = not self._file.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if empty:
            for statement in self._tables.split(";"):
                self._file.execute(statement)
            self._file.execute(f"PRAGMA application_id = {self._mark}")
            self._file.execute(f"PRAGMA user_version = {_FORMAT}")
        elif (application, version) != (self._mark, _FORMAT):
            raise ValueError(f"not a {type(self).__name__} of format {_FORMAT}; give another path")

    def _transaction(self) -> _Transaction:
        return _Transaction(self._file)

    def close(self) -> None:
        """Let go of the file; what was stored stays."""
        self._file.close()

    def __del__(self) -> None:
        with suppress(AttributeError, sqlite3.ProgrammingError):  # never opened, or the thread of its own is gone
            self._file.close()


class PartyJournal(_Journal):
    """A party's own state, in every study it took part in."""

    _tables = _PARTY_TABLES
    _mark = 0x54616331

    def __init__(self, path: Path | str | None = None) -> None:
        self._known: dict[str, _Known] = {}
        super().__init__(path)

    def enrol(self, study: Study, party: str, key: bytes | None, data: bytes) -> bytes:
        """The key of this party's noise in this study: as stored, else `key`, else a new one.

        `data` is a fingerprint. Data may change until the first round after the greeting is accepted (ids may not have
        matched); after that, a study that was begun with other data is not gone on with.
        """
        digest = study.digest
        with self._transaction():
            row = self._file.execute("SELECT party, key, data FROM studies WHERE digest = ?", [digest]).fetchone()
            if row is None:
                row = (party, secrets.token_bytes(32) if key is None else key, data)
                agreed = json.dumps(study.to_dict(), sort_keys=True)
                self._file.execute("INSERT INTO studies VALUES (?, ?, ?, ?, ?)", [digest, agreed, *row])
            if row[0] != party:
                raise ValueError(f"this journal is party {row[0]!r}'s in study {study.name!r}, not {party!r}'s")
            if row[2] != data:
                begun = "SELECT count(*) FROM rounds WHERE study = ? AND round > 0"
                if self._file.execute(begun, [digest]).fetchone()[0]:
                    raise ValueError(
                        f"study {study.name!r} was begun with other data than now; put back the data it was begun"
                        " with, or agree on a new study"
                    )
                self._file.execute("UPDATE studies SET data = ? WHERE digest = ?", [data, digest])
                self._file.execute("DELETE FROM rounds WHERE study = ?", [digest])
            self._known.pop(digest, None)
        return row[1]

    def accept(self, study: str, number: int, request: bytes) -> Accepted:
        """Bind a round to a request (its digest), and give the state that the round starts from."""
        with self._transaction():
            known = self._known_of(study)
            if number > known.due:
                raise RefusedError(f"round {number} is out of turn; the next one is {known.due}")
            if number < known.due:
                bound, reply = self._file.execute(
                    "SELECT request, reply FROM rounds WHERE study = ? AND round = ?", [study, number]
                ).fetchone()
            elif known.bound is None:
                self._file.execute("INSERT INTO rounds VALUES (?, ?, ?, NULL)", [study, number, request])
                bound, reply = request, None
            else:
                bound, reply = known.bound, None
            if bound != request:
                raise RefusedError(f"round {number} was bound to another request")
        if reply is None:
            known.bound = request
        self._known[study] = known
        return Accepted(None, dict(known.memory), dict(known.made)) if reply is None else Accepted(reply, {}, {})

    def finish(self, study: str, number: int, reply: bytes, memory: Arrays, spent: list[Entry]) -> bytes:
        """Store a reply with all that came of its round, and give what is to be sent: the first reply ever stored."""
        with self._transaction():
            known = self._known_of(study)
            if number < known.due:  # another process was first
                return self._file.execute(
                    "SELECT reply FROM rounds WHERE study = ? AND round = ?", [study, number]
                ).fetchone()[0]
            changed = {
                name: write_arrays({name: values})
                for name, values in memory.items()
                if values is not known.memory.get(name)
            }
            if changed:
                self._file.executemany(
                    "INSERT OR REPLACE INTO memory VALUES (?, ?, ?)", [(study, *item) for item in changed.items()]
                )
            self._file.executemany(
                "INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?)", [tuple(vars(entry).values()) for entry in spent]
            )
            self._file.execute("UPDATE rounds SET reply = ? WHERE study = ? AND round = ?", [reply, study, number])
        for arrays in changed.values():
            known.memory.update(read_arrays(arrays))
        for entry in spent:
            known.made[entry.release] += entry.count
        known.due, known.bound = number + 1, None
        self._known[study] = known
        return reply

    def _known_of(self, study: str) -> _Known:
        """The state of a study, inside a transaction: read anew only if another connection wrote to the file.

        Whoever takes it puts it back, up to date, when all went well.
        """
        version = self._file.execute("PRAGMA data_version").fetchone()[0] if self._shared else 0
        known = self._known.pop(study, None)
        if known is None or known.version != version:
            due = self._file.execute(
                "SELECT coalesce(max(round) + 1, 0) FROM rounds WHERE study = ? AND reply IS NOT NULL", [study]
            ).fetchone()[0]
            bound = self._file.execute(
                "SELECT request FROM rounds WHERE study = ? AND round = ?", [study, due]
            ).fetchone()
            known = _Known(version, due, None if bound is None else bound[0])
            for _, arrays in self._file.execute("SELECT name, arrays FROM memory WHERE study = ?", [study]):
                known.memory.update(read_arrays(arrays))
            made = "SELECT release, sum(count) FROM ledger WHERE study = ? GROUP BY release"
            known.made.update(dict(self._file.execute(made, [study]).fetchall()))
        return known

    def ledger(self, study: str | None = None) -> list[Entry]:
        """What was released, in all studies or in one."""
        rows = self._file.execute(
            "SELECT * FROM ledger WHERE ?1 IS NULL OR study = ?1 ORDER BY study, round, release", [study]
        )
        return [Entry(*row) for row in rows]


class CoordinatorJournal(_Journal):
    """What a coordinator asked and was told."""

    _tables = _COORDINATOR_TABLES
    _mark = 0x54616332

    def asked(self, study: str, exchange: int) -> dict[str, bytes]:
        """The requests of an exchange, as they were first stored; empty before that."""
        return self._column("request", study, exchange)

    def ask(self, study: str, exchange: int, requests: Mapping[str, bytes]) -> None:
        """Store requests, before they are sent."""
        with self._transaction():
            self._file.executemany(
                "INSERT INTO exchanges VALUES (?, ?, ?, ?, NULL)",
                [(study, exchange, party, request) for party, request in requests.items()],
            )

    def told(self, study: str, exchange: int) -> dict[str, bytes]:
        """The replies of an exchange; empty unless all of them are there."""
        return self._column("reply", study, exchange)

    def tell(self, study: str, exchange: int, replies: Mapping[str, bytes]) -> None:
        """Store all replies of an exchange, before anything is made of them."""
        with self._transaction():
            self._file.executemany(
                "UPDATE exchanges SET reply = ? WHERE study = ? AND exchange = ? AND party = ?",
                [(reply, study, exchange, party) for party, reply in replies.items()],
            )

    def _column(self, what: str, study: str, exchange: int) -> dict[str, Any]:
        rows = self._file.execute(
            f"SELECT party, {what} FROM exchanges WHERE study = ? AND exchange = ? AND {what} IS NOT NULL"
            " ORDER BY rowid",
            [study, exchange],
        )
        return dict(rows.fetchall())
