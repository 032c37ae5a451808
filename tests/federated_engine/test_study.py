"""A study over real processes: who is let in, and that the model is the one of a single process."""

import shutil
import ssl
import urllib.error
import urllib.request

import pytest

from tacit.federated.transports.flower import keys

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
