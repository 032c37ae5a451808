"""The estimators under test: a new one is covered by every test of this folder the day it is added here."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn import linear_model, svm

import tacit
from tacit.privacy.gate import Grant

FOLDER = Path(os.environ.get("TACIT_TEST_DATA", Path(__file__).parents[3] / "shared" / "data"))
needs_folder = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"no data folder {FOLDER}; set TACIT_TEST_DATA to one")


@dataclass(frozen=True)
class Kind:
    """An estimator, its scikit-learn counterpart, and what its data looks like."""

    make: Any
    peer: Any
    classifies: bool
    solver: str = "gradient"  # what "auto" stands for on its data
    light: Mapping[str, float] = field(default_factory=dict)  # a penalty that hardly matters, where the default does

    def __str__(self):
        return self.make.__name__

    @property
    def has_probabilities(self):
        return hasattr(self.make, "predict_proba")

    def problem(self, n=600, d=4, seed=0, classes=2):
        """Columns in different units, and a target that follows them."""
        rng = np.random.default_rng(seed)
        Z = rng.normal(size=(n, d))
        X = Z * np.resize([1.0, 100.0, 0.01], d) + np.resize([0.0, 500.0, 1.0], d)
        margins = Z @ np.resize([2.0, -1.0, 1.5], d) + 0.3 * rng.normal(size=n)
        if not self.classifies:
            return X, 10.0 * margins + 40.0
        return X, np.digitize(margins, np.quantile(margins, np.arange(1, classes) / classes))


LOGISTIC = Kind(tacit.LogisticRegression, linear_model.LogisticRegression, True)
SVC = Kind(tacit.LinearSVC, svm.LinearSVC, True, "sgd")
LINEAR = Kind(tacit.LinearRegression, linear_model.LinearRegression, False)
RIDGE = Kind(tacit.Ridge, linear_model.Ridge, False)
LASSO = Kind(tacit.Lasso, linear_model.Lasso, False, "coordinate", {"alpha": 0.01})
ELASTIC_NET = Kind(tacit.ElasticNet, linear_model.ElasticNet, False, "coordinate", {"alpha": 0.01})
KINDS = (LOGISTIC, SVC, LINEAR, RIDGE, LASSO, ELASTIC_NET)
CLASSIFIERS = tuple(kind for kind in KINDS if kind.classifies)
REGRESSORS = tuple(kind for kind in KINDS if not kind.classifies)

every = pytest.mark.parametrize("kind", KINDS, ids=str)
classifiers = pytest.mark.parametrize("kind", CLASSIFIERS, ids=str)
regressors = pytest.mark.parametrize("kind", REGRESSORS, ids=str)

quiet = pytest.mark.filterwarnings("ignore:.*(random_state is set|budget is too small|is not below 1/n):UserWarning")


@pytest.fixture
def releases(monkeypatch):
    """A list that grows by one name with every release."""
    made = []
    take = Grant.take

    def counted(grant, count=1):
        made.extend([grant.name] * count)
        return take(grant, count)

    monkeypatch.setattr(Grant, "take", counted)
    return made
