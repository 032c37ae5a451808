"""Sets that scikit-learn has or fetches, turned into numbers.

From OpenML a set comes as scikit-learn's pure Python reader gives it (no pandas is needed): columns of categories as
positions in the list of categories that the file declares. One-hot columns follow that list, never the rows, so that a
row depends on no other row.
"""

import warnings
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import datasets as sklearn_datasets
from sklearn.preprocessing import normalize

from tacit.datasets.catalogue import Dataset
from tacit.datasets.local import Table
from tacit.datasets.text import featurise


def fetch(dataset: Dataset, features: str, n_hashed: int) -> Table:
    """The set from scikit-learn or OpenML, downloaded if it must be; scikit-learn keeps it in its own folder."""
    try:
        if dataset.name == "news20":
            return _news20(dataset, features, n_hashed)
        if dataset.name == "rcv1":
            return _rcv1(dataset)
        return _scikit_learn(dataset) if dataset.scikit_learn else _openml(dataset, features)
    except OSError as error:
        raise ConnectionError(
            f"{dataset.name!r} could not be fetched from {dataset.sources}: {type(error).__name__}. Is there a "
            "network? Without one, put its files into a folder and name it with data_home= or the environment variable "
            "TACIT_DATA"
        ) from error


def _scikit_learn(dataset: Dataset) -> Table:
    bunch = getattr(sklearn_datasets, str(dataset.scikit_learn))()
    return Table(bunch.data, bunch.target, dataset.sources, [str(name) for name in bunch.feature_names])


def _news20(dataset: Dataset, features: str, n_hashed: int) -> Table:
    parts = [sklearn_datasets.fetch_20newsgroups_vectorized(subset=s, normalize=False) for s in ("train", "test")]
    counts = sparse.csr_array(sparse.vstack([part.data for part in parts]))
    data, names = featurise(counts, [str(word) for word in parts[0].feature_names], features, n_hashed)
    newsgroup = np.concatenate([part.target for part in parts])
    positive = np.array([name.startswith(("comp.", "sci.")) for name in parts[0].target_names])
    is_test = np.arange(len(newsgroup)) >= len(parts[0].target)
    return Table(data, positive[newsgroup].astype(np.int64), dataset.sources, names, is_test, newsgroup)


def _rcv1(dataset: Dataset) -> Table:
    """LIBSVM's two classes; stories of both, or of neither, are left out."""
    bunch = sklearn_datasets.fetch_rcv1(subset="train")
    topic = list(bunch.target_names)

    def of(*wanted: str) -> Any:
        return np.asarray(bunch.target[:, [topic.index(name) for name in wanted]].sum(axis=1)).ravel() > 0

    positive, negative = of("CCAT", "ECAT"), of("GCAT", "MCAT")
    kept = positive != negative
    return Table(bunch.data[np.flatnonzero(kept)], np.where(positive[kept], 1, -1), dataset.sources)


def _openml(dataset: Dataset, features: str) -> Table:
    bunch = sklearn_datasets.fetch_openml(data_id=dataset.openml, as_frame=False, parser="liac-arff")
    names = [name.replace("-", "_") for name in bunch.feature_names]
    categories = {name.replace("-", "_"): written for name, written in (bunch.categories or {}).items()}
    data = bunch.data
    if dataset.nominal == "one-hot" and features != "raw":
        data, names = _one_hot(data, names, categories, dataset.unknown)
        if features == "one-hot":
            data = normalize(data)
    else:
        data = _numbers(data, names, categories)
    if features == dataset.features[0] and data.shape != dataset.shape:
        warnings.warn(
            f"{dataset.name!r} from {dataset.sources} is {data.shape[0]} x {data.shape[1]}, not "
            f"{dataset.shape[0]} x {dataset.shape[1]} as in the catalogue",
            stacklevel=4,
        )
    return Table(data, _codes(dataset, bunch.target), dataset.sources, names)


def _numbers(data: Any, names: list[str], categories: dict[str, list[str]]) -> Any:
    """Categories that are written as numbers, as these numbers."""
    for name, written in categories.items():
        value = np.array([float(text) for text in written])
        if np.array_equal(value, np.arange(len(value))):
            continue  # its position is its value
        if sparse.issparse(data):
            raise ValueError(f"a sparse column of categories cannot be read as numbers: {name!r}")
        column = names.index(name)
        data[:, column] = value[data[:, column].astype(np.int64)]
    return data


def _one_hot(data: Any, names: list[str], categories: dict[str, list[str]], unknown: tuple[str, ...]) -> Any:
    """The numeric columns, then a column for each category in alphabetical order; "?" where a missing value is one."""
    blocks = [data[:, [index for index, name in enumerate(names) if name not in categories]]]
    titles = [name for name in names if name not in categories]
    for name in (name for name in names if name in categories):
        position = data[:, names.index(name)]
        columns = {category: position == index for index, category in enumerate(categories[name])}
        if name in unknown:
            columns["?"] = np.isnan(position)
        order = sorted(columns)
        blocks.append(np.column_stack([columns[category] for category in order]))
        titles += [f"{name}_{category}" for category in order]
    return np.hstack(blocks), titles


def _codes(dataset: Dataset, target: Any) -> Any:
    """The classes as the catalogue numbers them, whether the source wrote words or numbers."""
    if dataset.classes is None:
        return target
    written, inverse = np.unique(np.asarray(target), return_inverse=True)
    code = dict(zip(dataset.classes.labels, dataset.classes.codes, strict=True))
    found = [code.get(_plain(label)) for label in written]
    if None in found:
        raise ValueError(f"{dataset.sources} holds other classes than those of {dataset.name!r}: {', '.join(code)}")
    return np.array(found)[inverse]


def _plain(label: Any) -> str:
    """A label as text; numbers in their shortest form."""
    try:
        return f"{float(label):g}"
    except ValueError:
        return str(label)
