"""Scores of rows in blocks are those of the table in memory."""

import numpy as np
import pytest

from tacit import LogisticRegression, Ridge
from tacit.metrics import evaluate, evaluate_blocks

pytestmark = pytest.mark.filterwarnings("ignore:random_state is set")


def rows(classes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 3))
    y = X[:, 0] + rng.normal(size=900)
    return X, np.digitize(y, [0.0, 1.0][: classes - 1]) if classes else y


@pytest.mark.parametrize("classes", [0, 2, 3])
@pytest.mark.parametrize("epsilon", [1.0, float("inf")])
@pytest.mark.parametrize("size", [29, 900])
def test_scores_of_blocks_are_those_of_the_whole(classes, epsilon, size):
    X, y = rows(classes)
    model = (LogisticRegression(random_state=0) if classes else Ridge(random_state=0)).fit(X, y)
    terms = {"epsilon": epsilon, "random_state": 1}
    blocks = [(X[start : start + size], y[start : start + size]) for start in range(0, 900, size)]
    whole, found = evaluate(model, X, y, **terms), evaluate_blocks(model, [*blocks, (X[:0], y[:0])], **terms)
    assert list(whole) == list(found)
    for name in whole:
        assert found[name].value == pytest.approx(whole[name].value, rel=1e-12)
        assert found[name].guarantee == whole[name].guarantee


def test_bad_blocks_are_refused():
    X, y = rows(2)
    model = LogisticRegression(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="pairs"):
        evaluate_blocks(model, [X], epsilon=1.0)
    with pytest.raises(ValueError, match="at least two rows together, got 1"):
        evaluate_blocks(model, [(X[:1], y[:1])], epsilon=1.0)

    class Shrinking:
        size = 901

        def __iter__(self):
            self.size -= 1
            return iter([(X[: self.size], y[: self.size])])

    with pytest.raises(ValueError, match="changed between two readings; nothing was spent"):
        evaluate_blocks(model, Shrinking(), epsilon=1.0)
