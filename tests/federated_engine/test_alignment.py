"""Partly the same people, over real processes: align, then a study of the people whom all have."""

import pandas as pd
import pytest

from tacit.cli import main
from tacit.federated.disclosures import DisclosureStore
from tacit.federated.study import MATCHED

from .support import SIZES, Running, Trial

pytestmark = pytest.mark.engine


class Overlap(Trial):
    """Each party lacks some of the people, and has its rows in an order of its own."""

    def __init__(self, folder):
        super().__init__(folder)
        text = self.config.read_text().replace("n_rows = 300\n", "").replace('membership = "same"', "")
        self.config.write_text(text.replace("[study]\n", '[study]\nmembership = "agreed"\n', 1))
        people = {"hospital-a": self.ids[:250], "hospital-b": self.ids[40:]}
        for name, kept in people.items():
            table = pd.read_csv(folder / f"{name}.csv")
            table[table["who"].isin(kept)].to_csv(folder / f"{name}.csv", index=False)

    def align(self, name=None, *words):
        if name is None:
            return Running("align", self.config, "--coordinator", *words)
        told = ["--data", self.folder / f"{name}.csv", "--id", "who", *(words or self.sharing(name))]
        return Running("align", self.config, "--name", name, *told)


class Pair(Overlap):
    """Two parties that have each other's public key, and no secret."""

    def __init__(self, folder):
        super().__init__(folder)
        (folder / "keys" / "parties.secret").unlink()

    def sharing(self, name):
        (other,) = set(SIZES) - {name}
        return ["--peer", self.folder / "keys" / f"{other}.pub"]


def test_partly_the_same_people(tmp_path, capsys):
    trial = Overlap(tmp_path)
    with pytest.raises(SystemExit) as early:
        main(["federate", "coordinator", "--config", str(trial.config), "--out", str(tmp_path / "model.json")])
    assert early.value.code == 2
    assert "`tacit federate align" in capsys.readouterr().err
    coordinator, *parties = [trial.align(), *map(trial.align, SIZES)]
    coordinator.until("round 1: common").kill()
    coordinator = trial.align()
    assert coordinator.ended() == 0, coordinator.printed
    assert all(party.ended() == 0 for party in parties), [party.printed for party in parties]
    assert "210 people are at all parties" in coordinator.printed
    coordinator, *parties = [trial.coordinator(), *map(trial.party, SIZES)]
    assert coordinator.ended() == 0, coordinator.printed
    assert all(party.ended() == 0 for party in parties), [party.printed for party in parties]
    assert trial.model.guarantee_.n_rows == 210
    assert str(trial.model.guarantee_).endswith(MATCHED)
    kept = DisclosureStore(tmp_path / "state" / "parties" / "hospital-a" / "disclosures.sqlite").disclosures()
    assert [entry.size for entry in kept] == [250, 210]


@pytest.mark.slow
def test_two_parties_without_a_secret(tmp_path):
    """By private set intersection; the coordinator is killed on the way, and comes back."""
    pytest.importorskip("private_set_intersection", reason="needs the extra psi, which has wheels for some machines")
    trial = Pair(tmp_path)
    coordinator, *parties = [trial.align(None, "--psi"), *(trial.align(n, "--psi", *trial.sharing(n)) for n in SIZES)]
    coordinator.until("round 3: marks").kill()
    coordinator = trial.align(None, "--psi")
    assert coordinator.ended() == 0, coordinator.printed
    assert all(party.ended() == 0 for party in parties), [party.printed for party in parties]
    assert "210 people are at all parties" in coordinator.printed
    assert all("compare them by telephone" in party.printed for party in parties)
    coordinator, *parties = [trial.coordinator(), *map(trial.party, SIZES)]
    assert coordinator.ended() == 0, coordinator.printed
    assert all(party.ended() == 0 for party in parties), [party.printed for party in parties]
    assert trial.model.guarantee_.n_rows == 210
    kept = DisclosureStore(tmp_path / "state" / "parties" / "hospital-a" / "disclosures.sqlite").disclosures()
    assert [entry.size for entry in kept] == [250, 260, 210]
