"""Which people two parties both have, where neither may try ids on what the other sent: by private set intersection.

An exchange between two parties, in boxes that the coordinator carries and cannot open (`seals`):
    hello        a key of this exchange, with a code under what the two share: a secret, or what their keys give
    blinded      the party's ids, blinded with a key of its own (`blinding`), in the order of the blinded points
    commitments  a digest of the marks that come next
    marks        16 bytes for each point that the other sent, in its order: a digest of the point, blinded once more
    seals        who is common: the other's marks of own ids that are among own marks of the other's. A keyed hash of
                 these people, which the other compares
    agree        how many they are, to the coordinator

This is a disclosure, and no noise covers it. Each party learns who is at both and how many ids the other has; the
coordinator both numbers of ids and how many match. In contrast to `matching`, no one, and no one with the coordinator,
can try ids on what a party sent: a guess is an id on the other's own list, which has a number that is told. A party
that chose its marks after it saw the other's could claim matches it does not know; so marks are committed to before.
The first list that a party is sent is the only one that it ever marks: who comes again with others is told nothing.

All keys are kept, so any round may be asked for again, also of a process that came after another.
"""

import hashlib
import hmac
import secrets
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.federated.alignment import TAG_BYTES, Alignment
from tacit.federated.blinding import POINT_BYTES, Blinder, new_key, require_psi
from tacit.federated.matching import Answer, Matcher, as_bytes, intersection, only_arrays
from tacit.federated.proposal import Proposal
from tacit.federated.protocols.base import Arrays, RefusedError
from tacit.federated.protocols.marginals.masked.seals import AROUND, KEY_BYTES, Hello, Sealer
from tacit.federated.rounds import Progress, Rounds
from tacit.federated.transports import Transport

STEPS = ("hello", "blinded", "commitments", "marks", "seals", "agree")
_MARKS = b"tacit.federated marks:"
_NOBODY = "no id is at both parties: there is nobody to learn from"


class PairMatcher(Matcher):
    """Answers the rounds of an alignment of two parties for one of them. The parameters are those of `Matcher`."""

    steps = STEPS

    def __init__(self, proposal: Proposal, name: str, alignment: Alignment, path: Path | str | None = None) -> None:
        check_pair(proposal)
        require_psi()
        super().__init__(proposal, name, alignment, path)
        (self._other,) = (other for other in proposal.names if other != name)
        keys = self._store.fix(self._digest, "keys", secrets.token_bytes(KEY_BYTES) + new_key())
        self._sealer = Sealer(self._digest, name, keys[:KEY_BYTES], alignment.channel(self._digest))
        self._blinder = Blinder(keys[KEY_BYTES:])

    def _answers(self) -> tuple[Answer, ...]:
        steps = (self._blinded, self._commit, self._mark, self._seal)
        return self._hello, *(self._boxed(number, step) for number, step in enumerate(steps, 1)), self._end

    def _hello(self, told: Arrays) -> Arrays:
        only_arrays(told, set())
        hello = self._sealer.hello()
        return {"key": as_bytes(hello.key), "code": as_bytes(hello.code)}

    def _boxed(self, number: int, step: Callable[[bytes], bytes]) -> Answer:
        """A step from what the other party says to what it is told: in boxes, which name the step."""

        def answer(told: Arrays) -> Arrays:
            only_arrays(told, {"key", "code"} | ({"box"} if number > 1 else set()))
            hello = self._checked_hello(told)
            said = self._opened(told["box"], number - 1, hello) if number > 1 else b""
            return {"box": as_bytes(self._sealer.closed(bytes([number]) + step(said), self._other, hello))}

        return answer

    def _checked_hello(self, told: Arrays) -> Hello:
        key, code = told["key"], told["code"]
        if any(part.dtype != np.uint8 or part.shape != (KEY_BYTES,) for part in (key, code)):
            raise RefusedError("a hello is a key and a code")
        hello = Hello(key.tobytes(), code.tobytes())
        try:
            self._sealer.check(self._other, hello)
        except RefusedError:
            raise RefusedError(
                f"who answers as {self._other!r} has not the secret, or not the key, that {self.name!r} knows it by:"
                " compare the fingerprints of your public keys"
            ) from None
        return hello

    def _opened(self, box: NDArray[np.generic], number: int, hello: Hello) -> bytes:
        if box.dtype != np.uint8 or box.ndim != 1 or len(box) <= AROUND:
            raise RefusedError("what should be a box is none")
        content = self._sealer.opened(box.tobytes(), self._other, hello)
        if content[0] != number:
            raise RefusedError(f"the box of {self._other!r} is of another round")
        return content[1:]

    @cached_property
    def _points(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """The party's blinded ids, sorted, and the place of each among its tags: the order tells nothing of the ids."""
        points = self._blinder.blind([tag.tobytes().hex() for tag in self._tags])
        places = np.argsort(_as_text(points))
        return points[places], places

    def _blinded(self, _: bytes) -> bytes:
        told = f"blinded ids to {self._other}, and how many to the coordinator"
        self._store.disclose(self._digest, told, len(self._tags), self._ids)
        return self._points[0].tobytes()

    def _commit(self, points: bytes) -> bytes:
        """Mark the first list that the other sends, and no other."""
        asked = hashlib.sha256(points).digest()
        if self._store.fix(self._digest, "asked", asked) != asked:
            raise RefusedError(f"{self._other!r} asked about other people before, in this study")
        marks = self._store.kept(self._digest, "marks")
        if marks is None:
            marks = self._store.fix(self._digest, "marks", self._marks_of(points))
        return _commitment(self.name, marks)

    def _marks_of(self, points: bytes) -> bytes:
        if not points or len(points) % POINT_BYTES:
            raise RefusedError("the other party sent what are no blinded ids")
        table = np.frombuffer(points, dtype=np.uint8).reshape(-1, POINT_BYTES)
        text = _as_text(table)
        if not np.all(text[1:] > text[:-1]):
            raise RefusedError("the other party's blinded ids are not sorted, or some appear twice")
        key = _MARKS + bytes.fromhex(self._digest)[:TAG_BYTES]
        again = self._blinder.again(table)
        return b"".join(hashlib.blake2b(point.tobytes(), key=key, digest_size=TAG_BYTES).digest() for point in again)

    def _mark(self, commitment: bytes) -> bytes:
        """Hand out the marks, once the other's are committed to."""
        marks = self._store.kept(self._digest, "marks")
        if marks is None or self._store.fix(self._digest, "commitment", commitment) != commitment:
            raise RefusedError(f"{self._other!r} committed itself to other marks before, or was not heard yet")
        told = f"which ids of {self._other} are here, to {self._other}"
        self._store.disclose(self._digest, told, len(marks) // TAG_BYTES, hashlib.sha256(marks).digest())
        return marks

    def _seal(self, told: bytes) -> bytes:
        """Find out who is common."""
        marks, commitment = (self._store.kept(self._digest, what) for what in ("marks", "commitment"))
        if marks is None or commitment != _commitment(self._other, told):
            raise RefusedError(f"{self._other!r} sent other marks than it was committed to")
        if len(told) != TAG_BYTES * len(self._tags):
            raise RefusedError(f"{self._other!r} sent another number of marks than it was sent ids")
        about, own = (np.frombuffer(part, dtype=np.uint8).reshape(-1, TAG_BYTES) for part in (told, marks))
        if len(np.unique(about, axis=0)) < len(about):
            raise RefusedError(f"{self._other!r} sent the same mark for two ids")
        places = self._points[1][intersection([about, own])[0]]
        if not len(places):
            self._store.disclose(self._digest, "that nobody is at both parties, to both", 0, self._ids)
            raise RefusedError(_NOBODY)
        chosen = np.zeros(len(self._tags), dtype=bool)
        chosen[places] = True
        common = np.packbits(chosen).tobytes()
        self._store.bind(self._digest, self._ids, common)
        return self._only(common).seal(self._digest, self.name)

    def _end(self, told: Arrays) -> Arrays:
        only_arrays(told, {"key", "code", "box"})
        seal = self._opened(told["box"], len(STEPS) - 2, self._checked_hello(told))
        bound = self._store.bound(self._digest)
        if bound is None or bound.common is None:
            raise RefusedError("the party does not know yet who is common")
        common = self._only(bound.common)
        if not hmac.compare_digest(common.seal(self._digest, self._other), seal):
            raise RefusedError(f"party {self._other!r} has other people than {self.name!r} as the common ones")
        self._agree(common)
        return {"n_rows": np.array(len(common.order), dtype=np.int64)}


def match_pair(proposal: Proposal, transport: Transport, progress: Progress | None = None) -> int:
    """The coordinator's side: how many people both parties have. It may be called again after an error."""
    check_pair(proposal)
    names, rounds = proposal.names, Rounds(proposal.digest, STEPS, transport, progress)
    greeted = rounds.ask(0, {name: {} for name in names})
    other = dict(zip(names, reversed(names), strict=True))
    told = greeted
    for number in range(1, len(STEPS)):
        said = rounds.ask(number, {name: told[other[name]] for name in names})
        told = {name: {**greeted[name], **said[name]} for name in names}  # the parties check all of it
    counts = {_count(name, said[name]) for name in names}
    if len(counts) > 1:
        raise RefusedError("the parties do not say the same number of common people")
    return counts.pop()


def _count(name: str, answer: Arrays) -> int:
    count = answer.get("n_rows")
    if set(answer) != {"n_rows"} or count is None or count.dtype != np.int64 or count.shape or count < 1:
        raise RefusedError(f"party {name!r} did not say how many people are common")
    return int(count)


def _commitment(name: str, marks: bytes) -> bytes:
    """Of the party's marks, which nobody else can compute yet; another party's commitment is of no use."""
    return hashlib.sha256(_MARKS + name.encode() + b"\0" + marks).digest()


def _as_text(points: NDArray[np.uint8]) -> NDArray[np.bytes_]:
    """Points as texts of one length, which are compared byte by byte."""
    return np.ascontiguousarray(points).view(f"S{POINT_BYTES}").ravel()


def check_pair(proposal: Proposal) -> None:
    """Raise unless the study is of two parties."""
    if len(proposal.names) != 2:
        raise ValueError(
            f"a private set intersection is between two parties, and the study has {len(proposal.names)}: more share a"
            " secret, and are matched by keyed hashes"
        )
