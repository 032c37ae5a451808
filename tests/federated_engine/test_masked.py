"""Masked products over real processes: the model of a single process, and no keys and seeds are left."""

import sqlite3

import pytest

from .support import SIZES, Trial

pytestmark = pytest.mark.engine


def test_masked_products_between_processes(tmp_path):
    masked = {"labels": "held", "protocol": {"name": "marginals", "products": "masked"}}
    trial = Trial(tmp_path, holder="hospital-b", **masked)
    coordinator = trial.coordinator()
    parties = {name: trial.party(name) for name in SIZES}
    assert coordinator.ended() == 0, coordinator.printed
    for party in parties.values():
        assert party.ended() == 0, party.printed
        assert "products are masked in this study" in party.printed
    trial.check()
    for name in SIZES:
        journal = sqlite3.connect(tmp_path / "state" / "parties" / name / "journal.sqlite")
        kept = {row[0] for row in journal.execute("SELECT name FROM memory")}
        journal.close()
        assert "row norm" in kept
        assert not kept & {"seed", "private key", "hellos", "boxes", "block"}
