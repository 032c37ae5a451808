"""Scores over the network: every party sends its margins for people who are asked about to one recipient.

Rounds:
    people    each party says a keyed hash of the ids that it was given to answer about; the recipient also its hello
    margins   each other party sends its margins in a box that only the recipient opens
    boxes     the recipient gets all boxes, and adds up what is in them

**Margins are not private**: they are exact functions of single people's columns, one for each of more than two classes.
Each party's operator names the people and the recipient; a request names neither. The coordinator carries boxes, and
learns how many people there are. Hellos are ephemeral X25519 keys with a code under the parties' secret
(`marginals.masked.seals`), so it cannot put in a key of its own. All of it may be asked for again, with the same sums;
what a party told is one disclosure.
"""

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tacit._types import Floats
from tacit.federated import messages
from tacit.federated.alignment import Alignment
from tacit.federated.disclosures import DisclosureStore
from tacit.federated.messages import Reply, Request
from tacit.federated.protocols.base import Arrays, RefusedError
from tacit.federated.protocols.marginals.masked.seals import AROUND, CODE_BYTES, KEY_BYTES, Hello, Sealer
from tacit.federated.responder import Responder
from tacit.federated.rounds import Progress, Rounds
from tacit.federated.transports import Transport

STEPS = ("people", "margins", "boxes")
_TAG_BYTES = 32
_DOMAIN = b"tacit.federated scores:"
_LARGEST = 1e300  # of a margin: sums of them stay finite


def digest_of(study: str, recipient: str, parties: Sequence[str]) -> str:
    """A name for this exchange: no study has the same."""
    told = "\0".join([study, recipient, *parties]).encode()
    return hashlib.sha256(_DOMAIN + told).hexdigest()


class Scorer(Responder):
    """Answers for one party.

    Parameters
    ----------
    study : str
        The digest of the study that the model is from.
    name, recipient : str
        This party, and who gets the margins.
    parties : sequence of str
        All parties of the model, in their order.
    asked : Alignment
        Of the people who are asked about, with the parties' secret.
    margins : array
        This party's share for each of them, in the order of `asked`; of more than two classes, a row for each of them.
    store : DisclosureStore
        Where what is told is kept.

    Attributes
    ----------
    total : array or None
        The sums of all parties' margins, in the order of `asked`; at the recipient, at the end.
    unusable : tuple of str
        The parties whose boxes held no margins of these people; there is no total then. Nobody else is told: what the
        coordinator hears of boxes that open does not depend on what is in them.
    """

    def __init__(
        self,
        study: str,
        name: str,
        recipient: str,
        parties: Sequence[str],
        asked: Alignment,
        margins: Floats,
        store: DisclosureStore,
    ) -> None:
        super().__init__(digest_of(study, recipient, parties), name)
        self._study, self._recipient, self._parties, self._store = study, recipient, tuple(parties), store
        self._tag = asked.tag(self._digest)
        self._margins = np.asarray(margins, dtype=np.float64)
        self._sealer = Sealer.new(self._digest, name, asked.secret(self._digest))
        self.total: Floats | None = None
        self.unusable: tuple[str, ...] = ()

    def _answer(self, asked: Request, digest: bytes) -> bytes:
        if asked.round >= len(STEPS) or asked.step != STEPS[asked.round]:
            raise RefusedError("scores have the rounds people, margins and boxes, and no others")
        if asked.round and (self.name == self._recipient) != (asked.step == "boxes"):
            raise RefusedError("the recipient is sent boxes, and the others send them")
        answers = (self._people, self._send, self._open)
        arrays = answers[asked.round](asked.arrays)
        return messages.write(Reply(self._digest, self.name, asked.round, digest, arrays))

    def _people(self, told: Arrays) -> Arrays:
        if told:
            raise RefusedError("the request has not the arrays of its round")
        return {"tag": _bytes(self._tag), **(_spoken(self._sealer.hello()) if self.name == self._recipient else {})}

    def _send(self, told: Arrays) -> Arrays:
        if set(told) != {"key", "code"}:
            raise RefusedError("the request has not the arrays of its round")
        hello = Hello(_taken(told, "key", (KEY_BYTES,)), _taken(told, "code", (CODE_BYTES,)))
        self._sealer.check(self._recipient, hello)
        content = self._tag + self._margins.astype("<f8").tobytes()
        what, about = (
            f"margins of people who were asked about, to {self._recipient}",
            hashlib.sha256(content).digest(),
        )
        self._store.disclose(self._study, what, len(self._margins), about)
        box = self._sealer.closed(content, self._recipient, hello)
        return {**_spoken(self._sealer.hello()), "box": _bytes(box)}

    def _open(self, told: Arrays) -> Arrays:
        others = [name for name in self._parties if name != self.name]
        if set(told) != {"keys", "codes", "boxes"}:
            raise RefusedError("the request has not the arrays of its round")
        size = AROUND + _TAG_BYTES + 8 * self._margins.size
        keys, codes, boxes = (
            _rows(told, what, (len(others), width))
            for what, width in (("keys", KEY_BYTES), ("codes", CODE_BYTES), ("boxes", size))
        )
        total, unusable = self._margins.copy(), []
        for name, key, code, box in zip(others, keys, codes, boxes, strict=True):
            hello = Hello(key, code)
            self._sealer.check(name, hello)
            content = self._sealer.opened(box, name, hello)
            margins = np.frombuffer(content[_TAG_BYTES:], dtype="<f8").reshape(total.shape)
            if content[:_TAG_BYTES] == self._tag and np.all(np.abs(margins) <= _LARGEST):
                total += margins
            else:
                unusable.append(name)
        self.total, self.unusable = None if unusable else total, tuple(unusable)
        return {}


def score(
    study: str,
    recipient: str,
    parties: Sequence[str],
    transport: Transport,
    progress: Progress | None = None,
) -> int:
    """The coordinator's side: how many parties sent margins. It may be called again after an error."""
    rounds = Rounds(digest_of(study, recipient, parties), STEPS, transport, progress)
    others = [name for name in parties if name != recipient]
    people = rounds.ask(0, {name: {} for name in parties})
    tags = {name: _taken(people[name], "tag", (_TAG_BYTES,)) for name in parties}
    unlike = [name for name in others if tags[name] != tags[recipient]]
    if unlike:
        raise RefusedError(
            f"{', '.join(unlike)} were given other people to answer about than {recipient!r}, or another secret."
            " Nothing was told"
        )
    hello = {what: people[recipient].get(what, np.zeros(0)) for what in ("key", "code")}
    if not others:
        raise ValueError("scores are sent between parties: there must be at least two")
    told = rounds.ask(1, dict.fromkeys(others, hello))
    boxes = [told[name].get("box", np.zeros(0)) for name in others]
    if len({box.shape for box in boxes}) > 1 or boxes[0].ndim != 1:
        raise RefusedError("the parties' boxes are not of one size")
    sent = {
        "keys": np.stack([_bytes(_taken(told[name], "key", (KEY_BYTES,))) for name in others]),
        "codes": np.stack([_bytes(_taken(told[name], "code", (CODE_BYTES,))) for name in others]),
        "boxes": np.stack(boxes),
    }
    rounds.ask(2, {recipient: sent})
    return len(others)


def _spoken(hello: Hello) -> Arrays:
    return {"key": _bytes(hello.key), "code": _bytes(hello.code)}


def _bytes(data: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(data, dtype=np.uint8)


def _taken(told: Arrays, what: str, shape: tuple[int, ...]) -> bytes:
    array = told.get(what)
    if array is None or array.dtype != np.uint8 or array.shape != shape:
        raise RefusedError(f"{what!r} is not what it should be: bytes, of shape {shape}")
    return array.tobytes()


def _rows(told: Arrays, what: str, shape: tuple[int, int]) -> list[bytes]:
    whole = _taken(told, what, shape)
    return [whole[start : start + shape[1]] for start in range(0, len(whole), shape[1])]
