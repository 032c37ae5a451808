"""What journals are kept in: one small interface for a party's and one for a coordinator's, and stores in memory.

Stores keep and look up; what may be kept is the journals' affair. A party's store takes all that comes of a round or
nothing of it. Those on disk are in `files`.
"""

from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray

from tacit.federated.messages import HOLDS_NOTHING, held_after, read_arrays, write_arrays
from tacit.federated.protocols.base import Arrays
from tacit.federated.study import Study
from tacit.privacy.plan import Kind


@dataclass(frozen=True)
class Entry:
    """A line of a ledger: what a party released in a round, how often, and with how much noise."""

    study: str
    round: int
    release: str
    kind: Kind
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


class PartyStore(Protocol):
    """What a party's journal is kept in. Studies go by their digests."""

    def transaction(self) -> AbstractContextManager[None]:
        """All that is stored inside is kept or none of it, and nobody else writes in between."""

    def version(self) -> int:
        """Another number, if somebody else wrote since it was last asked for."""

    def enrolled(self, study: str) -> Enrolled | None:
        """What `enrol` stored."""

    def enrol(self, study: Study, enrolled: Enrolled, greeting: Greeting | None) -> None:
        """Take part in a study, or take part in it anew: rounds are forgotten, but for the greeting that is given."""

    def state(self, study: str) -> State:
        """Where the party is."""

    def round(self, study: str, number: int) -> tuple[bytes, bytes]:
        """A finished round: the request it was bound to, and the reply."""

    def bind(self, study: str, number: int, request: bytes) -> None:
        """A round's request, before anything is computed for it."""

    def finish(
        self, study: str, number: int, reply: bytes, memory: Arrays, spent: list[Entry]
    ) -> Mapping[str, NDArray[Any]]:
        """All that comes of the round that is bound, at once; gives the memory as it was kept, read-only."""

    def ledger(self, study: str | None) -> list[Entry]:
        """What was released, in one study or in all."""

    def close(self) -> None:
        """Let go; what a file holds stays."""


class CoordinatorStore(Protocol):
    """What a coordinator's journal is kept in."""

    def asked(self, study: str, exchange: int) -> dict[str, bytes]:
        """Requests by party, in the order they were stored in."""

    def ask(self, study: str, exchange: int, requests: Mapping[str, bytes]) -> None:
        """Store requests."""

    def told(self, study: str, exchange: int) -> dict[str, bytes]:
        """Replies by party."""

    def tell(self, study: str, exchange: int, replies: Mapping[str, bytes]) -> None:
        """Store replies."""

    def forget(self, study: str) -> None:
        """Drop all exchanges of a study."""

    def close(self) -> None:
        """Let go; what a file holds stays."""


class _Round(NamedTuple):
    """A round in memory, bound or, once it has a reply, finished."""

    request: bytes
    reply: bytes | None = None
    memory: Mapping[str, NDArray[Any]] = {}
    spent: tuple[Entry, ...] = ()


class PartyMemory:
    """A party's store for as long as the process lives. A round is one value, put in its place in one step."""

    def __init__(self) -> None:
        self._studies: dict[str, Enrolled] = {}
        self._rounds: dict[str, dict[int, _Round]] = {}

    def transaction(self) -> AbstractContextManager[None]:
        return nullcontext()

    def version(self) -> int:
        return 0

    def enrolled(self, study: str) -> Enrolled | None:
        return self._studies.get(study)

    def enrol(self, study: Study, enrolled: Enrolled, greeting: Greeting | None) -> None:
        self._rounds[study.digest] = {} if greeting is None else {0: _Round(*greeting)}
        self._studies[study.digest] = enrolled

    def state(self, study: str) -> State:
        state = State(0, None)
        for number, made in self._rounds[study].items():
            if made.reply is None:
                state.bound = made.request
                continue
            state.due = number + 1
            state.held = held_after(state.held, made.reply)
            state.memory.update(made.memory)
            for entry in made.spent:
                state.made[entry.release] += entry.count
        return state

    def round(self, study: str, number: int) -> tuple[bytes, bytes]:
        made = self._rounds[study][number]
        assert made.reply is not None
        return made.request, made.reply

    def bind(self, study: str, number: int, request: bytes) -> None:
        self._rounds[study][number] = _Round(request)

    def finish(
        self, study: str, number: int, reply: bytes, memory: Arrays, spent: list[Entry]
    ) -> Mapping[str, NDArray[Any]]:
        kept = read_arrays(write_arrays(memory))  # as a file would, with the same refusals
        rounds = self._rounds[study]
        rounds[number] = _Round(rounds[number].request, reply, kept, tuple(spent))
        return kept

    def ledger(self, study: str | None) -> list[Entry]:
        studies = sorted(self._rounds) if study is None else [study]
        return [
            entry
            for digest in studies
            for made in self._rounds.get(digest, {}).values()
            for entry in sorted(made.spent, key=lambda entry: entry.release)
        ]

    def close(self) -> None:
        pass


class CoordinatorMemory:
    """A coordinator's store for as long as the process lives."""

    def __init__(self) -> None:
        self._asked: dict[tuple[str, int], dict[str, bytes]] = {}
        self._told: dict[tuple[str, int], dict[str, bytes]] = {}

    def asked(self, study: str, exchange: int) -> dict[str, bytes]:
        return dict(self._asked.get((study, exchange), {}))

    def ask(self, study: str, exchange: int, requests: Mapping[str, bytes]) -> None:
        self._asked[study, exchange] = dict(requests)

    def told(self, study: str, exchange: int) -> dict[str, bytes]:
        return dict(self._told.get((study, exchange), {}))

    def tell(self, study: str, exchange: int, replies: Mapping[str, bytes]) -> None:
        self._told[study, exchange] = dict(replies)

    def forget(self, study: str) -> None:
        for kept in (self._asked, self._told):
            for key in [key for key in kept if key[0] == study]:
                del kept[key]

    def close(self) -> None:
        pass
