"""`PrivateEncoder`: text and categories as columns of zeros and ones."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.utils.validation import check_is_fitted

from tacit._types import Floats
from tacit.blocks.validate import validated
from tacit.preprocessing.coding import Coded, Reading, Source, by_place, categories_of, listed
from tacit.preprocessing.frames import ArrayFrame, Frame, frame_of
from tacit.preprocessing.summaries import Terms
from tacit.privacy import Budget, Gate, Guarantee, Plan, Release, checks
from tacit.privacy.mechanisms import ThresholdedCounts
from tacit.privacy.path import opened
from tacit.privacy.plan import TAIL

RELEASE = "categories"


@dataclass(eq=False, repr=False)
class PrivateEncoder(TransformerMixin, BaseEstimator):
    """Text and categories as columns of zeros and ones, with categories that nobody declared found privately.

    A fitted `OneHotEncoder` in front of a private model voids its guarantee: that a category is listed tells that
    somebody has it. Here a category is listed if it is declared, which costs nothing, or if enough people have it.
    All others, and those that are new at prediction, are "other": zeros in all columns of theirs. Numbers and truth
    values pass. In a `PrivatePipeline` the encoder shares the budget of the model; alone it has one of its own.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of the encoder. Nothing is spent where all categories are declared.
    delta : float, default=None
        None: `n_rows ** -1.5`.
    adjacency : {"add-remove", "replace-one"}, default="add-remove"
        What one person may change.
    categories : dict, default=None
        The categories of columns, by the name or the number of each: `{"sex": ["Female", "Male"]}`. They must come from
        somewhere else than the rows. A column of numbers that is named here is encoded as well; whole numbers are
        compared as such.
    max_categories : int, default=20
        How many categories of a column are found at most: those that most people have. It is part of what is public: a
        pipeline plans for so many columns.
    missing_indicator : sequence, default=None
        Columns, by name or number, that get one more column which says that the value is missing. Without it a missing
        category is "other"; a missing number stays NaN, and is left to the model.
    trust_dtypes : bool, default=False
        Whether the categories of a pandas dtype are taken as declared. `astype("category")` reads them off the rows, so
        by default they are not. Those of a polars Enum always are: an Enum cannot be made without naming them.
    random_state : int, default=None
        As in the estimators: None for data about real people.

    Attributes
    ----------
    categories_ : dict
        The categories of every encoded column, as texts: declared ones as declared, found ones in the order of texts.
    found_ : tuple of str
        The columns whose categories were found.
    guarantee_ : Guarantee or None
        What the encoder gave away; None where nothing had to be found. `guarantee_.d0` is the part of delta that covers
        the chance of naming a category which one person alone has.

    Notes
    -----
    Privacy
    ~~~~~~~
    Unit: one row. Neighbours: `adjacency`. Mechanism: one release of thresholded counts for all columns, in which a row
    has one vote in each (`tacit.privacy.mechanisms.ThresholdedCounts`). Released: the categories found. It is the one
    release of Tacit whose size is not known beforehand. Assumed: the number of rows, and the names and the types of
    columns, are public. `read_csv` makes a column text if a single cell is: declare types where that tells something.
    `transform` gives private rows to whoever calls it.

    Examples
    --------
    >>> import pandas as pd
    >>> from tacit import PrivateEncoder
    >>> frame = pd.DataFrame({"job": ["clerk", "nurse"] * 1000 + ["spy"], "age": [30.0, 40.0] * 1000 + [50.0]})
    >>> encoder = PrivateEncoder(epsilon=1.0).fit(frame)
    >>> encoder.get_feature_names_out().tolist()
    ['job=clerk', 'job=nurse', 'age']
    >>> encoder.source_of("job=nurse")
    Source(column='job', value='nurse', missing=False)
    """

    epsilon: float = 1.0
    delta: float | None = None
    adjacency: str = "add-remove"
    _: KW_ONLY
    categories: Any = None
    max_categories: int = 20
    missing_indicator: Any = None
    trust_dtypes: bool = False
    random_state: int | None = None

    def fit(self, X: Any, y: Any = None) -> "PrivateEncoder":  # noqa: ARG002
        """Find the categories that are not declared, spending the whole budget, if there are any."""
        Budget(self.epsilon, 0.5 if self.delta is None else self.delta, self.adjacency)  # type: ignore[arg-type]
        reading = self._read(X)
        if not reading.found:
            return self._keep(reading, (), None)
        terms = Terms(adjacency=self.adjacency, random_state=self.random_state)
        n, plan = reading.frame.n, Plan(*self._releases(reading, 1.0))
        values = 2 * len(reading.found)
        with opened(plan, n, "encoder", self.epsilon, self.delta, values=values, **terms) as gate:
            found = self._run(reading, gate)
        return self._keep(reading, found, gate.guarantee)

    def transform(self, X: Any) -> Floats:
        """Columns of zeros and ones, and numbers as they are."""
        check_is_fitted(self)
        frame = self._frame(X, reset=False)
        widths = [len(list(column.sources)) for column in self.columns_]
        out = np.zeros((frame.n, max(sum(widths), 1)))  # never without a column
        start = 0
        for place, column in enumerate(self.columns_):
            stop = start + widths[place]
            column.write(frame, place, out[:, start:stop])
            start = stop
        return out

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """`column=value` for a category, the column's name for a number, `column is missing` for an indicator."""
        check_is_fitted(self)
        return np.array(list(self._sources(input_features)), dtype=object)

    def source_of(self, name: str) -> Source:
        """The input column, and the value, that an output column stands for."""
        check_is_fitted(self)
        sources = self._sources()
        if name not in sources:
            raise KeyError(f"there is no output column {name!r}; get_feature_names_out() lists them")
        return sources[name]

    def to_sklearn(self) -> ColumnTransformer:
        """A scikit-learn transformer that does the same without tacit, for cells of text columns that are texts."""
        check_is_fitted(self)
        parts = [(f"column {place}", column.plain(), [place]) for place, column in enumerate(self.columns_)]
        if all(part == "drop" for _, part, _ in parts):
            raise TypeError("no column has a category, and scikit-learn makes no table without columns")
        row: Any = [[0.0 if column.categories is None else (column.categories or ("",))[0] for column in self.columns_]]
        row = np.array(row, dtype=object)
        if hasattr(self, "feature_names_in_"):
            from pandas import DataFrame

            row = DataFrame(row, columns=self.feature_names_in_)
        return ColumnTransformer(parts, sparse_threshold=0.0, verbose_feature_names_out=False).fit(row)

    def _sources(self, input_features: Any = None) -> dict[str, Source]:
        """What each output column stands for, by its name."""
        columns = self.columns_
        if input_features is not None:
            given = list(map(str, input_features))
            if len(given) != len(columns):
                raise ValueError(f"input_features should have length equal to number of features ({len(columns)})")
            if hasattr(self, "feature_names_in_") and given != list(self.feature_names_in_):
                raise ValueError("input_features is not equal to feature_names_in_")
            columns = tuple(replace(column, name=name) for column, name in zip(columns, given, strict=True))
        named: dict[str, Source] = {}
        for source in (source for column in columns for source in column.sources):
            name = source.column if source.value is None else f"{source.column}={source.value}"
            name += " is missing" if source.missing else " is empty" if source.empty else ""
            while name in named:  # a column may be called as the category of another
                name += "'"
            named[name] = source
        return named or {"empty": Source("", None, empty=True)}

    def _read(self, X: Any) -> Reading:
        """The table, and how it will be encoded; what is bad raises here, before any budget is spent."""
        most = checks.count("max_categories", self.max_categories)
        if not isinstance(self.trust_dtypes, bool | np.bool_):
            raise TypeError(f"trust_dtypes must be True or False, got {self.trust_dtypes!r}")
        frame = self._frame(X, reset=True)
        if frame.n < 2:
            raise ValueError(f"a table of at least two rows is needed, got n_samples = {frame.n}")
        declared = by_place("categories", self.categories, frame.names)
        marked = by_place("missing_indicator", dict.fromkeys(listed(self.missing_indicator)), frame.names)
        columns = []
        for place, name in enumerate(frame.names):
            values = declared.get(place) if place in declared else frame.declared(place, bool(self.trust_dtypes))
            is_text = frame.kind(place) == "text"
            categories = None if values is None else categories_of(name, values, is_text=is_text)
            if is_text or categories is not None:
                frame.texts(place)  # what cannot be read raises here
            else:
                frame.numbers(place)
            columns.append(Coded(name, is_text, categories, place in marked))
        return Reading(frame, tuple(columns), most)

    def _frame(self, X: Any, *, reset: bool) -> Frame:
        frame = frame_of(X)
        if frame is None:
            array = validated(self, X, dtype=None, ensure_all_finite=False, reset=reset)
            return ArrayFrame(array, getattr(self, "feature_names_in_", None))
        if not frame.names:
            raise ValueError(f"0 feature(s) (shape=({frame.n}, 0)) while a minimum of 1 is required.")
        validated(self, X, skip_check_array=True, reset=reset)
        return frame

    @staticmethod
    def _releases(reading: Reading, share: float) -> tuple[Release, ...]:
        """One, for all columns whose categories are left to be found."""
        return (Release(RELEASE, "thresholded", share=share, tail=TAIL),) if reading.found else ()

    @staticmethod
    def _run(reading: Reading, gate: Gate) -> Sequence[tuple[str, ...]]:
        """The categories found of each column that has none declared."""
        if not reading.found:
            return ()
        mechanism = ThresholdedCounts(len(reading.found), gate.promise.unit.n, reading.most)
        return gate.release(RELEASE, mechanism, [reading.frame.texts(place) for place in reading.found])

    def _keep(
        self, reading: Reading, found: Sequence[tuple[str, ...]], guarantee: Guarantee | None
    ) -> "PrivateEncoder":
        """Keep what was declared and found."""
        values = dict(zip(reading.found, found, strict=True))
        self.columns_ = tuple(
            replace(column, categories=values.get(place, column.categories))
            for place, column in enumerate(reading.columns)
        )
        self.categories_ = {c.name: c.categories for c in self.columns_ if c.categories is not None}
        self.found_ = tuple(self.columns_[place].name for place in reading.found)
        self.guarantee_ = guarantee
        return self

    def _fill(self, reading: Reading) -> None:
        """Columns of zeros for categories that were planned for and not found, where a next step needs them."""
        self.columns_ = tuple(
            replace(column, empty=reading.most - len(column.categories or ()) if place in reading.found else 0)
            for place, column in enumerate(self.columns_)
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = tags.input_tags.allow_nan = True
        return tags
