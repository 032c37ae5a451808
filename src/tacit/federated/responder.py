"""What answers for a party: it takes messages apart, and refuses in words that tell nothing of the data."""

import sqlite3
from abc import ABC, abstractmethod

from tacit import __version__
from tacit.federated import messages
from tacit.federated.foreign import shown
from tacit.federated.journal import BegunAgainError, BehindError
from tacit.federated.members import LONGEST_TEXT
from tacit.federated.messages import Refusal, Request, Restart
from tacit.federated.protocols.base import RefusedError


class Responder(ABC):
    """Answers requests in one study for one party.

    Attributes
    ----------
    name : str
        Of the party.
    stopped : str or None
        Why it answers nothing any more.
    """

    def __init__(self, digest: str, name: str) -> None:
        self.name, self._digest = name, digest
        self.stopped: str | None = None

    def answer(self, request: bytes) -> bytes:
        """The reply to a request: the stored one if it was answered before, a refusal if it is not to be answered."""
        number, digest = 0, messages.digest(request)
        try:
            asked = messages.read(request)
            if not isinstance(asked, Request):
                raise RefusedError("a party answers requests, and nothing else")
            number = asked.round
            self._check(asked)
            return self._answer(asked, digest)
        except BegunAgainError:
            return messages.write(Restart(self._digest, self.name, number, digest))
        except BehindError as behind:
            reason = self.stopped = str(behind)
        except RefusedError as refused:
            reason = str(refused)
        except sqlite3.OperationalError:  # a full disk, a lock
            reason = f"the journal of party {self.name!r} could not be used just now. Nothing was released; ask again"
        reason = shown(reason, LONGEST_TEXT)
        return messages.write(Refusal(self._digest, self.name, number, digest, reason))

    def ends_with(self, content: bytes | None) -> bool:
        """Whether these bytes are a farewell, which is no request; what is in it is kept."""
        return content == b""

    def _check(self, asked: Request) -> None:
        """Refuse those who agreed on something else. The texts are fixed but for names that are public."""
        if self.stopped is not None:
            raise RefusedError(self.stopped)
        if asked.study != self._digest:
            raise RefusedError(
                f"party {self.name!r} did not agree on this study; compare the study files, which must be equal in"
                " every value"
            )
        if asked.party != self.name:
            raise RefusedError(f"the request is for another party than {self.name!r}")
        if asked.version != __version__:
            raise RefusedError(f"party {self.name!r} runs tacit {__version__}, and the coordinator another version")

    @abstractmethod
    def _answer(self, asked: Request, digest: bytes) -> bytes:
        """The reply to a request that was checked, of this digest; what is not to be answered raises."""
