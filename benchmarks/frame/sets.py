"""The sets of the benchmarks: what they are, how to load them, and their scaling by public bounds.

`load(name)` gives `(X, y, kind)` in the units of the source; `public(name)` gives `(X, y)` scaled by bounds that were
known before the data. Sets come from a data folder with its reader `load.py` (`TACIT_DATA`, or
`../shared/data` next to the repository), from scikit-learn, or from `judges.py`.
"""

import importlib.util
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn import datasets

from benchmarks.rules import judges

FOLDER = Path(os.environ.get("TACIT_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")
Kind = Literal["classification", "regression"]


@dataclass(frozen=True)
class Entry:
    """One set: its task, where it comes from, and whether it was in view when the library's rules were chosen."""

    kind: Kind
    source: Literal["folder", "scikit-learn", "judges"]
    chose: bool
    note: str = ""


SETS: dict[str, Entry] = {
    "adult": Entry("classification", "folder", True),
    "elec2": Entry("classification", "folder", True),
    "phishing": Entry("classification", "folder", True),
    "a9a": Entry("classification", "folder", True, "CSR"),
    "mnist": Entry("classification", "folder", False, "the first 20,000 of its 70,000 rows"),
    "breast_cancer": Entry("classification", "scikit-learn", True),
    "digits": Entry("classification", "scikit-learn", True),
    "wine": Entry("classification", "scikit-learn", False),
    "churn": Entry("classification", "judges", True),
    "credit": Entry("classification", "judges", True),
    "lending_club": Entry("classification", "judges", False, "one class is 95%: read its AUC"),
    "vote2016": Entry("classification", "judges", False),
    "hpc": Entry("classification", "judges", False),
    "grants": Entry("classification", "judges", True, "CSR"),
    "sms_spam": Entry("classification", "folder", True, "CSR, hashed words"),
    "news20": Entry("classification", "folder", False, "CSR, hashed words"),
    "california_housing": Entry("regression", "folder", True),
    "msd_subset_year": Entry("regression", "folder", True),
    "diabetes": Entry("regression", "scikit-learn", False),
    "diamonds": Entry("regression", "judges", False),
    "hotel_rates": Entry("regression", "judges", True),
    "deliveries": Entry("regression", "judges", False),
    "wages": Entry("regression", "judges", False),
    "ames": Entry("regression", "judges", True),
}
_MNIST_ROWS = 20_000
_TEXT = ("sms_spam", "news20")  # as hashed words, rows of norm 1, which depend on no other row

# Sets with a scaling by public bounds: two classes and rows of norm 1, or features and target in [-1, 1].
PUBLIC: dict[str, Kind] = {
    "breast_cancer": "classification",
    "digits_even_odd": "classification",
    "elec2": "classification",
    "adult": "classification",
    "california_housing": "regression",
    "diabetes": "regression",
    "wages": "regression",
    "diamonds": "regression",
}

# What no such tumour exceeds, column by column: mean, standard error and worst of ten measurements.
BREAST_CANCER_MAXIMA = np.array(
    [
        *(30, 40, 200, 3000, 0.2, 0.4, 0.5, 0.25, 0.4, 0.1),
        *(3, 5, 25, 600, 0.04, 0.2, 0.4, 0.06, 0.1, 0.03),
        *(40, 50, 300, 5000, 0.25, 1.2, 1.5, 0.3, 0.7, 0.25),
    ]
)
_ADULT_MAXIMA = np.array([90.0, 16.0, 99_999.0, 4_356.0, 99.0])  # age, education, gain, loss, hours
_ADULT_WEIGHT = 1  # the column of `fnlwgt`
_ELEC2_DAY = 1

# Round bounds of each column, then of the target; what lies outside is clipped.
_REGRESSION_BOUNDS: dict[str, tuple[list[tuple[float, float]], tuple[float, float]]] = {
    "california_housing": (
        # income, age, rooms, bedrooms, population, occupants, latitude, longitude
        [(0, 15), (0, 52), (0, 20), (0, 5), (0, 10_000), (0, 10), (32, 42), (-125, -114)],
        (0, 5),
    ),
    "diabetes": ([(-0.2, 0.2)] * 10, (0, 400)),  # as scikit-learn ships it, already scaled
    "wages": ([(0, 1), (0, 1), (16, 70), *[(0, 1)] * 4, (0, 20)], (0, 100)),  # gender, age, region, education
    "diamonds": (
        # carat; cut, color, clarity; depth, table; x, y, z
        [(0, 5), *[(0, 1)] * 20, (40, 80), (40, 100), (0, 12), (0, 12), (0, 12)],
        (0, 20_000),
    ),
}


class MissingSetError(Exception):
    """A set whose source is not on this machine."""


def load(name: str) -> tuple[Any, Any, Kind]:
    """X, y and the kind of task, in the units of the source."""
    entry = SETS[name]
    if entry.source == "judges":
        try:
            X, y = judges.read(name)
        except FileNotFoundError as error:
            raise MissingSetError(str(error)) from None
    elif entry.source == "scikit-learn":
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    elif name in _TEXT:
        X, y = folder_reader("hashed")(name)
    else:
        X, y = folder_reader()(name)
    if name == "mnist":
        X, y = X[:_MNIST_ROWS], y[:_MNIST_ROWS]
    return X, y, entry.kind


def standardised(name: str, most_rows: int) -> tuple[Any, Any, Kind]:
    """Some rows of a set, each column standardised over them and clipped to 3, and targets likewise; for two classes,
    of which several become even against odd, -1 and 1. For benchmarks in which that is not what is measured.
    """
    X, y, kind = load(name)
    table, labels = np.asarray(X, dtype=np.float64), np.asarray(y)
    keep = np.random.default_rng(0).permutation(len(table))[:most_rows]
    table, labels = table[keep], labels[keep]
    deviations = table.std(axis=0)
    standard = (table - table.mean(axis=0)) / np.where(deviations > 0, deviations, 1.0)
    Z = np.clip(standard, -3, 3).astype(np.float32)
    if kind == "regression":
        return Z, np.clip((labels - labels.mean()) / labels.std(), -3, 3), kind
    return Z, np.where(np.unique(labels, return_inverse=True)[1] % 2 == 1, 1.0, -1.0), kind


def public(name: str) -> tuple[Any, Any]:
    """A set scaled by public bounds.

    With two classes every row is then divided by its norm; for regression features and target lie in [-1, 1].
    """
    if name == "digits_even_odd":
        X, y = datasets.load_digits(return_X_y=True)
        return _rows_of_norm_1(X / 16.0), y % 2
    X, y, _ = load(name)
    X = np.asarray(X, dtype=np.float64)
    if name in _REGRESSION_BOUNDS:
        columns, target = _REGRESSION_BOUNDS[name]
        low, high = np.array(columns).T
        return _to_unit(X, low, high), _to_unit(np.asarray(y, dtype=np.float64), *target)
    if name == "breast_cancer":
        return _rows_of_norm_1(_to_unit(X, 0.0, BREAST_CANCER_MAXIMA)), y
    if name == "elec2":  # every column but the day of the week comes in [0, 1]
        X[:, _ELEC2_DAY] = (X[:, _ELEC2_DAY] - 1.0) / 6.0
        return _rows_of_norm_1(_to_unit(X, 0.0, 1.0)), y
    X = np.delete(X, _ADULT_WEIGHT, axis=1)
    X[:, : len(_ADULT_MAXIMA)] /= _ADULT_MAXIMA
    return _rows_of_norm_1(np.clip(X, 0.0, 1.0)), y


def _to_unit(values: Any, low: Any, high: Any) -> Any:
    """From [low, high] to [-1, 1], clipped."""
    return np.clip(2.0 * (values - low) / (high - low) - 1.0, -1.0, 1.0)


def _rows_of_norm_1(X: Any) -> Any:
    return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)


@cache
def folder_reader(function: str = "load") -> Any:
    """A function of the data folder: `load`; for text, `hashed` or `counts`."""
    path = FOLDER / "load.py"
    if not path.exists():
        raise MissingSetError(f"no data folder with a load.py at {FOLDER}: set TACIT_DATA")
    spec = importlib.util.spec_from_file_location("tacit_benchmark_data", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, function)
