"""Stores on disk: SQLite files that their owner alone may read."""

import json
import os
import sqlite3
import stat
import warnings
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from tacit.federated.messages import held_after, read_arrays, write_arrays
from tacit.federated.protocols.base import Arrays
from tacit.federated.stores import Enrolled, Entry, Greeting, State
from tacit.federated.study import Study

_FORMAT = 1  # of the files
# What is stored is on the disk, also if the machine loses power. A transaction ends when its rollback journal is
# unlinked; FULL does not sync the folder after that, and the old state could come back.
_SYNCHRONOUS = "EXTRA"
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


class _Transaction:
    """All or nothing, and nobody else writes in between."""

    def __init__(self, file: sqlite3.Connection) -> None:
        self._file = file

    def __enter__(self) -> None:
        self._file.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._file.execute("COMMIT")
        finally:
            if self._file.in_transaction:  # a COMMIT that failed leaves it open; some errors have ended it already
                self._file.execute("ROLLBACK")


class _File:
    """A SQLite file that its owner alone may read."""

    _owner: str
    _tables: str
    _mark: int

    def __init__(self, path: Path | str) -> None:
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._make_private(path)
        self._file = sqlite3.connect(path, timeout=_WAIT, isolation_level=None)
        try:
            self._file.execute(f"PRAGMA synchronous = {_SYNCHRONOUS}")
            with self.transaction():
                self._open()
        except sqlite3.OperationalError:  # a full disk, a lock: not the file's fault
            self._file.close()
            raise
        except (sqlite3.DatabaseError, ValueError) as error:
            self._file.close()
            raise ValueError(f"{path} is not the journal that is needed: {error}") from error

    def _make_private(self, path: Path) -> None:
        """Make the file, or take it from others; SQLite gives its own files beside it the same rights."""
        handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            rights = stat.S_IMODE(os.fstat(handle).st_mode)
            os.fchmod(handle, 0o600)
        except PermissionError:
            raise ValueError(f"{path} is another user's; {self._owner}'s journal must be its owner's alone") from None
        finally:
            os.close(handle)
        if rights & 0o077:
            warnings.warn(
                f"{path} was open to other users of this machine until now. It is {self._owner}'s journal, and they may"
                " have read or changed it",
                stacklevel=5,
            )

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
            raise ValueError(f"not {self._owner}'s, of format {_FORMAT}; give another path")

    def transaction(self) -> AbstractContextManager[None]:
        return _Transaction(self._file)

    def close(self) -> None:
        self._file.close()

    def __del__(self) -> None:
        with suppress(AttributeError, sqlite3.ProgrammingError):  # never opened, or the thread of its own is gone
            self._file.close()


class PartyFile(_File):
    """A party's store on its own disk."""

    _owner = "a party"
    _tables = _PARTY_TABLES
    _mark = 0x54616331

    def version(self) -> int:
        return self._file.execute("PRAGMA data_version").fetchone()[0]

    def enrolled(self, study: str) -> Enrolled | None:
        row = self._file.execute("SELECT party, key, data FROM studies WHERE digest = ?", [study]).fetchone()
        return None if row is None else Enrolled(*row)

    def enrol(self, study: Study, enrolled: Enrolled, greeting: Greeting | None) -> None:
        agreed = json.dumps(study.to_dict(), sort_keys=True)
        self._file.execute("INSERT OR REPLACE INTO studies VALUES (?, ?, ?, ?, ?)", [study.digest, agreed, *enrolled])
        self._file.execute("DELETE FROM rounds WHERE study = ?", [study.digest])
        if greeting is not None:
            self._file.execute("INSERT INTO rounds VALUES (?, 0, ?, ?)", [study.digest, *greeting])

    def state(self, study: str) -> State:
        due = self._file.execute(
            "SELECT coalesce(max(round) + 1, 0) FROM rounds WHERE study = ? AND reply IS NOT NULL", [study]
        ).fetchone()[0]
        bound = self._file.execute("SELECT request FROM rounds WHERE study = ? AND round = ?", [study, due]).fetchone()
        state = State(due, None if bound is None else bound[0])
        replies = "SELECT reply FROM rounds WHERE study = ? AND reply IS NOT NULL ORDER BY round"
        for (reply,) in self._file.execute(replies, [study]):
            state.held = held_after(state.held, reply)
        for (arrays,) in self._file.execute("SELECT arrays FROM memory WHERE study = ?", [study]):
            state.memory.update(read_arrays(arrays))
        made = "SELECT release, sum(count) FROM ledger WHERE study = ? GROUP BY release"
        state.made.update(dict(self._file.execute(made, [study]).fetchall()))
        return state

    def round(self, study: str, number: int) -> tuple[bytes, bytes]:
        return self._file.execute(
            "SELECT request, reply FROM rounds WHERE study = ? AND round = ?", [study, number]
        ).fetchone()

    def bind(self, study: str, number: int, request: bytes) -> None:
        self._file.execute("INSERT INTO rounds VALUES (?, ?, ?, NULL)", [study, number, request])

    def finish(
        self, study: str, number: int, reply: bytes, memory: Arrays, spent: list[Entry]
    ) -> Mapping[str, NDArray[Any]]:
        kept = {name: write_arrays({name: values}) for name, values in memory.items()}
        self._file.executemany(
            "INSERT OR REPLACE INTO memory VALUES (?, ?, ?)", [(study, *item) for item in kept.items()]
        )
        self._file.executemany(
            "INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?)", [tuple(vars(entry).values()) for entry in spent]
        )
        self._file.execute("UPDATE rounds SET reply = ? WHERE study = ? AND round = ?", [reply, study, number])
        return {name: read_arrays(arrays)[name] for name, arrays in kept.items()}

    def ledger(self, study: str | None) -> list[Entry]:
        rows = self._file.execute(
            "SELECT * FROM ledger WHERE ?1 IS NULL OR study = ?1 ORDER BY study, round, release", [study]
        )
        return [Entry(*row) for row in rows]


class CoordinatorFile(_File):
    """A coordinator's store on its disk."""

    _owner = "a coordinator"
    _tables = _COORDINATOR_TABLES
    _mark = 0x54616332

    def asked(self, study: str, exchange: int) -> dict[str, bytes]:
        return self._column("request", study, exchange)

    def ask(self, study: str, exchange: int, requests: Mapping[str, bytes]) -> None:
        with self.transaction():
            self._file.executemany(
                "INSERT INTO exchanges VALUES (?, ?, ?, ?, NULL)",
                [(study, exchange, party, request) for party, request in requests.items()],
            )

    def told(self, study: str, exchange: int) -> dict[str, bytes]:
        return self._column("reply", study, exchange)

    def tell(self, study: str, exchange: int, replies: Mapping[str, bytes]) -> None:
        with self.transaction():
            self._file.executemany(
                "UPDATE exchanges SET reply = ? WHERE study = ? AND exchange = ? AND party = ?",
                [(reply, study, exchange, party) for party, reply in replies.items()],
            )

    def forget(self, study: str) -> None:
        with self.transaction():
            self._file.execute("DELETE FROM exchanges WHERE study = ?", [study])

    def _column(self, what: str, study: str, exchange: int) -> dict[str, Any]:
        rows = self._file.execute(
            f"SELECT party, {what} FROM exchanges WHERE study = ? AND exchange = ? AND {what} IS NOT NULL"
            " ORDER BY rowid",
            [study, exchange],
        )
        return dict(rows.fetchall())
