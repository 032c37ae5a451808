"""Real data: what is promised at epsilon = 1, with nothing declared or tuned, and the limit without noise."""

import math

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from .support import ELASTIC_NET, FOLDER, LASSO, LINEAR, LOGISTIC, RIDGE, needs_folder, quiet

SEEDS = (0, 1, 2)

pytestmark = [quiet, needs_folder]


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


@pytest.mark.parametrize("kind", [LASSO, ELASTIC_NET], ids=str)
@pytest.mark.parametrize("name", ["california_housing", "msd_subset_year", "diabetes"])
def test_without_noise_it_is_scikit_learns_objective_on_the_bounded_data(name, kind):
    if name == "diabetes":
        X, y = load_diabetes(return_X_y=True)
    else:
        path = FOLDER / f"{name}.npz"
        if not path.exists():
            pytest.skip(f"no {path}")
        arrays = np.load(path)
        X, y = arrays["X"][:3_000].astype(np.float64), arrays["y"][:3_000].astype(np.float64)
    alpha = 0.02 * y.std() if kind is LASSO else 0.02
    share = 1.0 if kind is LASSO else 0.5  # of the l1 penalty
    model = kind.make(epsilon=math.inf, alpha=alpha, random_state=0).fit(X, y)
    low, high = model.clip_low_, model.clip_high_
    centre, scale = (low + high) / 2, (high - low) / 6
    Z, targets = (np.clip(X, low, high) - centre) / scale, np.clip(y, *model.y_bounds_)
    peer = kind.peer(alpha=alpha, tol=1e-10, max_iter=100_000).fit(Z, targets)

    def objective(coef, intercept):
        penalty = share * np.abs(coef).sum() + (1 - share) / 2 * np.square(coef).sum()
        return np.square(targets - Z @ coef - intercept).mean() / 2 + alpha * penalty

    best = objective(peer.coef_, peer.intercept_)
    ours = objective(model.coef_ * scale, model.intercept_ + model.coef_ @ centre)
    assert best * (1 - 1e-9) <= ours <= best * (1 + 1e-4)
    assert np.count_nonzero(peer.coef_) > 2
