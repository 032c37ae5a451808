"""`load`: a set by its name, from a local folder, from scikit-learn, or from OpenML."""

import os
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import Bunch, check_scalar

from tacit.datasets.catalogue import PAPERS, Dataset, describe
from tacit.datasets.local import Table, read, wanted
from tacit.datasets.remote import fetch

VARIABLE = "TACIT_DATA"


def load(
    name: str,
    *,
    data_home: str | os.PathLike[str] | None = None,
    features: str | None = None,
    n_hashed: int = 2**16,
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Any:
    """Load one of the papers' sets.

    It is looked for in a local folder, then in what is installed with scikit-learn, then it is fetched: by
    scikit-learn's own fetcher if there is one, else from OpenML. `source` says where it was found. Nothing is written
    into the folder; downloads are kept where scikit-learn keeps them.

    Parameters
    ----------
    name : str
        One of `names()`.
    data_home : path or None
        The local folder; None: the environment variable TACIT_DATA, and if that is not set there is none. The
        docstring of `tacit.datasets.local` says which files it may hold.
    features : str or None
        Which form of the columns, one of `describe(name).features`; None: the first. Text comes as "hashed" (a row
        depends on no other row), "counts" or "tf-idf"; phishing as "one-hot" or "raw" (UCI's 30 columns); adult as
        "standard" or with the 81 columns of the paper "dp-scd".
    n_hashed : int
        The number of columns of hashed text.
    download_if_missing : bool
        If False, what is not on this machine raises FileNotFoundError.
    return_X_y : bool
        If True, (data, target) instead of a Bunch.

    Returns
    -------
    Bunch
        `data` (float32, dense or CSR), `target` (int64 classes or float64 values), `feature_names` (list or None),
        `target_names` (list), `is_test` (True for the rows of the published test set; None if the source has no split),
        `newsgroup` (for news20, the 20 classes; else None), `source` and `DESCR`.

    Examples
    --------
    >>> from tacit.datasets import load
    >>> X, y = load("breast_cancer", return_X_y=True)
    >>> X.shape
    (569, 30)
    """
    dataset = describe(name)
    form = dataset.features[0] if features is None else features
    if form not in dataset.features:
        accepted = ", ".join(map(repr, dataset.features))
        raise ValueError(f"features of {name!r} must be one of {accepted}, got {features!r}")
    check_scalar(n_hashed, "n_hashed", int, min_val=1)
    folder = _folder(data_home)
    table = None if folder is None else read(dataset, folder, form, n_hashed)
    if table is None:
        if not dataset.bundled and not (download_if_missing and dataset.downloadable):
            raise FileNotFoundError(_missing(dataset, folder))
        table = fetch(dataset, form, n_hashed)
    bunch = _bunch(dataset, _of_paper(dataset, table) if form in PAPERS else table)
    return (bunch.data, bunch.target) if return_X_y else bunch


def _of_paper(dataset: Dataset, table: Table) -> Table:
    """The columns of the paper's form, which are some of those of the first."""
    names = table.feature_names
    if names is None:
        raise ValueError(f"{table.source} does not name its columns, so that those of the paper cannot be found")
    kept = [k for k, name in enumerate(names) if not any(fnmatchcase(name, pattern) for pattern in dataset.left_out)]
    return table._replace(data=table.data[:, kept], feature_names=[names[k] for k in kept])


def _folder(data_home: str | os.PathLike[str] | None) -> Path | None:
    given, of = (data_home, "data_home") if data_home is not None else (os.environ.get(VARIABLE) or None, VARIABLE)
    if given is None:
        return None
    folder = Path(given).expanduser()
    if not folder.is_dir():
        raise NotADirectoryError(f"{of} must be a folder that exists, got {str(folder)!r}")
    return folder


def _missing(dataset: Dataset, folder: Path | None) -> str:
    files = ", or ".join(" with ".join(group) for group in wanted(dataset))
    where = "no local folder is set" if folder is None else f"it is not in {folder}"
    other = f"also from {dataset.sources}" if dataset.downloadable else dataset.sources
    return (
        f"{dataset.name!r} ({other}) was not found: {where}. Looked for {files}. Name the folder that has it with "
        f"data_home= or the environment variable {VARIABLE}"
    )


def _bunch(dataset: Dataset, table: Table) -> Bunch:
    classes = dataset.classes
    target = np.asarray(table.target, dtype=np.float64 if classes is None else np.int64)
    if classes is not None and not np.isin(target, classes.codes).all():
        raise ValueError(f"{table.source} holds other classes than those of {dataset.name!r}: {classes.codes}")
    data: Any = sparse.csr_array(table.data, dtype=np.float32) if dataset.sparse else _dense(table.data)
    return Bunch(
        data=data,
        target=target,
        feature_names=table.feature_names,
        target_names=[] if classes is None else list(classes.names),
        is_test=table.is_test,
        newsgroup=table.newsgroup,
        source=table.source,
        DESCR=_description(dataset, table),
    )


def _dense(data: Any) -> Any:
    return np.ascontiguousarray(data.toarray() if hasattr(data, "toarray") else data, dtype=np.float32)


def _description(dataset: Dataset, table: Table) -> str:
    rows, columns = table.data.shape
    lines = [f"{dataset.name}: {dataset.title}.", f"{dataset.task}, {rows} x {columns}, from {table.source}."]
    lines += [f"Used by {PAPERS[paper]}." for paper in dataset.papers]
    lines += [f"Take care: {caution}." for caution in dataset.cautions]
    return "\n".join(lines)
