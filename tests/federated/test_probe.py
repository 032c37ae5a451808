"""The probe finds the coordinator directly or through a proxy, and says what is in the way."""

import socket
import ssl
import threading
from contextlib import contextmanager

import pytest

from tacit.federated.transports.flower import keys, probe
from tacit.federated.transports.flower.network import Network
from tests.federated.proxy import Proxy


@contextmanager
def coordinator_at(network):
    """A server with the coordinator's certificate, which says nothing."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(network.certificate, network.certificate_key)
    with socket.create_server(("127.0.0.1", int(network.address.rpartition(":")[2]))) as server:

        def serve():
            while True:
                try:
                    plain, _ = server.accept()
                    context.wrap_socket(plain, server_side=True).close()
                except ssl.SSLError:
                    continue
                except OSError:
                    return

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown(socket.SHUT_RDWR)
    thread.join(10)


@pytest.fixture
def network(tmp_path, monkeypatch):
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"localhost:{free.getsockname()[1]}"
    network = Network(address, address, tmp_path, timeout=0.5)
    keys.make_certificate("localhost", network.authority, network.certificate, network.certificate_key)
    return network


def test_without_a_proxy(network):
    with coordinator_at(network):
        probe.wait_for_coordinator(network, print)


@pytest.mark.parametrize("login", ["", "user:p%40ss@"])
def test_through_a_proxy(network, monkeypatch, login):
    with coordinator_at(network), Proxy() as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://{login}127.0.0.1:{proxy.port}")
        probe.wait_for_coordinator(network, print)
    (asked,) = proxy.asked
    assert asked.startswith(f"CONNECT {network.address} HTTP/1.1\r\n")
    assert ("Proxy-Authorization: Basic dXNlcjpwQHNz\r\n" in asked) == bool(login)


def test_a_host_that_needs_no_proxy(network, monkeypatch):
    with coordinator_at(network), Proxy() as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("NO_PROXY", "localhost")
        probe.wait_for_coordinator(network, print)
    assert proxy.asked == []


def test_a_coordinator_that_is_not_there_yet_is_waited_for(network, monkeypatch):
    said = []
    with Proxy() as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
        with pytest.raises(TimeoutError, match="no coordinator at localhost"):
            probe.wait_for_coordinator(network, said.append)
    assert len(proxy.asked) > 1
    assert said == [f"waiting for the coordinator at {network.address}"]


@pytest.mark.parametrize(
    ("answer", "match"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "it answered 407"),
        (b"HTTP/1.1 403 Forbidden\r\n\r\n", "it answered 403"),
        (b"what?\r\n\r\n", "it answered nonsense"),
    ],
)
def test_a_proxy_that_refuses_is_told_at_once(network, monkeypatch, answer, match):
    with Proxy(answer) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
        with pytest.raises(PermissionError, match=match):
            probe.wait_for_coordinator(network, print)
    monkeypatch.setenv("HTTPS_PROXY", "socks5://127.0.0.1:1")
    with pytest.raises(PermissionError, match="must be http://host:port"):
        probe.wait_for_coordinator(network, print)


def test_a_proxy_that_opens_tls_is_found_out(network, tmp_path):
    """Its certificate is signed by another authority."""
    other = Network(network.address, network.address, tmp_path / "other", timeout=0.5)
    keys.make_certificate("localhost", other.authority, other.certificate, other.certificate_key)
    with coordinator_at(other), pytest.raises(PermissionError, match="a proxy on the way opens TLS"):
        probe.wait_for_coordinator(network, print)
