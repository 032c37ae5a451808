"""The layout of a local folder, on small files made here."""

import bz2
import gzip
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn import datasets as sklearn_datasets

from tacit.datasets import load
from tacit.datasets.text import hashed

WORDS = ["apple", "bread", "cheese", "date", "egg"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.delenv("TACIT_DATA", raising=False)
    return tmp_path


def dump_svmlight_file(X, y, path):
    sklearn_datasets.dump_svmlight_file(X, y, str(path), zero_based=False)


def offline(name, folder, **options):
    return load(name, data_home=folder, download_if_missing=False, **options)


def write_text(folder, name="sms_spam", **arrays):
    counts = sparse.csr_array(np.array([[3, 0, 1, 0, 0], [0, 2, 0, 0, 1], [0, 0, 0, 1, 0]], dtype=np.uint8))
    sparse.save_npz(folder / f"{name}_counts.npz", counts)
    np.savez(folder / f"{name}_counts_y.npz", y=np.array([0, 1, 1], np.uint8), **arrays)
    with gzip.open(folder / f"{name}_counts_vocab.txt.gz", "wt", encoding="utf8") as file:
        file.write("\n".join(WORDS))
    return counts.toarray()


def test_dense(folder):
    X = np.arange(6, dtype=np.uint8).reshape(3, 2)
    np.savez(folder / "elec2.npz", X=X, y=np.array([0, 1, 1], np.uint8), feature_names=np.array(["a", "b"]), n_train=2)
    bunch = offline("elec2", folder)
    assert bunch.data.dtype == np.float32
    assert bunch.target.dtype == np.int64
    np.testing.assert_array_equal(bunch.data, X)
    np.testing.assert_array_equal(bunch.target, [0, 1, 1])
    assert bunch.feature_names == ["a", "b"]
    assert bunch.target_names == ["DOWN", "UP"]
    assert bunch.is_test.tolist() == [False, False, True]
    assert bunch.newsgroup is None
    assert bunch.source == str(folder / "elec2.npz")
    assert "elec2" in bunch.DESCR
    assert "3 x 2" in bunch.DESCR
    assert "ICML 2022" in bunch.DESCR
    assert "a random split is optimistic" in bunch.DESCR


def test_data_and_target_alone(folder):
    np.savez(folder / "msd_subset_year.npz", X=np.ones((2, 3)), y=np.array([1999, 2001], np.int16))
    X, y = offline("msd_subset_year", folder, return_X_y=True)
    assert X.shape == (2, 3)
    assert y.dtype == np.float64
    assert y.tolist() == [1999.0, 2001.0]


def test_sparse(folder):
    X = np.array([[0, 1, 0], [2, 0, 0]], np.float32)
    sparse.save_npz(folder / "a9a_X.npz", sparse.csc_array(X))
    np.savez(folder / "a9a_y.npz", y=np.array([-1, 1], np.int8))
    bunch = offline("a9a", folder)
    assert isinstance(bunch.data, sparse.csr_array)
    assert bunch.data.dtype == np.float32
    np.testing.assert_array_equal(bunch.data.toarray(), X)
    assert bunch.target.tolist() == [-1, 1]
    assert bunch.is_test is None
    assert bunch.feature_names is None


def test_the_variable_names_the_folder(folder, monkeypatch):
    np.savez(folder / "elec2.npz", X=np.ones((2, 2)), y=np.array([0, 1]))
    monkeypatch.setenv("TACIT_DATA", str(folder))
    assert load("elec2", download_if_missing=False).source == str(folder / "elec2.npz")


def test_data_home_goes_before_the_variable(folder, monkeypatch, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    for place, value in ((folder, 1.0), (other, 2.0)):
        np.savez(place / "elec2.npz", X=np.full((2, 2), value), y=np.array([0, 1]))
    monkeypatch.setenv("TACIT_DATA", str(other))
    assert offline("elec2", folder).data[0, 0] == 1.0


def test_the_folder_goes_before_what_scikit_learn_has(folder):
    np.savez(folder / "breast_cancer.npz", X=np.ones((2, 3)), y=np.array([0, 1]))
    assert offline("breast_cancer", folder).data.shape == (2, 3)


def test_names_stored_as_objects_are_not_unpickled(folder):
    class Bomb:
        def __reduce__(self):
            return (pytest.fail, ("the file's code ran",))

    with pytest.raises(pytest.fail.Exception):  # so it would, if it were unpickled
        pickle.loads(pickle.dumps(Bomb()))
    names = np.array([Bomb(), Bomb()], dtype=object)
    np.savez(folder / "colon.npz", X=np.ones((2, 2)), y=np.array([0, 1]), feature_names=names)
    assert offline("colon", folder).feature_names is None


def test_raw_columns_of_phishing(folder):
    np.savez(folder / "phishing.npz", X=np.eye(2), y=[0, 1], X_uci=np.array([[-1, 0], [1, 1]]), y_uci=[1, 0])
    np.testing.assert_array_equal(offline("phishing", folder).data, np.eye(2))
    raw = offline("phishing", folder, features="raw")
    np.testing.assert_array_equal(raw.data, [[-1, 0], [1, 1]])
    assert raw.target.tolist() == [1, 0]


def test_adult_in_the_form_of_its_paper(folder):
    """Missing values count to the most frequent category, which has no column: so neither has a column of its own."""
    names = ["age", "fnlwgt", "education_num", "workclass_?", "workclass_Private", "workclass_State-gov"]
    names += ["education_10th", "education_Bachelors", "sex_Female", "sex_Male"]
    X = np.arange(20.0).reshape(2, 10)
    np.savez(folder / "adult.npz", X=X, y=[0, 1], feature_names=names, n_train=1)
    bunch = offline("adult", folder, features="dp-scd")
    assert bunch.feature_names == ["age", "education_num", "workclass_State-gov", "sex_Female"]
    np.testing.assert_array_equal(bunch.data, X[:, [0, 2, 5, 8]])
    assert bunch.is_test.tolist() == [False, True]
    np.savez(folder / "adult.npz", X=X, y=[0, 1])
    with pytest.raises(ValueError, match="does not name its columns, so that those of the paper cannot be found"):
        offline("adult", folder, features="dp-scd")


def test_counts(folder):
    counts = write_text(folder)
    bunch = offline("sms_spam", folder, features="counts")
    np.testing.assert_array_equal(bunch.data.toarray(), counts)
    assert bunch.feature_names == WORDS
    assert bunch.data.dtype == np.float32


def test_tf_idf_gives_rare_words_more_weight(folder):
    write_text(folder)
    bunch = offline("sms_spam", folder, features="tf-idf")
    np.testing.assert_allclose(sparse.linalg.norm(bunch.data, axis=1), 1.0, rtol=1e-6)
    assert bunch.data[0, 0] > bunch.data[0, 2] > 0  # three apples, one cheese
    assert bunch.feature_names == WORDS


def test_hashed_text_is_the_default_and_has_rows_of_norm_one(folder):
    write_text(folder, is_test=np.array([0, 0, 1], np.uint8))
    bunch = offline("sms_spam", folder)
    assert bunch.data.shape == (3, 2**16)
    assert bunch.feature_names is None
    np.testing.assert_allclose(sparse.linalg.norm(bunch.data, axis=1), 1.0, rtol=1e-6)
    ratio = np.sort(bunch.data[[0]].data)
    np.testing.assert_allclose(ratio[1] / ratio[0], 1 + np.log(3), rtol=1e-6)
    assert bunch.is_test.tolist() == [False, False, True]


def test_a_hashed_row_depends_on_no_other_row():
    counts = sparse.csr_array(np.array([[3, 0, 1, 0, 0], [0, 2, 0, 0, 1], [0, 7, 0, 0, 0]]))
    whole = hashed(counts, WORDS, 64).toarray()
    # The first row by itself, with the vocabulary that it alone would have.
    alone = hashed(sparse.csr_array(np.array([[3, 1]])), ["apple", "cheese"], 64).toarray()
    np.testing.assert_array_equal(whole[0], alone[0])


def test_words_that_meet_in_a_column_add_up_and_the_counts_stay_as_they_were():
    counts = sparse.csr_array(np.array([[1, 1, 0, 0, 0], [1, 0, 0, 0, 0], [0, 0, 0, 0, 0]]))
    before = counts.copy()
    together = hashed(counts, WORDS, 1)
    np.testing.assert_array_equal(together.toarray(), [[1.0], [1.0], [0.0]])  # an empty row stays empty
    assert together.nnz == 2
    np.testing.assert_array_equal(counts.toarray(), before.toarray())
    np.testing.assert_array_equal(counts.indices, before.indices)


def test_n_hashed(folder):
    write_text(folder)
    assert offline("sms_spam", folder, n_hashed=8).data.shape == (3, 8)
    with pytest.raises(ValueError, match="n_hashed == 0"):
        offline("sms_spam", folder, n_hashed=0)
    with pytest.raises(TypeError, match="n_hashed must be an instance of int"):
        offline("sms_spam", folder, n_hashed=8.0)


def test_newsgroups(folder):
    write_text(folder, "news20", y20=np.array([0, 19, 4], np.uint8))
    assert offline("news20", folder).newsgroup.tolist() == [0, 19, 4]


@pytest.mark.parametrize("end", ["", ".gz", ".bz2"])
def test_libsvm_files(folder, end):
    X = sparse.csr_array(np.array([[0.5, 0, 0], [0, 0, 2.0]]))
    dump_svmlight_file(X, [-1, 1], folder / "plain")
    text = (folder / "plain").read_bytes()
    pack = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress}[end]
    (folder / f"real-sim{end}").write_bytes(pack(text))
    bunch = offline("real_sim", folder)
    assert bunch.data.shape == (2, 20_958)
    assert isinstance(bunch.data, sparse.csr_array)
    np.testing.assert_array_equal(bunch.data[:, :3].toarray(), X.toarray())
    assert bunch.target.tolist() == [-1, 1]
    assert bunch.is_test is None


def test_a_second_libsvm_file_is_the_test_set(folder):
    X = np.ones((2, 90))
    dump_svmlight_file(X, [1999, 2001], folder / "YearPredictionMSD")
    with pytest.raises(FileNotFoundError, match=r"YearPredictionMSD with YearPredictionMSD.t"):
        offline("year_prediction_msd", folder)
    dump_svmlight_file(2 * X[:1], [1970], folder / "YearPredictionMSD.t")
    bunch = offline("year_prediction_msd", folder)
    assert isinstance(bunch.data, np.ndarray)
    np.testing.assert_array_equal(bunch.data, np.vstack([X, 2 * X[:1]]))
    assert bunch.target.tolist() == [1999, 2001, 1970]
    assert bunch.is_test.tolist() == [False, False, True]


@pytest.mark.parametrize("low", [-1, 0])
def test_libsvm_files_may_write_either_label_for_the_first_class(folder, low):
    dump_svmlight_file(np.ones((2, 3)), [1, low], folder / "kdda")
    assert offline("kdda", folder).target.tolist() == [1, 0]


def test_libsvm_files_of_one_class_raise(folder):
    dump_svmlight_file(np.ones((2, 3)), [1, 1], folder / "kdda")
    with pytest.raises(ValueError, match="must hold 2 classes, it has 1"):
        offline("kdda", folder)


def test_a_file_with_other_classes_raises(folder):
    np.savez(folder / "elec2.npz", X=np.ones((2, 2)), y=np.array([0, 2]))
    with pytest.raises(ValueError, match=r"elec2.npz holds other classes than those of 'elec2': \(0, 1\)"):
        offline("elec2", folder)


def test_a_missing_file_says_what_was_looked_for(folder, monkeypatch):
    with pytest.raises(
        FileNotFoundError, match=r"'colon' \(local folder only\).*colon.npz.*data_home=.*TACIT_DATA"
    ) as e:
        load("colon", data_home=folder)
    assert str(folder) in str(e.value)
    with pytest.raises(FileNotFoundError, match=r"'colon'.*no local folder is set"):
        load("colon")
    monkeypatch.setenv("TACIT_DATA", "")
    with pytest.raises(FileNotFoundError, match="no local folder is set"):
        load("colon")
    with pytest.raises(FileNotFoundError, match=r"'mnist' \(also from OpenML \(554\)\)"):
        offline("mnist", folder)
    with pytest.raises(
        FileNotFoundError, match=r"sms_spam_counts.npz with sms_spam_counts_y.npz with sms_spam_counts_voc"
    ):
        offline("sms_spam", folder)
    with pytest.raises(FileNotFoundError, match=r"real_sim_X.npz with real_sim_y.npz, or real-sim"):
        offline("real_sim", folder)


def test_half_a_set_is_missing(folder):
    sparse.save_npz(folder / "a9a_X.npz", sparse.eye_array(2, format="csr"))
    with pytest.raises(FileNotFoundError, match=r"a9a_y\.npz"):
        offline("a9a", folder)


def test_a_folder_that_is_not_there_raises(folder, monkeypatch):
    with pytest.raises(NotADirectoryError, match=r"data_home must be a folder that exists, got '.*nowhere'"):
        load("breast_cancer", data_home=folder / "nowhere")
    monkeypatch.setenv("TACIT_DATA", str(folder / "nowhere"))
    with pytest.raises(NotADirectoryError, match="TACIT_DATA must be a folder that exists"):
        load("breast_cancer")


def test_wrong_features_list_the_right_ones(folder):
    with pytest.raises(ValueError, match=r"features of 'phishing' must be one of 'one-hot', 'raw', got 'hashed'"):
        offline("phishing", folder, features="hashed")
