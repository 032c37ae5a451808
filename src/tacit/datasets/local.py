"""Reading a set from the files of a local folder.

For a set called `name` the folder may hold

    name.npz                                     dense: X, y, and perhaps feature_names, n_train, is_test
    name_X.npz, name_y.npz                       sparse: X as scipy saves it, and the other arrays
    name_counts.npz, name_counts_y.npz,          text: counts as scipy saves them, labels, and one word for each column,
    name_counts_vocab.txt.gz                     a line each
    LIBSVM's own files, perhaps .gz or .bz2      for the sets that `describe(name).libsvm` gives files for

The first `n_train` rows are the published training set, or `is_test` marks the others.
"""

import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from tacit.datasets.catalogue import Dataset
from tacit.datasets.text import featurise


class Table(NamedTuple):
    """A set as it was read: before its columns and labels get their final types."""

    data: Any
    target: Any
    source: str
    feature_names: list[str] | None = None
    is_test: Any = None
    newsgroup: Any = None


def wanted(dataset: Dataset) -> list[tuple[str, ...]]:
    """The files that are looked for: the first group of them that is complete is read."""
    name = dataset.name
    if dataset.text:
        return [(f"{name}_counts.npz", f"{name}_counts_y.npz", f"{name}_counts_vocab.txt.gz")]
    saved = (f"{name}_X.npz", f"{name}_y.npz") if dataset.sparse else (f"{name}.npz",)
    return [saved, dataset.libsvm] if dataset.libsvm else [saved]


def read(dataset: Dataset, folder: Path, features: str, n_hashed: int) -> Table | None:
    """The set, or None if the folder does not have it."""
    for group in wanted(dataset):
        files = [path for file in group if (path := _find(folder / file)) is not None]
        if len(files) < len(group):
            continue
        if group == dataset.libsvm:
            return _libsvm(dataset, files)
        if dataset.text:
            return _text(files, features, n_hashed)
        return _sparse(files) if dataset.sparse else _dense(files[0], features)
    return None


def _find(path: Path) -> Path | None:
    """The file, or its compressed form for those that scikit-learn reads compressed."""
    ends = ("",) if path.name.endswith((".npz", ".txt.gz")) else ("", ".gz", ".bz2")
    candidates = (path.with_name(path.name + end) for end in ends)
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def _dense(file: Path, features: str) -> Table:
    with np.load(file) as arrays:
        form = "_uci" if features == "raw" else ""
        target = arrays[f"y{form}"]
        names = None if form else _names(arrays)
        return Table(arrays[f"X{form}"], target, str(file), names, _split(arrays, len(target)))


def _sparse(files: list[Path]) -> Table:
    with np.load(files[1]) as arrays:
        target = arrays["y"]
        return Table(sparse.load_npz(files[0]), target, str(files[0]), _names(arrays), _split(arrays, len(target)))


def _text(files: list[Path], features: str, n_hashed: int) -> Table:
    counts = sparse.csr_array(sparse.load_npz(files[0]))
    with gzip.open(files[2], "rt", encoding="utf8") as lines:
        vocabulary = lines.read().split("\n")
    data, names = featurise(counts, vocabulary, features, n_hashed)
    with np.load(files[1]) as arrays:
        target = arrays["y"]
        newsgroup = arrays["y20"].astype(np.int64) if "y20" in arrays else None
        return Table(data, target, str(files[0]), names, _split(arrays, len(target)), newsgroup)


def _libsvm(dataset: Dataset, files: list[Path]) -> Table:
    parts = [load_svmlight_file(file, n_features=dataset.shape[1], dtype=np.float32) for file in files]
    target = np.concatenate([part[1] for part in parts])
    if dataset.classes is not None:  # whether a file writes -1 or 0 for the first class
        written, inverse = np.unique(target, return_inverse=True)
        if len(written) != len(dataset.classes.codes):
            raise ValueError(f"{files[0]} must hold {len(dataset.classes.codes)} classes, it has {len(written)}")
        target = np.array(dataset.classes.codes)[inverse]
    is_test = np.arange(len(target)) >= len(parts[0][1]) if len(parts) > 1 else None
    return Table(sparse.vstack([part[0] for part in parts]), target, str(files[0]), None, is_test)


def _names(arrays: Mapping[str, Any]) -> list[str] | None:
    """The names of the columns, unless they are stored as pickled objects: unpickling a file runs its code."""
    key = "feature_names" if "feature_names" in arrays else "probe"
    try:
        return [str(name) for name in arrays[key]] if key in arrays else None
    except ValueError:
        return None


def _split(arrays: Mapping[str, Any], rows: int) -> Any:
    """True for the rows of the published test set, or None."""
    if "is_test" in arrays:
        return arrays["is_test"].astype(bool)
    return np.arange(rows) >= int(arrays["n_train"]) if "n_train" in arrays else None
