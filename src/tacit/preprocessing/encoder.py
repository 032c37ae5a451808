"""`PrivateEncoder`: text and categories as columns of zeros and ones."""

import math
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.utils.validation import check_is_fitted

from tacit._types import Floats
from tacit.blocks.lazy import BlockTable
from tacit.blocks.partitions import lazily, without_seed
from tacit.blocks.reading import opened as reading_of
from tacit.blocks.validate import is_lazy, refuse_lazy, validated
from tacit.preprocessing.blocks import BlockReading, look, texts_of
from tacit.preprocessing.coding import Coded, Reading, Source, by_place, categories_of, listed
from tacit.preprocessing.frames import ArrayFrame, Frame, frame_of
from tacit.preprocessing.plain import plain_encoder
from tacit.preprocessing.summaries import Terms
from tacit.privacy import Budget, Gate, Guarantee, Plan, Release, checks
from tacit.privacy.mechanisms import GaussianVector, Sensitivity, ThresholdedCounts
from tacit.privacy.path import opened
from tacit.privacy.plan import TAIL

VOTE, RELEASE = "kinds", "categories"
_VOTE_PART = 0.1  # of what the encoder has: a vote is easier to win than a place among the categories


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
    parse : sequence, default=None
        Columns of text, by name or number, of which it is not known whether they are numbers, as in a csv file that is
        read as text. A noisy vote of the rows decides it for each, and cells of the other kind are holes.
    trust_dtypes : bool, default=False
        Whether the categories of a pandas dtype are taken as declared. `astype("category")` reads them off the rows, so
        by default they are not. Those of a polars Enum always are: an Enum cannot be made without naming them. If
        True, columns of truth values also lie between 0 and 1 for the steps that follow, by their type.
    random_state : int, default=None
        As in the estimators: None for data about real people.

    Attributes
    ----------
    categories_ : dict
        The categories of every encoded column, as texts: declared ones as declared, found ones in the order of texts.
    columns_ : tuple
        How each column is encoded.
    guarantee_ : Guarantee or None
        What the encoder gave away; None where nothing had to be found. `guarantee_.d0` is the part of delta that covers
        the chance of naming a category which one person alone has.
    plan_ : Promise
        The releases with their noise; only where something had to be found.

    Notes
    -----
    Privacy
    ~~~~~~~
    Unit: one row. Neighbours: `adjacency`. Mechanism: one release of thresholded counts for all columns, in which a row
    has one vote in each (`tacit.privacy.mechanisms.ThresholdedCounts`), and before it a Gaussian one of the votes on
    columns to `parse`. Released: the categories found, and which of these columns are numbers. It is the one
    release of Tacit whose size is not known beforehand. Assumed: the number of rows, and the names and the types of
    columns, are public. `read_csv` makes a column text if a single cell is, and pandas one of truth values an object if
    a single one is missing: declare types where that tells something. A list has no type, so it is refused. A text
    that would steer a terminal, or has more than 10,000 characters, is never named: it is "other". `transform` gives
    private rows to whoever calls it.

    Examples
    --------
    >>> import pandas as pd
    >>> from tacit import PrivateEncoder
    >>> frame = pd.DataFrame({"job": ["clerk", "nurse"] * 1000 + ["spy"], "age": [30.0, 40.0] * 1000 + [50.0]})
    >>> encoder = PrivateEncoder(epsilon=1.0).fit(frame)
    >>> encoder.get_feature_names_out().tolist()
    ['job=clerk', 'job=nurse', 'age']
    >>> encoder.source_of("job=nurse")
    Source(column='job', value='nurse', missing=False, empty=False)
    """

    epsilon: float = 1.0
    delta: float | None = None
    adjacency: str = "add-remove"
    _: KW_ONLY
    categories: Any = None
    max_categories: int = 20
    missing_indicator: Any = None
    parse: Any = None
    trust_dtypes: bool = False
    random_state: int | None = None

    def fit(self, X: Any, y: Any = None) -> "PrivateEncoder":  # noqa: ARG002
        """Find the categories that are not declared, spending the whole budget, if there are any."""
        if is_lazy(X):
            return self.fit_blocks(X)
        Budget(self.epsilon, 0.5 if self.delta is None else self.delta, self.adjacency)  # type: ignore[arg-type]
        reading = self._read(X)
        if hasattr(self, "plan_"):  # of an earlier fit
            delattr(self, "plan_")
        if not reading.found:
            return self._keep(reading.columns, None)
        terms = Terms(adjacency=self.adjacency, random_state=self.random_state)
        n, plan = reading.frame.n, Plan(*self._releases(reading, 1.0))
        values = 2 * len(reading.found)
        with opened(plan, n, "encoder", self.epsilon, self.delta, values=values, **terms) as gate:
            columns = self._run(reading, gate)
        self.plan_ = gate.promise
        return self._keep(columns, gate.guarantee)

    def fit_blocks(self, blocks: Any) -> "PrivateEncoder":
        """`fit` on rows that together may be larger than memory, with the same result.

        What is held in memory grows with the number of different texts in a column, and not with the rows.

        Parameters
        ----------
        blocks : files, table, or iterable of blocks
            Paths of Parquet or CSV files, a pyarrow table or dataset, a polars lazy frame, or tables in something that
            can be read several times. Columns of a CSV file have no types: those in `parse` and `categories` are read
            as text, and all others as numbers.
        """
        with reading_of(blocks, texts=texts_of(self)) as parts:
            return self.fit(BlockTable.looked_at(parts, partial(look, without_seed(self)), "none"))

    @lazily
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
        """A scikit-learn transformer that does the same without tacit, for cells of text columns that are texts.

        A column of which a vote made a number is taken as a number: a cell that is none is an error there.
        """
        check_is_fitted(self)
        return plain_encoder(self.columns_, getattr(self, "feature_names_in_", None))

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
        if isinstance(X, BlockTable):
            X.tell(self)
            del self._truths
            return BlockReading.of(X, most)
        frame = self._frame(X, reset=True)
        if frame.n < 2:
            raise ValueError(f"a table of at least two rows is needed, got n_samples = {frame.n}")
        return Reading(frame, self._coded(frame, trusted=bool(self.trust_dtypes)), most)

    def _coded(self, frame: Frame, *, trusted: bool) -> tuple[Coded, ...]:
        """How each column will be encoded, by what is declared; what cannot be read raises."""
        declared = by_place("categories", self.categories, frame.names)
        marked = by_place("missing_indicator", listed("missing_indicator", self.missing_indicator), frame.names)
        voted = by_place("parse", listed("parse", self.parse), frame.names)
        columns = []
        for place, name in enumerate(frame.names):
            values = declared.get(place) if place in declared else frame.declared(place, trusted)
            is_text = frame.kind(place) == "text"
            categories = None if values is None else categories_of(name, values, is_text=is_text)
            if is_text or categories is not None:
                frame.texts(place)  # what cannot be read raises here
            else:
                frame.numbers(place)
            if place in voted and (categories is not None or not is_text):
                raise ValueError(f"parse names the column {name!r}, which is declared or is a number")
            typed = place not in declared and categories is not None
            columns.append(Coded(name, is_text, categories, place in marked, parsed=place in voted, typed=typed))
        return tuple(columns)

    def _frame(self, X: Any, *, reset: bool, least: int = 1) -> Frame:
        refuse_lazy(self, X)
        frame = frame_of(X)
        if frame is None:
            array = validated(self, X, dtype=None, ensure_all_finite=False, reset=reset, ensure_min_samples=least)
            return ArrayFrame(array, getattr(self, "feature_names_in_", None))
        if not frame.names:
            raise ValueError(f"0 feature(s) (shape=({frame.n}, 0)) while a minimum of 1 is required.")
        validated(self, X, skip_check_array=True, reset=reset)
        return frame

    @staticmethod
    def _releases(reading: Reading, share: float) -> tuple[Release, ...]:
        """One for all columns whose categories are left to be found; before it, perhaps, a vote on what they are."""
        if not reading.found:
            return ()
        vote = (Release(VOTE, "gaussian", share=_VOTE_PART * share),) if reading.voted else ()
        rest = (1.0 - _VOTE_PART if vote else 1.0) * share
        return (*vote, Release(RELEASE, "thresholded", share=rest, tail=TAIL))

    @staticmethod
    def _run(reading: Reading, gate: Gate) -> tuple[Coded, ...]:
        """The columns, with what was found of each that is not declared.

        A row adds 1, -1 or 0 to the vote on each of q columns: a vector of norm sqrt(q) at most.
        """
        n, columns = gate.promise.unit.n, list(reading.columns)
        if reading.voted:
            mechanism = GaussianVector(Sensitivity.vector(math.sqrt(len(reading.voted))), bound=float(n))
            for place, vote in zip(reading.voted, gate.release(VOTE, mechanism, reading.votes()), strict=True):
                columns[place] = replace(columns[place], is_text=bool(vote <= 0.0))
        places = [place for place, column in enumerate(columns) if column.is_found]
        if places:
            ballots = reading.ballots(columns, places)
            found = gate.release(RELEASE, ThresholdedCounts(len(places), n, reading.most), ballots)
            for place, values in zip(places, found, strict=True):
                columns[place] = replace(columns[place], categories=values, found=True)
        elif reading.found:  # the vote says that all of them are numbers
            gate.skip(RELEASE)
        return tuple(columns)

    def _keep(self, columns: tuple[Coded, ...], guarantee: Guarantee | None) -> "PrivateEncoder":
        """Keep what was declared and found."""
        self.columns_, self.guarantee_ = columns, guarantee
        self.categories_ = {column.name: column.categories for column in columns if column.categories is not None}
        return self

    def _fill(self, reading: Reading) -> None:
        """Columns of zeros for what was planned for and not found, where a next step needs them."""
        columns = list(self.columns_)
        for place in reading.found:
            values = columns[place].categories
            spare, empty = columns[place].parsed and values is not None, reading.most - len(values or ())
            columns[place] = replace(columns[place], spare=spare, empty=empty)
        self.columns_ = tuple(columns)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = tags.input_tags.allow_nan = True
        return tags
