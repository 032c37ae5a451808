"""Valid files with something changed: each is loaded, or refused with a ValueError, and nothing else happens."""

import copy
import json
import warnings

import numpy as np
import pytest

from .support import loaded, made, quiet, rows, text_of

pytestmark = quiet
MODELS = ("logistic of texts", "selected", "linear", "pca", "scaler", "federated logistic", "table")
OTHERS = (
    *(None, True, False, 0, 1, -1, 2, 7, 10**30, 0.5, -1e308, 1e-320, "", "x", "inf", "nan", "<f4", "<U3", "object"),
    *([], [1], ["x"], {}, {"x": 1}, {"tuple": []}, {"float": "inf"}, {"float": "nan"}, {"dict": {}}, {"csr": {}}),
    {"array": {"dtype": "<f8", "shape": [0], "order": "C", "data": ""}},
    {"array": {"dtype": "object", "shape": [2], "values": ["x", 1]}},
    {"type": "NoOpDpEvent"},
    {"type": "LaplaceDpEvent", "noise_multiplier": 0.5},
)


def places(content):
    """Every (container, key) of a document."""
    if isinstance(content, dict | list):
        for key in list(content) if isinstance(content, dict) else range(len(content)):
            yield content, key
            yield from places(content[key])


def with_a_value_changed(text, rng):
    """A value replaced by another one, of the same file or of another type; or dropped, moved, doubled, cut short."""
    document = json.loads(text)
    found = list(places(document))
    container, key = found[rng.integers(len(found))]
    value = container[key]
    choice = rng.integers(6)
    if choice == 0 and isinstance(container, dict):
        del container[key]
    elif choice == 1 and isinstance(container, dict):
        container[str(rng.choice(["more", "coef_", "class", "type"]))] = container.pop(key)
    elif choice == 2:
        other, place = found[rng.integers(len(found))]
        container[key] = copy.deepcopy(other[place])
    elif choice == 3 and isinstance(value, str | list) and len(value):
        container[key] = value[: rng.integers(len(value))]
    elif choice == 4 and isinstance(value, int | float):
        container[key] = value * float(rng.choice([-1.0, 0.0, 0.5, 1.5, 1e10]))
    else:
        container[key] = copy.deepcopy(OTHERS[rng.integers(len(OTHERS))])
    return json.dumps(document)


def with_bytes_changed(text, rng):
    """Some characters replaced, left out or doubled."""
    characters = list(text)
    for _ in range(rng.integers(1, 4)):
        place = rng.integers(len(characters))
        characters[place] = str(rng.choice([chr(rng.integers(32, 127)), "", characters[place] * 2, "\x00", "é"]))
    return "".join(characters)


def outcomes(name, folder, seed, count):
    """How many changed files were loaded, and how many refused; the file as it was made is loaded."""
    text = text_of(made(name), folder)
    loaded(text, folder)
    rng = np.random.default_rng(seed)
    told = {"loaded": 0, "refused": 0}
    for number in range(count):
        change = with_bytes_changed if number % 3 == 0 else with_a_value_changed
        try:
            model = loaded(change(text, rng), folder)
        except ValueError:
            told["refused"] += 1
            continue
        told["loaded"] += 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of numbers that the change made too large
            try:
                (model.predict if hasattr(model, "predict") else model.transform)(rows(name))
            except ValueError:  # columns may have other names now
                continue
    return told


@pytest.mark.parametrize("name", MODELS)
def test_a_changed_file_is_loaded_or_refused(name, tmp_path):
    told = outcomes(name, tmp_path, 1, 60)
    assert told["refused"] > 0  # which changes are let through depends on the numbers of the fit, which has fresh noise


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_many_changed_files_are_loaded_or_refused(name, tmp_path):
    assert outcomes(name, tmp_path, 2, 2_000)["refused"] > 500
