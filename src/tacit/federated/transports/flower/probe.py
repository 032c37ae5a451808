"""Whether the coordinator is there, asked as the engine will ask: directly, or through the environment's proxy.

The engine's own client takes `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` from the environment. So does this probe: a
party behind a firewall that lets nothing out but its proxy needs no other way. The proxy is asked for a tunnel
(CONNECT), and TLS goes through it from end to end.
"""

import base64
import socket
import ssl
import time
from collections.abc import Callable
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from tacit.federated.transports.flower.network import Network, split

_POLL = 0.25  # seconds between two tries
_PATIENCE = 10.0  # seconds for an answer
_LONGEST_HEAD = 1 << 16  # bytes of a proxy's answer
_NOT_YET = (502, 503, 504)  # what a proxy says while the coordinator is not there


def wait_for_coordinator(network: Network, say: Callable[[str], None]) -> None:
    """Wait until the coordinator is there; a certificate that is not the agreed one is refused at once."""
    context = ssl.create_default_context(cafile=str(network.authority))
    end, told = time.monotonic() + network.timeout, False
    while True:
        try:
            with _connected(network.address) as plain, context.wrap_socket(plain, server_hostname=network.host):
                return
        except ssl.SSLCertVerificationError as error:
            raise PermissionError(
                f"{network.address} has a certificate that {network.authority} did not sign for it:"
                f" {error.verify_message}. Either it is another coordinator, or a proxy on the way opens TLS"
            ) from None
        except PermissionError:
            raise
        except OSError as error:
            if time.monotonic() > end:
                raise TimeoutError(f"no coordinator at {network.address} within {network.timeout:g} s") from error
        if not told:
            told = True
            say(f"waiting for the coordinator at {network.address}")
        time.sleep(_POLL)


def proxy_for(host: str) -> str | None:
    """The address of the proxy that leads to a host, by the environment; None if there is none on the way."""
    told = getproxies()
    return None if proxy_bypass(host) else told.get("https") or told.get("all")


def _connected(address: str) -> socket.socket:
    """A connection to an address, through the proxy if there is one."""
    proxy = proxy_for(split("address", address)[0])
    if proxy is None:
        return socket.create_connection(split("address", address), timeout=_PATIENCE)
    url = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    if url.scheme != "http" or url.hostname is None:
        raise PermissionError("the proxy in HTTPS_PROXY must be http://host:port; it sees nothing but the tunnel")
    tunnel = socket.create_connection((url.hostname, url.port or 80), timeout=_PATIENCE)
    try:
        _ask_for_tunnel(tunnel, address, url.username, url.password)
    except BaseException:
        tunnel.close()
        raise
    return tunnel


def _ask_for_tunnel(tunnel: socket.socket, address: str, user: str | None, password: str | None) -> None:
    head = f"CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n"
    if user is not None:
        named = f"{unquote(user)}:{unquote(password or '')}".encode()
        head += f"Proxy-Authorization: Basic {base64.b64encode(named).decode()}\r\n"
    tunnel.sendall(f"{head}\r\n".encode())
    answer = b""
    while not answer.endswith(b"\r\n\r\n"):
        more = tunnel.recv(1)  # no byte of the tunnel itself
        if not more or len(answer) > _LONGEST_HEAD:
            raise ConnectionError("the proxy gave no answer that could be read")
        answer += more
    status = answer.split(b"\r\n", 1)[0].split()
    code = int(status[1]) if len(status) > 1 and status[1].isdigit() else 0
    if code in _NOT_YET:
        raise ConnectionError(f"the proxy cannot reach {address} yet")
    if code != 200:
        raise PermissionError(
            f"the proxy in HTTPS_PROXY gives no tunnel to {address}: it answered {code or 'nonsense'}"
        )
