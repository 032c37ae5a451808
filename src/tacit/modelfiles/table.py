"""A model with the columns of the table that it reads: how each one is encoded, all of it declared."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder
from sklearn.utils.metaestimators import available_if

from tacit.blocks.partitions import lazily
from tacit.blocks.validate import refuse_lazy
from tacit.estimators import PrivatePipeline
from tacit.privacy import Guarantee
from tacit.privacy.texts import HARMLESS, harmless

Categories = tuple[str, ...] | tuple[float, ...]


@dataclass(frozen=True)
class Column:
    """How one column is read and encoded: as a number, or one-hot by its categories.

    Parameters
    ----------
    name : str
        Of the column.
    categories : tuple of str or of float, default=None
        Each becomes a column of its own. Categories that are numbers are compared as numbers, others as text. None: the
        column is a number.
    fill : str or float, default=None
        What stands in for a missing value. None: a missing number counts as the released centre of its column, and a
        missing category as none of them.
    """

    name: str
    categories: Categories | None = None
    fill: str | float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not harmless(self.name):
            raise ValueError(f"the name of a column must be a text {HARMLESS}")
        kind: Any = float
        if self.categories is not None:
            values = self.categories
            kind = str if isinstance(values, tuple) and values and isinstance(values[0], str) else float
            if not isinstance(values, tuple) or not values or not all(_is(kind, value) for value in values):
                raise ValueError(f"the categories of column {self.name!r} must be texts, or finite numbers")
            if not all(harmless(value) for value in values if isinstance(value, str)):
                raise ValueError(f"the categories of column {self.name!r} must be texts {HARMLESS}")
            if len(set(values)) < len(values):
                raise ValueError(f"column {self.name!r} has a category twice")
        if self.fill is not None and not _is(kind, self.fill):
            raise ValueError(f"the constant for missing values of column {self.name!r} must be as its values are")

    @property
    def is_text(self) -> bool:
        """Whether its values are compared as text."""
        return self.categories is not None and isinstance(self.categories[0], str)

    @property
    def features(self) -> list[str]:
        """The names of what it is encoded to."""
        if self.categories is None:
            return [self.name]
        return [f"{self.name} = {value if isinstance(value, str) else format(value, 'g')}" for value in self.categories]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, which `Column(**values)` reads."""
        return asdict(self)


class TableModel(BaseEstimator):
    """A fitted model that predicts from a table: what `tacit fit` writes.

    Parameters
    ----------
    model : estimator
        Fitted on the encoded columns.
    columns : sequence of Column
        What is read of a table, in the order of the model's features.
    target : str
        The name of what is predicted.
    not_covered : sequence of (str, str)
        What the guarantee of the model does not cover and the table added: how grave it is, and what.

    Attributes
    ----------
    guarantee_ : Guarantee
        What the fit gave away.
    classes_ : ndarray
        Of a classifier.
    """

    def __init__(
        self,
        model: Any,
        columns: Sequence[Column],
        target: str,
        not_covered: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.model = model
        self.columns = columns
        self.target = target
        self.not_covered = not_covered

    @property
    def guarantee_(self) -> Guarantee:
        """What the fit gave away."""
        return self.model.guarantee_

    @property
    def classes_(self) -> NDArray[Any]:
        """Of a classifier."""
        return self.model.classes_

    @lazily
    def predict(self, X: Any) -> NDArray[Any]:
        """One prediction for each row of a DataFrame; columns may come in any order, and others are not read."""
        return self.model.predict(self._encoded(X))

    @available_if(lambda self: hasattr(self.model, "predict_proba"))
    @lazily
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Probabilities of the classes, in the order of `classes_`."""
        return self.model.predict_proba(self._encoded(X))

    @available_if(lambda self: hasattr(self.model, "decision_function"))
    @lazily
    def decision_function(self, X: Any) -> NDArray[Any]:
        """Margins of a classifier."""
        return self.model.decision_function(self._encoded(X))

    def score(self, X: Any, y: Any) -> float:
        """The score of the model on a DataFrame: a release, if the rows are private."""
        refuse_lazy(self, X, y)
        return self.model.score(self._encoded(X), y)

    def to_sklearn(self) -> Pipeline:
        """A scikit-learn pipeline that predicts from the same table without tacit."""
        first = encoder(self.columns, one_hot=not isinstance(self.model, PrivatePipeline))
        return Pipeline([("columns", first), *self.model.to_sklearn().steps])

    def _encoded(self, X: Any) -> Any:
        if isinstance(self.model, PrivatePipeline):  # which encodes by itself
            return filled(X[[column.name for column in self.columns]], self.columns)
        return encoder(self.columns).transform(X)


def encoder(columns: Sequence[Column], *, one_hot: bool = True) -> ColumnTransformer:
    """Numbers as they are, categories one-hot unless a next step has them, constants for missing values.

    It is fitted on one made-up row, so nothing in it comes from the data. A value that is not a declared category
    becomes zeros.
    """
    steps: list[tuple[str, Any, list[str]]] = []
    constant: dict[str, Any] = {"strategy": "constant", "keep_empty_features": True}
    for place, column in enumerate(columns):
        parts: list[Any] = []
        if column.fill is not None and not column.is_text:  # a column of whole numbers cannot take any constant
            parts.append(FunctionTransformer(np.asarray, kw_args={"dtype": float}, feature_names_out="one-to-one"))
        if column.fill is not None:
            for missing in (np.nan, None) if column.is_text else (np.nan,):  # text as objects holds None as well
                parts.append(SimpleImputer(missing_values=missing, **constant, fill_value=column.fill))
        if column.categories is not None and one_hot:
            values = np.array(column.categories, dtype=object if column.is_text else np.float64)
            parts.append(OneHotEncoder(categories=[values], handle_unknown="ignore", sparse_output=False))
        step = "passthrough" if not parts else parts[0] if len(parts) == 1 else make_pipeline(*parts)
        steps.append((f"column {place}", step, [column.name]))
    made_up = {column.name: [column.categories[0] if column.categories else 0.0] for column in columns}
    transformer = ColumnTransformer(steps, verbose_feature_names_out=False)
    if not one_hot:
        transformer.set_output(transform="pandas")  # numbers stay numbers beside texts
    return transformer.fit(pandas().DataFrame(made_up))


def filled(frame: Any, columns: Iterable[Column]) -> Any:
    """The table with its constants for missing values."""
    constants = {column.name: column.fill for column in columns if column.fill is not None}
    return frame.fillna(constants) if constants else frame


def feature_names(columns: Iterable[Column]) -> list[str]:
    """What the encoder's output columns are."""
    return [name for column in columns for name in column.features]


def pandas() -> Any:
    """pandas, which only tables need."""
    try:
        import pandas
    except ImportError:
        raise ImportError("reading tables needs pandas and pyarrow: pip install 'tacit[cli]'") from None
    return pandas


def _is(kind: type[str] | type[float], value: Any) -> bool:
    return isinstance(value, kind) and (isinstance(value, str) or math.isfinite(value))
