"""A party's side: a SuperNode of its own, and this process, which answers what comes through it."""

import secrets
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

import httpx
from flwr.app import Message
from flwr.common.constant import SubStatus
from flwr.common.serde import context_from_proto, context_to_proto
from flwr.proto.node_pb2 import Node as EngineNode
from flwr.proto.runtime_pb2 import PullAppMessagesRequest, PullTaskInputRequest, PushTaskOutputRequest
from flwr.supercore.constant import TaskType
from flwr.supercore.inflatable.inflatable_protobuf_utils import (
    make_confirm_message_received_fn_protobuf,
    make_pull_object_fn_protobuf,
)
from flwr.supercore.inflatable.inflatable_utils import (
    ObjectPullError,
    ObjectPushError,
    pull_and_inflate_object_from_tree,
)
from flwr.supercore.interceptors import SuperExecAuthHttpInterceptor
from flwr.supernode.runtime.run_clientapp import push_message

from tacit.federated.foreign import shown
from tacit.federated.protocols.base import RefusedError
from tacit.federated.transports.flower.engine import Engine, free_port
from tacit.federated.transports.flower.network import LOOPBACK, Network
from tacit.federated.transports.flower.probe import wait_for_coordinator
from tacit.federated.transports.flower.runtime import Runtime, kept_alive, packed, unpacked

Answer = Callable[[bytes], bytes]
Say = Callable[[str], None]


class Served(Protocol):
    """What answers for a party."""

    @property
    def stopped(self) -> str | None:
        """Why it answers no more."""

    def answer(self, request: bytes) -> bytes:
        """The reply to a request."""

    def ends_with(self, content: bytes | None) -> bool:
        """Whether this is the farewell; what is in it is kept."""


_POLL = 0.25  # seconds between two looks for a message
_LAPSE = 90.0  # seconds after which the engine has certainly noticed that a process was killed
_FAREWELL = 10.0  # seconds in which the coordinator hears that a party has stopped
_RETRY = 5.0  # seconds between two tries meanwhile
_CLAIM = "/flwr.proto.Runtime/AcquireTask"  # the call that asks for the secret
_CONNECTED, _REFUSED = "SuperNode ID", "[code: "  # what the engine prints when it is let in, and when it is not


def serve(served: Served, network: Network, private_key: Path, home: Path, say: Say) -> None:
    """Connect to the coordinator, and answer it until it says that the study is done.

    `served.stopped` gives the reason once the party will answer no more; the coordinator gets to hear of it, and then
    this raises `RefusedError`.

    A process leaves a mark in `home` from before it may be let in until it was refused or is done: one that was killed
    meanwhile leaves it there. The engine takes its key again only when it has noticed, so the next process tries for a
    while; without the mark, a key that is refused is refused at once.
    """
    home.mkdir(parents=True, exist_ok=True)
    wait_for_coordinator(network, say)
    mark = home / "connecting"
    end = time.monotonic() + (_LAPSE if mark.exists() else 0.0)
    mark.touch()
    while not _session(served, network, private_key, home, say):
        if time.monotonic() > end:
            mark.unlink()
            raise PermissionError(
                f"the coordinator does not take the key {private_key}: it has another public key of this party, or"
                " another process is connected with this one"
            )
        say("the coordinator has not noticed yet that this party's last process is gone; trying again")
        time.sleep(_RETRY)
    mark.unlink(missing_ok=True)


def _session(served: Served, network: Network, private_key: Path, home: Path, say: Say) -> bool:
    """One life of a SuperNode, to the end of the study; False if it was not let in."""
    secret, port = secrets.token_hex(32), free_port()
    shared = home / "supernode.secret"
    shared.unlink(missing_ok=True)
    shared.touch(mode=0o600, exist_ok=False)
    shared.write_text(secret)
    arguments = ["--superlink", network.address, "--root-certificates", str(network.authority)]
    arguments += ["--auth-supernode-private-key", str(private_key), "--isolation", "process"]
    arguments += ["--superexec-auth-secret-file", str(shared), "--host", LOOPBACK, "--port", str(port)]
    arguments += ["--max-wait-time", str(network.timeout)]
    owner = SuperExecAuthHttpInterceptor(master_secret=secret.encode(), protected_methods={_CLAIM})
    runtime = Runtime(f"{LOOPBACK}:{port}", None, [owner])
    with closing(runtime), Engine("supernode", arguments, home, secret) as engine:
        connected, reason, last_words = False, None, 0.0
        tasks: list[_Task] = []
        while engine.is_running:
            if not connected and _CONNECTED in engine.log.read_text(errors="replace"):
                connected = True
                say(f"connected to the coordinator at {network.address}")
            try:
                claimed = runtime.claim(TaskType.CLIENT_APP)
                if claimed is not None:
                    tasks.append(_Task(runtime.task(claimed.token)))
                done, tasks = _worked_on(tasks, served)
            except httpx.TransportError:  # the engine is starting, or ending
                done = False
            except httpx.HTTPStatusError as error:
                raise ConnectionError(f"the engine failed ({shown(str(error))}); {engine.log} says why") from error
            if done:
                return True
            reason = served.stopped
            if reason is not None:
                last_words = last_words or time.monotonic() + _FAREWELL
                if time.monotonic() > last_words:
                    break
            time.sleep(_POLL)
        said = engine.log.read_text(errors="replace")
    if reason is not None:
        (home / "connecting").unlink(missing_ok=True)
        raise RefusedError(reason)
    if connected or _REFUSED not in said:
        raise ConnectionError(f"the connection to the coordinator ended; {engine.log} says why")
    return False


class _Task:
    """A message that the SuperNode has announced. Its content comes later, or never if the coordinator died."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._context = context_from_proto(client.PullTaskInput(PullTaskInputRequest()).context)
        self._tree: Any = None

    def message(self) -> Message | None:
        """The message, or None while it is not all there."""
        if self._tree is None:
            trees = self._client.PullMessages(PullAppMessagesRequest()).message_object_trees
            if not trees:
                return None
            self._tree = trees[0]
        node, run = EngineNode(node_id=self._context.node_id), self._context.run_id
        pull = make_pull_object_fn_protobuf(self._client.PullObject, node, run)
        confirm = make_confirm_message_received_fn_protobuf(self._client.ConfirmMessageReceived, node, run)
        try:
            message = pull_and_inflate_object_from_tree(
                self._tree, pull, confirm, return_type=Message, max_tries_per_object=1
            )
        except ObjectPullError:
            return None
        message.metadata.__dict__["_message_id"] = self._tree.object_id  # as the engine's own client app does
        return message

    def reply(self, message: Message, answer: Answer) -> None:
        """Answer the message."""
        content = unpacked(message.content) if message.has_content() else None
        with closing(self._client), kept_alive(self._client):
            # What is no request of this package is for the node to refuse, like anything else it cannot read.
            reply = Message(packed(answer(b"?" if content is None else content)), reply_to=message)
            push_message(self._client, reply, self._context)
            done = PushTaskOutputRequest(context=context_to_proto(self._context), sub_status=SubStatus.COMPLETED)
            self._client.PushTaskOutput(done)


def _worked_on(tasks: list[_Task], served: Served) -> tuple[bool, list[_Task]]:
    """Answer what is there: whether the study is done, and the tasks that are left."""
    left = []
    for task in tasks:
        try:
            message = task.message()
        except httpx.HTTPStatusError:
            continue  # the engine gave it up; the coordinator will ask again
        if message is None:
            left.append(task)
        elif message.has_content() and served.ends_with(unpacked(message.content)):
            return True, []
        else:
            try:
                task.reply(message, served.answer)
            except ObjectPushError:
                continue  # the same
    return False, left
