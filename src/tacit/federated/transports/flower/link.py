"""The coordinator's side: a SuperLink of its own, a run on it, and the parties, known by their keys."""

import secrets
import socket
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from flwr.app import Message, MessageType
from flwr.cli.build import build_fab_from_files
from flwr.common.constant import SUPERLINK_NODE_ID, SubStatus
from flwr.common.serde import run_from_proto
from flwr.proto.control_pb2 import ListNodesRequest, RegisterNodeRequest, StartRunRequest, UnregisterNodeRequest
from flwr.proto.fab_pb2 import Fab
from flwr.proto.runtime_pb2 import PullTaskInputRequest, PushTaskOutputRequest
from flwr.supercore.constant import NodeStatus, TaskType
from flwr.supercore.control import ControlHttpClient
from flwr.supercore.inflatable.inflatable_utils import ObjectPushError
from flwr.supercore.task_identity import TaskIdentity
from flwr.superlink.grid import HttpGrid

from tacit.federated.foreign import shown
from tacit.federated.transports import MissingPartiesError
from tacit.federated.transports.flower.child import SECRET_HEADER
from tacit.federated.transports.flower.engine import Engine
from tacit.federated.transports.flower.network import Network, split
from tacit.federated.transports.flower.runtime import Header, Runtime, kept_alive, packed, unpacked

_START = 60.0  # seconds that the engine gets to start, and the last one to let go of the port
_POLL = 0.25  # seconds between two looks for replies
_FAREWELL = 10.0  # seconds that parties get to hear that the study is done
_RESEND = 30.0  # seconds without an answer after which a request is sent again: a slow line takes as long for megabytes
_PATIENCE = 15.0  # seconds of waiting for a party before that is worth a word

# The engine wants an app to run. This one holds no code, and nobody runs it.
_APP = b"""[project]
name = "tacit"
version = "0.0.0"
dependencies = []

[tool.flwr.app]
publisher = "tacit"

[tool.flwr.app.components]
serverapp = "tacit:none"
clientapp = "tacit:none"
"""


@dataclass(eq=False)
class _Asked:
    """A party's session, the messages with one request that went to it, and when the next one is due."""

    session: tuple[int, str]
    messages: list[str] = field(default_factory=list)
    again: float = 0.0
    wait: float = _RESEND

    def sent(self, messages: list[str], now: float) -> None:
        """One more, or none if the engine gave it up; the next one is due after twice the time."""
        self.messages.extend(messages)
        self.again, self.wait = now + self.wait, 2.0 * self.wait


class FlowerTransport:
    """Exchanges bytes with parties over a run of the engine.

    A party that is not there is waited for; one that went away and came back is sent the same bytes again, because
    the engine does not deliver a message twice. It may also lose one, after a run that was cut off: who does not answer
    is asked again, ever more rarely. To a party that is the same question, with the same answer.
    """

    def __init__(self, grid: Any, public_keys: Mapping[bytes, str], timeout: float, say: Callable[[str], None]) -> None:
        self._grid = grid
        self._names = public_keys
        self._timeout = timeout
        self._say = say

    def exchange(self, requests: Mapping[str, bytes]) -> dict[str, bytes]:
        """The replies of all parties that are asked, in the order of the requests."""
        replies: dict[str, bytes] = {}
        asked: dict[str, _Asked] = {}
        start, told = time.monotonic(), False
        while missing := [name for name in requests if name not in replies]:
            now = time.monotonic()
            if now - start > self._timeout:
                raise MissingPartiesError(missing, self._timeout, replies)
            if now - start > _PATIENCE and not told:
                told = True
                self._say(f"waiting for {', '.join(missing)}")
            present = self._present()
            for name in missing:
                if name not in present:
                    continue
                if name not in asked or asked[name].session != present[name]:
                    asked[name] = _Asked(present[name])
                if now >= asked[name].again:
                    asked[name].sent(self._send(requests[name], present[name]), now)
            waiting = {number: name for name in missing if name in asked for number in asked[name].messages}
            for name, reply in self._replies(waiting):
                if reply is not None:
                    replies[name] = reply
                else:
                    asked.pop(name, None)
            time.sleep(_POLL)
        return {name: replies[name] for name in requests}

    def farewell(self, told: Mapping[str, bytes] | None = None) -> None:
        """Tell the parties that are there that the study is done, and wait until they have left."""
        for name, session in self._present().items():
            self._send((told or {}).get(name, b""), session)  # no request is empty
        end = time.monotonic() + _FAREWELL
        while self._present() and time.monotonic() < end:
            time.sleep(_POLL)

    def _replies(self, asked: Mapping[str, str]) -> Iterator[tuple[str, bytes | None]]:
        """What has come in for these messages, by party; None where the engine says that the party is gone."""
        for message in self._grid.pull_messages(list(asked)) if asked else ():
            name = asked[message.metadata.reply_to_message_id]
            yield name, unpacked(message.content) if message.has_content() else None

    def _present(self) -> dict[str, tuple[int, str]]:
        """The parties that are connected, each with its node and since when."""
        return {
            self._names[node.public_key]: (node.node_id, node.last_activated_at)
            for node in self._grid.get_nodes()
            if node.status == NodeStatus.ONLINE and node.public_key in self._names
        }

    def _send(self, request: bytes, session: tuple[int, str]) -> list[str]:
        message = Message(packed(request), session[0], MessageType.QUERY, ttl=max(self._timeout, 60.0))
        try:
            return [str(identity) for identity in self._grid.push_messages([message])]
        except ObjectPushError:
            return []


@contextmanager
def listening(
    network: Network, public_keys: Mapping[bytes, str], home: Path, say: Callable[[str], None]
) -> Iterator[FlowerTransport]:
    """A transport to the parties with these keys, over a SuperLink that lives as long as this context."""
    _wait_for_port(network.listen)
    secret = secrets.token_hex(32)
    host, port = split("listen", network.listen)
    arguments = ["--host", host, "--port", str(port), "--isolation", "process"]
    arguments += ["--ssl-ca-certfile", str(network.authority), "--ssl-certfile", str(network.certificate)]
    arguments += ["--ssl-keyfile", str(network.certificate_key), "--enable-supernode-auth"]
    arguments += ["--disable-runtime-dependency-installation", "--database", str((home / "superlink.db").resolve())]
    parties = b",".join(b64encode(key) for key in public_keys).decode()
    with Engine("superlink", arguments, home, secret, parties) as engine:
        runtime = Runtime(network.own_address, network.authority.read_bytes(), [Header(SECRET_HEADER, secret)])
        control = runtime.client(ControlHttpClient)
        try:
            _wait_for_start(engine, control)
            _register(control, public_keys)
            with _run(runtime, control) as grid:
                yield FlowerTransport(grid, public_keys, network.timeout, say)
        except httpx.HTTPError as error:
            raise ConnectionError(f"the engine failed ({shown(str(error))}); it says why in {engine.log}") from error
        finally:
            control.close()
            runtime.close()


class _Grid(HttpGrid):
    """The engine's grid over a client that is already there."""

    def __init__(self, client: Any, run: Any) -> None:
        super().__init__(token="not used")
        self._client = client
        self.set_run(run)


@contextmanager
def _run(runtime: Runtime, control: Any) -> Iterator[Any]:
    """The grid of a new run, whose server app is this process."""
    bundle, _ = build_fab_from_files({"pyproject.toml": _APP})
    number = control.StartRun(StartRunRequest(fab=Fab(content=bundle))).run_id
    while True:  # runs of coordinators that died may come first
        claimed = runtime.claim(TaskType.SERVER_APP)
        if claimed is None:
            raise ConnectionError("the engine did not give out the run that was started on it")
        if claimed.task.run_id == number:
            break
    with closing(runtime.task(claimed.token)) as client, kept_alive(client):
        given = client.PullTaskInput(PullTaskInputRequest())
        TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = given.task_id, number, SUPERLINK_NODE_ID
        status = SubStatus.FAILED
        try:
            yield _Grid(client, run_from_proto(given.run))
            status = SubStatus.COMPLETED
        finally:
            client.PushTaskOutput(PushTaskOutputRequest(sub_status=status))


def _register(control: Any, public_keys: Mapping[bytes, str]) -> None:
    """Let in those who hold these keys, and nobody else."""
    known = {node.public_key: node.node_id for node in control.ListNodes(ListNodesRequest()).nodes_info}
    for key, node in known.items():
        if key not in public_keys:
            control.UnregisterNode(UnregisterNodeRequest(node_id=node))
    for key in public_keys:
        if key not in known:
            control.RegisterNode(RegisterNodeRequest(public_key=key))


def _wait_for_start(engine: Engine, control: Any) -> None:
    end = time.monotonic() + _START
    while engine.is_running and time.monotonic() < end:
        try:
            control.ListNodes(ListNodesRequest())
            return
        except httpx.TransportError:
            time.sleep(_POLL)
    raise ConnectionError(f"the engine did not start; it says why in {engine.log}")


def _wait_for_port(listen: str) -> None:
    """A coordinator that died may still hold the port for a moment."""
    end = time.monotonic() + _START
    while True:
        try:
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(split("listen", listen))
            return
        except OSError as error:
            if time.monotonic() > end:
                raise ConnectionError(f"cannot listen on {listen}: {error.strerror}") from None
            time.sleep(_POLL)
