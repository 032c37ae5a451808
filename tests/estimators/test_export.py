"""`to_sklearn`: the same predictions from scikit-learn alone."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression as PlainLogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from tacit import LogisticRegression

from .support import KINDS, every, quiet

pytestmark = quiet

MODELS = [
    (kind, classes, store, fit_intercept)
    for kind in KINDS
    for classes in ((2, 4) if kind.classifies else (2,))
    for store in (np.asarray, sparse.csr_array)
    for fit_intercept in (True, False)
]
every_model = pytest.mark.parametrize(("kind", "classes", "store", "fit_intercept"), MODELS)


def fitted(kind, classes=2, store=np.asarray, fit_intercept=True, d=7):
    X, y = kind.problem(500, d=d, classes=classes)
    return kind.make(epsilon=5.0, fit_intercept=fit_intercept, random_state=0).fit(store(X), y), store(X)


CLOSE = {"rtol": 1e-9, "atol": 1e-9}  # both multiply by BLAS, whose last bits may go with where an array lies


def check_predictions(kind, found, expected):
    if kind.classifies:
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_allclose(found, expected, **CLOSE)


@every_model
def test_predictions_are_equal(kind, classes, store, fit_intercept):
    model, X = fitted(kind, classes, store, fit_intercept)
    X = taken(model, X)
    exported = model.to_sklearn()
    assert isinstance(exported, Pipeline)
    assert isinstance(exported[-1], kind.peer)
    inputs = [X, X[:1], X * 1e6] + ([] if sparse.issparse(X) else [with_holes(X), X.tolist()])
    for given in inputs:
        check_predictions(kind, exported.predict(given), model.predict(given))
        if kind.classifies:
            np.testing.assert_allclose(exported.decision_function(given), model.decision_function(given), **CLOSE)
        if kind.has_probabilities:
            np.testing.assert_allclose(
                exported.predict_proba(given), model.predict_proba(given), rtol=1e-9, atol=1e-300
            )
    if kind.classifies:
        np.testing.assert_array_equal(exported.classes_, model.classes_)


def taken(model, X):
    """Rows as what is exported takes them: an array, for a table, which has a clip of its own for each column."""
    return X.toarray() if sparse.issparse(X) and np.isfinite(model.clip_low_).all() else X


def with_holes(X):
    """The same rows, with values missing here and there."""
    return np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)


@every
def test_single_precision_is_scaled_in_single_precision(kind):
    """As scikit-learn's transformers do."""
    model, X = fitted(kind)
    short = X.astype(np.float32)
    call = "decision_function" if kind.classifies else "predict"
    found, expected = (getattr(one, call)(short) for one in (model.to_sklearn(), model))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


@every
def test_string_labels_and_column_names_go_along(kind):
    pandas = pytest.importorskip("pandas")
    X, y = kind.problem()
    table = pandas.DataFrame(X, columns=list("abcd"))
    model = kind.make(epsilon=5.0, random_state=0).fit(table, np.array(["no", "yes"])[y] if kind.classifies else y)
    exported = model.to_sklearn()
    check_predictions(kind, exported.predict(table), model.predict(table))
    assert exported.feature_names_in_.tolist() == list("abcd")
    assert exported.n_features_in_ == 4


@every
def test_input_that_does_not_fit_is_refused_with_words(kind):
    model, X = fitted(kind)
    exported = model.to_sklearn()
    with pytest.raises(ValueError, match="7 features"):
        exported.predict(X[:, :3])
    with pytest.raises(TypeError, match="dense data is required"):
        exported.predict(sparse.csr_array(X))


def parts(thing, seen=None):
    """The object and everything it holds."""
    seen = {} if seen is None else seen
    if id(thing) in seen:
        return
    seen[id(thing)] = thing
    yield thing
    held = list(vars(thing).values()) if hasattr(thing, "__dict__") and not isinstance(thing, type) else []
    if isinstance(thing, dict):
        held += [*thing.keys(), *thing.values()]
    elif isinstance(thing, list | tuple | set):
        held += list(thing)
    for part in held:
        yield from parts(part, seen)


@every_model
def test_nothing_in_it_comes_from_tacit(kind, classes, store, fit_intercept):
    model, _ = fitted(kind, classes, store, fit_intercept)
    exported = model.to_sklearn()
    homes = {(type(part).__module__ or "").partition(".")[0] for part in parts(exported)}
    assert homes <= {"sklearn", "numpy", "builtins"}
    assert b"tacit" not in pickle.dumps(exported)
    exported[-1].coef_[:] = 0.0  # a copy: the model keeps its own
    assert np.any(model.coef_ != 0.0)


PREDICT = """
import pickle, sys
sys.modules["tacit"] = None   # importing it would raise
import numpy as np
with open(sys.argv[1], "rb") as file:
    for exported, X, expected in pickle.load(file):
        found = exported.predict(X)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
assert not any(name.startswith("tacit.") for name in sys.modules)
print("done")
"""


def test_it_predicts_in_a_process_without_tacit(tmp_path):
    triples = []
    for model in MODELS:
        private, X = fitted(*model)
        X = taken(private, X)
        triples.append((private.to_sklearn(), X, private.predict(X)))
    path = tmp_path / "models.pickle"
    path.write_bytes(pickle.dumps(triples))
    command = [sys.executable, "-W", "error", "-c", PREDICT, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout.strip() == "done", done.stderr


def test_one_against_the_rest_is_exported_with_its_probabilities():
    X, y = load_iris(return_X_y=True)
    model = LogisticRegression(epsilon=1e6, solver="dual", classes=[0, 1, 2]).fit(X, y)
    plain = model.to_sklearn()
    np.testing.assert_array_equal(plain.predict(X), model.predict(X))
    np.testing.assert_allclose(plain.predict_proba(X), model.predict_proba(X), rtol=1e-12)
    np.testing.assert_allclose(plain.decision_function(X), model.decision_function(X), rtol=1e-12)
    assert "tacit" not in {type(step).__module__.partition(".")[0] for _, step in plain.steps}


def test_one_against_the_rest_is_what_scikit_learn_finds_without_noise():
    X, y = load_iris(return_X_y=True)
    model = LogisticRegression(epsilon=float("inf"), solver="dual", classes=[0, 1, 2]).fit(X, y)
    bounded = np.clip(X, model.clip_low_, model.clip_high_)
    units = StandardScaler().fit(bounded)
    peer = OneVsRestClassifier(PlainLogisticRegression(tol=1e-10, max_iter=1_000)).fit(units.transform(bounded), y)
    theirs = peer.predict_proba(units.transform(bounded))
    assert np.abs(model.predict_proba(X) - theirs).max() < 0.03
