import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array, issparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from tacit import PrivateScaler, RowClipper
from tacit.utils import expected_failed_checks


def table(n=50, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 4)) * 3.0


def test_scikit_learns_checks_pass():
    clipper = RowClipper()
    check_estimator(clipper, expected_failed_checks=expected_failed_checks(clipper), on_skip=None)


@pytest.mark.parametrize("norm", [1e-3, 1.0, 4.0, 1e9])
@pytest.mark.parametrize("make", [np.asarray, csr_array])
def test_no_row_is_longer_than_the_norm(make, norm):
    X = table()
    out = RowClipper(norm).fit_transform(make(X))
    assert issparse(out) == (make is csr_array)
    out = out.toarray() if issparse(out) else out
    for row, clipped in zip(X, out, strict=True):
        length = sum(Fraction(v) ** 2 for v in clipped.tolist())
        assert length <= Fraction(norm) ** 2
        np.testing.assert_allclose(clipped, row * min(1.0, norm / np.linalg.norm(row)), rtol=1e-8)


def test_a_row_is_treated_by_itself():
    X = table()
    clipper = RowClipper(2.0).fit(X)
    together = clipper.transform(X)
    for i in range(len(X)):
        np.testing.assert_array_equal(clipper.transform(X[i : i + 1])[0], together[i])


def test_learns_nothing_but_the_number_of_columns():
    one, other = RowClipper().fit(table(seed=1)), RowClipper().fit(table(seed=2) * 1e6)
    assert vars(one) == vars(other) == {"norm": 1.0, "n_features_in_": 4}


def test_keeps_its_input_and_its_parameters():
    X = table()
    before = X.copy()
    clipper = RowClipper(0.5)
    clipper.fit_transform(X)
    np.testing.assert_array_equal(X, before)
    assert clone(clipper).norm == 0.5
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(clipper)).transform(X), clipper.transform(X))


def test_stands_before_a_private_estimator():
    pipeline = make_pipeline(RowClipper(5.0), PrivateScaler(3.0, row_norm=5.0, random_state=0)).fit(table(500))
    assert np.abs(pipeline.transform(table(500))).max() <= 3.0


def test_keeps_pandas_frames():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(table(), columns=list("abcd"))
    out = RowClipper().set_output(transform="pandas").fit_transform(frame)
    assert list(out.columns) == list("abcd")


@pytest.mark.parametrize(
    ("norm", "error"),
    [(0.0, ValueError), (-1.0, ValueError), (math.inf, ValueError), (math.nan, ValueError), ("1", TypeError)],
)
def test_bad_norms_raise(norm, error):
    with pytest.raises(error, match="norm must be"):
        RowClipper(norm).fit(table())


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_values_that_are_not_finite_raise(bad):
    X = table()
    X[3, 1] = bad
    with pytest.raises(ValueError, match="contains"):
        RowClipper().fit(X)
    with pytest.raises(ValueError, match="contains"):
        RowClipper().fit(table()).transform(X)
