"""How bytes get from the coordinator to the parties and back. A transport knows nothing of studies or data."""

from collections.abc import Collection, Mapping
from typing import Protocol


class Transport(Protocol):
    """One exchange: each named party gets its request, and all their replies come back."""

    def exchange(self, requests: Mapping[str, bytes]) -> dict[str, bytes]:
        """Send the requests and wait for all replies.

        Raises `MissingPartiesError` when some did not answer in time. It may then be called again with the same
        requests: a party that had answered gives the same bytes again. It holds the replies that did come.
        """


class MissingPartiesError(TimeoutError):
    """Not all parties answered in time; the study can go on where it stopped, once they are back."""

    def __init__(self, missing: Collection[str], seconds: float, replies: Mapping[str, bytes] | None = None) -> None:
        self.missing, self.replies = tuple(missing), dict(replies or {})
        super().__init__(
            f"no answer within {seconds:g} s from: {', '.join(self.missing)}; nothing is lost, and the same command"
            " goes on from here once they are back"
        )
