"""Sets from scikit-learn and OpenML, with the fetchers replaced: nothing here needs a network."""

from urllib.error import URLError

import numpy as np
import pytest
from scipy import sparse
from sklearn import datasets as sklearn_datasets
from sklearn.utils import Bunch

from tacit.datasets import describe, load

as_small = pytest.mark.filterwarnings("ignore:.*as in the catalogue:UserWarning")  # a few rows stand for a whole set


@pytest.fixture(autouse=True)
def nothing_local(monkeypatch):
    monkeypatch.delenv("TACIT_DATA", raising=False)


@pytest.fixture
def openml(monkeypatch):
    """Sets what OpenML answers; gives the arguments it was asked with."""

    def answer(data, target, names, categories=None):
        asked = {}

        def fetch_openml(**arguments):
            asked.update(arguments)
            return Bunch(data=data, target=np.asarray(target), feature_names=names, categories=categories or {})

        monkeypatch.setattr(sklearn_datasets, "fetch_openml", fetch_openml)
        return asked

    return answer


@pytest.mark.parametrize("name", ["breast_cancer", "digits", "diabetes"])
def test_bundled_sets_need_no_network(name):
    bunch = load(name, download_if_missing=False)
    theirs = getattr(sklearn_datasets, f"load_{name}")()
    assert bunch.data.shape == describe(name).shape
    assert bunch.data.dtype == np.float32
    np.testing.assert_array_equal(bunch.data, theirs.data.astype(np.float32))
    np.testing.assert_array_equal(bunch.target, theirs.target)
    assert bunch.feature_names == list(theirs.feature_names)
    assert bunch.source == f"scikit-learn (load_{name})"


@as_small
@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("a9a", 1430),
        ("adult", 1590),
        ("cifar10", 40927),
        ("colon_libsvm", 1432),
        ("elec2", 151),
        ("leukemia_golub", 1104),
        ("mnist", 554),
        ("phishing", 4534),
        ("real_sim", 1578),
        ("year_prediction_msd", 44027),
    ],
)
def test_openml_is_asked_for_the_right_set_without_pandas(openml, name, number):
    classes = describe(name).classes
    asked = openml(np.ones((1, 2)), [1999.0] if classes is None else classes.labels[-1:], ["a", "b"])
    bunch = load(name)
    assert asked == {"data_id": number, "as_frame": False, "parser": "liac-arff"}
    assert bunch.source == f"OpenML ({number})"
    assert bunch.target.tolist() == [1999.0] if classes is None else [classes.codes[-1]]
    assert bunch.is_test is None
    assert isinstance(bunch.data, sparse.csr_array if describe(name).sparse else np.ndarray)
    assert bunch.data.dtype == np.float32


@as_small
def test_categories_that_are_numbers(openml):
    # As scikit-learn hands them over: the position in the list that the file declares.
    data = np.array([[0.0, 1.0], [0.5, 6.0], [1.0, 0.0]])
    openml(data, ["UP", "DOWN", "UP"], ["date", "day"], {"day": ["2", "1", "3", "4", "5", "6", "7"]})
    bunch = load("elec2")
    np.testing.assert_array_equal(bunch.data, [[0.0, 1.0], [0.5, 7.0], [1.0, 2.0]])
    assert bunch.target.tolist() == [1, 0, 1]


@as_small
def test_one_hot_by_the_declared_categories(openml):
    nan = np.nan
    data = np.array([[30.0, 1.0, 0.0], [40.0, nan, 2.0]])
    categories = {"native-country": ["Peru", "Cuba", "Laos"], "sex": ["Male", "Female", "Other"]}
    openml(data, [">50K", "<=50K"], ["education-num", "native-country", "sex"], categories)
    bunch = load("adult")
    assert bunch.feature_names == [
        "education_num",
        "native_country_?",
        "native_country_Cuba",
        "native_country_Laos",
        "native_country_Peru",
        "sex_Female",
        "sex_Male",
        "sex_Other",
    ]
    np.testing.assert_array_equal(bunch.data, [[30, 0, 1, 0, 0, 0, 1, 0], [40, 1, 0, 0, 0, 0, 0, 1]])
    assert bunch.target.tolist() == [1, 0]


@as_small
def test_missing_values_without_a_category_leave_a_row_of_zeros(openml):
    openml(np.array([[np.nan], [1.0]]), ["<=50K", "<=50K"], ["sex"], {"sex": ["Male", "Female"]})
    np.testing.assert_array_equal(load("adult").data, [[0, 0], [1, 0]])


@as_small
def test_phishing_in_both_forms(openml):
    data = np.array([[0.0, 1.0], [1.0, 2.0]])
    categories = {"ip": ["-1", "1"], "url": ["1", "0", "-1"]}
    openml(data.copy(), ["-1", "1"], ["ip", "url"], categories)
    bunch = load("phishing")
    np.testing.assert_allclose(np.linalg.norm(bunch.data, axis=1), 1.0, rtol=1e-6)
    np.testing.assert_array_equal(bunch.data > 0, [[1, 0, 0, 1, 0], [0, 1, 1, 0, 0]])
    assert bunch.feature_names == ["ip_-1", "ip_1", "url_-1", "url_0", "url_1"]
    assert bunch.target.tolist() == [0, 1]
    np.testing.assert_array_equal(load("phishing", features="raw").data, [[-1, 0], [1, -1]])


@as_small
@pytest.mark.parametrize("labels", [[-1.0, 1.0, 1.0], ["-1", "1", "1"], ["-1.0", "+1", "1"]])
def test_labels_may_be_written_in_many_ways(openml, labels):
    openml(sparse.csr_matrix(np.eye(3)), labels, ["a", "b", "c"], {"a": ["0", "1"]})
    bunch = load("a9a")
    assert bunch.target.tolist() == [-1, 1, 1]
    np.testing.assert_array_equal(bunch.data.toarray(), np.eye(3))


@as_small
def test_a_sparse_answer_for_a_dense_set(openml):
    openml(sparse.csr_matrix(np.eye(2)), ["-1", "1"], ["a", "b"])
    np.testing.assert_array_equal(load("colon_libsvm").data, np.eye(2))


def test_sparse_categories_are_refused(openml):
    openml(sparse.csr_matrix(np.eye(2)), ["-1", "1"], ["a", "b"], {"b": ["1", "0"]})
    with pytest.raises(ValueError, match="a sparse column of categories cannot be read as numbers: 'b'"):
        load("a9a")


@as_small
def test_other_classes_raise(openml):
    openml(np.eye(2), ["UP", "SIDEWAYS"], ["a", "b"])
    with pytest.raises(ValueError, match=r"OpenML \(151\) holds other classes than those of 'elec2': DOWN, UP"):
        load("elec2")


def test_another_shape_warns(openml):
    openml(np.eye(2), ["UP", "DOWN"], ["a", "b"])
    with pytest.warns(UserWarning, match=r"'elec2' from OpenML \(151\) is 2 x 2, not 45312 x 8 as in the") as caught:
        load("elec2")
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("name", "function", "source"),
    [
        ("mnist", "fetch_openml", r"OpenML \(554\)"),
        ("california_housing", "fetch_california_housing", r"scikit-learn \(fetch_california_housing\)"),
        ("rcv1", "fetch_rcv1", r"scikit-learn \(fetch_rcv1\)"),
        ("news20", "fetch_20newsgroups_vectorized", "scikit-learn"),
    ],
)
def test_without_a_network_the_error_says_what_to_do(monkeypatch, name, function, source):
    failure = URLError("no route")

    def fail(**_):
        raise failure

    monkeypatch.setattr(sklearn_datasets, function, fail)
    with pytest.raises(
        ConnectionError, match=rf"'{name}' could not be fetched from {source}.*URLError.*data_home=.*TACIT_DATA"
    ) as caught:
        load(name)
    assert caught.value.__cause__ is failure


def test_nothing_is_fetched_when_downloads_are_off(monkeypatch, tmp_path):
    monkeypatch.setattr(sklearn_datasets, "fetch_openml", lambda **_: pytest.fail("asked OpenML"))
    with pytest.raises(FileNotFoundError, match="'mnist'"):
        load("mnist", data_home=tmp_path, download_if_missing=False)


@as_small
def test_what_the_folder_lacks_is_fetched(openml, tmp_path):
    asked = openml(np.eye(2), ["UP", "DOWN"], ["a", "b"])
    assert load("elec2", data_home=tmp_path).source == "OpenML (151)"
    assert "data_home" not in asked  # the folder is read only
    assert list(tmp_path.iterdir()) == []


def test_california_housing(monkeypatch):
    theirs = Bunch(data=np.ones((2, 8)), target=np.array([1.5, 2.5]), feature_names=list("abcdefgh"))
    monkeypatch.setattr(sklearn_datasets, "fetch_california_housing", lambda: theirs)
    bunch = load("california_housing")
    assert bunch.target.tolist() == [1.5, 2.5]
    assert bunch.feature_names == list("abcdefgh")
    assert bunch.target_names == []


def test_rcv1_has_the_two_classes_of_libsvm(monkeypatch):
    topics = ["C11", "CCAT", "ECAT", "GCAT", "MCAT"]
    stories = np.array(
        [
            [1, 1, 0, 0, 0],  # positive
            [0, 0, 1, 0, 0],  # positive
            [0, 0, 0, 1, 1],  # negative
            [0, 1, 0, 0, 1],  # both
            [1, 0, 0, 0, 0],  # neither
            [0, 0, 0, 0, 1],  # negative
        ]
    )
    asked = {}

    def fetch_rcv1(**arguments):
        asked.update(arguments)
        data = sparse.csr_matrix(np.diag(np.arange(1.0, 7.0)))
        return Bunch(data=data, target=sparse.csr_matrix(stories), target_names=np.array(topics))

    monkeypatch.setattr(sklearn_datasets, "fetch_rcv1", fetch_rcv1)
    bunch = load("rcv1")
    assert asked == {"subset": "train"}
    assert bunch.target.tolist() == [1, 1, -1, -1]
    np.testing.assert_array_equal(bunch.data.toarray(), np.diag(np.arange(1.0, 7.0))[[0, 1, 2, 5]])


@pytest.mark.parametrize("features", ["hashed", "counts"])
def test_news20(monkeypatch, features):
    parts = {
        "train": Bunch(data=sparse.csr_matrix([[1, 0], [0, 2]]), target=np.array([0, 1])),
        "test": Bunch(data=sparse.csr_matrix([[3, 3]]), target=np.array([2])),
    }
    for part in parts.values():
        part.update(feature_names=np.array(["ball", "moon"]), target_names=["rec.autos", "sci.space", "comp.graphics"])

    def fetch_20newsgroups_vectorized(subset, normalize):
        assert normalize is False
        return parts[subset]

    monkeypatch.setattr(sklearn_datasets, "fetch_20newsgroups_vectorized", fetch_20newsgroups_vectorized)
    bunch = load("news20", features=features)
    assert bunch.target.tolist() == [0, 1, 1]
    assert bunch.newsgroup.tolist() == [0, 1, 2]
    assert bunch.is_test.tolist() == [False, False, True]
    if features == "counts":
        np.testing.assert_array_equal(bunch.data.toarray(), [[1, 0], [0, 2], [3, 3]])
        assert bunch.feature_names == ["ball", "moon"]
    else:
        np.testing.assert_allclose(sparse.linalg.norm(bunch.data, axis=1), 1.0, rtol=1e-6)
