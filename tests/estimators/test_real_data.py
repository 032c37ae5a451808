"""Real data at epsilon = 1: what the documentation promises, with nothing declared and nothing tuned."""

import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import train_test_split

from .support import ELASTIC_NET, LASSO, LINEAR, LOGISTIC, RIDGE, quiet

FOLDER = Path(os.environ.get("TACIT_TEST_DATA", Path(__file__).parents[3] / "shared" / "data"))
SEEDS = (0, 1, 2)

pytestmark = [
    quiet,
    pytest.mark.skipif(not FOLDER.is_dir(), reason=f"no data folder {FOLDER}; set TACIT_TEST_DATA to one"),
]


@pytest.mark.parametrize(
    ("name", "kind", "least"),
    [
        ("adult", LOGISTIC, 0.848),
        ("elec2", LOGISTIC, 0.751),
        ("phishing", LOGISTIC, 0.935),
        ("california_housing", LINEAR, 0.655),
        ("california_housing", RIDGE, 0.655),
        ("california_housing", LASSO, 0.65),
        ("california_housing", ELASTIC_NET, 0.65),
    ],
    ids=str,
)
def test_scores_at_epsilon_1(name, kind, least):
    path = FOLDER / f"{name}.npz"
    if not path.exists():
        pytest.skip(f"no {path}")
    arrays = np.load(path)
    X, y = arrays["X"].astype(np.float32), arrays["y"]
    scores = []
    for seed in SEEDS:
        stratify = y if kind.classifies else None
        X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=seed, stratify=stratify)
        model = kind.make(epsilon=1.0, random_state=seed, **kind.light).fit(X_train, y_train)
        scores.append(model.score(X_test, y_test))
    error = np.std(scores, ddof=1) / np.sqrt(len(scores))
    assert np.mean(scores) >= least - 2 * error
