"""What both sides say to their engine process: claim a task, keep it alive, and messages made of bytes."""

import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from flwr.app import ConfigRecord, RecordDict
from flwr.proto.runtime_pb2 import AcquireTaskRequest, SendTaskHeartbeatRequest
from flwr.supercore.interceptors import RuntimeTokenHttpInterceptor, RuntimeVersionHttpInterceptor
from flwr.supercore.interceptors.http.utils import add_headers
from flwr.supercore.runtime import RuntimeHttpClient

_BEAT = 10.0  # seconds between signs of life; the engine gives a task up after about 60 without one
_RECORD, _BYTES, _ONCE = "tacit", "bytes", "once"


class Header:
    """Adds a header to every request of a client."""

    def __init__(self, name: str, value: str) -> None:
        self._header = {name: value}

    def intercept(self, context: Any, call_next: Any) -> httpx.Response:
        """Add the header and pass the request on."""
        add_headers(context.request, self._header)
        return call_next(context)


class Runtime:
    """The engine process at an address, as its owner sees it: `interceptors` prove that it is the owner."""

    def __init__(self, address: str, authority: bytes | None, interceptors: list[Any]) -> None:
        self._address = address
        self._authority = authority
        self._interceptors = [*interceptors, RuntimeVersionHttpInterceptor(component_name="tacit")]
        self._client = self.client(RuntimeHttpClient)

    def client(self, kind: Any, *interceptors: Any) -> Any:
        """One of the engine's clients of that process."""
        return kind.from_server_address(
            self._address,
            insecure=self._authority is None,
            root_certificates=self._authority,
            interceptors=[*self._interceptors, *interceptors],
        )

    def claim(self, kind: str) -> Any:
        """The oldest task of a kind that nobody has claimed, with the token that opens it; None if there is none."""
        claimed = self._client.AcquireTask(AcquireTaskRequest(supported_task_types=[kind]))
        return claimed if claimed.HasField("task") and claimed.token else None

    def task(self, token: str) -> Any:
        """A client that acts for a claimed task."""
        return self.client(RuntimeHttpClient, RuntimeTokenHttpInterceptor(token))

    def close(self) -> None:
        """Let go of the connection."""
        self._client.close()


@contextmanager
def kept_alive(task: Any) -> Iterator[None]:
    """Show the engine that a task is being worked on."""
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(_BEAT):
            try:
                task.SendTaskHeartbeat(SendTaskHeartbeatRequest())
            except httpx.HTTPError:
                return  # whoever works on the task will see the same

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def packed(content: bytes) -> RecordDict:
    """Bytes as the content of a message that is like no other.

    The engine names objects by what they hold. When a message has arrived it deletes those of its name, also under
    another message that was to bring the same bytes once more.
    """
    return RecordDict({_RECORD: ConfigRecord({_BYTES: content, _ONCE: secrets.token_bytes(16)})})


def unpacked(content: RecordDict) -> bytes | None:
    """The bytes that `packed` was given; None if the content is something else."""
    record = content.get(_RECORD)
    value = record.get(_BYTES) if isinstance(record, ConfigRecord) else None
    return value if isinstance(value, bytes) else None
