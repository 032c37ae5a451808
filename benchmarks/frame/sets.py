"""The sets of the benchmarks: what they are, how to load them, and their scaling by public bounds.

`load(name)` gives `(X, y, kind)` in the units of the source; `public(name)` gives `(X, y)` scaled by bounds that were
known before the data; `sets.toml` says what is known of each. Sets come from a data folder (`TACIT_DATA`, or
`../shared/data` next to the repository), from scikit-learn, from `rules.judges`, or are made (`frame.made`).
"""

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn import datasets

from benchmarks.frame.made import MADE
from benchmarks.rules import judges
from tacit.datasets import load as load_paper_set
from tacit.datasets import names

FOLDER = Path(os.environ.get("TACIT_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")
Kind = Literal["classification", "regression"]


@dataclass(frozen=True)
class Entry:
    """One set: its task, and whether it was in view when the library's rules were chosen."""

    kind: Kind
    chose: bool
    note: str = ""


_TOLD = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf8"))
SETS = {name: Entry(**told) for name, told in _TOLD["sets"].items()}
FRESH = {name: Entry(**told) for name, told in _TOLD["fresh"].items()}
"""Sets that no rule was chosen on."""
PUBLIC: dict[str, dict[str, Any]] = _TOLD["public"]
_MNIST_ROWS = 20_000


class MissingSetError(Exception):
    """A set whose source is not on this machine."""


def load(name: str) -> tuple[Any, Any, Kind]:
    """X, y and the kind of task, in the units of the source. Text comes as hashed words, rows of norm 1."""
    if name in judges.SOURCES:
        try:
            X, y = judges.read(name)
        except FileNotFoundError as error:
            raise MissingSetError(str(error)) from None
    elif name in MADE:
        X, y = MADE[name]()
    elif name in names():
        X, y = paper_set(name)
    else:
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return (X[:_MNIST_ROWS], y[:_MNIST_ROWS], "classification") if name == "mnist" else (X, y, entry(name).kind)


def entry(name: str) -> Entry:
    """What is known of a set."""
    return SETS[name] if name in SETS else FRESH[name]


def paper_set(name: str, **how: Any) -> tuple[Any, Any]:
    """(X, y) of a set that the library knows, from the data folder."""
    found = paper_bunch(name, **how)
    return found.data, found.target


def paper_bunch(name: str, **how: Any) -> Any:
    """All that the library knows of it."""
    try:
        return load_paper_set(name, data_home=FOLDER if FOLDER.is_dir() else None, download_if_missing=False, **how)
    except FileNotFoundError as error:
        raise MissingSetError(str(error)) from None


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


def public(name: str, unit_rows: bool = True) -> tuple[Any, Any]:
    """A set scaled by public bounds, rows of classes of norm 1 unless told otherwise."""
    told = PUBLIC[name]
    X, y, _ = load("digits" if name == "digits_even_odd" else name)
    X = np.delete(np.asarray(X, dtype=np.float64), told.get("drop", []), axis=1)
    columns = told["columns"] + told["columns"][-1:] * (X.shape[1] - len(told["columns"]))
    Z = _scaled(X, *np.array(columns, dtype=np.float64).T, told.get("centred", True))
    if told["kind"] == "regression":
        return Z, _scaled(np.asarray(y, dtype=np.float64), *told["target"])
    if unit_rows:
        Z = Z / np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), 1e-12)
    return Z, y % 2 if name == "digits_even_odd" else y


def _scaled(values: Any, low: Any, high: Any, centred: bool = True) -> Any:
    """From [low, high] to [-1, 1] or, not centred, to [0, 1]; clipped."""
    part = np.clip((values - low) / (high - low), 0.0, 1.0)
    return 2.0 * part - 1.0 if centred else part
