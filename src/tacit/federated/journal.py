"""What survives a crash of a party: its rounds, memory and ledger, in a store. A coordinator's is `CoordinatorStore`.

What holds, and must never change:

- A party's round is bound to one request, in the store, before anything is computed for it; another request for that
  round is refused for ever.
- A request is accepted only from a coordinator that holds the replies which this journal holds, all of them and no
  others. So a journal that was restored from an older copy is found out as soon as that can be seen at all.
- Data may change, and then draws a new key, for as long as no reply but the greeting was stored. Whoever enrolled
  before that, with the old data, neither answers nor stores anything any more.
- A reply, what the party remembers of that round and what it cost are stored at once, before the reply leaves. What
  was stored is what is sent, however often the round is asked for.
- Nothing is ever deleted from a ledger.

A party's file holds the key of its noise, and is as secret as its data. Losing it is losing the proof of what was
spent: a party must not take part in a study again whose journal it lost. A path of None keeps a journal in memory,
where all of this holds for as long as the process lives.
"""

import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from tacit.federated.messages import held_after
from tacit.federated.protocols.base import Arrays, RefusedError
from tacit.federated.store import BESIDE, Enrolled, Entry, Greeting, PartyStore, State
from tacit.federated.study import Study

_BEGAN_AGAIN = "the party began again in another process; this one released nothing, and answers no more"


class BehindError(RefusedError):
    """The coordinator holds replies that are not in this journal: it was rolled back, or is another one."""


class BegunAgainError(RefusedError):
    """The coordinator holds a greeting from before this party's data was mended."""


@dataclass(frozen=True, eq=False)
class Accepted:
    """A party's state as a round finds it: the reply if it was made before, what is remembered, what was released."""

    reply: bytes | None
    memory: Arrays
    made: Mapping[str, int]


class PartyJournal:
    """A party's own state, in every study it took part in."""

    def __init__(self, path: Path | str | None = None) -> None:
        self._store = PartyStore(path)
        self._own: dict[str, Enrolled] = {}  # what this process enrolled with, by study
        self._known: dict[str, tuple[int, State]] = {}  # right for as long as the store is of that version

    def enrol(self, study: Study, party: str, key: bytes | None, data: bytes, greeting: Greeting) -> bytes:
        """The key of this party's noise in this study: as stored, else `key`, else a new one.

        `data` is a fingerprint, and `greeting` what the party says in round 0. Data may change until the first reply
        after the greeting is stored: nothing was released yet. The party then begins again, with a new key; if it had
        greeted already, the new greeting takes the place of the old. After that, a study that was begun with other
        data is not gone on with.
        """
        digest = study.digest
        drawn = Enrolled(party, secrets.token_bytes(32) if key is None else key, data)
        with self._store.transaction():
            enrolled = self._store.enrolled(digest)
            if enrolled is None:
                enrolled = drawn
                self._store.enrol(study, enrolled, None)
            if enrolled.party != party:
                raise ValueError(f"this journal is party {enrolled.party!r}'s in study {study.name!r}, not {party!r}'s")
            if enrolled.data != data:
                state = self._store.state(digest)
                if state.due > 1:
                    raise ValueError(
                        f"study {study.name!r} was begun with other data than now; put back the data it was begun"
                        " with, or agree on a new study"
                    )
                enrolled = drawn
                self._store.enrol(study, enrolled, greeting if state.due == 1 else None)
            self._known.pop(digest, None)
        self._own[digest] = enrolled
        return enrolled.key

    def accept(self, study: str, number: int, request: bytes, held: bytes) -> Accepted:
        """Bind a round to a request (its digest), and give the state that the round starts from.

        `held` is the request's digest of the replies that the coordinator has.
        """
        with self._store.transaction():
            version, state = self._taken(study)
            reply = None
            if number < state.due:
                bound, reply = self._store.round(study, number)
            else:
                _check_held(number, held, state)
                bound = state.bound or request
            if bound != request:
                raise RefusedError(f"round {number} was bound to another request")
            if reply is None and state.bound is None:
                self._store.bind(study, number, request)
        if reply is None:
            state.bound = request
        self._known[study] = version, state
        return Accepted(None, dict(state.memory), dict(state.made)) if reply is None else Accepted(reply, {}, {})

    def finish(self, study: str, number: int, reply: bytes, memory: Arrays, spent: list[Entry]) -> bytes:
        """Store a reply with all that came of its round, and give what is to be sent: the first reply ever stored."""
        with self._store.transaction():
            version, state = self._taken(study)
            if number < state.due:  # another process was first
                return self._store.round(study, number)[1]
            if state.bound is None:  # another process gave other data and then, in a seeded study, these again
                raise RefusedError(_BEGAN_AGAIN)
            changed = {name: values for name, values in memory.items() if values is not state.memory.get(name)}
            kept = self._store.finish(study, number, reply, changed, spent)
        state.memory.update(kept)
        for entry in spent:
            if entry.kind != BESIDE:
                state.made[entry.release] += entry.count
        state.due, state.bound, state.held = number + 1, None, held_after(state.held, reply)
        self._known[study] = version, state
        return reply

    def _taken(self, study: str) -> tuple[int, State]:
        """The state of a study, inside a transaction: looked up only if somebody else wrote to the store.

        Whoever takes it puts it back, up to date, when all went well. Those whose key or data is no longer the
        party's are refused.
        """
        if self._store.enrolled(study) != self._own.get(study):
            raise RefusedError(_BEGAN_AGAIN)
        version, known = self._store.version(), self._known.pop(study, None)
        return (version, self._store.state(study)) if known is None or known[0] != version else known

    def memory(self, study: str) -> Arrays:
        """What the party remembers of its own rounds."""
        with self._store.transaction():
            return dict(self._store.state(study).memory)

    def wipe(self, study: str, names: Collection[str]) -> None:
        """Forget what was remembered under these names, for ever."""
        with self._store.transaction():
            self._known.pop(study, None)
            self._store.wipe(study, names)

    def ledger(self, study: str | None = None) -> list[Entry]:
        """What was released, in all studies or in one."""
        return self._store.ledger(study)

    def close(self) -> None:
        """Let go of the file; what was stored stays."""
        self._store.close()


def _check_held(number: int, held: bytes, state: State) -> None:
    """Refuse a request of a coordinator that does not hold what this journal says it was sent."""
    if number > state.due:
        raise BehindError(
            f"round {number} is asked for, so the coordinator has {number} answers; the journal has {state.due}."
            " Is it an older copy? Nothing was released. Put the newest journal back"
        )
    if held == state.held:
        return
    if number == 1:
        raise BegunAgainError("this party's data was mended since the greeting")
    raise BehindError(
        f"the coordinator has other answers to the first {number} rounds than the journal. Is it an older copy? Nothing"
        " was released. Put the newest journal back"
    )
