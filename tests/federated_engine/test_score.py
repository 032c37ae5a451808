"""Margins over real processes: they add up at the recipient."""

import numpy as np
import pandas as pd
import pytest

from tacit.federated.disclosures import DisclosureStore

from .support import SIZES, Running, Trial

pytestmark = pytest.mark.engine


class Scored(Trial):
    def score(self, name=None):
        if name is None:
            return Running("score", self.config, "--coordinator", "--to", "hospital-a")
        told = ["--data", self.folder / f"{name}.csv", "--id", "who", "--ids", self.folder / "asked.csv", "--drop", "y"]
        told += ["--network", "--secret", self.folder / "keys/parties.secret", "--to", "hospital-a"]
        out = ["--out", self.folder / "scores.csv"] if name == "hospital-a" else []
        return Running("score", self.config, "--name", name, *told, *out)


@pytest.mark.slow
def test_margins_go_over_the_network(tmp_path):
    trial = Scored(tmp_path)
    running = [trial.coordinator(), *map(trial.party, SIZES)]
    assert all(one.ended() == 0 for one in running), [one.printed for one in running]
    asked = trial.ids[40:60]
    pd.DataFrame({"who": asked}).to_csv(tmp_path / "asked.csv", index=False)
    running = [trial.score(), *map(trial.score, SIZES)]
    assert all(one.ended() == 0 for one in running), [one.printed for one in running]
    scores = pd.read_csv(tmp_path / "scores.csv")
    assert scores["who"].tolist() == asked
    expected = trial.model.predict([trial.blocks[name][40:60] for name in SIZES])
    np.testing.assert_allclose(scores["margin"], expected, rtol=1e-9)
    kept = DisclosureStore(tmp_path / "state" / "parties" / "hospital-b" / "disclosures.sqlite").disclosures()
    assert [entry.size for entry in kept] == [20]
