"""Every set of the data folder, read as it is."""

import os
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import OneHotEncoder

from tacit.datasets import describe, load

FOLDER = Path(os.environ.get("TACIT_TEST_DATA", Path(__file__).parents[3] / "shared" / "data"))

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"no data folder {FOLDER}; set TACIT_TEST_DATA to one")


def read(name, **options):
    try:
        return load(name, data_home=FOLDER, download_if_missing=False, **options)
    except FileNotFoundError:
        pytest.skip(f"no {name} in {FOLDER}")


# The share of the larger class or the mean of the target, the size of the test part, and the range of the entries.
FACTS = {
    "a9a": (0.761, 16_281, (0, 1)),
    "adult": (0.761, 16_281, (0, 1_490_400)),
    "california_housing": (2.069, None, (-124.35, 35_682)),
    "colon": (0.645, None, (5.816, 20_903.178)),
    "elec2": (0.575, None, (0, 7)),
    "leukemia_golub": (0.653, 34, (-28_400, 71_369)),
    "mnist": (0.113, 10_000, (0, 255)),
    "msd_subset_year": (1_998.0, None, (-8_744.887, 26_939.363)),
    "phishing": (0.557, None, (0, 0.18257)),
}


@pytest.mark.parametrize("name", FACTS)
def test_sets_that_are_tables(name):
    centre, n_test, (low, high) = FACTS[name]
    dataset, bunch = describe(name), read(name)
    assert bunch.data.shape == dataset.shape
    assert bunch.data.dtype == np.float32
    assert isinstance(bunch.data, sparse.csr_array if dataset.sparse else np.ndarray)
    assert bunch.data.min() == pytest.approx(low, rel=1e-4)
    assert bunch.data.max() == pytest.approx(high, rel=1e-4)
    assert bunch.target.shape == dataset.shape[:1]
    assert (None if bunch.is_test is None else bunch.is_test.sum()) == n_test
    assert bunch.feature_names is None or len(bunch.feature_names) == dataset.shape[1]
    if dataset.classes is None:
        assert bunch.target.mean() == pytest.approx(centre, rel=1e-3)
    else:
        values, counts = np.unique(bunch.target, return_counts=True)
        assert tuple(values) == dataset.classes.codes
        assert counts.max() / counts.sum() == pytest.approx(centre, abs=1e-3)


@pytest.mark.parametrize(("name", "n_test"), [("news20", 7_532), ("sms_spam", None)])
def test_sets_that_are_text(name, n_test):
    dataset, bunch = describe(name), read(name)
    assert bunch.data.shape == (dataset.shape[0], 2**16)
    norms = sparse.linalg.norm(bunch.data, axis=1)
    assert np.all((np.abs(norms - 1) < 1e-5) | (norms == 0))
    assert (norms > 0).mean() > 0.99
    assert (None if bunch.is_test is None else bunch.is_test.sum()) == n_test
    counts = read(name, features="counts")
    assert counts.data.shape == dataset.shape
    assert len(counts.feature_names) == dataset.shape[1]
    assert np.all(counts.data.data >= 1)
    np.testing.assert_array_equal(counts.target, bunch.target)
    assert read(name, features="tf-idf").data.shape == dataset.shape


def test_every_training_word_of_news20_has_a_column():
    """So a hashed training row would be the same if the others were not there."""
    bunch = read("news20", features="counts")
    assert np.all(np.diff(bunch.data[~bunch.is_test].tocsc().indptr) > 0)
    assert len(np.unique(bunch.newsgroup)) == 20


def test_fnlwgt_is_where_the_caution_says():
    bunch = read("adult")
    assert bunch.feature_names[1] == "fnlwgt"
    assert np.all(bunch.data[:, 6:].sum(axis=1) == 8)  # one category for each of eight questions


def test_adult_has_the_81_columns_of_its_paper():
    bunch = read("adult", features="dp-scd")
    assert bunch.data.shape == (48_842, 81)
    assert int(bunch.is_test.sum()) == 16_281
    categories = bunch.data[:, 5:]
    assert set(np.unique(categories)) == {0.0, 1.0}
    assert categories.mean(axis=0).max() < 0.5  # the most frequent ones have no column


def test_phishing_is_one_hot_over_the_root_of_30():
    X, raw = read("phishing"), read("phishing", features="raw")
    ours = OneHotEncoder(sparse_output=False).fit_transform(raw.data) / np.sqrt(30)
    assert ours.shape == X.data.shape
    np.testing.assert_allclose(np.sort(ours.sum(axis=0)), np.sort(X.data.sum(axis=0)), rtol=1e-3)
    np.testing.assert_array_equal(X.target, raw.target)
