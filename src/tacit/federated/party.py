"""`Party`: an organisation's data, checked against a study. What answers for it is in `node`."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_array

from tacit._types import Floats
from tacit.blocks.table import is_sparse
from tacit.blocks.validate import without_data
from tacit.federated.alignment import Alignment, checked_secret
from tacit.federated.classes import as_numbers
from tacit.federated.declared import Cells, columns_of, texts_at
from tacit.federated.protocols.base import Holding
from tacit.federated.study import Study


class Party:
    """An organisation's columns of the rows that all parties have.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_rows, n_features)
        Its columns. They never leave it. The party keeps a copy of its own.
    y : array-like of shape (n_rows,), optional
        The labels, if it holds them.
    name : str, optional
        What the study calls it; in one process "party-1", "party-2" ... by default.
    ids : array-like of shape (n_rows,), optional
        Whole numbers or text that say whom a row is about, each of them once. Without ids, row i is taken to be about
        the same person at every party.
    secret : bytes or str, optional
        Needed with ids, and for masked products: at least 16 bytes that all parties share and the coordinator does not
        know.
    columns : dict, optional
        What each column is, by its name, as in a study (`Member`); X is a data frame then, of which the other columns
        are left out. Texts become categories, numbers get units of their own, and NaN is the centre of its column.

    Examples
    --------
    >>> from tacit.federated import Party
    >>> Party([[1.0, 2.0], [3.0, 4.0]], name="hospital-a")
    Party('hospital-a', 2 rows, 2 columns)
    """

    def __init__(
        self,
        X: Any,
        y: Any = None,
        *,
        name: str | None = None,
        ids: Any = None,
        secret: bytes | str | None = None,
        columns: Any = None,
    ) -> None:
        self.name = name
        self.columns = () if columns is None else columns_of(columns)
        cells = Cells.of(self.columns, X) if self.columns else Cells(table(X, copy=True), ())
        self.X, self.texts = _own(cells.values), cells.texts
        self.y = None if y is None else _own(_labels(y, self.n_rows))
        if ids is not None and secret is None:
            raise ValueError("ids need a secret: rows are matched by keyed hashes of the ids")
        self.secret = None if secret is None else checked_secret(secret)
        self.alignment = None if ids is None or secret is None else Alignment.of(ids, secret)
        if self.alignment is not None and len(self.alignment.order) != self.n_rows:
            raise ValueError("ids must have one entry for each row of X")

    @property
    def n_rows(self) -> int:
        """How many rows it holds."""
        return self.X.shape[0]

    @property
    def n_features(self) -> int:
        """How many columns it holds."""
        return self.X.shape[1]

    @property
    def order(self) -> NDArray[np.int64]:
        """Its rows in the order that all parties take them in."""
        return np.arange(self.n_rows) if self.alignment is None else self.alignment.order

    def named(self, name: str) -> "Party":
        """The same party under a name, or under its own if it has one."""
        return self._with(name=self.name or name)

    def labelled_by(self, holder: "Party") -> "Party":
        """The same party with the labels of another that holds the same rows, for parties in one process."""
        if self.n_rows != holder.n_rows or holder.y is None:
            raise ValueError("labels can be taken from a party that has them, for the same number of rows")
        y = np.empty_like(holder.y)
        y[self.order] = holder.y[holder.order]
        return self._with(y=y)

    def common(self, alignment: Alignment) -> "Party":
        """The party of the rows that an alignment names, in its order."""
        rows = alignment.order
        X = _own(sparse.csc_array(self.X[rows]) if is_sparse(self.X) else self.X[rows])
        y = None if self.y is None else _own(self.y[rows])
        return self._with(X=X, y=y, texts=texts_at(self.texts, rows), alignment=alignment.in_order())

    def holding(self, study: Study) -> Holding:
        """Its data as the study wants it; what does not fit the study is refused."""
        if self.name is None:
            raise ValueError("a party needs the name that the study knows it by")
        member = study.member(self.name)
        if self.n_rows != study.n_rows:
            raise ValueError(f"party {self.name!r} has {self.n_rows:,} rows, and the study agreed on {study.n_rows:,}")
        if self.n_features != member.n_features:
            raise ValueError(
                f"party {self.name!r} has {self.n_features:,} columns, and the study agreed on {member.n_features:,}"
            )
        if self.columns != member.columns:
            raise ValueError(f"the columns of party {self.name!r} are declared as others than the study agreed on")
        if member.labels and self.y is None:
            raise ValueError(f"party {self.name!r} holds the labels by the study, and was given none")
        if not member.labels and self.y is not None:
            raise ValueError(f"party {self.name!r} holds no labels by the study, and was given some")
        if study.masked and self.secret is None:
            raise ValueError(f"party {self.name!r} needs the secret that the parties share: products are masked")
        targets = None if self.y is None else _targets(self.y, study)
        if self.alignment is None:
            return Holding(self.name, self.X, targets, self.secret, self.texts)
        X = self.X[self.order]
        return Holding(
            self.name,
            sparse.csc_array(X) if is_sparse(X) else X,
            None if targets is None else targets[self.order],
            self.alignment.secret(study.digest),
            texts_at(self.texts, self.order),
        )

    def sharing(self, secret: bytes) -> "Party":
        """The same party with a secret, for parties in one process; with its own, if it has one."""
        return self._with(secret=self.secret or secret)

    def _with(self, **changes: Any) -> "Party":
        other = object.__new__(Party)
        other.__dict__.update(self.__dict__ | changes)
        return other

    def __repr__(self) -> str:
        return f"Party({self.name!r}, {self.n_rows:,} rows, {self.n_features:,} columns)"


def table(X: Any, *, copy: bool = False) -> Any:
    """X as a float64 array or as CSC, finite. With `copy` nobody else holds it."""
    checked = _checked("X", X, accept_sparse="csc", dtype=np.float64, copy=copy)
    if not is_sparse(checked):
        return checked
    columns = sparse.csc_array(checked, copy=not checked.has_canonical_format)
    columns.sum_duplicates()
    return columns


def _checked(name: str, values: Any, **options: Any) -> Any:
    """`check_array`; its errors do not quote the data."""
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # the check adds numbers up
            return check_array(values, input_name=name, **options)
    except (TypeError, ValueError) as error:
        message = without_data(str(error))
    raise ValueError(message)  # here, so that the error that quotes the data is not this one's context


def _own(values: Any) -> Any:
    """A party's own copy, closed for writing: what it answers must be about the data that it began with."""
    for array in [values.data, values.indices, values.indptr] if is_sparse(values) else [values]:
        array.flags.writeable = False
    return values


def _labels(y: Any, rows: int) -> NDArray[Any]:
    """One label for each row."""
    labels = _checked("y", y, ensure_2d=False, dtype=None, copy=True)
    if labels.shape != (rows,):
        raise ValueError("y must have one label for each row of X")
    return labels


def _targets(y: NDArray[Any], study: Study) -> Floats:
    """Labels as the study's numbers: themselves, or those of their classes."""
    if study.classes is None:
        if y.dtype.kind not in "fiub":
            raise ValueError("y must hold real numbers")
        with np.errstate(over="ignore"):
            targets = y.astype(np.float64)
        if not np.all(np.isfinite(targets)):
            raise ValueError("y must hold numbers that float64 can carry; divide it by a public constant first")
        return targets
    return as_numbers(y, study.classes)
