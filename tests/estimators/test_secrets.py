"""The data is nowhere but in the releases: not in messages, not in pickles, not in what a model holds."""

import copy
import gc
import io
import logging
import pickle
import struct
import traceback
import warnings
from functools import partial

import numpy as np
import pytest
from scipy import sparse

from tacit import PCA, LogisticRegression
from tacit.blocks import Bounded
from tacit.estimators import fit
from tacit.privacy import Gate, NoiseSource
from tacit.privacy.plan import Promise
from tacit.solvers import SOLVERS, Solution

from .support import every, quiet
from .test_bad_input import REFUSED_DATA, REFUSED_LABELS, SENTINEL
from .test_export import parts

pytestmark = quiet
WORD = "SECRET"


def told_by(error):
    """All that a log could show of an error: its chain of causes, messages and arguments, but not our source lines."""
    chain = traceback.TracebackException.from_exception(error, lookup_lines=False, capture_locals=False)
    texts = []
    while error is not None:
        texts += [str(error), repr(error), repr(error.args)]
        error = error.__cause__ or error.__context__
    return " ".join([*texts, *chain.format_exception_only()])


def assert_no_secret(text):
    for secret in (WORD, "987654", "9.87654", "9.8765e", "9.877e"):
        assert secret not in text


def bad_fits(kind):
    for change, _ in REFUSED_DATA.values():
        X, y = kind.problem(60)
        X[0, 0] = SENTINEL
        if not kind.classifies:
            y[0] = SENTINEL
        yield kind.make(), *change(X, y)
    if kind.classifies:
        for options, change, _ in REFUSED_LABELS.values():
            X, y = kind.problem(60)
            yield kind.make(**options), X * SENTINEL, change(y)


@every
def test_no_error_of_a_fit_quotes_the_data(kind):
    raised = 0
    for model, X, y in bad_fits(kind):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                model.fit(X, y)
            except Exception as error:
                raised += 1
                assert_no_secret(told_by(error))
        assert_no_secret(" ".join(str(w.message) for w in caught))
    assert raised >= len(REFUSED_DATA) - 1  # one of them is read after all


@every
def test_no_error_of_a_prediction_quotes_the_data(kind):
    X, y = kind.problem(60)
    X[0, 0] = SENTINEL
    model = kind.make().fit(X, y)
    methods = ("predict", "predict_proba", "predict_log_proba", "decision_function")
    for method in filter(partial(hasattr, model), methods):
        raised = 0
        for change, _ in REFUSED_DATA.values():
            given, target = change(X, y)
            if target is y:  # what is wrong is X
                try:
                    getattr(model, method)(given)
                except Exception as error:
                    raised += 1
                    assert_no_secret(told_by(error))
        assert raised > 10


@every
def test_no_error_in_the_middle_of_a_fit_quotes_the_data(kind, monkeypatch):
    # A fault where the rows are at hand: what it says is the fault's own, and rows do not print themselves.
    class Broken:
        def __init__(self, honest):
            self.honest = honest

        def __getattr__(self, name):
            return getattr(self.honest, name)

        def run(self, data, gate):
            raise RuntimeError(f"{data} {self.honest} {gate!r}")

    for solver in SOLVERS.values():
        monkeypatch.setattr(solver, "at", lambda self, task, honest=solver.at: Broken(honest(self, task)))
    X, y = kind.problem(60)
    with pytest.raises(RuntimeError, match="private") as caught:
        kind.make().fit(X * SENTINEL, y)
    assert_no_secret(told_by(caught.value))


@every
def test_nothing_is_printed_or_logged(kind, capfd, caplog):
    X, y = kind.problem(60)
    X[0] = SENTINEL
    with caplog.at_level(logging.DEBUG):
        kind.make(verbose=2).fit(X, y).predict(X)
    seen = capfd.readouterr()
    assert_no_secret(seen.out + seen.err + caplog.text)


def as_bytes(number):
    yield repr(number).encode()
    for form in ("<d", ">d", "<f", ">f"):
        yield struct.pack(form, number)


def fits(kind, n):
    for store in (np.asarray, sparse.csr_array):
        for declared in ({}, {"row_norm": 1e4}):
            X, y = kind.problem(n)
            X[5] = SENTINEL
            if not kind.classifies:
                y = y.copy()
                y[5] = SENTINEL
            yield kind.make(epsilon=2.0, **declared).fit(store(X), y), store(X)


@every
def test_a_pickle_holds_no_row(kind):
    for model, X in fits(kind, 300):
        for stored in (model, copy.deepcopy(model), model.to_sklearn()):
            for protocol in (2, pickle.HIGHEST_PROTOCOL):
                blob = pickle.dumps(stored, protocol=protocol)
                assert not any(pattern in blob for pattern in as_bytes(SENTINEL))
        again = pickle.load(io.BytesIO(pickle.dumps(model)))
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        assert again.guarantee_ == model.guarantee_


@every
def test_the_patterns_would_find_a_row(kind):
    model, X = next(fits(kind, 300))
    model.leak_ = X.toarray() if sparse.issparse(X) else X
    assert any(pattern in pickle.dumps(model) for pattern in as_bytes(SENTINEL))


@every
def test_a_model_is_as_large_for_many_rows_as_for_few(kind):
    # With fewer rows than these the plan, which is public and in the model, has a release more.
    few = [len(pickle.dumps(model)) for model, _ in fits(kind, 1_500)]
    many = [len(pickle.dumps(model)) for model, _ in fits(kind, 6_000)]
    assert np.max(np.abs(np.subtract(few, many))) <= 16  # n itself takes a byte more


@every
def test_a_model_holds_released_numbers_and_parameters_only(kind):
    private = (NoiseSource, Gate, Bounded, Solution, fit.Fitted, fit.Planned)
    for model, _ in fits(kind, 300):
        held = list(parts(vars(model)))
        assert not any(isinstance(part, private) for part in held)
        arrays = [part for part in held if isinstance(part, np.ndarray)]
        assert all(array.size <= 5 and (array.base is None or array.base.size <= 5) for array in arrays)
        public = set(vars(model)) - set(model.get_params())
        assert public <= {
            *("coef_", "coef_noise_", "intercept_", "clip_low_", "clip_high_", "fill_", "n_features_in_"),
            *("plan_", "guarantee_"),
            "classes_" if kind.classifies else "y_bounds_",
        }
        assert isinstance(model.plan_, Promise)  # fixed before the data was read
        assert model.plan_.event == model.guarantee_.event
        assert model.coef_noise_.shape == model.coef_.shape


@every
def test_no_rows_and_no_noise_outlive_a_fit(kind):
    X, y = kind.problem(300)
    gc.freeze()  # what was there before the fit is not looked through
    try:
        model = kind.make().fit(X, y)
        gc.collect()
        alive = [thing for thing in gc.get_objects() if issubclass(type(thing), Bounded | Gate | NoiseSource)]
    finally:
        gc.unfreeze()
    assert alive == []
    assert model.coef_.shape[-1] == 4


@every
def test_a_row_changes_nothing_but_what_is_released(kind):
    # The same noise and two tables: all that differs is a function of releases. What is not must be equal.
    X, y = kind.problem(300)
    other = X.copy()
    other[0] = 1e6
    one, two = (kind.make(random_state=1).fit(table, y) for table in (X, other))
    assert one.guarantee_ == two.guarantee_
    assert one.get_params() == two.get_params()
    assert set(vars(one)) == set(vars(two))


@pytest.mark.parametrize("row", [0.0, 5e-324, 1e308])
def test_a_user_who_lets_numpy_raise_hears_nothing_of_a_row(row):
    # Numbers that underflow or overflow in the middle of a fit are those of one row.
    X = np.random.default_rng(0).normal(size=(300, 4)) * [1.0, 1e3, 1.0, 1.0]
    y = (X[:, 0] > 0.0).astype(int)
    X[0] = row
    wide = sparse.csr_array(np.hstack([X, np.random.default_rng(1).random((300, 300)) < 0.03]))
    with np.errstate(all="raise"):
        for solver in ("objective", "coordinate", "gradient"):
            LogisticRegression(classes=[0, 1], solver=solver, fit_intercept=False).fit(X, y)
        PCA(2, epsilon=30.0, center=False).fit(wide)
