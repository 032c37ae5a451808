"""A study is one agreement: read as written, refused where it makes no sense, told apart in every value."""

import math
from dataclasses import replace

import numpy as np
import pytest

from tacit.federated import Member, Study, messages
from tests.federated.conftest import a_study

FULL = Study(
    name="stroke ünd more",
    loss="logistic",
    members=(Member("hospital-a", 3), Member("registry", 2, True)),
    n_rows=5000,
    l1_radius=5.0,
    epsilon=2.0,
    delta=1e-6,
    adjacency="replace-one",
    protocol="feature-sharing",
    labels="sketched",
    entry_bound=3.5,
    classes=("no", 'ye"s'),
    fit_intercept=False,
    n_iter=4,
    n_shared=3,
    sketch_size=64,
    sketch_seed=7,
    random_state=3,
)
OTHERS = {
    "name": "other",
    "loss": "squared_hinge",
    "members": (Member("hospital-a", 4), Member("registry", 2, True)),
    "n_rows": 5001,
    "l1_radius": 5.5,
    "epsilon": 2.1,
    "delta": 1e-7,
    "adjacency": "add-remove",
    "protocol": "marginals",
    "entry_bound": None,
    "classes": ("no", "yes"),
    "fit_intercept": True,
    "n_selected": 4,
    "cross": "zero",
    "n_iter": 5,
    "n_shared": None,
    "geometry": "serial",
    "sketch": "gaussian",
    "sketch_size": 65,
    "sketch_seed": 8,
    "random_state": None,
}


@pytest.mark.parametrize("study", [a_study(), a_study(epsilon=math.inf, y_bounds=(-1, 2)), FULL], ids=["a", "b", "c"])
def test_a_study_survives_its_file(study, tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(study.to_toml() + "\n[network]\naddress = 'elsewhere'\n")
    assert Study.from_toml(path) == study
    assert Study.from_toml(path).digest == Study.from_dict(study.to_dict()).digest == study.digest


@pytest.mark.parametrize("field", sorted(OTHERS))
def test_every_value_is_in_the_digest(field):
    assert replace(FULL, **{field: OTHERS[field]}).digest != FULL.digest


def test_shared_labels_need_not_be_spelled_out_in_a_file(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(a_study().to_toml().replace("labels = true\n", ""))
    assert Study.from_toml(path) == a_study()


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("[study]\nname = 's'\nradius = 2\n", "no 'radius'"),
        ("[study]\nname = 's'\nmembers = [{name = 'a', columns = 2}]\n", "no 'columns'"),
        ("[study]\nname = 's'\nmembers = ['a']\n", "list of tables"),
        ("[study]\nname = 's'\n", "loss"),
        ("[network]\n", "no .study. table"),
        ("[study\n", "not a study file"),
    ],
)
def test_files_that_say_something_else_are_refused(text, match, tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=match):
        Study.from_toml(path)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"members": ()}, "at least one"),
        ({"members": (Member("a", 1, True), Member("a", 2, True))}, "twice: a"),
        ({"members": (Member("a", 1), Member("b", 2, True))}, "labels='sketched'"),
        ({"labels": "sketched"}, "exactly one"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"l1_radius": math.inf}, "l1_radius"),
        ({"entry_bound": -1.0}, "entry_bound"),
        ({"y_bounds": (2.0, 1.0)}, "y_bounds"),
        ({"loss": "logistic"}, "two classes"),
        ({"loss": "logistic", "classes": (1, 1)}, "two different"),
        ({"n_iter": 0}, "n_iter"),
        ({"geometry": "flat"}, "geometry"),
        ({"name": ""}, "name"),
    ],
)
def test_what_makes_no_sense_is_refused(changes, match):
    with pytest.raises(ValueError, match=match):
        a_study(**changes)


def test_a_large_delta_warns():
    with pytest.warns(UserWarning, match="not below 1/n"):
        a_study(delta=0.2)


def test_classes_of_numpy_are_plain_values():
    study = a_study(loss="logistic", classes=tuple(np.array([0, 1])))
    assert study.digest == a_study(loss="logistic", classes=(0, 1)).digest


def test_names():
    study = a_study()
    assert study.names == ("a", "b", "c")
    assert study.label_holder == "c"
    assert study.member("b").n_features == 3
    with pytest.raises(ValueError, match="no party named 'd'"):
        study.member("d")
    with pytest.raises(ValueError, match="without '/'"):
        Member("a/b", 1)


def test_a_name_fits_into_a_message():
    longest = "é" * 127 + "e"
    study = a_study(name=longest, members=(Member(longest, 1, True),))
    messages.write(messages.Request(study.digest, longest, 0, "hello"))
    with pytest.raises(ValueError, match="name of a party must have at most 255 bytes as UTF-8, got 256"):
        Member("é" * 128, 1)
    with pytest.raises(ValueError, match="name of a study must have at most 255 bytes as UTF-8, got 1,000"):
        a_study(name="e" * 1000)
