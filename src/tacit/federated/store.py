"""Where journals are kept: SQLite, in a file that its owner alone may read, or in memory.

Stores keep and look up; what a party may keep is for its journal to say. Studies go by their digests. A party's store
takes all that comes of a round, or nothing of it. A store belongs to the thread that opened it.
"""

import json
import os
import sqlite3
import stat
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from numpy.typing import NDArray

from tacit.federated.messages import HOLDS_NOTHING, held_after, read_arrays, write_arrays
from tacit.federated.protocols.base import Arrays
from tacit.federated.study import Study
from tacit.privacy.plan import Kind

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


BESIDE: Literal["beside"] = "beside"
"""The kind of what was sent beside releases: keys, and what masks hide. It has no noise, and is no part of a plan."""


@dataclass(frozen=True)
class Entry:
    """A line of a ledger: what a party sent in a round, how often, and with how much noise."""

    study: str
    round: int
    release: str
    kind: Kind | Literal["beside"]
    count: int
    multiplier: float


class Greeting(NamedTuple):
    """A party's round 0: the digest of the request, which is always the same, and the reply."""

    request: bytes
    reply: bytes


class Enrolled(NamedTuple):
    """A party's place in a study: its name, the key of its noise, and a fingerprint of its data."""

    party: str
    key: bytes
    data: bytes


@dataclass
class State:
    """Where a party is in a study: the round that is due, the request it is bound to, and all that came before.

    `held` is what the coordinator's next request must say of the replies that it has.
    """

    due: int
    bound: bytes | None
    held: bytes = HOLDS_NOTHING
    memory: dict[str, NDArray[Any]] = field(default_factory=dict)
    made: Counter[str] = field(default_factory=Counter)


class Store:
    """A database of one owner; without a path it lives in memory, as long as this object."""

    _owner: str
    _tables: str
    _mark: int
    _synchronous: str | None = None  # other than for journals

    def __init__(self, path: Path | str | None = None) -> None:
        if path is not None:
            path = Path(path).absolute()  # the name ":memory:" is a file like any other
            path.parent.mkdir(parents=True, exist_ok=True)
            self._make_private(path)
        self._database = sqlite3.connect(path or ":memory:", timeout=_WAIT, isolation_level=None)
        try:
            self._database.execute(f"PRAGMA synchronous = {self._synchronous or _SYNCHRONOUS}")
            self._database.execute("PRAGMA secure_delete = ON")  # what is deleted is overwritten
            with self.transaction():
                self._open()
        except sqlite3.OperationalError:  # a full disk, a lock: not the file's fault
            self._database.close()
            raise
        except (sqlite3.DatabaseError, ValueError) as error:
            self._database.close()
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
        (application,), (version,) = map(self._first, ("PRAGMA application_id", "PRAGMA user_version"))
        if not self._first("SELECT count(*) FROM sqlite_master")[0]:
            for statement in self._tables.split(";"):
                self._database.execute(statement)
            self._database.execute(f"PRAGMA application_id = {self._mark}")
            self._database.execute(f"PRAGMA user_version = {_FORMAT}")
        elif (application, version) != (self._mark, _FORMAT):
            raise ValueError(f"not {self._owner}'s, of format {_FORMAT}; give another path")

    def _first(self, query: str, *values: Any) -> Any:
        """The first row that a query gives, or None."""
        return self._database.execute(query, values).fetchone()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is stored inside is kept or none of it, and nobody else writes in between."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._database.execute("COMMIT")
        finally:
            if self._database.in_transaction:  # a COMMIT that failed leaves it open; some errors have ended it already
                self._database.execute("ROLLBACK")

    def close(self) -> None:
        """Let go; what a file holds stays."""
        self._database.close()

    def __del__(self) -> None:
        with suppress(AttributeError, sqlite3.ProgrammingError):  # never opened, or the thread of its own is gone
            self._database.close()


class PartyStore(Store):
    """What a party's journal is kept in."""

    _owner = "a party"
    _tables = _PARTY_TABLES
    _mark = 0x54616331

    def version(self) -> int:
        """Another number, if somebody else wrote since it was last asked for."""
        return self._first("PRAGMA data_version")[0]

    def enrolled(self, study: str) -> Enrolled | None:
        """What `enrol` stored."""
        row = self._first("SELECT party, key, data FROM studies WHERE digest = ?", study)
        return None if row is None else Enrolled(*row)

    def enrol(self, study: Study, enrolled: Enrolled, greeting: Greeting | None) -> None:
        """Take part in a study, or take part in it anew: rounds are forgotten, but for the greeting that is given."""
        agreed = json.dumps(study.to_dict(), sort_keys=True)
        self._database.execute(
            "INSERT OR REPLACE INTO studies VALUES (?, ?, ?, ?, ?)", [study.digest, agreed, *enrolled]
        )
        self._database.execute("DELETE FROM rounds WHERE study = ?", [study.digest])
        if greeting is not None:
            self._database.execute("INSERT INTO rounds VALUES (?, 0, ?, ?)", [study.digest, *greeting])

    def state(self, study: str) -> State:
        """The party's state in a study."""
        last = "SELECT coalesce(max(round) + 1, 0) FROM rounds WHERE study = ? AND reply IS NOT NULL"
        (due,) = self._first(last, study)
        bound = self._first("SELECT request FROM rounds WHERE study = ? AND round = ?", study, due)
        state = State(due, None if bound is None else bound[0])
        for _, reply in self.replies(study):
            state.held = held_after(state.held, reply)
        for (arrays,) in self._database.execute("SELECT arrays FROM memory WHERE study = ?", [study]):
            state.memory.update(read_arrays(arrays))
        made = "SELECT release, sum(count) FROM ledger WHERE study = ? AND kind <> ? GROUP BY release"
        state.made.update(dict(self._database.execute(made, [study, BESIDE]).fetchall()))
        return state

    def round(self, study: str, number: int) -> tuple[bytes, bytes]:
        """A finished round: the request it was bound to, and the reply."""
        return self._first("SELECT request, reply FROM rounds WHERE study = ? AND round = ?", study, number)

    def bind(self, study: str, number: int, request: bytes) -> None:
        """A round's request, before anything is computed for it."""
        self._database.execute("INSERT INTO rounds VALUES (?, ?, ?, NULL)", [study, number, request])

    def finish(
        self, study: str, number: int, reply: bytes, memory: Arrays, spent: list[Entry]
    ) -> Mapping[str, NDArray[Any]]:
        """All that comes of the round that is bound, at once; gives the memory as it was kept, read-only."""
        kept = {name: write_arrays({name: values}) for name, values in memory.items()}
        self._database.executemany(
            "INSERT OR REPLACE INTO memory VALUES (?, ?, ?)", [(study, *item) for item in kept.items()]
        )
        self._database.executemany(
            "INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?)", [tuple(vars(entry).values()) for entry in spent]
        )
        self._database.execute("UPDATE rounds SET reply = ? WHERE study = ? AND round = ?", [reply, study, number])
        return {name: read_arrays(arrays)[name] for name, arrays in kept.items()}

    def wipe(self, study: str, names: Iterable[str]) -> None:
        """Delete memory; the file keeps no copy of it."""
        self._database.executemany(
            "DELETE FROM memory WHERE study = ? AND name = ?", [(study, name) for name in sorted(names)]
        )

    def studies(self) -> list[tuple[str, str, str]]:
        """The studies it took part in: digest, name, and what the party is called there."""
        rows = self._database.execute("SELECT digest, agreed, party FROM studies ORDER BY rowid")
        return [(digest, json.loads(agreed)["name"], party) for digest, agreed, party in rows]

    def replies(self, study: str) -> list[tuple[int, bytes]]:
        """The rounds that were answered, and with what."""
        answered = "SELECT round, reply FROM rounds WHERE study = ? AND reply IS NOT NULL ORDER BY round"
        return self._database.execute(answered, [study]).fetchall()

    def ledger(self, study: str | None) -> list[Entry]:
        """What was sent, in one study or in all."""
        rows = self._database.execute(
            "SELECT * FROM ledger WHERE ?1 IS NULL OR study = ?1 ORDER BY study, round, release", [study]
        )
        return [Entry(*row) for row in rows]


class CoordinatorStore(Store):
    """What a coordinator asked and was told, which survives its crash: it is replayed to where it was."""

    _owner = "a coordinator"
    _tables = _COORDINATOR_TABLES
    _mark = 0x54616332

    def asked(self, study: str, exchange: int) -> dict[str, bytes]:
        """The requests of an exchange by party, in the order they were stored in; none before that."""
        return self._column("request", study, exchange)

    def ask(self, study: str, exchange: int, requests: Mapping[str, bytes]) -> None:
        """Store requests, before they are sent."""
        self._keep("INSERT INTO exchanges VALUES (?, ?, ?, ?, NULL)", study, exchange, requests)

    def told(self, study: str, exchange: int) -> dict[str, bytes]:
        """The replies of an exchange by party; none before all of them are there."""
        return self._column("reply", study, exchange)

    def tell(self, study: str, exchange: int, replies: Mapping[str, bytes]) -> None:
        """Store all replies of an exchange, before anything is made of them."""
        update = "UPDATE exchanges SET reply = ?4 WHERE study = ?1 AND exchange = ?2 AND party = ?3"
        self._keep(update, study, exchange, replies)

    def forget(self, study: str) -> None:
        """Begin a study again, of which nothing but the greeting was stored."""
        if self.told(study, 1):
            raise ValueError("a study of which replies are stored is not begun again")
        with self.transaction():
            self._database.execute("DELETE FROM exchanges WHERE study = ?", [study])

    def _keep(self, statement: str, study: str, exchange: int, said: Mapping[str, bytes]) -> None:
        """All bytes of an exchange, by party."""
        with self.transaction():
            self._database.executemany(statement, [(study, exchange, *one) for one in said.items()])

    def _column(self, what: str, study: str, exchange: int) -> dict[str, Any]:
        rows = self._database.execute(
            f"SELECT party, {what} FROM exchanges WHERE study = ? AND exchange = ? AND {what} IS NOT NULL"
            " ORDER BY rowid",
            [study, exchange],
        )
        return dict(rows.fetchall())
