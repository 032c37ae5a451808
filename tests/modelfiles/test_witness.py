"""Files that were written before and must load.

The format is not frozen yet. Until it is, `python -m tests.modelfiles.test_witness` may write these files again; from
then on they stay, and every later version must read them.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tacit

from .support import MAKERS, made, quiet, rows

FOLDER = Path(__file__).parent / "saved"
KEPT = (
    "logistic",
    "logistic of objects",
    "selected",
    "linear",
    "lasso",
    "pca",
    "scaler",
    "federated logistic",
    "table",
)
ROWS = np.arange(20.0).reshape(5, 4)
PREDICTED = {
    "logistic": lambda model: model.decision_function(ROWS),
    "pca": lambda model: model.transform(pd.DataFrame(ROWS, columns=["a", "b", "c", "d"]))[:, 0],
}
EXPECTED = FOLDER / "expected.csv"


def path_of(name):
    return FOLDER / f"{name.replace(' ', '-')}.json"


pytestmark = quiet


@pytest.mark.parametrize("name", KEPT)
def test_a_kept_file_loads(name):
    model = tacit.load(path_of(name))
    method = "predict" if hasattr(model, "predict") else "transform"
    table = rows(name)
    assert len(getattr(model, method)(table)) == (300 if name.startswith("federated") else len(table))
    assert model.guarantee_.recompute() <= model.guarantee_.epsilon


def test_a_kept_file_says_what_it_said():
    told = np.loadtxt(EXPECTED, delimiter=",")
    for expected, (name, predicted) in zip(told, PREDICTED.items(), strict=True):
        np.testing.assert_allclose(predicted(tacit.load(path_of(name))), expected, rtol=1e-9)


if __name__ == "__main__":
    assert set(KEPT) <= set(MAKERS)
    FOLDER.mkdir(exist_ok=True)
    for name in KEPT:
        tacit.save(made(name), path_of(name))
    np.savetxt(EXPECTED, [predicted(tacit.load(path_of(name))) for name, predicted in PREDICTED.items()], delimiter=",")
