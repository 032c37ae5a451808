"""Real text: what is promised with rows of norm 1 and nothing tuned, at several budgets."""

import numpy as np
import pytest
from sklearn.model_selection import train_test_split

from tacit import LogisticRegression
from tacit.datasets import load

from .support import FOLDER, needs_folder, quiet

SEEDS = (0, 1, 2)

pytestmark = [quiet, needs_folder]


@pytest.mark.parametrize(
    ("name", "epsilon", "least"),
    [
        ("sms_spam", 1.0, 0.93),
        pytest.param("sms_spam", 3.0, 0.955, marks=pytest.mark.slow),
        pytest.param("news20", 0.1, 0.72, marks=pytest.mark.slow),
        pytest.param("news20", 1.0, 0.89, marks=pytest.mark.slow),
        pytest.param("news20", 3.0, 0.93, marks=pytest.mark.slow),
        pytest.param("news20", 10.0, 0.95, marks=pytest.mark.slow),
    ],
)
def test_scores_of_text(name, epsilon, least):
    try:
        X, y = load(name, data_home=FOLDER, n_hashed=2**17, download_if_missing=False, return_X_y=True)
    except FileNotFoundError:
        pytest.skip(f"no {name} in {FOLDER}")
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=0)
    models = [LogisticRegression(epsilon, row_norm=1.0, random_state=seed).fit(X_train, y_train) for seed in SEEDS]
    assert np.mean([model.score(X_test, y_test) for model in models]) >= least
