"""A study is one agreement: read as written, refused where it makes no sense, told apart in every value."""

import math
import pickle
from dataclasses import fields, replace

import numpy as np
import pytest
from sklearn.base import clone

from tacit.federated import Evaluation, FeatureSharing, Marginals, Member, Sketching, Study, messages
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
    protocol=FeatureSharing(n_iter=4, n_shared=3),
    labels="sketched",
    entry_bound=3.5,
    classes=("no", 'ye"s'),
    fit_intercept=False,
    sketch=Sketching(size=64, seed=7),
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
    "entry_bound": None,
    "classes": ("no", "yes"),
    "fit_intercept": True,
    "random_state": None,
    "membership": "agreed",
}
PROTOCOLS = [
    Marginals(),
    Marginals(n_selected=4),
    Marginals(cross="zero"),
    FeatureSharing(),
    FeatureSharing(n_iter=5),
    FeatureSharing(n_shared=3),
    FeatureSharing(geometry="serial"),
    FeatureSharing(geometry="product", sampling="one"),
    FeatureSharing(geometry="product", sampling="one", seed=1),
    FeatureSharing(geometry="product", sampling="nice", tau=1),
    FeatureSharing(geometry="product", sampling="nice", tau=2),
    FeatureSharing(geometry="product", sampling=((0.5, (0,)), (0.5, (0, 1)))),
    FeatureSharing(geometry="product", blocks=2),
    FeatureSharing(choosing=0.5),
]
SKETCHES = [Sketching(), Sketching(kind="gaussian"), Sketching(size=65), Sketching(seed=8)]
GOOD = "[study]\nname = 's'\nloss = 'squared'\nn_rows = 9\nl1_radius = 1\nmembers = [{name = 'a', n_features = 2}]\n"


SETS = replace(FULL, protocol=FeatureSharing(geometry="product", blocks=2, sampling=[[0.25, [0, 3]], [0.75, [1, 2]]]))


@pytest.mark.parametrize(
    "study", [a_study(), a_study(epsilon=math.inf, y_bounds=(-1, 2)), FULL, SETS], ids=["a", "b", "c", "sets"]
)
def test_a_study_survives_its_file(study, tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(study.to_toml() + "\n[network]\naddress = 'elsewhere'\n")
    assert Study.from_toml(path) == study
    assert Study.from_toml(path).digest == Study.from_dict(study.to_dict()).digest == study.digest


@pytest.mark.parametrize("field", sorted(OTHERS))
def test_every_value_is_in_the_digest(field):
    assert replace(FULL, **{field: OTHERS[field]}).digest != FULL.digest


def test_fields_and_their_options_are_all_told_apart():
    assert len(fields(Study)) == 18
    assert {field.name for field in fields(Study)} == {
        *OTHERS,
        "protocol",
        "sketch",
        "labels",
        "y_bounds",
        "evaluation",
    }
    judged = a_study(evaluation=Evaluation())
    for other in (None, Evaluation(share=0.3), Evaluation(seed=1), Evaluation(metric="mean_squared_error")):
        assert replace(judged, evaluation=other).digest != judged.digest
    assert replace(judged, l1_radius=(1.0, 2.0)).digest != judged.digest
    digests = {replace(FULL, protocol=protocol, sketch=sketch).digest for protocol in PROTOCOLS for sketch in SKETCHES}
    assert len(digests) == len(PROTOCOLS) * len(SKETCHES)


def test_a_name_is_short_for_the_defaults(tmp_path):
    path = tmp_path / "study.toml"
    for name, kind in (("marginals", Marginals), ("feature-sharing", FeatureSharing)):
        short = a_study(protocol=name, sketch="gaussian")
        assert short == a_study(protocol=kind(), sketch=Sketching(kind="gaussian"))
        path.write_text(GOOD + f"protocol = '{name}'\nsketch = 'gaussian'\n")
        read = Study.from_toml(path)
        assert (read.protocol, read.sketch) == (short.protocol, short.sketch)


def test_what_was_agreed_does_not_change():
    given = FeatureSharing(n_iter=4)
    study = a_study(protocol=given)
    before = study.digest
    given.set_params(n_iter=9)
    assert study.protocol == FeatureSharing(n_iter=4)
    for change in (lambda: setattr(study.protocol, "n_iter", 9), lambda: study.sketch.set_params(seed=1)):
        with pytest.raises(AttributeError, match="does not change"):
            change()
    assert replace(study).digest == before == pickle.loads(pickle.dumps(study)).digest
    assert clone(study.protocol).set_params(n_iter=9).n_iter == 9


def test_older_files_spell_the_squared_hinge_with_a_hyphen():
    study = a_study(loss="squared_hinge", classes=(0, 1), protocol="feature-sharing")
    assert Study.from_dict(study.to_dict() | {"loss": "squared-hinge"}) == study
    with pytest.raises(ValueError, match="loss must be one of"):
        a_study(loss="squared-hinge", classes=(0, 1))


def test_shared_labels_need_not_be_spelled_out_in_a_file(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(a_study().to_toml().replace("labels = true\n", ""))
    assert Study.from_toml(path) == a_study()


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("[study]\nname = 's'\nradius = 2\n", "no 'radius'"),
        ("[study]\nname = 's'\nmembers = [{name = 'a', colums = 2}]\n", "no 'colums'"),
        ("[study]\nname = 's'\nmembers = ['a']\n", "list of tables"),
        ("[study]\nname = 's'\n", "loss"),
        (GOOD + "[study.protocol]\nname = 'marginals'\nn_iter = 3\n", "the protocol of a study has no 'n_iter'"),
        (GOOD + "[study.protocol]\nn_selected = 3\n", "the name of a protocol must be one of"),
        (GOOD + "[study.sketch]\nrows = 3\n", "the sketch of a study has no 'rows'; it has kind, size, seed"),
        (GOOD + "protocol = 3\n", "not a study: protocol must be one of"),
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
        ({"loss": "logistic"}, "needs its classes"),
        ({"loss": "logistic", "classes": (1, 1)}, "two different"),
        ({"protocol": FeatureSharing(n_iter=0)}, "n_iter"),
        ({"protocol": FeatureSharing(geometry="flat")}, "geometry"),
        ({"protocol": FeatureSharing(sampling="nice", geometry="product")}, "tau"),
        ({"protocol": Marginals(n_selected=0)}, "n_selected"),
        ({"protocol": Marginals(cross="no")}, "cross"),
        ({"protocol": "gossip"}, "protocol must be one of 'marginals', 'feature-sharing'"),
        ({"sketch": "dense"}, "sketch must be one of"),
        ({"sketch": Sketching(kind="dense")}, "kind of a sketch"),
        ({"sketch": Sketching(size=0)}, "size"),
        ({"sketch": Sketching(seed=-1)}, "seed"),
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
