"""`tacit federate` as far as it goes without a network: keys, study files, a party's table, and what is refused."""

import shutil
import stat
import subprocess

import numpy as np
import pandas as pd
import pytest
from cryptography import x509

from tacit.cli import parser
from tacit.commands import federate, federate_align
from tacit.federated import Study
from tacit.federated.transports.flower import keys
from tacit.federated.transports.flower.child import Guard
from tacit.federated.transports.flower.network import Network

from .support import tacit

STUDY = """
[study]
name = "trial"
loss = "{loss}"
n_rows = 4
l1_radius = 1.0
{more}
[[study.members]]
name = "a"
n_features = 2
[[study.members]]
name = "b"
n_features = 1
[network]
address = "127.0.0.1:8443"
"""


@pytest.fixture
def study(tmp_path, monkeypatch):
    """The working folder with a study in it, and a table of party a."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(STUDY.format(loss="squared", more=""))
    pd.DataFrame({"who": ["007", "3", "1", "p2"], "x": [1.5, 2, 3, 4], "z": [1, None, 0, 1], "y": [5, 6, 7, 8]}).to_csv(
        "a.csv", index=False
    )
    return tmp_path / "study.toml"


def arguments(*words):
    return parser().parse_args(
        ["federate", "party", "--config", "study.toml", "--name", "a", "--data", "a.csv", *words]
    )


@pytest.mark.usefixtures("study")
def test_keys_are_made_once_and_private_ones_are_private(capsys):
    code, out, _ = tacit(capsys, "federate", "keys", "--config", "study.toml", "--all")
    assert code == 0
    assert "parties.secret is for all parties, and never for the coordinator" in out
    network = Network.from_toml(federate.Path("study.toml"))
    private = [network.certificate_key, network.private_key("a"), network.private_key("b"), network.secret]
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in private)
    assert keys.read_private_key(network.private_key("a")) == keys.read_public_key(network.public_key("a"))
    assert keys.certificate_hosts(network.certificate) == {"127.0.0.1"}
    signed, authority = (
        x509.load_pem_x509_certificate(path.read_bytes()) for path in (network.certificate, network.authority)
    )
    signed.verify_directly_issued_by(authority)
    code, _, err = tacit(capsys, "federate", "keys", "--config", "study.toml", "--name", "a")
    assert code == 2
    assert "never overwritten" in err


def test_a_party_reads_its_table(study):
    federate.Path("secret").write_text("sixteen bytes or more\n")
    told = arguments("--id", "who", "--secret", "secret", "--label", "y", "--fill", "z=0.5")
    party = federate.read_party(told, Study.from_toml(study))
    assert party.X.tolist() == [[1.5, 1], [2, 0.5], [3, 0], [4, 1]]
    assert party.y.tolist() == [5, 6, 7, 8]
    pd.DataFrame({"who": ["3", "p2", "007", "1"], "x": [2.0, 4, 1.5, 3]}).to_csv("a.csv", index=False)
    other = federate.read_party(arguments("--id", "who", "--secret", "secret"), Study.from_toml(study))
    assert np.array_equal(other.X[other.order, 0], party.X[party.order, 0])  # ids are text


def test_classes_may_be_text(study):
    study.write_text(STUDY.format(loss="logistic", more='classes = ["no", "yes"]'))
    pd.DataFrame({"x": [1, 2, 3, 4], "w": [1, 2, 3, 4], "y": ["no", "yes", "yes", "no"]}).to_csv("a.csv", index=False)
    party = federate.read_party(arguments("--label", "y"), Study.from_toml(study))
    assert party.holding(Study.from_toml(study)).targets.tolist() == [-1, 1, 1, -1]


@pytest.mark.usefixtures("study")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--label", "y", "--drop", "nothing"], "no such column to learn from, match by or leave out: 'nothing'"),
        (["--label", "y", "--drop", "who"], "missing values in 'z'"),
        (["--label", "y", "--fill", "z=0"], "with other values: 'who'"),
        (["--label", "y", "--drop", "who,x,z"], "no column is left to learn from"),
        (["--label", "y", "--drop", "who", "--fill", "z=nan"], "is not a finite number"),
        (["--label", "y", "--drop", "who,x", "--fill", "z=0"], "has 1 columns, and the study agreed on 2"),
        (["--label", "y", "--id", "who"], "--id and --secret come together, or --id and --peer"),
        ([], "name their column with --label"),
    ],
)
def test_a_party_that_cannot_take_part_is_told_before_it_connects(words, message, capsys, monkeypatch):
    monkeypatch.setattr(federate, "require_engine", lambda: None)
    tacit(capsys, "federate", "keys", "--config", "study.toml", "--name", "a")
    code, _, err = tacit(
        capsys, "federate", "party", "--config", "study.toml", "--name", "a", "--data", "a.csv", *words
    )
    assert code == 2
    assert message in err


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('address = "127.0.0.1:8443"', "", "needs a [network] table with the coordinator's address"),
        ("127.0.0.1:8443", "127.0.0.1", "address must be host:port"),
        ("[network]", "[network]\ninsecure = true", "has no insecure"),
        ("[network]", "[network]\ntimeout = 0", "timeout must be above 0"),
        ("[network]", "[network]\nkeys = 1", "keys of [network] must be text"),
        ('"127.0.0.1:8443"', '"example.org:8443"', "coordinator.crt is not for example.org"),
        ('name = "b"', 'name = "c"', "public keys of parties are missing: keys/c.pub"),
        ("[network]", "[network", "is not a study file"),
    ],
)
def test_a_study_file_that_a_coordinator_cannot_use(old, new, message, study, capsys, monkeypatch):
    monkeypatch.setattr(federate, "require_engine", lambda: None)
    tacit(capsys, "federate", "keys", "--config", "study.toml", "--all")
    study.write_text(study.read_text().replace(old, new))
    code, _, err = tacit(capsys, "federate", "coordinator", "--config", "study.toml", "--out", "model.json")
    assert code == 2
    assert message in err


@pytest.mark.usefixtures("study")
def test_without_the_engine_the_message_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setattr("tacit.federated.transports.flower.engine.find_spec", lambda _: None)
    code, _, err = tacit(capsys, "federate", "coordinator", "--config", "study.toml", "--out", "model.json")
    assert code == 2
    assert "pip install 'tacit[federated]'" in err


@pytest.mark.parametrize(
    ("path", "secret", "passes"),
    [
        ("/v1/fleet/pull-messages", b"", True),
        ("/v1/control/start-run", b"", False),
        ("/v1/control/start-run", b"wrong", False),
        ("/v1/control/start-run", b"right", True),
        ("/v1/fleetx", b"", False),
    ],
)
def test_the_guard_lets_in_parties_and_whoever_knows_the_secret(path, secret, passes):
    reached, sent = [], []

    async def app(scope, *_):
        reached.append(scope["path"])

    async def send(message):
        sent.append(message)

    async def receive():
        return {"type": "http.request"}

    scope = {"type": "http", "path": path, "headers": [(b"x-tacit-engine", secret)] if secret else []}
    with pytest.raises(StopIteration):
        Guard(app, "right", lambda _: False)(scope, receive, send).send(None)
    assert bool(reached) == passes
    assert passes or sent[0]["status"] == 404


@pytest.mark.parametrize(
    ("sizes", "told", "is_party", "taken"),
    [
        ([1 << 16], None, False, True),
        ([1 << 15, 1 << 15], None, False, True),
        ([1 << 16, 1], None, False, False),
        ([(1 << 16) + 1], None, False, False),
        ([(1 << 16) + 1], None, True, True),
        ([], (1 << 16) + 1, False, False),
        ([], (1 << 28) + 1, True, False),
        ([1], "many", True, False),
    ],
)
def test_the_guard_reads_no_more_than_it_takes(sizes, told, is_party, taken):
    """Who shows no party's key may send 64 KB; of what is longer, nothing reaches the engine."""
    reached, sent, asked = [], [], []

    async def app(_, receive, __):
        reached.append((await receive())["body"])

    async def receive():
        asked.append(sizes[len(asked)])
        return {"type": "http.request", "body": bytes(asked[-1]), "more_body": len(asked) < len(sizes)}

    async def send(message):
        sent.append(message)

    headers = [] if told is None else [(b"content-length", str(told).encode())]
    scope = {"type": "http", "path": "/v1/fleet/push-object", "headers": headers}
    with pytest.raises(StopIteration):
        Guard(app, "right", lambda _: is_party)(scope, receive, send).send(None)
    assert [len(body) for body in reached] == ([sum(sizes)] if taken else [])
    assert taken or (sent[0]["status"] == 413 and sum(asked) <= (1 << 16) + 1)


@pytest.mark.usefixtures("study")
@pytest.mark.parametrize(
    ("more", "message"),
    [("epsilon = inf", "epsilon is inf in this study: no noise"), ("random_state = 3", "random_state is set in this")],
)
def test_a_party_is_warned_of_a_study_that_protects_nobody_before_it_enrols(more, message, study, capsys, monkeypatch):
    monkeypatch.setattr(federate, "require_engine", lambda: None)
    monkeypatch.setattr(federate, "Node", None)  # nothing is enrolled
    study.write_text(STUDY.format(loss="squared", more=more))
    tacit(capsys, "federate", "keys", "--config", "study.toml", "--name", "a")
    told = ["federate", "party", "--config", "study.toml", "--name", "a", "--data", "none.csv", "--label", "y"]
    code, _, err = tacit(capsys, *told)
    assert code == 2
    assert f"tacit: warning: {message}" in err
    assert err.index(message) < err.index("none.csv")


def pair_arguments(name, peer, *words):
    told = ["federate", "align", "study.toml", "--name", name, "--peer", str(peer), *words]
    parsed = parser().parse_args(told)
    parsed.config = parsed.study
    return parsed


@pytest.mark.usefixtures("study")
def test_two_parties_share_what_follows_from_their_keys(tmp_path, capsys):
    tacit(capsys, "federate", "keys", "--config", "study.toml", "--all")
    made = {name: federate.secret_of(pair_arguments(name, f"keys/{other}.pub")) for name, other in ("ab", "ba")}
    assert made["a"] == made["b"]
    assert len(made["a"]) == 32
    told = arguments("--id", "who", "--peer", "keys/b.pub", "--label", "y", "--fill", "z=0")
    assert federate.read_party(told, Study.from_toml("study.toml")).secret == made["a"]
    keys.make_party_key(tmp_path / "c.key", tmp_path / "c.pub")
    strangers = [
        federate.secret_of(pair_arguments("a", "c.pub")),
        federate.secret_of(pair_arguments("a", "keys/b.pub", "--key", "c.key")),
    ]
    assert len({made["a"], *strangers}) == 3
    assert keys.own_fingerprint(tmp_path / "c.key") == keys.fingerprint(tmp_path / "c.pub") != ""
    with pytest.raises(ValueError, match="the public key of this party itself"):
        federate.secret_of(pair_arguments("a", "keys/a.pub"))
    with pytest.raises(ValueError, match="does not hold a key"):
        federate.secret_of(pair_arguments("a", "keys/parties.secret"))
    with pytest.raises(ValueError, match="--secret or --peer, not both"):
        federate.secret_of(pair_arguments("a", "keys/b.pub", "--secret", "keys/parties.secret"))


def test_more_than_two_parties_share_a_secret(study):
    study.write_text(study.read_text().replace("[network]", '[[study.members]]\nname = "c"\nn_features = 1\n[network]'))
    with pytest.raises(ValueError, match="--peer is for studies of two parties"):
        federate.secret_of(pair_arguments("a", "keys/b.pub"))


@pytest.mark.usefixtures("study")
def test_fingerprints_are_those_of_ssh(capsys):
    if (program := shutil.which("ssh-keygen")) is None:
        pytest.skip("ssh-keygen is not here to compare with")
    _, out, _ = tacit(capsys, "federate", "keys", "--config", "study.toml", "--name", "a")
    shown = subprocess.run([program, "-l", "-f", "keys/a.pub"], capture_output=True, text=True, check=True).stdout
    assert f"Its fingerprint is {shown.split()[1]}." in out


@pytest.mark.usefixtures("study")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--data", "a.csv"], "a party needs --id, --secret"),
        (["--data", "a.csv", "--id", "who"], "a party needs --secret"),
        (["--id", "who", "--peer", "keys/b.pub"], "a party needs --data"),
    ],
)
def test_a_party_that_cannot_be_matched_is_told(study, words, message, capsys, monkeypatch):
    monkeypatch.setattr(federate_align, "require_engine", lambda: None)
    text = study.read_text().replace("n_rows = 4", 'delta = 1e-6\nmembership = "agreed"')
    study.write_text(text)
    tacit(capsys, "federate", "keys", "--config", "study.toml", "--all")
    code, _, err = tacit(capsys, "federate", "align", "study.toml", "--name", "a", "--psi", *words)
    assert code == 2
    assert message in err
