"""Processes that are killed in the middle of a study, and go on when they are started again."""

import shutil

import pytest

from .support import Trial

pytestmark = pytest.mark.engine


def trial_of_rounds(folder):
    return Trial(folder, protocol={"name": "feature-sharing", "n_iter": 2, "n_shared": 1})


def finish(trial, coordinator, *parties):
    assert coordinator.ended() == 0, coordinator.printed
    assert all(party.ended() == 0 for party in parties), [party.printed for party in parties]
    trial.check()


def test_a_party_and_then_the_coordinator_are_killed(tmp_path):
    trial = trial_of_rounds(tmp_path)
    coordinator, a, b = trial.coordinator(), trial.party("hospital-a"), trial.party("hospital-b")
    coordinator.until("round 1:")
    a.kill()
    a = trial.party("hospital-a")
    coordinator.until("round 2:").kill()
    finish(trial, trial.coordinator(), a, b)


def test_a_party_whose_journal_was_put_back_stops(tmp_path):
    trial = trial_of_rounds(tmp_path)
    coordinator, a, b = trial.coordinator(), trial.party("hospital-a"), trial.party("hospital-b")
    coordinator.until("round 1:")
    b.kill()
    journal = tmp_path / "state" / "parties" / "hospital-b" / "journal.sqlite"
    shutil.copy(journal, tmp_path / "old")
    b = trial.party("hospital-b")
    coordinator.until("round 3:")
    b.kill()
    shutil.copy(tmp_path / "old", journal)
    before = trial.ledger("hospital-b")
    b = trial.party("hospital-b")
    assert coordinator.ended() == 2
    assert "refused by hospital-b: round" in coordinator.lines[-1]
    assert b.ended() == 2
    assert "Is it an older copy? Nothing was released" in b.lines[-1]
    assert trial.ledger("hospital-b") == before
    a.kill()


@pytest.mark.slow
@pytest.mark.parametrize("round_", [0, 1, 2])
def test_a_party_is_killed_with_its_engine(round_, tmp_path):
    """The engine gives its key free only after a minute."""
    trial = trial_of_rounds(tmp_path)
    coordinator, a, b = trial.coordinator(), trial.party("hospital-a"), trial.party("hospital-b")
    a.until("connected to the coordinator")
    coordinator.until(f"round {round_}:")
    b.kill_all()
    finish(trial, coordinator, a, trial.party("hospital-b"))


@pytest.mark.slow
@pytest.mark.parametrize("round_", [0, 1, 2])
def test_the_coordinator_is_killed_with_its_engine(round_, tmp_path):
    trial = trial_of_rounds(tmp_path)
    coordinator, a, b = trial.coordinator(), trial.party("hospital-a"), trial.party("hospital-b")
    coordinator.until(f"round {round_}:").kill_all()
    finish(trial, trial.coordinator(), a, b)
