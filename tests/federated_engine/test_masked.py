"""Masked products over real processes, whose parties reach the coordinator through a proxy, with some people held out.

One study shows all three.
"""

import sqlite3

import pytest

from tests.federated.proxy import Proxy

from .support import SIZES, Trial

pytestmark = pytest.mark.engine
RADII = [1.0, 4.0]


@pytest.fixture(scope="module")
def trial(tmp_path_factory):
    """A study that came to its end."""
    agreed = {"labels": "held", "protocol": {"name": "marginals", "products": "masked"}}
    agreed |= {"evaluation": {"share": 0.25}, "l1_radius": RADII}
    trial = Trial(tmp_path_factory.mktemp("masked"), holder="hospital-b", host="localhost", **agreed)
    coordinator = trial.coordinator().until("listening on")
    with Proxy() as proxy, pytest.MonkeyPatch.context() as environment:
        environment.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
        trial.parties = [trial.party(name) for name in SIZES]
        assert coordinator.ended() == 0, coordinator.printed
        assert [party.ended() for party in trial.parties] == [0, 0], [party.printed for party in trial.parties]
        trial.asked = list(proxy.asked)
    return trial


def test_masked_products_between_processes(trial):
    """The model of a single process, and no keys and seeds are left."""
    assert all("products are masked in this study" in party.printed for party in trial.parties)
    trial.check()
    for name in SIZES:
        journal = sqlite3.connect(trial.folder / "state" / "parties" / name / "journal.sqlite")
        kept = {row[0] for row in journal.execute("SELECT name FROM memory")}
        journal.close()
        assert "row norm" in kept
        assert not kept & {"seed", "private key", "hellos", "boxes", "block"}


def test_a_radius_is_chosen_on_people_who_are_held_out(trial):
    """What was released of them over the network is what a single process releases."""
    outcome, _ = trial.in_one_process()
    found = trial.model.evaluation_
    assert found == outcome.model.facts["evaluation"]
    assert found.l1_radius in RADII
    assert found.n_rows == 75


def test_parties_go_through_a_proxy(trial):
    """Outbound connections, to one port: the probe and the engine of both parties ask it for tunnels."""
    assert len(trial.asked) >= 4  # for each party the probe, and the engine
    assert {line.split()[1].partition(":")[0] for line in trial.asked} == {"localhost"}
