"""Parties that reach the coordinator through a proxy: outbound connections, to one port."""

import pytest

from tests.federated.proxy import Proxy

from .support import Trial

pytestmark = pytest.mark.engine


def test_a_study_through_a_proxy(tmp_path, monkeypatch):
    """The probe and the engine of both parties ask it for tunnels, and the model is that of one process."""
    trial = Trial(tmp_path, host="localhost")
    coordinator = trial.coordinator().until("listening on")
    with Proxy() as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
        a, b = trial.party("hospital-a"), trial.party("hospital-b")
        assert coordinator.ended() == 0, coordinator.printed
        assert [a.ended(), b.ended()] == [0, 0], [a.printed, b.printed]
    assert len(proxy.asked) >= 4  # for each party the probe, and the engine
    assert {line.split()[1].partition(":")[0] for line in proxy.asked} == {"localhost"}
    trial.check()
