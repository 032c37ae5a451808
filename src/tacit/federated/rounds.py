"""The coordinator's side of an exchange that is no study: it asks parties round after round, and keeps nothing."""

from collections.abc import Callable, Mapping, Sequence

from tacit.federated import messages
from tacit.federated.coordinator import heard
from tacit.federated.messages import Reply, Request
from tacit.federated.protocols.base import Arrays
from tacit.federated.transports import Transport

Progress = Callable[[int, str], None]


class Rounds:
    """Asks in the rounds of an exchange, which goes by a digest of its own; `progress` is told of each."""

    def __init__(
        self, digest: str, steps: Sequence[str], transport: Transport, progress: Progress | None = None
    ) -> None:
        self._digest, self._steps, self._transport, self._progress = digest, steps, transport, progress

    def ask(self, number: int, arrays: Mapping[str, Arrays]) -> dict[str, Arrays]:
        """What the parties answer that are told these arrays; one that refuses or is missing raises."""
        step = self._steps[number]
        if self._progress is not None:
            self._progress(number, step)
        requests = {
            name: messages.write(Request(self._digest, name, number, step, told)) for name, told in arrays.items()
        }
        replies = heard(self._digest, dict.fromkeys(requests, number), requests, self._transport.exchange(requests))
        return {name: reply.arrays if isinstance(reply, Reply) else {} for name, reply in replies.items()}
