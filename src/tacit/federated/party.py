"""A party: its data (`Party`), and the node that answers a coordinator it does not trust (`Node`).

A node answers each round once. The key of a round's noise follows from a key that only the party has, the study, the
party and the number of the round, and a round is bound on disk to one request before anything is computed: a round that
was interrupted gives the same bytes when it is made again, and no two requests ever see the same noise. What was
released is counted in the party's own ledger, against the plan that the study fixes; whatever a coordinator asks, there
is no more.
"""

import hashlib
import hmac
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_array

from tacit import __version__
from tacit.federated import messages
from tacit.federated.alignment import Alignment
from tacit.federated.journal import PartyJournal
from tacit.federated.messages import Refusal, Reply, Request
from tacit.federated.protocols import part_of, protocol_for
from tacit.federated.protocols.base import Answer, Arrays, Holding, Question, RefusedError
from tacit.federated.protocols.columns import is_sparse
from tacit.federated.stores import Entry
from tacit.federated.study import Study
from tacit.preprocessing.validation import without_data
from tacit.privacy import Guarantee, Meter, NoiseSource, PlanViolationError, Release, epsilon_of
from tacit.privacy.events import composed

Floats = NDArray[np.float64]

HELLO = "hello"  # the step of round 0, in which nothing is released

_SEED = b"tacit.federated seeded party:"


class Party:
    """An organisation's columns of the rows that all parties have.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_rows, n_features)
        Its columns. They never leave it.
    y : array-like of shape (n_rows,), optional
        The labels, if it holds them.
    name : str, optional
        What the study calls it; in one process "party-1", "party-2" ... by default.
    ids : array-like of shape (n_rows,), optional
        Whole numbers or text that say whom a row is about, each of them once. Without ids, row i is taken to be about
        the same person at every party.
    secret : bytes or str, optional
        Needed with ids: at least 16 bytes that all parties share and the coordinator does not know.

    Examples
    --------
    >>> from tacit.federated import Party
    >>> Party([[1.0, 2.0], [3.0, 4.0]], name="hospital-a")
    Party('hospital-a', 2 rows, 2 columns)
    """

    def __init__(
        self,
        X: Any,
        y: Any = None,
        *,
        name: str | None = None,
        ids: Any = None,
        secret: bytes | str | None = None,
    ) -> None:
        self.name = name
        self.X = table(X)
        self.y = None if y is None else _labels(y, self.n_rows)
        if (ids is None) != (secret is None):
            raise ValueError("ids and secret come together: rows are matched by keyed hashes of the ids")
        self.alignment = None if ids is None or secret is None else Alignment.of(ids, secret)
        if self.alignment is not None and len(self.alignment.order) != self.n_rows:
            raise ValueError("ids must have one entry for each row of X")

    @property
    def n_rows(self) -> int:
        """How many rows it holds."""
        return self.X.shape[0]

    @property
    def n_features(self) -> int:
        """How many columns it holds."""
        return self.X.shape[1]

    @property
    def order(self) -> NDArray[np.int64]:
        """Its rows in the order that all parties take them in."""
        return np.arange(self.n_rows) if self.alignment is None else self.alignment.order

    def named(self, name: str) -> "Party":
        """The same party under a name, or under its own if it has one."""
        return self._with(name=self.name or name)

    def labelled_by(self, holder: "Party") -> "Party":
        """The same party with the labels of another that holds the same rows, for parties in one process."""
        if self.n_rows != holder.n_rows or holder.y is None:
            raise ValueError("labels can be taken from a party that has them, for the same number of rows")
        y = np.empty_like(holder.y)
        y[self.order] = holder.y[holder.order]
        return self._with(y=y)

    def holding(self, study: Study) -> Holding:
        """Its data as the study wants it; what does not fit the study is refused."""
        if self.name is None:
            raise ValueError("a party needs the name that the study knows it by")
        member = study.member(self.name)
        if self.n_rows != study.n_rows:
            raise ValueError(f"party {self.name!r} has {self.n_rows:,} rows, and the study agreed on {study.n_rows:,}")
        if self.n_features != member.n_features:
            raise ValueError(
                f"party {self.name!r} has {self.n_features:,} columns, and the study agreed on {member.n_features:,}"
            )
        if member.labels and self.y is None:
            raise ValueError(f"party {self.name!r} holds the labels by the study, and was given none")
        if not member.labels and self.y is not None:
            raise ValueError(f"party {self.name!r} holds no labels by the study, and was given some")
        targets = None if self.y is None else _targets(self.y, study)
        if self.alignment is None:
            return Holding(self.name, self.X, targets)
        X = self.X[self.order]
        return Holding(
            self.name,
            sparse.csc_array(X) if is_sparse(X) else X,
            None if targets is None else targets[self.order],
        )

    def _with(self, **changes: Any) -> "Party":
        other = object.__new__(Party)
        other.__dict__.update(self.__dict__ | changes)
        return other

    def __repr__(self) -> str:
        return f"Party({self.name!r}, {self.n_rows:,} rows, {self.n_features:,} columns)"


class Node:
    """Answers the rounds of one study for one party.

    Parameters
    ----------
    study : Study
        What the party agreed to. Anything else is refused.
    party : Party
        Its data.
    path : path, optional
        Where its journal is kept, on its own disk; None keeps it in memory, where it does not survive the process.
    """

    def __init__(self, study: Study, party: Party, path: Path | str | None = None) -> None:
        self._holding = party.holding(study)
        self.study, self.name = study, self._holding.name
        self._tag = b"" if party.alignment is None else party.alignment.tag(study.digest)
        self._protocol = protocol_for(study)
        self.plan = part_of(self._protocol.plan().calibrate(study.budget), self.name)
        self._journal = PartyJournal(path)
        fingerprint = b"" if path is None else _fingerprint(self._holding)
        key = self._journal.enrol(study, self.name, _seeded_key(study, self.name), fingerprint)
        self._keyed = hmac.new(key, digestmod="sha256")

    def answer(self, request: bytes) -> bytes:
        """The reply to a request: the stored one if it was answered before, a refusal if it is not to be answered."""
        number = 0
        try:
            asked = messages.read(request)
            if not isinstance(asked, Request):
                raise RefusedError("a party answers requests, and nothing else")
            number = asked.round
            self._check(asked)
            return self._answer(asked, messages.digest(request))
        except RefusedError as refused:
            reason = str(refused)
        return messages.write(Refusal(self.study.digest, self.name, number, messages.digest(request), reason))

    def ledger(self) -> list[Entry]:
        """What this party released in this study so far, as its journal holds it."""
        return self._journal.ledger(self.study.digest)

    def spent(self) -> Guarantee | None:
        """What this party's own releases so far gave away, from its ledger alone; None before the first one."""
        ledger = self.ledger()
        if not ledger:
            return None
        parts = (Release(entry.release, entry.kind, 1.0, entry.count).event(entry.multiplier) for entry in ledger)
        event, budget = composed(parts), self.study.budget
        return Guarantee(
            epsilon_of(event, budget.delta) if budget.is_private else budget.epsilon,
            budget.delta,
            budget.adjacency,
            f"party {self.name} of federated {self._protocol.name}",
            event,
            self.study.n_rows,
            self.study.random_state is not None,
        )

    def close(self) -> None:
        """Let go of the journal; a new node goes on from there."""
        self._journal.close()

    def _check(self, asked: Request) -> None:
        """Refuse those who agreed on something else. The texts are fixed but for names that are public."""
        if asked.study != self.study.digest:
            raise RefusedError(
                f"party {self.name!r} did not agree on this study; compare the study files, which must be equal in"
                " every value"
            )
        if asked.party != self.name:
            raise RefusedError(f"the request is for another party than {self.name!r}")
        if asked.version != __version__:
            raise RefusedError(f"party {self.name!r} runs tacit {__version__}, and the coordinator another version")
        if (asked.step == HELLO) != (asked.round == 0) or (asked.round == 0 and asked.arrays):
            raise RefusedError("a study begins with one hello, and with nothing else")

    def _answer(self, asked: Request, digest: bytes) -> bytes:
        state = self._journal.accept(self.study.digest, asked.round, digest)
        if state.reply is not None:
            return state.reply
        if asked.round == 0:
            answer, spent = Answer({}), list[Entry]()
            facts: Arrays = {
                "shape": np.array([self.study.n_rows, self.study.member(self.name).n_features], dtype=np.int64),
                "tag": np.frombuffer(self._tag, dtype=np.uint8),
            }
        else:
            answer, spent = self._compute(asked, state.memory, state.made)
            facts = answer.releases
        reply = messages.write(Reply(self.study.digest, self.name, asked.round, digest, facts))
        return self._journal.finish(self.study.digest, asked.round, reply, answer.memory, spent)

    def _compute(self, asked: Request, memory: Arrays, made: Any) -> tuple[Answer, list[Entry]]:
        meter = self.plan.meter(self._source(asked.round), made=made)
        left = self._left(meter)
        try:
            answer = self._protocol.answer(self._holding, Question(asked.step, asked.arrays), meter, memory)
        except PlanViolationError:
            raise RefusedError(f"the request asks for more than the study grants of party {self.name!r}") from None
        after = self._left(meter)
        spent = [
            Entry(
                self.study.digest,
                asked.round,
                release.name,
                release.kind,
                left[release.name] - after[release.name],
                self.plan.multiplier(release.name),
            )
            for release in self.plan.plan.releases
            if after[release.name] < left[release.name]
        ]
        unplanned = set(answer.releases) - {entry.release for entry in spent}
        if unplanned:
            raise PlanViolationError(f"not released in this round, but in the answer: {', '.join(sorted(unplanned))}")
        return answer, spent

    def _left(self, meter: Meter) -> dict[str, int]:
        return {release.name: meter.left(release.name) for release in self.plan.plan.releases}

    def _source(self, number: int) -> NoiseSource:
        """The noise of a round, which `accept` has bound to one request."""
        keyed = self._keyed.copy()
        keyed.update(f"{self.study.digest}|{self.name}|{number}".encode())
        return NoiseSource.from_key(keyed.digest(), seeded=self.study.random_state is not None)


def _seeded_key(study: Study, name: str) -> bytes | None:
    """The key of a party's noise where the study fixes it; None asks for one of the operating system's."""
    if study.random_state is None:
        return None
    return hashlib.sha256(_SEED + f"{study.random_state}|{name}".encode()).digest()


def _fingerprint(holding: Holding) -> bytes:
    """Tells whether the data is the same as before; it stays in the party's own file, next to the key of its noise."""
    X = holding.X
    parts = [X.indptr, X.indices, X.data] if is_sparse(X) else [X]
    hashed = hashlib.blake2b(repr(X.shape).encode(), digest_size=32)
    for part in [*parts, *([] if holding.targets is None else [holding.targets])]:
        hashed.update(str(part.dtype).encode())
        hashed.update(np.ascontiguousarray(part).data)
    return hashed.digest()


def table(X: Any) -> Any:
    """X as a float64 array or as CSC, finite; errors do not quote it."""
    try:
        checked: Any = check_array(X, accept_sparse="csc", dtype=np.float64, input_name="X")
    except (TypeError, ValueError) as error:
        message = without_data(str(error))
    else:
        if not is_sparse(checked):
            return checked
        columns = sparse.csc_array(checked, copy=not checked.has_canonical_format)
        columns.sum_duplicates()
        return columns
    raise ValueError(message)


def _labels(y: Any, rows: int) -> NDArray[Any]:
    """One label for each row."""
    try:
        labels = check_array(y, ensure_2d=False, dtype=None, input_name="y")
    except (TypeError, ValueError) as error:
        message = without_data(str(error))
    else:
        if labels.shape != (rows,):
            raise ValueError("y must have one label for each row of X")
        return labels
    raise ValueError(message)


def _targets(y: NDArray[Any], study: Study) -> Floats:
    """Labels as the study's numbers: themselves, or -1 and 1."""
    if study.classes is None:
        if y.dtype.kind not in "fiub":
            raise ValueError("y must hold real numbers")
        return y.astype(np.float64)
    negative, positive = (y == label for label in study.classes)
    if not np.all(negative | positive):
        raise ValueError("y holds a label that is not one of the study's two classes")
    return np.where(positive, 1.0, -1.0)
