"""`Network`: where the coordinator is, and the files by which it and the parties know each other.

It is read from the `[network]` table of a study file. It is not part of what the parties agreed on: each may have its
own paths, and the digest of the study does not depend on it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tacit.federated.studyfiles import table_of
from tacit.privacy import checks

TIMEOUT = 600.0
LOOPBACK = "127.0.0.1"  # where the coordinator's own process reaches the engine
_KNOWN = ("address", "listen", "keys", "timeout", "cap")
_FILES = {
    "authority": "authority.crt",
    "certificate": "coordinator.crt",
    "certificate_key": "coordinator.key",
    "secret": "parties.secret",
}


@dataclass(frozen=True)
class Network:
    """How the processes of a study reach each other.

    Parameters
    ----------
    address : str
        "host:port" of the coordinator, as the parties reach it. Its certificate is for this host.
    listen : str
        "host:port" that the coordinator listens on; "0.0.0.0:8443" is all its addresses.
    keys : Path
        The folder with `authority.crt`, and of `coordinator.crt`, `coordinator.key`, `NAME.pub`, `NAME.key` and
        `parties.secret` what the owner of the folder needs.
    timeout : float
        Seconds that the coordinator waits for all parties in a round, and a party for the coordinator.
    cap : Path, optional
        The file of what all studies of this party may give away together.
    """

    address: str
    listen: str
    keys: Path
    timeout: float = TIMEOUT
    cap: Path | None = None
    authority: Path = field(init=False)  # the certificate of whoever signed the coordinator's
    certificate: Path = field(init=False)  # the coordinator's
    certificate_key: Path = field(init=False)  # the private key of that one
    secret: Path = field(init=False)  # of the parties, which the coordinator does not have

    def __post_init__(self) -> None:
        for name, file in _FILES.items():
            object.__setattr__(self, name, self.keys / file)
        for name in ("address", "listen"):
            split(name, getattr(self, name))
        object.__setattr__(self, "timeout", checks.positive("timeout", self.timeout))

    @classmethod
    def from_toml(cls, path: Path) -> "Network":
        """The `[network]` table of a study file; paths in it start where the file is."""
        values = table_of(path, "network")
        if not isinstance(values, Mapping) or not isinstance(values.get("address"), str):
            raise ValueError(
                f"{path} needs a [network] table with the coordinator's address, as in address = 'host:8443'"
            )
        unknown = sorted(set(values) - set(_KNOWN))
        if unknown:
            raise ValueError(f"[network] of {path} has no {', '.join(unknown)}; it may have {', '.join(_KNOWN)}")
        folder = _text(values, "keys", "keys")
        listen = _text(values, "listen", values["address"])
        cap = path.parent / _text(values, "cap", "") if "cap" in values else None
        return cls(values["address"], listen, path.parent / folder, values.get("timeout", TIMEOUT), cap)

    @property
    def host(self) -> str:
        """The coordinator's host, as its certificate names it."""
        return split("address", self.address)[0]

    @property
    def own_address(self) -> str:
        """Where the coordinator's own process reaches the engine."""
        return f"{self.own_host}:{split('listen', self.listen)[1]}"

    @property
    def own_host(self) -> str:
        """The host of that address."""
        host = split("listen", self.listen)[0]
        return LOOPBACK if host == "0.0.0.0" else host

    def public_key(self, name: str) -> Path:
        """The file by which the coordinator knows a party."""
        return self.keys / f"{name}.pub"

    def private_key(self, name: str) -> Path:
        """The file by which a party proves who it is."""
        return self.keys / f"{name}.key"


def split(what: str, address: str) -> tuple[str, int]:
    """Host and port of an address."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(f"{what} must be host:port, as in 'coordinator.example.org:8443', got {address!r}")
    return host, int(port)


def _text(values: Mapping[str, Any], name: str, default: str) -> str:
    value = values.get(name, default)
    if not isinstance(value, str):
        raise ValueError(f"{name} of [network] must be text, got {value!r}")
    return value
