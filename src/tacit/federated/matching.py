"""Which people all parties have: found by keyed hashes, for any number of parties, before a study begins.

Rounds:
    tags      each party sends the tags of its ids, keyed by the parties' secret and the study, sorted
    common    the coordinator intersects them, and tells each party which of its own are common; each answers with a
              seal, a keyed hash of the people it now has
    agree     the coordinator hands all seals to all parties, and each compares them with its own people

This is a disclosure, and no noise covers it. The coordinator learns how many ids each party has and how many each
group of parties has in common; a party learns who is at all of them. The coordinator cannot make a party take people
whom another lacks: seals are keyed by the secret, and each party checks those of all others itself. It can leave people
out. Every answer is a function of the ids, the secret and the study, so it may be asked for again.
"""

import hashlib
import hmac
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.federated import messages
from tacit.federated.alignment import TAG_BYTES, Alignment, sorted_places, words
from tacit.federated.disclosures import DisclosureStore
from tacit.federated.messages import Reply, Request
from tacit.federated.party import Party
from tacit.federated.proposal import Proposal
from tacit.federated.protocols.base import Arrays, RefusedError
from tacit.federated.responder import Responder
from tacit.federated.rounds import Progress, Rounds
from tacit.federated.transports import Transport
from tacit.federated.transports.in_process import InProcess

STEPS = ("tags", "common", "agree")
SEAL_BYTES = 32

Answer = Callable[[Arrays], Arrays]


class Matcher(Responder):
    """Answers the rounds of an alignment for one party.

    Parameters
    ----------
    proposal : Proposal
        What the party agreed to.
    name : str
        Of the party, in the proposal.
    alignment : Alignment
        Of all its ids.
    path : path, optional
        Where its disclosures are kept; None keeps them in memory.
    """

    steps: ClassVar[tuple[str, ...]] = STEPS

    def __init__(self, proposal: Proposal, name: str, alignment: Alignment, path: Path | str | None = None) -> None:
        proposal.model.member(name)
        super().__init__(proposal.digest, name)
        self._names, self._alignment = proposal.names, alignment
        self._tags, self._places = alignment.study_tags(self._digest)
        self._ids = alignment.tag(self._digest)
        self._store = DisclosureStore(path)
        self._store.begin(self._digest, self._ids)

    @property
    def common(self) -> Alignment:
        """The people that all parties agreed on."""
        bound = self._store.bound(self._digest)
        if bound is None or bound.common is None or bound.n_rows is None:
            raise RefusedError("the parties have not agreed on their common people yet")
        return self._only(bound.common)

    def close(self) -> None:
        """Let go of the file."""
        self._store.close()

    def _answer(self, asked: Request, digest: bytes) -> bytes:
        if asked.round >= len(self.steps) or asked.step != self.steps[asked.round]:
            raise RefusedError(f"this alignment has the rounds {', '.join(self.steps)}, and no others")
        arrays = self._answers()[asked.round](asked.arrays)
        return messages.write(Reply(self._digest, self.name, asked.round, digest, arrays))

    def _answers(self) -> tuple[Answer, ...]:
        """What answers in each round."""
        return self._tell, self._take, self._compare

    def _tell(self, told: Arrays) -> Arrays:
        only_arrays(told, set())
        self._store.disclose(self._digest, "tags of all ids to the coordinator", len(self._tags), self._ids)
        return {"tags": self._tags}

    def _take(self, told: Arrays) -> Arrays:
        only_arrays(told, {"mask"})
        mask = told["mask"]
        if mask.dtype != np.uint8 or mask.shape != ((len(self._tags) + 7) // 8,):
            raise RefusedError("a mask has one bit for each id of the party")
        if np.unpackbits(mask)[len(self._tags) :].any() or not mask.any():
            raise RefusedError("a mask names at least one id of the party, and nothing else")
        common = mask.tobytes()
        self._store.bind(self._digest, self._ids, common)
        return {"seal": as_bytes(self._only(common).seal(self._digest, self.name))}

    def _compare(self, told: Arrays) -> Arrays:
        only_arrays(told, {"seals"})
        seals, bound = told["seals"], self._store.bound(self._digest)
        if bound is None or bound.common is None:
            raise RefusedError("the party was not told yet who is common")
        if seals.dtype != np.uint8 or seals.shape != (len(self._names), SEAL_BYTES):
            raise RefusedError("there is one seal for each party")
        common = self._only(bound.common)
        for name, seal in zip(self._names, seals, strict=True):
            if not hmac.compare_digest(common.seal(self._digest, name), seal.tobytes()):
                raise RefusedError(f"party {name!r} has other people than {self.name!r} as the common ones")
        self._agree(common)
        return {}

    def _agree(self, common: Alignment) -> None:
        """Keep that all parties have these people, as a disclosure and as the study's rows."""
        what, about = "who is at all parties, to all parties", common.tag(self._digest)
        self._store.disclose(self._digest, what, len(common.order), about)
        self._store.agree(self._digest, len(common.order))

    def _only(self, common: bytes) -> Alignment:
        chosen = np.unpackbits(np.frombuffer(common, dtype=np.uint8), count=len(self._tags)).astype(bool)
        return self._alignment.only(self._places[chosen])


def match(
    proposal: Proposal,
    transport: Transport,
    progress: Progress | None = None,
    fix: Callable[[bytes], None] | None = None,
) -> int:
    """The coordinator's side: how many people all parties have. It may be called again after an error.

    `fix` gets a fingerprint of all tags before anybody is told who is common, and raises if it was another before: a
    party that comes again with other ids would learn of each whether all others have it.
    """
    names, rounds = proposal.names, Rounds(proposal.digest, STEPS, transport, progress)
    told = rounds.ask(0, {name: {} for name in names})
    tags = {name: _checked_tags(name, told[name]) for name in names}
    masks = intersection(list(tags.values()))
    n_rows = int(masks[0].sum())
    if not n_rows:
        raise RefusedError("no id is at all parties, or their secrets differ: there is nobody to learn from")
    if fix is not None:
        fix(hashlib.sha256(messages.write_arrays(tags)).digest())
    masked = {name: {"mask": np.packbits(mask)} for name, mask in zip(names, masks, strict=True)}
    sealed = rounds.ask(1, masked)
    seals = np.stack([taken(name, sealed[name], "seal", (SEAL_BYTES,)) for name in names])
    rounds.ask(2, {name: {"seals": seals} for name in names})
    return n_rows


def matched(
    proposal: Proposal,
    parties: Sequence[Party],
    folder: Path | None = None,
    kind: type[Matcher] = Matcher,
    find: Callable[[Proposal, Transport], int] = match,
) -> list[Party]:
    """The parties of one process with the rows of their common people, in one order; `kind` and `find` say how."""
    without = [str(party.name) for party in parties if party.alignment is None]
    if without:
        raise ValueError(f"people are matched by ids, with a secret that parties share; without: {', '.join(without)}")
    matchers = [
        kind(proposal, str(party.name), party.alignment, folder and folder / "parties" / f"{party.name}.disclosures")
        for party in parties
        if party.alignment is not None
    ]
    try:
        find(proposal, InProcess(matchers))
        return [party.common(matcher.common) for party, matcher in zip(parties, matchers, strict=True)]
    finally:
        for matcher in matchers:
            matcher.close()


def intersection(tags: list[NDArray[np.uint8]]) -> list[NDArray[np.bool_]]:
    """Which rows of each table are in all of them; in each, rows differ."""
    rows = np.concatenate(tags)
    order = sorted_places(rows)
    new = np.ones(len(order), dtype=bool)
    new[1:] = np.any(np.diff(words(rows)[:, order]) != 0, axis=0)
    group = np.cumsum(new) - 1
    everywhere = np.empty(len(order), dtype=bool)
    everywhere[order] = (np.bincount(group) == len(tags))[group]
    return np.split(everywhere, np.cumsum([len(table) for table in tags])[:-1])


def _checked_tags(name: str, answer: Arrays) -> NDArray[np.uint8]:
    tags = answer.get("tags")
    if set(answer) != {"tags"} or tags is None or tags.dtype != np.uint8 or tags.ndim != 2:
        raise RefusedError(f"party {name!r} did not answer with the tags of its ids")
    if tags.shape[1] != TAG_BYTES or not len(tags):
        raise RefusedError(f"party {name!r} has no ids, or tags of another length than {TAG_BYTES} bytes")
    first, second = words(tags)
    if not np.all((first[1:] > first[:-1]) | ((first[1:] == first[:-1]) & (second[1:] > second[:-1]))):
        raise RefusedError(f"the tags of party {name!r} are not sorted, or some appear twice")
    return tags


def taken(name: str, answer: Arrays, what: str, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    array = answer.get(what)
    if set(answer) != {what} or array is None or array.dtype != np.uint8 or array.shape != shape:
        raise RefusedError(f"party {name!r} did not answer with its {what}")
    return array


def only_arrays(told: Arrays, names: set[str]) -> None:
    if set(told) != names:
        raise RefusedError("the request has not the arrays of its round")


def as_bytes(data: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(data, dtype=np.uint8)
