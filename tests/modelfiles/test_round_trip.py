"""What is loaded is what was saved: parameters, attributes, guarantee, and every prediction to the last bit."""

import numpy as np
import pytest
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression as PlainLogisticRegression

import tacit
from tacit import LogisticRegression, PrivateEncoder, PrivateScaler, Ridge
from tacit.estimators.stateless import Stateless
from tacit.modelfiles import classes, values
from tacit.modelfiles.rowsteps import ROW_STEPS
from tacit.modelfiles.table import TableModel
from tacit.solvers import Solver

from .support import LABELS, MAKERS, VALUES, WORDS, X, made, quiet, rows, text_of

pytestmark = quiet
NOT_KEPT = classes.WITHHELD | {"_stop_words_id"}  # what scikit-learn remembers of a call
every = pytest.mark.parametrize("name", MAKERS)


def again(model, folder):
    text_of(model, folder)
    return tacit.load(folder / "model.json")


def same(one, other):
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    if issparse(one):
        return type(one) is type(other) and one.shape == other.shape and (one != other).nnz == 0
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if isinstance(
        one, (TableModel, Solver, LogisticRegression, Ridge, PrivateEncoder, PrivateScaler, Stateless, *ROW_STEPS)
    ):
        told = [{k: v for k, v in sorted(vars(m).items()) if k not in NOT_KEPT} for m in (one, other)]
        return type(one) is type(other) and same(*told)
    if isinstance(one, float) and np.isnan(one):
        return isinstance(other, float) and np.isnan(other)
    return one == other


def test_every_class_is_covered():
    models = [made(name) for name in MAKERS]
    steps = [step for model in models for _, step in getattr(model, "steps_", ())]
    of_steps = {"Passthrough" if step == "passthrough" else type(step).__name__ for step in steps}
    assert {type(model).__name__ for model in models} | of_steps == set(classes.CLASSES)


@every
def test_parameters_and_attributes(name, tmp_path):
    model = made(name)
    read = again(model, tmp_path)
    assert type(read) is type(model)
    left = {key: value for key, value in vars(model).items() if key != "_moments"}  # for paths, where the fit ran
    assert set(vars(read)) == set(left)  # every attribute that a fit leaves is there, and nothing else
    for key, value in left.items():
        if key not in classes.WITHHELD:
            assert same(value, vars(read)[key]), key
    if name != "clipper":
        assert str(read.guarantee_) == str(model.guarantee_)
    if name != "of sparse rows":  # whose parameters are NumPy's numbers
        unseeded = clone(model).set_params(random_state=None) if hasattr(model, "random_state") else model
        assert repr(read) == repr(unseeded)


@every
def test_predictions_have_the_same_bits(name, tmp_path):
    model, table = made(name), rows(name)
    read = again(model, tmp_path)
    done = 0
    for method in ("predict", "decision_function", "predict_proba", "transform"):
        assert hasattr(read, method) == hasattr(model, method)
        if hasattr(model, method):
            expected = getattr(model, method)(table)
            found = getattr(read, method)(table)
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)
            done += 1
    assert done
    if hasattr(model, "score") and hasattr(model, "predict") and name != "table":
        y = model.predict(table)
        assert read.score(table, y) == model.score(table, y)


NOT_PLAIN = ("encoder", "encoder of a vote", "pipeline of three")  # an indicator, what was parsed, a scaler


@every
def test_what_is_loaded_can_be_used_further(name, tmp_path):
    model, table = made(name), rows(name)
    read = again(model, tmp_path)
    assert text_of(read, tmp_path) == text_of(model, tmp_path)
    if hasattr(model, "to_sklearn") and name not in NOT_PLAIN:
        for method in ("predict", "transform"):
            if hasattr(model, method):
                expected = getattr(model.to_sklearn(), method)(table)
                np.testing.assert_array_equal(getattr(read.to_sklearn(), method)(table), expected)
    if hasattr(read, "coef_") and not issparse(read.coef_):
        read.coef_[...] = 0.0  # it is its own, and can be changed


def test_a_seed_and_a_folder_stay_at_home(tmp_path):
    seeded = LogisticRegression(2.0, random_state=86028121).fit(X, LABELS)
    assert "86028121" not in text_of(seeded, tmp_path)
    read = again(seeded, tmp_path)
    assert read.random_state is None
    assert read.guarantee_.seeded
    federated = clone(made("federated lasso")).set_params(directory=tmp_path / "secret place")
    for key, value in vars(made("federated lasso")).items():
        if key.endswith("_"):
            setattr(federated, key, value)
    assert "secret place" not in text_of(federated, tmp_path)
    assert again(federated, tmp_path).directory is None


def test_only_what_is_listed_is_written(tmp_path):
    model = Ridge(2.0).fit(X, VALUES)
    expected = text_of(model, tmp_path)
    model.note_, model._rows = "SECRET", X
    assert text_of(model, tmp_path) == expected


@pytest.mark.parametrize("name", ["linear", "pca", "scaler", "federated lasso"])
def test_a_model_that_is_not_fitted_is_refused(name, tmp_path):
    with pytest.raises(NotFittedError):
        tacit.save(clone(made(name)), tmp_path / "m.json")
    with pytest.raises(NotFittedError):
        tacit.save(TableModel(Ridge(), (), "y"), tmp_path / "m.json")
    assert not list(tmp_path.iterdir())


class Mine(Ridge):
    pass


@pytest.mark.parametrize("model", [PlainLogisticRegression(), Mine(), "text", None, Ridge, print])
def test_other_classes_are_refused(model, tmp_path):
    with pytest.raises(TypeError, match="a model file cannot hold"):
        tacit.save(model, tmp_path / "m.json")


@pytest.mark.parametrize("value", [print, object(), 1j, np.array([None]), np.array([1j]), {1.5: 2}, [lambda: 0]])
def test_a_parameter_that_cannot_be_written_is_named(value, tmp_path):
    model = clone(made("ridge")).fit(X, VALUES).set_params(solver=value)
    with pytest.raises(TypeError, match="solver cannot be written to a model file"):
        tacit.save(model, tmp_path / "m.json")
    assert not list(tmp_path.iterdir())


def test_what_would_not_load_is_not_written(tmp_path):
    model = clone(made("ridge")).fit(X, VALUES)
    tacit.save(model, tmp_path / "m.json")
    before = (tmp_path / "m.json").read_bytes()
    model.coef_ = model.coef_[:2]
    with pytest.raises(ValueError, match="coef_ must be an array of numbers of shape"):
        tacit.save(model, tmp_path / "m.json")
    assert (tmp_path / "m.json").read_bytes() == before


def test_a_file_is_whole_or_not_there(tmp_path, monkeypatch):
    path = tmp_path / "m.json"
    tacit.save(made("ridge"), path)
    before = path.read_bytes()

    def full(*_):
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="disk full"):
        tacit.save(made("linear"), path)
    assert [found.name for found in tmp_path.iterdir()] == ["m.json"]
    assert path.read_bytes() == before


def test_a_link_is_replaced_and_what_it_points_to_stays(tmp_path):
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "link.json").symlink_to(tmp_path / "mine")
    tacit.save(made("ridge"), str(tmp_path / "link.json"))
    assert not (tmp_path / "link.json").is_symlink()
    assert tacit.load(tmp_path / "link.json").guarantee_ == made("ridge").guarantee_
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_file_that_is_there_keeps_its_mode(tmp_path):
    path = tmp_path / "m.json"
    (tmp_path / "other").touch()
    usual = (tmp_path / "other").stat().st_mode
    tacit.save(made("ridge"), path)
    assert path.stat().st_mode == usual
    for mode in (0o600, 0o640):
        path.chmod(mode)
        tacit.save(made("ridge"), path)
        assert path.stat().st_mode & 0o777 == mode


def test_an_array_of_one_number_is_written_as_the_number(tmp_path):
    model = Ridge(np.array(2.0)).fit(X, VALUES)
    assert type(again(model, tmp_path).epsilon) is float


def test_texts_of_an_array_are_kept_and_their_room_is_not(tmp_path):
    model = LogisticRegression(2.0, classes=np.array(["low", "high"], dtype="U9999")).fit(X, WORDS[LABELS])
    assert again(model, tmp_path).classes.tolist() == ["low", "high"]
    assert "U9999" not in text_of(model, tmp_path)


@pytest.mark.parametrize(
    ("name", "told"), [("Power", {}), ("Stochastic", {"clip": 0.5}), ("VarianceReduced", {}), ("Gauss", {})]
)
def test_solvers_of_pca_in_older_files_have_fewer_options(name, told):
    read = values.read({"options": {"class": name, "parameters": told}}, "solver")
    assert type(read).__name__ == name
    assert {key: value for key, value in read.get_params().items() if value is not None} == told
