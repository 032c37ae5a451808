"""`Node`: answers for a party, to a coordinator that it does not trust.

A node answers each round once. On disk the round is bound to one request before anything is computed, and the key of
its noise follows from a secret of the party and from all that the answer is made of (`Node._key`). So a round that was
interrupted gives the same bytes when it is made again; and where a journal was copied or rolled back, two answers that
differ in anything differ in all of their noise. What was released is counted in the party's own ledger, against the
plan that the study fixes; whatever a coordinator asks, there is no more.
"""

import hashlib
import hmac
import json
import math
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from tacit.blocks.table import is_sparse
from tacit.federated import messages
from tacit.federated.cap import Cap
from tacit.federated.journal import PartyJournal
from tacit.federated.messages import Reply, Request
from tacit.federated.party import Party
from tacit.federated.protocols import protocol_for
from tacit.federated.protocols.base import Answer, Arrays, Holding, Question, RefusedError
from tacit.federated.protocols.prepared import remembered
from tacit.federated.responder import Responder
from tacit.federated.returned import Part, Returned
from tacit.federated.store import BESIDE, Entry, Greeting
from tacit.federated.study import Study
from tacit.privacy import Gate, Guarantee, PlanViolationError, Promise

HELLO = "hello"  # the step of round 0, in which nothing is released

_SEED = b"tacit.federated seeded party:"
_ROUND = b"tacit.federated round/3:"


class Node(Responder):
    """Answers the rounds of one study for one party; `returned` is what it got of the model in the end.

    Parameters
    ----------
    study : Study
        What the party agreed to. Anything else is refused.
    party : Party
        Its data.
    path : path, optional
        Where its journal is kept, on its own disk; None keeps it in memory, where it does not survive the process.
    cap : Cap, optional
        What all of the party's studies on these people may give away; one that does not fit is refused here.
    warn : bool
        Whether a study that protects nobody is warned of; False where whoever runs the party wrote the study.

    Attributes
    ----------
    stopped : str or None
        Why this node answers nothing any more: its journal is older than what the coordinator holds.
    """

    def __init__(
        self, study: Study, party: Party, path: Path | str | None = None, *, cap: Cap | None = None, warn: bool = True
    ) -> None:
        for caution in study.cautions if warn else ():
            warnings.warn(caution, stacklevel=2)
        self._holding = party.holding(study)
        super().__init__(study.digest, self._holding.name)
        self.study, self.returned = study, Returned()
        self._seeded = study.random_state is not None
        self._protocol = protocol_for(study)
        self.plan = self._protocol.promise.part(f"{self.name}/")
        # Every round but the first after the greeting, in which others may find bounds, releases something.
        self._last_round = 1 + sum(release.count for release in self.plan.plan.releases)
        tag = b"" if party.alignment is None else party.alignment.tag(study.digest)
        self._data = _fingerprint(self._holding, tag)
        self._greeting = self._greets(tag)
        if cap is not None:
            cap.reserve(study, self._protocol.promise, self.name, path)
        self._journal = PartyJournal(path)
        key = self._journal.enrol(study, self.name, _seeded_key(study, self.name), self._data, self._greeting)
        if cap is not None:
            cap.begin(study)
        self._keyed = hmac.new(key, _ROUND, "sha256")

    def ledger(self) -> list[Entry]:
        """What this party released in this study so far, as its journal holds it."""
        return self._journal.ledger(self.study.digest)

    def spent(self) -> Guarantee | None:
        """What this party's own releases so far gave away, from its ledger alone; None before the first one."""
        made: Counter[str] = Counter()
        for entry in self.ledger():
            if entry.kind != BESIDE:
                made[entry.release] += entry.count
        if not made:
            return None
        own = replace(self.plan, solver=f"party {self.name} of {self.plan.solver}")
        return own.spent(own.made(made).event, seeded=self._seeded)

    def ends_with(self, content: bytes | None) -> bool:
        """Whether this is the study's farewell; `returned` is what was in it."""
        read = None if content is None else Returned.read(content, self.study, self.name)
        if read is not None and not self._is_own(read.part):
            read = Returned()
        self.returned = read or self.returned
        return read is not None

    def _is_own(self, part: Part | None) -> bool:
        """Whether units of columns are those that this party released: with others it would score other columns."""
        if part is None or part.units is None:
            return True
        try:
            known = remembered(self.study, self.name, self._journal.memory(self.study.digest))
        except ValueError:
            return False
        return known.to_dict() == part.units.to_dict()

    def farewell(self) -> None:
        """The study is done: wipe the keys and seeds that were made for it."""
        self._journal.wipe(self.study.digest, self._protocol.fresh)

    def close(self) -> None:
        """Let go of the journal; a new node goes on from there."""
        self._journal.close()

    def _check(self, asked: Request) -> None:
        super()._check(asked)
        if asked.round > self._last_round:
            raise RefusedError(f"the request asks for more rounds than the study grants of party {self.name!r}")
        more = asked.arrays or asked.held != messages.HOLDS_NOTHING
        if (asked.step == HELLO) != (asked.round == 0) or (asked.round == 0 and more):
            raise RefusedError("a study begins with one hello, and with nothing else")

    def _greets(self, tag: bytes) -> Greeting:
        """Round 0: there is one request for it, and one reply for as long as the ids are the same."""
        study, name = self.study.digest, self.name
        request = messages.digest(messages.write(Request(study, name, 0, HELLO)))
        facts: Arrays = {
            "shape": np.array([self.study.n_rows, self.study.member(name).n_features], dtype=np.int64),
            "tag": np.frombuffer(tag, dtype=np.uint8),
        }
        return Greeting(request, messages.write(Reply(study, name, 0, request, facts)))

    def _answer(self, asked: Request, digest: bytes) -> bytes:
        study, number = self.study.digest, asked.round
        state = self._journal.accept(study, number, digest, asked.held)
        if state.reply is not None:
            return state.reply
        if number == 0:
            return self._journal.finish(study, number, self._greeting.reply, {}, [])
        key = self._key(*self._repeated(asked, digest, state.memory), state.made)
        gate = Gate.open(self.plan, key=key, seeded=self._seeded, made=state.made)
        answer, spent = self._compute(asked, state.memory, gate)
        reply = messages.write(Reply(study, self.name, number, digest, {**answer.releases, **answer.beside}))
        return self._journal.finish(study, number, reply, answer.memory, spent)

    def _compute(self, asked: Request, memory: Arrays, gate: Gate) -> tuple[Answer, list[Entry]]:
        before = gate.made
        try:
            with np.errstate(all="ignore"):  # a number that overflows tells of its row
                answer = self._protocol.answer(self._holding, Question(asked.step, asked.arrays), gate, memory)
        except PlanViolationError:
            raise RefusedError(f"the request asks for more than the study grants of party {self.name!r}") from None
        after, where = gate.made, (self.study.digest, asked.round)
        spent = [
            Entry(*where, release.name, release.kind, made, multiplier)
            for release, multiplier in zip(self.plan.plan.releases, self.plan.multipliers, strict=True)
            if (made := after[release.name] - before[release.name])
        ]
        unplanned = set(answer.releases) - {entry.release for entry in spent}
        unplanned |= set(answer.beside) - self._protocol.beside | set(answer.beside) & set(after)
        if unplanned:
            raise PlanViolationError(f"not released in this round, but in the answer: {', '.join(sorted(unplanned))}")
        return answer, spent + [Entry(*where, name, BESIDE, 1, math.inf) for name in sorted(answer.beside)]

    def _repeated(self, asked: Request, digest: bytes, memory: Arrays) -> tuple[bytes, Arrays]:
        """The request and the memory that noise follows from: all of it.

        In a seeded study, where others may know the noise anyway, it is without what is new in every run, such as
        keys and seeds: those are never made from a number that others may know.
        """
        fresh = self._protocol.fresh
        if not (self._seeded and fresh):
            return digest, memory
        told, kept = ({n: v for n, v in arrays.items() if n not in fresh} for arrays in (asked.arrays, memory))
        return messages.digest(messages.write(replace(asked, arrays=told, held=messages.HOLDS_NOTHING))), kept

    def _key(self, request: bytes, memory: Arrays, made: Mapping[str, int]) -> bytes:
        """The key of the noise of a round: HMAC, under the party's key, of all that the answer is made of.

        A journal may be copied or rolled back, and a round then be answered twice. Equal noise in two answers that
        are otherwise different would give away the difference of what was measured. So whatever can make answers
        differ is part of the key, each as a digest of 32 bytes:

        - the request, every byte. It names the study by the digest of all that was agreed, the party, the round and
          the version of Tacit, all of which were checked, and the replies that the coordinator holds.
        - the data: columns, labels and ids, in the order that rows are taken in.
        - the state: what the party remembers of its own earlier rounds, and how often it made each release.
        - the plan: every release of this party, with its noise multiplier to the last bit, and the adjacency. They
          follow from the study by a search, which on another machine or with other libraries may end elsewhere.

        Nothing else enters an answer but the machine that does the sums. On another one, the same round of a journal
        that was rolled back may differ by how sums are rounded.
        """
        state = hashlib.sha256(hashlib.sha256(messages.write_arrays(memory)).digest())
        state.update(json.dumps(sorted(made.items())).encode())
        keyed = self._keyed.copy()
        for part in (request, self._data, state.digest(), _plan_digest(self.plan)):
            keyed.update(part)
        return keyed.digest()


def _seeded_key(study: Study, name: str) -> bytes | None:
    """The key of a party's noise where the study fixes it; None asks for one of the operating system's."""
    if study.random_state is None:
        return None
    return hashlib.sha256(_SEED + f"{study.random_state}|{name}".encode()).digest()


def _plan_digest(plan: Promise) -> bytes:
    """A digest of all that decides how much noise a party adds: numbers are spelled so that no two are alike."""
    releases = [
        (release.name, release.kind, release.count, release.sampling, multiplier)
        for release, multiplier in zip(plan.plan.releases, plan.multipliers, strict=True)
    ]
    return hashlib.sha256(json.dumps([plan.budget.adjacency, releases]).encode()).digest()


def _fingerprint(holding: Holding, tag: bytes) -> bytes:
    """A digest of all of a party's data. It stays in the party's own file, next to the key of its noise.

    Each array is preceded by its type and its length, so that no two tables are spelled alike.
    """
    X, targets = holding.X, holding.targets
    parts = [X.indptr, X.indices, X.data] if is_sparse(X) else [X]
    parts += [np.frombuffer(tag, dtype=np.uint8), *([] if targets is None else [targets])]
    parts += [np.frombuffer(json.dumps(column).encode(), dtype=np.uint8) for column in holding.texts]
    hashed = hashlib.blake2b(repr((is_sparse(X), X.shape, targets is None)).encode(), digest_size=32)
    for part in parts:
        hashed.update(f"{part.dtype.str}:{part.size}:".encode())
        hashed.update(np.ascontiguousarray(part).data)
    return hashed.digest()
