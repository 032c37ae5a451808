"""A study over real processes: who is let in, and that the model is the one of a single process."""

import shutil
import socket
import ssl
import urllib.error
import urllib.request
from types import SimpleNamespace

import pytest
from cryptography.hazmat.primitives.serialization import load_ssh_private_key

from tacit.federated.transports.flower import child, keys

from .support import Trial

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def trial(tmp_path_factory):
    return Trial(tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="module")
def coordinator(trial):
    """A coordinator that waits for its parties until the last test sends them."""
    running = trial.coordinator().until("listening on")
    yield running
    running.kill()


def with_other(kind, trial, folder):
    """The same study, with one of the files in `keys` made anew."""
    shutil.copytree(trial.folder / "keys", folder / "keys")
    (folder / "study.toml").write_text(trial.config.read_text())
    if kind == "authority":
        (folder / "keys" / "authority.crt").unlink()
        keys.make_certificate("127.0.0.1", folder / "keys" / "authority.crt", folder / "crt", folder / "key")
    else:
        (folder / "keys" / "hospital-a.key").unlink()
        keys.make_party_key(folder / "keys" / "hospital-a.key", folder / "pub")
    return folder / "study.toml"


@pytest.mark.usefixtures("coordinator")
def test_a_party_refuses_a_coordinator_with_another_certificate(trial, tmp_path):
    party = trial.party("hospital-a", config=with_other("authority", trial, tmp_path))
    assert party.ended() == 2
    assert "has a certificate that" in party.lines[-1]
    assert "did not sign for it" in party.lines[-1]


@pytest.mark.usefixtures("coordinator")
def test_a_key_that_is_not_registered_is_refused(trial, tmp_path):
    party = trial.party("hospital-a", config=with_other("key", trial, tmp_path))
    assert party.ended() == 2
    assert "the coordinator does not take the key" in party.lines[-1]


@pytest.mark.usefixtures("coordinator")
def test_strangers_reach_nothing_but_the_routes_of_parties(trial):
    """Whoever could start a run or claim a task at the coordinator could speak for it."""
    address = trial.config.read_text().split('address = "')[1].split('"')[0]
    trusted = ssl.create_default_context(cafile=str(trial.folder / "keys" / "authority.crt"))
    for path in ("v1/control/start-run", "v1/control/register-node", "v1/runtime/acquire-task", "docs", "openapi.json"):
        asked = urllib.request.Request(f"https://{address}/{path}", data=b"")
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(asked, context=trusted)


@pytest.mark.usefixtures("coordinator")
@pytest.mark.parametrize("chunks", [False, True], ids=["length", "chunks"])
def test_strangers_cannot_fill_the_memory(trial, chunks):
    """The engine would read all of it before it looks for a signature."""
    host, port = trial.config.read_text().split('address = "')[1].split('"')[0].split(":")
    trusted = ssl.create_default_context(cafile=str(trial.folder / "keys" / "authority.crt"))
    head = f"POST /v1/fleet/push-object HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/protobuf\r\n"
    head += "Transfer-Encoding: chunked\r\n\r\n11000\r\n" if chunks else f"Content-Length: {200 << 20}\r\n\r\n"
    with socket.create_connection((host, int(port))) as plain, trusted.wrap_socket(plain, server_hostname=host) as wire:
        wire.sendall(head.encode() + bytes(0x11000 if chunks else 0))  # and never the rest
        assert wire.recv(100).startswith(b"HTTP/1.1 413")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what the engine imports
def test_a_party_is_known_by_the_headers_that_its_engine_sends(tmp_path):
    """So that the length of its messages is not limited as that of strangers' is."""
    import httpx
    from flwr.supernode.node_auth_http_interceptor import NodeAuthHttpInterceptor

    known = []
    for name in ("a", "b"):
        keys.make_party_key(tmp_path / f"{name}.key", tmp_path / f"{name}.pub")
        known.append(keys.read_public_key(tmp_path / f"{name}.pub"))
    private = load_ssh_private_key((tmp_path / "a.key").read_bytes(), None)
    request = httpx.Request("POST", "https://127.0.0.1/v1/fleet/push-object")
    context = SimpleNamespace(request=request)
    NodeAuthHttpInterceptor(private, private.public_key()).intercept(context, lambda _: None)
    headers = {name.lower(): value for name, value in request.headers.raw}
    assert child.party_by_key(frozenset(known))(headers)
    assert not child.party_by_key(frozenset(known[1:]))(headers)
    (time,) = (name for name in headers if b"timestamp" in name)
    assert not child.party_by_key(frozenset(known))(headers | {time: headers[time].replace(b"20", b"19", 1)})
    signed = [name for name in headers if b"signature" in name or b"key" in name]
    assert len(signed) == 2
    for name in signed:
        assert not child.party_by_key(frozenset(known))(headers | {name: b"AAAA"})
    assert not child.party_by_key(frozenset(known))({})


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what the engine imports
def test_the_same_bytes_in_two_messages_are_objects_of_their_own():
    """The engine deletes an object when one of the messages has arrived, and the other would never be whole."""
    from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects

    from tacit.federated.transports.flower.runtime import packed, unpacked

    one, other = packed(b"the same"), packed(b"the same")
    assert not get_all_nested_objects(one).keys() & get_all_nested_objects(other).keys()
    assert unpacked(one) == unpacked(other) == b"the same"


def test_a_fit_over_three_processes_is_the_one_of_a_single_process(trial, coordinator):
    parties = [trial.party("hospital-a"), trial.party("hospital-b")]
    assert coordinator.ended() == 0, coordinator.printed
    assert [party.ended() for party in parties] == [0, 0], [party.printed for party in parties]
    assert "-DP, add-remove one row of 300; federated marginals" in coordinator.lines[-1]
    assert coordinator.lines[-1].endswith(" bytes from the parties")
    trial.check()


@pytest.mark.slow
def test_a_party_that_agreed_on_something_else_refuses_and_the_coordinator_says_so(tmp_path):
    trial = Trial(tmp_path)
    agreed = tmp_path / "other.toml"
    agreed.write_text(trial.config.read_text().replace("epsilon = 2.0", "epsilon = 3.0"))
    coordinator = trial.coordinator()
    parties = [trial.party("hospital-a"), trial.party("hospital-b", config=agreed)]
    assert coordinator.ended() == 2
    assert "refused by hospital-b: party 'hospital-b' did not agree on this study" in coordinator.lines[-1]
    for party in parties:
        party.kill()
    assert not trial.ledger("hospital-a")
