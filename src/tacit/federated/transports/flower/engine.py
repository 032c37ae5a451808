"""One of the engine's processes, started from here: where it keeps its files, and how it ends."""

import os
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Self

from tacit.federated.transports.flower import child

_PATIENCE = 10.0  # seconds that a process gets to end by itself


class Engine:
    """A SuperLink or a SuperNode as a process of its own, which ends when this process does, however that ends.

    What it prints goes to a file in `home`. `secret` is known to the two processes and nobody else; `parties` are the
    public keys of those whom a SuperLink takes long messages from, in base64 and with commas between them.
    """

    def __init__(self, role: str, arguments: list[str], home: Path, secret: str, parties: str = "") -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.log = home / f"{role}.log"
        own = {child.SECRET_VARIABLE: secret, child.PARTIES_VARIABLE: parties}
        own |= {child.PARENT_VARIABLE: str(os.getpid()), "FLWR_HOME": str(home.resolve())}
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-P", child.__file__, role, *arguments],
                env=os.environ | own,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a Ctrl-C is for this process, which then ends that one
            )

    @property
    def is_running(self) -> bool:
        """Whether the process has not ended."""
        return self._process.poll() is None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def require_engine() -> None:
    """Raise if Flower is not installed."""
    if find_spec("flwr") is None:
        raise ImportError("a study over a network needs Flower: pip install 'tacit[federated]'")


def free_port() -> int:
    """A port of the loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
