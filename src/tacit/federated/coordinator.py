"""The coordinator: asks, stores what it is told, and solves. It never sees data, and nobody has to trust it.

Requests are stored before they are sent and replies before anything is made of them, so that a coordinator that died
goes on with the same bytes. It is brought to where it was by replaying the stored replies.
"""

import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tacit import __version__
from tacit.federated import messages
from tacit.federated.foreign import shown
from tacit.federated.messages import HOLDS_NOTHING, Refusal, Reply, Request, Restart
from tacit.federated.node import HELLO
from tacit.federated.protocols import protocol_for
from tacit.federated.protocols.base import Arrays, Model, Question, RefusedError
from tacit.federated.store import CoordinatorStore
from tacit.federated.study import Study
from tacit.federated.transports import MissingPartiesError, Transport
from tacit.privacy import Guarantee, Promise

Progress = Callable[[int, str], None]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a study ends with: the model, what it cost, and how much was sent."""

    model: Model
    plan: Promise
    guarantee: Guarantee
    n_rounds: int  # exchanges with the parties, the first greeting included
    uplink_bytes: dict[str, int]  # by party: the length of all its replies

    @property
    def left(self) -> tuple[str, ...]:
        """The parties that were not required, and left; the model has no columns of theirs."""
        return tuple(name for name in self.uplink_bytes if name not in self.model.coefs)


class _BegunAgainError(Exception):
    """These parties' data was mended after they had greeted."""

    def __init__(self, parties: set[str]) -> None:
        super().__init__(parties)
        self.parties = parties


@dataclass
class _Told:
    """What a party has said so far: how many replies, how many bytes, and the digest that names them all."""

    replies: int = 0
    size: int = 0
    held: bytes = HOLDS_NOTHING

    def hear(self, reply: bytes) -> None:
        """One reply more."""
        self.replies, self.size = self.replies + 1, self.size + len(reply)
        self.held = messages.held_after(self.held, reply)


class Coordinator:
    """Runs a study.

    Parameters
    ----------
    study : Study
        What was agreed.
    path : path, optional
        Where its journal is kept; None keeps it in memory.
    progress : callable, optional
        Called as progress(round, step) before each exchange.
    """

    def __init__(self, study: Study, path: Path | str | None = None, progress: Progress | None = None) -> None:
        self.study = study
        self._protocol = protocol_for(study)
        self.plan = self._protocol.promise
        self._planned = {
            name: {release.name for release in self.plan.part(f"{name}/").plan.releases} for name in study.names
        }
        self._journal = CoordinatorStore(path)
        self._progress = progress

    def run(self, transport: Transport) -> Outcome:
        """Ask until the study is done. After an error it may be called again, and goes on where it was.

        A party whose data was mended after the greeting is greeted again, once, if nothing but greetings is stored.
        The others are then asked the same as before, and give the same bytes.
        """
        mended: set[str] = set()
        while True:
            try:
                with np.errstate(under="ignore"):  # whatever the user has set: noise may be as small as it likes
                    return self._run(transport)
            except _BegunAgainError as again:
                if again.parties <= mended:
                    raise RefusedError(
                        f"the data of {', '.join(sorted(again.parties))} changed again after the greeting"
                    ) from None
                if self._journal.told(self.study.digest, 1):
                    raise RefusedError(
                        f"the ids of {', '.join(sorted(again.parties))} changed after the greeting, and others have"
                        " answered since. Put back the data that they greeted with, or agree on a new study"
                    ) from None
                mended |= again.parties
                self._journal.forget(self.study.digest)

    def farewell(self) -> None:
        """The study is done, and its model is kept elsewhere: delete what masks hid, and keep what was opened.

        The study can still be run again from the journal; how much was sent is not known any more then.
        """
        study, exchange = self.study.digest, 1
        while stored := self._journal.told(study, exchange):
            replies = {name: reply for name in stored if isinstance(reply := messages.read(stored[name]), Reply)}
            answers = {name: reply.arrays for name, reply in replies.items()}
            kept = self._protocol.settled(answers)
            if kept is not answers:
                written = {name: messages.write(replace(replies[name], arrays=kept[name])) for name in kept}
                self._journal.tell(study, exchange, written)
            exchange += 1

    def close(self) -> None:
        """Let go of the journal; a new coordinator goes on from there."""
        self._journal.close()

    def _run(self, transport: Transport) -> Outcome:
        everybody = {name: _Told() for name in self.study.names}
        told = dict(everybody)
        self._exchange(transport, 0, told, {name: Question(HELLO) for name in self.study.names})
        rounds = self._protocol.coordinate()
        exchange = 1
        try:
            questions = next(rounds)
            while True:
                answers = self._exchange(transport, exchange, told, questions)
                exchange += 1
                questions = rounds.send(answers)
        except StopIteration as end:
            uplink = {name: heard.size for name, heard in everybody.items()}
            guarantee = self.plan.guarantee(seeded=self.study.random_state is not None)
            return Outcome(end.value, self.plan, guarantee, exchange, uplink)

    def _exchange(
        self, transport: Transport, exchange: int, told: dict[str, "_Told"], questions: Mapping[str, Question]
    ) -> dict[str, Arrays]:
        """One exchange, from the journal if it was made before; each party counts its own rounds.

        Who is not required and does not answer has left: it is asked nothing more, and `told` has it no longer. The
        journal says so by the replies that it holds of an exchange.
        """
        digest = self.study.digest
        questions = {name: question for name, question in questions.items() if name in told}
        if not questions:
            return {}
        requests = self._journal.asked(digest, exchange)
        if not requests:
            requests = {
                name: messages.write(
                    Request(digest, name, told[name].replies, question.step, question.arrays, told[name].held)
                )
                for name, question in questions.items()
            }
            self._journal.ask(digest, exchange, requests)
        stored = self._journal.told(digest, exchange)
        if not stored and self._progress is not None:
            self._progress(exchange, next(iter(questions.values())).step)
        replies = stored or self._asked(transport, requests)
        for name in (set(requests) - set(replies)) & self.study.optional:
            del requests[name], told[name]
        answers = self._read(requests, told, replies)
        if not stored:
            if exchange == 0:
                self._check_greetings(answers)  # those that do not fit are not stored: parties may mend them
            self._journal.tell(digest, exchange, {name: replies[name] for name in requests})
        for name in requests:
            told[name].hear(replies[name])
        return answers

    def _asked(self, transport: Transport, requests: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """The replies, without those of parties that need not be waited for any longer."""
        try:
            return transport.exchange(requests)
        except MissingPartiesError as missing:
            if not missing.replies or not set(missing.missing) <= self.study.optional:
                raise
            return missing.replies

    def _read(
        self, requests: Mapping[str, bytes], told: Mapping[str, "_Told"], replies: Mapping[str, bytes]
    ) -> dict[str, Arrays]:
        """The releases of all parties that were asked, or an error that names who did not give them, and why."""
        rounds = {name: told[name].replies for name in requests}
        answers: dict[str, Arrays] = {}
        mended = set()
        for name, reply in heard(self.study.digest, rounds, requests, replies).items():
            if isinstance(reply, Restart):
                if reply.round != 1:
                    raise RefusedError(
                        f"party {name!r} wants to begin again, after it released something. Put its newest journal and"
                        " the data that it began with back, or agree on a new study"
                    )
                mended.add(name)
                continue
            if reply.round > 0 and not set(reply.arrays) <= self._planned[name] | self._protocol.beside:
                raise RefusedError(f"the reply of {name!r} holds what is not in the plan")
            answers[name] = reply.arrays
        if mended:
            raise _BegunAgainError(mended)
        return answers

    def _check_greetings(self, greetings: Mapping[str, Arrays]) -> None:
        """All parties hold the same people, or none says which."""
        tags = {}
        for name, facts in greetings.items():
            expected = [self.study.n_rows, self.study.member(name).n_features]
            if set(facts) != {"shape", "tag"} or facts["shape"].tolist() != expected:
                raise RefusedError(f"the data of {name!r} has not the shape that the study agreed on")
            tags[name] = facts["tag"].tobytes()
        without = [name for name, tag in tags.items() if not tag]
        if without and len(without) < len(tags):
            raise RefusedError(f"all parties must give ids, or none; without ids: {', '.join(without)}")
        first = next(iter(tags.values()))
        if not all(hmac.compare_digest(first, tag) for tag in tags.values()):
            groups: dict[bytes, list[str]] = {}
            for name, tag in tags.items():
                groups.setdefault(tag, []).append(name)
            told = " / ".join(", ".join(names) for names in groups.values())
            raise RefusedError(f"the parties' ids do not match, or their secrets differ: {told}. Nothing was released")


def heard(
    study: str, rounds: Mapping[str, int], requests: Mapping[str, bytes], replies: Mapping[str, bytes]
) -> dict[str, Reply | Restart]:
    """The replies to these requests, each of its party's round; one that is missing, refuses or is another's raises."""
    absent = [name for name in requests if name not in replies]
    if absent:
        raise RefusedError(f"no answer from: {', '.join(absent)}")
    read = {name: _read_reply(name, replies[name]) for name in requests}
    refused = [f"{name}: {shown(reply.reason)}" for name, reply in read.items() if isinstance(reply, Refusal)]
    if refused:
        raise RefusedError("refused by " + "; ".join(refused))
    answers: dict[str, Reply | Restart] = {}
    for name, reply in read.items():
        if (
            not isinstance(reply, Reply | Restart)
            or (reply.study, reply.party, reply.round) != (study, name, rounds[name])
            or reply.request != messages.digest(requests[name])
        ):
            raise RefusedError(f"the reply of {name!r} is not to the request it was sent")
        if reply.version != __version__:
            raise RefusedError(f"party {name!r} runs another version than the coordinator's tacit {__version__}")
        answers[name] = reply
    return answers


def _read_reply(name: str, reply: bytes) -> messages.Message:
    try:
        return messages.read(reply)
    except RefusedError as error:
        raise RefusedError(f"the reply of {name!r} cannot be read: {error}") from None
