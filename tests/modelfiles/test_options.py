"""Parameters that are objects: they come back as they were, and a file names no class that is not in the list."""

import pytest
from sklearn.base import BaseEstimator, clone

import tacit
from tacit.federated import Marginals, Sketching
from tacit.modelfiles import values
from tacit.modelfiles.values import OPTIONS, parameters_of

from .support import loaded, made, quiet, text_of

pytestmark = quiet


@pytest.mark.parametrize("name", OPTIONS)
def test_every_class_of_the_list_comes_back(name):
    """With its defaults, and with values of the kinds that parameters have."""
    kind = OPTIONS[name]
    for told in ({}, dict.fromkeys(parameters_of(kind), (1, 2.5, "x", None))):
        given = kind(**told)
        again = values.read(values.written(given, "solver"), "solver")
        assert type(again) is kind
        assert again.get_params() == given.get_params()
        assert again is not given


def test_a_federated_model_keeps_its_options(tmp_path):
    model = made("federated logistic")
    tacit.save(model, tmp_path / "model.json")
    again = tacit.load(tmp_path / "model.json")
    assert again.get_params() == model.get_params() | {"random_state": None}
    assert (again.protocol, again.sketch) == (Marginals(n_selected=1), Sketching(kind="gaussian", size=20))
    assert clone(again).set_params(protocol__n_selected=2).protocol.n_selected == 2


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ({"class": "Popen", "parameters": {"args": "ls"}}, "protocol must be of one of the classes .*FeatureSharing"),
        ({"class": "subprocess.Popen", "parameters": {}}, "of one of the classes"),
        ({"class": "LogisticRegression", "parameters": {}}, "of one of the classes"),
        ({"class": ["Marginals"], "parameters": {}}, "of one of the classes"),
        ({"class": "Marginals", "parameters": {"n_selected": 3}}, "exactly the keys cross, n_selected"),
        ({"class": "Marginals", "parameters": {"n_selected": 3, "cross": "auto", "_agreed": True}}, "exactly the keys"),
        ({"class": "Marginals", "parameters": [3, "auto"]}, "exactly the keys"),
        ({"class": "Marginals", "parameters": {"n_selected": 0, "cross": "auto"}}, "n_selected"),
        ({"class": "Marginals", "parameters": {"n_selected": 1, "cross": {"dict": {}}}}, "cross must be one of"),
        ({"class": "Sketching", "parameters": {"kind": "gaussian", "size": 2, "seed": 0}}, "protocol must be one of"),
        ({"class": "Marginals"}, "exactly the keys class, parameters"),
        ("Marginals", "exactly the keys class, parameters"),
    ],
)
def test_other_content_is_refused(content, match, tmp_path, document):
    changed = document("federated logistic")
    changed["model"]["parameters"]["protocol"] = {"options": content}
    with pytest.raises(ValueError, match=match):
        loaded(changed, tmp_path)


@pytest.mark.parametrize("place", ["epsilon", "labels", "entry_bound", "verbose", "adjacency", "fit_intercept"])
def test_an_object_in_place_of_a_plain_value_is_refused(place, tmp_path, document):
    changed = document("federated lasso")
    changed["model"]["parameters"][place] = values.written(Sketching(), "sketch")
    with pytest.raises(ValueError, match=r"must be|must name|state different"):
        loaded(changed, tmp_path)


def test_a_class_of_the_same_name_is_not_written(tmp_path):
    class Marginals(BaseEstimator):
        pass

    model = clone(made("federated logistic"))
    for key, value in vars(made("federated logistic")).items():
        setattr(model, key, value)
    model.protocol = Marginals()
    with pytest.raises(TypeError, match=r"protocol cannot be written .* of type Marginals"):
        text_of(model, tmp_path)
