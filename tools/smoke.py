"""What must work where nothing but the wheel and its dependencies is installed: `make wheel` runs this, not the tests.

No pytest and no extra is there. One private fit, its guarantee, a file and back, a principal component, and the limit
without noise against scikit-learn on the clipped rows; each checked by an assertion.
"""

import tempfile
from pathlib import Path

import numpy as np
import sklearn.linear_model

import tacit


def main() -> None:
    """Fit, save, load and compare; an assertion that fails ends it."""
    where = Path(tacit.__file__).resolve()
    assert "site-packages" in where.parts, f"not the installed package: {where}"

    rng = np.random.default_rng(0)
    X = rng.normal(size=(5_000, 3)) * [1.0, 100.0, 0.01]
    y = (X @ [1.0, 0.01, 0.0] + rng.logistic(size=5_000) > 0).astype(int)

    model = tacit.LogisticRegression(epsilon=1.0, classes=[0, 1]).fit(X, y)
    assert model.guarantee_.epsilon == 1.0
    assert model.score(X, y) > 0.65  # these rows allow about 0.73; guessing gives 0.5

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        tacit.save(model, path)
        assert np.array_equal(tacit.load(path).predict_proba(X), model.predict_proba(X))

    components = tacit.PCA(n_components=1, epsilon=1.0).fit(X).components_
    assert abs(components[0, 1]) > 0.99  # the column with the large unit

    limit = tacit.LinearRegression(epsilon=float("inf"), y_bounds=(0, 1)).fit(X, y)
    clipped = np.clip(X, limit.clip_low_, limit.clip_high_)
    theirs = sklearn.linear_model.LinearRegression().fit(clipped, y)
    assert np.allclose(limit.coef_, theirs.coef_, rtol=1e-6)
    print(f"tacit {tacit.__version__} from {where.parent}: {model.guarantee_}")


if __name__ == "__main__":
    main()
