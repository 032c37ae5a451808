"""Files from strangers: nothing in them is executed, and what is wrong is a ValueError that says what."""

import base64
import builtins
import copy
import io
import json
import os
import pickle
import subprocess
from pathlib import Path

import joblib
import numpy as np
import pytest

import tacit

from .support import loaded, made, quiet, text_of

pytestmark = quiet


@pytest.fixture
def nothing_runs(monkeypatch, tmp_path_factory):
    """Any way to run code from a file would be seen; importing and compiling is done before."""
    folder = tmp_path_factory.mktemp("before")
    loaded(text_of(made("logistic"), folder), folder)

    def ran(*_, **__):
        raise AssertionError("something was executed")

    for place, name in (
        (builtins, "eval"),
        (builtins, "exec"),
        (os, "system"),
        (subprocess, "Popen"),
        (pickle, "load"),
        (pickle, "loads"),
        (pickle, "Unpickler"),
        (joblib, "load"),
        (np, "load"),
    ):
        monkeypatch.setattr(place, name, ran)


class Bomb:
    def __reduce__(self):
        return Path.touch, (Path("ran"),)


PICKLED = base64.b64encode(pickle.dumps(Bomb())).decode()


@pytest.mark.usefixtures("nothing_runs")
@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
def test_a_pickle_is_not_read(protocol, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("bomb.json").write_bytes(pickle.dumps(Bomb(), protocol=protocol))
    with pytest.raises(ValueError, match="not JSON; pickles and joblib files are never read here"):
        tacit.load("bomb.json")
    assert not Path("ran").exists()


@pytest.mark.usefixtures("nothing_runs")
@pytest.mark.parametrize(
    "name",
    [
        "os.system",
        "subprocess.Popen",
        "builtins.eval",
        "sklearn.pipeline.Pipeline",
        "Pipeline",
        "Guarantee",
        "__main__",
    ],
)
def test_a_class_outside_the_list_is_not_imported(name, document, tmp_path):
    changed = document()
    changed["model"]["class"] = name
    with pytest.raises(ValueError, match="its class must be one of ElasticNet, "):
        loaded(changed, tmp_path)


HOSTILE = (
    {"__reduce__": ["os.system", "touch ran"]},
    {"__class__": "subprocess.Popen", "args": ["touch", "ran"]},
    {"py/object": "subprocess.Popen"},
    {"array": {"dtype": "object", "shape": [1], "order": "C", "data": PICKLED}},
    {"array": {"dtype": "|O", "shape": [1], "order": "C", "data": PICKLED}},
    {"array": {"dtype": "O8", "shape": [], "order": "C", "data": PICKLED}},
    {"array": {"dtype": [["f", "O"]], "shape": [1], "order": "C", "data": PICKLED}},
    {"array": {"dtype": "object", "shape": [1], "values": [{"__reduce__": "os.system"}]}},
    {"pickle": PICKLED},
    {"model": {"class": "os.system"}},
)


@pytest.mark.usefixtures("nothing_runs")
@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("place", ["parameters", "attributes"])
def test_values_that_would_execute_are_refused(value, place, document, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    changed = document()
    changed["model"][place]["coef_" if place == "attributes" else "solver"] = value
    with pytest.raises(ValueError, match="is not a model that can be loaded"):
        loaded(changed, tmp_path)
    for key in ("__reduce__", "__class__", "__init__", "fit", "predict"):
        changed = document()
        changed["model"][place][key] = value
        with pytest.raises(ValueError, match=r"parameters must have exactly the keys|attributes must be"):
            loaded(changed, tmp_path)
    assert not Path("ran").exists()


def put(content, value, *keys):
    for key in keys[:-1]:
        content = content[key]
    content[keys[-1]] = value


ATTRIBUTES = ("model", "attributes")
PARAMETERS = ("model", "parameters")
NUMBER = {"array": {"dtype": "<f8", "shape": [4], "order": "C", "data": base64.b64encode(np.ones(4)).decode()}}


def objects(*held):
    return {"array": {"dtype": "object", "shape": [len(held)], "values": list(held)}}


BAD = {
    "format": (("format",), "tacit models", "its format must be 'tacit model'"),
    "version": (("version",), 2, "its version must be 1"),
    "true version": (("version",), True, "its version must be 1"),
    "a new key": (("more",), 1, "the document must have exactly the keys"),
    "a new parameter": ((*PARAMETERS, "more"), 1, "parameters must have exactly the keys"),
    "a seed": ((*PARAMETERS, "random_state"), 1, "parameters must have exactly the keys"),
    "a new attribute": ((*ATTRIBUTES, "more_"), 1, "attributes must be coef_"),
    "parts": (("model", "parts", "inner"), {}, "parts must have exactly the keys"),
    "epsilon": ((*PARAMETERS, "epsilon"), -1.0, "epsilon must be above 0"),
    "fit_intercept": ((*PARAMETERS, "fit_intercept"), "yes", "fit_intercept must be True or False"),
    "shape": ((*ATTRIBUTES, "coef_", "array", "shape"), [1, 5], "coef_ does not hold as many bytes as its shape"),
    "absurd shape": ((*ATTRIBUTES, "coef_", "array", "shape"), [2**40, 2**40], "coef_ does not hold as many bytes"),
    "negative shape": ((*ATTRIBUTES, "coef_", "array", "shape"), [-1, -4], "coef_ must have a shape"),
    "dtype": ((*ATTRIBUTES, "coef_", "array", "dtype"), ">f8", "coef_ has an unknown dtype"),
    "whole": ((*ATTRIBUTES, "coef_", "array", "dtype"), "<i8", "coef_ must be an array of numbers of shape"),
    "order": ((*ATTRIBUTES, "coef_", "array", "order"), "A", "coef_ must have the order"),
    "base64": ((*ATTRIBUTES, "coef_", "array", "data"), "!" * 44, "coef_ is not base64"),
    "other features": ((*ATTRIBUTES, "n_features_in_"), 5, "must be an array of numbers of shape"),
    "true features": ((*ATTRIBUTES, "n_features_in_"), 0, "n_features_in_ must be at least 1"),
    "rows of coef_": ((*ATTRIBUTES, "intercept_"), NUMBER, r"intercept_ must be an array of numbers of shape \(1,\)"),
    "clip": ((*ATTRIBUTES, "clip_low_"), {"array": {**NUMBER["array"], "shape": [2, 2]}}, "clip_low_ must be an array"),
    "crossed clip": ((*ATTRIBUTES, "clip_high_"), {**NUMBER}, "clip_low_ must be at most clip_high_"),
    "classes": ((*ATTRIBUTES, "classes_"), NUMBER, "classes_ must be distinct"),
    "names": ((*ATTRIBUTES, "feature_names_in_"), NUMBER, "feature_names_in_ must hold one text for each"),
    "plan": ((*ATTRIBUTES, "plan_"), None, "plan_ must be a plan"),
    "no guarantee": (("model", "guarantee"), None, "a guarantee has exactly the fields"),
    "less epsilon": (("model", "guarantee", "epsilon"), 1.0, "the parameter epsilon and the guarantee state different"),
    "another plan": ((*ATTRIBUTES, "plan_", "plan", "epsilon"), 1.0, "plan_ and the guarantee have different budgets"),
    "no number": (
        (*PARAMETERS, "verbose"),
        {"array": {**NUMBER["array"], "shape": []}},
        "verbose must have a shape of",
    ),
    "classes of NaN": (
        (*ATTRIBUTES, "classes_"),
        objects({"float": "nan"}, {"float": "nan"}),
        "classes_ must be disti",
    ),
    "infinite classes": ((*ATTRIBUTES, "classes_"), objects({"float": "inf"}, 1.0), "classes_ must be distinct, and"),
    "mixed classes": ((*ATTRIBUTES, "classes_"), objects(True, 2.5), "classes_ must be of one type"),
    "steering release": (
        (*ATTRIBUTES, "plan_", "plan", "releases", 0, "name"),
        "\x1b[2K",
        "plan_ must have releases with names without control characters",
    ),
    "steering classes": ((*ATTRIBUTES, "classes_"), objects("a", "\x1b[2K"), "classes_ must be texts without control"),
    "steering names": ((*ATTRIBUTES, "feature_names_in_"), objects("a", "b", "c", "\r"), "without control characters"),
    "steering solver": (("model", "guarantee", "solver"), "\x1b[2K\r(0.1, 1e-6)-DP", "solver must be a printable text"),
    "long solver": (("model", "guarantee", "solver"), "x" * 501, "solver must be a printable text"),
    "another event": (
        ("model", "guarantee", "event"),
        {"type": "NoOpDpEvent"},
        "plan_ and the guarantee have different releases",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_does_not_fit_is_refused(case, document, tmp_path):
    keys, value, message = BAD[case]
    changed = document()
    put(changed, copy.deepcopy(value), *keys)
    with pytest.raises(ValueError, match=message):
        loaded(changed, tmp_path)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_must_be_finite(value, document, tmp_path):
    for name, attributes in (("logistic", ("coef_", "intercept_")), ("scaler", ("mean_", "scale_"))):
        for attribute in attributes:
            changed = document(name)
            array = np.array(getattr(made(name), attribute))
            array.flat[0] = value
            changed["model"]["attributes"][attribute]["array"]["data"] = base64.b64encode(array.tobytes()).decode()
            with pytest.raises(ValueError, match=f"{attribute} must hold finite numbers"):
                loaded(changed, tmp_path)


@pytest.mark.parametrize("digits", [20, 400, 5000])
def test_a_huge_number_of_releases_is_refused(digits, document, tmp_path):
    changed = document("scaler")
    event = changed["model"]["guarantee"]["event"]
    changed["model"]["guarantee"]["event"] = {"type": "SelfComposedDpEvent", "event": event, "count": "HERE"}
    with pytest.raises(ValueError, match="is not a model that can be loaded"):
        loaded(json.dumps(changed).replace('"HERE"', "9" * digits), tmp_path)


@pytest.mark.parametrize("spelling", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_other_spellings_of_numbers_are_refused(spelling, document, tmp_path):
    text = json.dumps(document("ridge")).replace('"alpha": 0.5', f'"alpha": {spelling}')
    assert spelling in text
    with pytest.raises(ValueError, match=r"is not JSON|a number is too large"):
        loaded(text, tmp_path)


def test_a_key_given_twice_is_refused(document, tmp_path):
    text = json.dumps(document("ridge")).replace('"alpha": 0.5', '"alpha": 0.5, "alpha": 0.6')
    with pytest.raises(ValueError, match="a key is given twice"):
        loaded(text, tmp_path)


@pytest.mark.parametrize("depth", [300, 100_000])
def test_deep_nesting_is_refused(depth, document, tmp_path):
    for text in ("[" * depth, '{"a":' * depth, '{"format": ' + "[" * depth + "]" * depth + "}"):
        with pytest.raises(ValueError, match="is not a model that can be loaded"):
            loaded("{" + text[1:] if text[0] != "{" else text, tmp_path)
    changed = document("ridge")
    changed["model"]["parameters"]["solver"] = "HERE"
    nested = '{"tuple": [' * depth + "]}" * depth
    with pytest.raises(ValueError, match="is not a model that can be loaded"):
        loaded(json.dumps(changed).replace('"HERE"', nested), tmp_path)
    event = '{"type": "SelfComposedDpEvent", "count": 1, "event": ' * depth + '{"type": "NoOpDpEvent"}' + "}" * depth
    changed = document("scaler")
    changed["model"]["guarantee"]["event"] = "HERE"
    if depth > 1000:
        with pytest.raises(ValueError, match="is not a model that can be loaded"):
            loaded(json.dumps(changed).replace('"HERE"', event), tmp_path)


def test_a_long_file_is_refused_before_it_is_read(tmp_path):
    size = len(text_of(made("ridge"), tmp_path))
    assert tacit.load(tmp_path / "model.json", max_bytes=size)
    with pytest.raises(ValueError, match=f"it is longer than {size - 1:,} bytes"):
        tacit.load(tmp_path / "model.json", max_bytes=size - 1)


def test_a_device_is_no_model(tmp_path):
    with pytest.raises(ValueError, match="or a device"):
        tacit.load("/dev/zero")
    os.mkfifo(tmp_path / "pipe")  # without a writer, for which nobody waits
    with pytest.raises(ValueError, match="or a device"):
        tacit.load(tmp_path / "pipe")


def test_a_file_that_grows_is_not_followed(tmp_path, monkeypatch):
    size = len(text_of(made("ridge"), tmp_path))
    facts = os.stat(tmp_path / "model.json")
    smaller = os.stat_result((*facts[:6], size - 5, *facts[7:10]))
    monkeypatch.setattr(os, "fstat", lambda _: smaller)
    with pytest.raises(ValueError, match="it grew while it was read"):
        tacit.load(tmp_path / "model.json")


def test_a_width_that_no_text_has_takes_no_room(document, tmp_path):
    changed = document("logistic of texts")
    wide = {"array": {"dtype": "<U9999999", "shape": [2], "values": ["high", "low"]}}
    changed["model"]["attributes"]["classes_"] = wide
    assert loaded(changed, tmp_path).classes_.nbytes == 2 * 4 * 4


def test_texts_of_all_arrays_together_are_bounded(document, tmp_path, monkeypatch):
    changed = document()
    monkeypatch.setattr(np, "array", None)  # none is made
    changed["model"]["parameters"]["classes"] = [
        {"array": {"dtype": "<U9999999", "shape": [999], "values": ["x" * 2_000, *[""] * 998]}}
    ] * 6
    with pytest.raises(ValueError, match="arrays of texts hold more than 10,000,000 characters"):
        loaded(changed, tmp_path)


def test_very_many_values_are_refused_before_they_are_made(tmp_path, monkeypatch):
    monkeypatch.setattr(json, "loads", None)
    with pytest.raises(ValueError, match="it holds more than 1,000,000 values"):
        loaded("{" + "[]," * 500_001, tmp_path)


def test_a_sample_of_nothing_is_refused(document, tmp_path):
    changed = document("scaler")
    inner = {"type": "GaussianDpEvent", "noise_multiplier": 9.0}
    event = {"type": "PoissonSampledDpEvent", "sampling_probability": 0.0, "event": inner}
    changed["model"]["guarantee"]["event"] = event
    with pytest.raises(ValueError, match=r"sampling_probability must lie in \(0, 1\]"):
        loaded(changed, tmp_path)


def test_a_tiny_norm_is_refused(document, tmp_path):
    changed = document("clipper")
    changed["model"]["parameters"]["norm"] = 1e-320
    with pytest.raises(ValueError, match="norm must lie between"):
        loaded(changed, tmp_path)


def test_verbose_of_a_federated_model_is_one_number(document, tmp_path):
    changed = document("federated lasso")
    changed["model"]["parameters"]["verbose"] = NUMBER
    with pytest.raises(ValueError, match="verbose must be a whole number"):
        loaded(changed, tmp_path)


def test_a_plan_of_very_many_releases_is_refused(document, tmp_path):
    changed = document("ridge")
    plan = changed["model"]["attributes"]["plan_"]["plan"]
    plan["releases"] = [{**plan["releases"][0], "name": str(i)} for i in range(6_000)]
    plan["multipliers"] = [1.0] * 6_000
    with pytest.raises(ValueError, match="plan_ has more than 5,000 kinds of releases"):
        loaded(changed, tmp_path)


def test_messages_are_one_short_line_without_escapes(document, tmp_path):
    for value in ("\x1b[31mred", "x" * 10_000, "a\nb"):
        changed = document()
        changed["model"]["parameters"]["solver"] = value
        with pytest.raises(ValueError, match="is not a model that can be loaded") as caught:
            loaded(changed, tmp_path)
        message = str(caught.value)
        assert message.isprintable()
        assert len(message) < 500 + len(str(tmp_path))


def test_files_that_are_no_text(tmp_path):
    for raw in (b"", b"{\xff\xfe", b"\x1f\x8b\x08", b"\x80\x04.", b"nonsense"):
        (tmp_path / "m.json").write_bytes(raw)
        with pytest.raises(ValueError, match="is not a model that can be loaded"):
            tacit.load(tmp_path / "m.json")
    with pytest.raises(FileNotFoundError):
        tacit.load(tmp_path / "none.json")
    buffer = io.BytesIO()
    np.savez(buffer, np.ones(3))
    (tmp_path / "m.json").write_bytes(buffer.getvalue())
    with pytest.raises(ValueError, match="not JSON"):
        tacit.load(tmp_path / "m.json")


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("bounds", {"tuple": [{"tuple": [0.0, 1.0]}] * 7}),
        ("bounds", {"items": [[99, {"tuple": [0.0, 1.0]}]]}),
        ("bounds", {"dict": {"\u001b[2J": {"tuple": [0.0, 1.0]}}}),
        ("bounds", {"items": [[0, {"tuple": [0.0, 1.0]}], [0, {"tuple": [0.0, 2.0]}]]}),
        ("coef_bounds", {"items": [[0, 1], [1, 2]]}),
        ("C", [1.0, 2.0]),
    ],
)
def test_declarations_that_do_not_fit_the_columns_are_refused(document, tmp_path, parameter, value):
    changed = document()
    changed["model"]["parameters"][parameter] = value
    path = tmp_path / "model.json"
    path.write_text(json.dumps(changed))
    with pytest.raises(ValueError, match="not a model"):
        tacit.load(path)
