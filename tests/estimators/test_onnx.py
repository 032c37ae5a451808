"""What `to_sklearn()` gives is converted to ONNX by skl2onnx, and onnxruntime predicts the same in single precision."""

import numpy as np
import pytest
from sklearn.preprocessing import Normalizer
from sklearn.svm import LinearSVC as PlainLinearSVC

from tacit import PCA, LinearSVC, LogisticRegression, PrivateEncoder
from tests.estimators.tables import FRAME, Y, fitted

from .support import KINDS, quiet

skl2onnx = pytest.importorskip("skl2onnx", reason="converts to ONNX; a dependency of development only")
onnxruntime = pytest.importorskip("onnxruntime", reason="runs ONNX; a dependency of development only")

pytestmark = [quiet, pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:random_state")]
SINGLE = {"zipmap": False}  # probabilities as an array, not as a dict for each row
SVC = {PlainLinearSVC: {"raw_scores": True}}  # by its class: skl2onnx asks a LinearSVC in a pipeline for "zipmap" else


def run(plain, given, options=None, **told):
    """All outputs of the converted model: a label and scores, or a number, for each row."""
    model = skl2onnx.to_onnx(plain, options=options, **told)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, given if isinstance(given, dict) else {session.get_inputs()[0].name: given})


def check_close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


def short(X):
    return np.ascontiguousarray(X, dtype=np.float32)


CASES = [(kind, classes) for kind in KINDS for classes in ((2, 4) if kind.classifies else (2,))]


@pytest.mark.whole
@pytest.mark.parametrize(("kind", "classes"), CASES, ids=str)
def test_a_model_predicts_the_same(kind, classes):
    X, y = kind.problem(500, d=7, classes=classes)
    model = kind.make(epsilon=20.0, random_state=0).fit(X, y)
    rows = np.vstack([short(X), short(100.0 * X)])  # far outside of the clip as well
    rows[0, 0] = np.nan
    options = SVC if isinstance(model, LinearSVC) else SINGLE if kind.classifies else None
    found = run(model.to_sklearn(), rows, options, X=rows[:1])
    if not kind.classifies:
        return check_close(found[0].ravel(), model.predict(rows))
    scores = model.predict_proba(rows) if kind.has_probabilities else model.decision_function(rows)
    check_close(found[1] if scores.ndim > 1 else found[1][:, -1], scores)
    assert np.mean(found[0] == model.predict(rows)) > 0.995  # where two classes are level, rounding decides


def test_components_are_the_same():
    X = np.random.default_rng(0).normal(size=(500, 6)) * [5.0, 3.0, 1.0, 1.0, 1.0, 1.0]
    for whiten in (False, True):
        model = PCA(2, epsilon=20.0, whiten=whiten, random_state=0).fit(X)
        check_close(run(model.to_sklearn(), short(X), X=short(X[:1]))[0], model.transform(X))


@pytest.mark.parametrize("between", [[], [Normalizer()]])
def test_a_pipeline_predicts_the_same_from_columns_of_text_and_of_numbers(between):
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType

    model = fitted(PrivateEncoder(), *between, LogisticRegression())
    types = [(name, (FloatTensorType if name == "age" else StringTensorType)([None, 1])) for name in FRAME]
    frame = FRAME.assign(job=FRAME["job"].where(FRAME.index > 0, "spy"))
    columns = {name: frame[[name]].to_numpy(dtype=np.float32 if name == "age" else object) for name in frame}
    label, probabilities = run(model.to_sklearn(), columns, SINGLE, initial_types=types)
    check_close(probabilities, model.predict_proba(frame))
    assert np.mean(label == model.predict(frame)) > 0.999
    assert np.mean(label == Y) > 0.8
