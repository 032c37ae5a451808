"""Without noise `gradient` finds scikit-learn's objective on the bounded rows, to six digits; five for ten classes."""

import math
import warnings

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression as PlainLogisticRegression

from tacit import LogisticRegression
from tacit.estimators.fit import planned
from tacit.privacy import Gate
from tacit.solvers import choose


def objective(W, Z, places, l2):
    """The mean loss and the penalty, for one row of weights a class, the intercept last."""
    margins = Z @ W[:, :-1].T + W[:, -1]
    loss = logsumexp(margins, axis=1) - margins[np.arange(len(Z)), places]
    return float(loss.mean() + l2 / 2 * np.sum(W[:, :-1] ** 2))


def of_classes(W):
    """One margin of two classes, as weights of both that lose as much."""
    return np.vstack([np.zeros_like(W), W]) if len(W) == 1 else W


@pytest.mark.parametrize(("load", "digits"), [(load_breast_cancer, 1e-6), (load_digits, 1e-5)])
def test_the_objective_is_that_of_scikit_learn(load, digits):
    X, y = load(return_X_y=True)
    model = LogisticRegression(epsilon=math.inf)
    rows, labels = model._validated(X, y)
    task, targets = model._asked(rows, labels)
    fit, promise = planned(task, choose("gradient", task))
    with Gate.open(promise) as gate:
        data = fit.bounding.run((rows, targets), gate)
        found = fit.algorithm.run(data, gate).weights
    Z, (l2,) = data.Z.rows.astype(np.float64), set(np.broadcast_to(data.penalty.l2, X.shape[1]).tolist())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a tolerance below what floats can tell
        plain = PlainLogisticRegression(C=1.0 / (l2 * len(Z)), tol=1e-9, max_iter=20_000).fit(Z, y)
    best = objective(of_classes(np.column_stack([plain.coef_, plain.intercept_])), Z, y, l2)
    ours = objective(of_classes(found), Z, y, l2)
    assert best * (1.0 - 1e-7) <= ours <= best * (1.0 + digits)
