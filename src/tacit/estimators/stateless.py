"""Steps of scikit-learn that a private pipeline takes: those whose output for a row depends on that row alone.

It is a list of what is allowed, by exact class: a subclass can do anything. A step that learns from the rows without
noise would void the guarantee, so it is refused by name, with what to use in its place.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy.special
from scipy.sparse import csr_array, issparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Binarizer, FunctionTransformer, Normalizer, OneHotEncoder, OrdinalEncoder

from tacit.blocks.lazy import rows_in
from tacit.blocks.reading import UNLIKE
from tacit.blocks.validate import types_of
from tacit.preprocessing import RowClipper
from tacit.preprocessing.frames import check_typed, without_nulls

_INSTEAD = {
    "StandardScaler": "PrivateScaler, or nothing: Tacit's models find scales inside their budget",
    "MinMaxScaler": "PrivateScaler, or `bounds` on the model",
    "MaxAbsScaler": "PrivateScaler, or `bounds` on the model",
    "RobustScaler": "PrivateScaler, or nothing: Tacit's models find scales inside their budget",
    "SimpleImputer": "nothing: a missing value becomes the column's private centre",
    "KNNImputer": "nothing: a missing value becomes the column's private centre",
    "LabelEncoder": "PrivateEncoder",
    "TargetEncoder": "PrivateEncoder",
    "KBinsDiscretizer": "PrivateEncoder on declared bins",
    "PCA": "tacit.PCA",
    "TruncatedSVD": "tacit.PCA",
    "CountVectorizer": "HashingVectorizer",
    "TfidfVectorizer": "HashingVectorizer",
    "TfidfTransformer": "Normalizer",
    "LogisticRegression": "tacit.LogisticRegression",
    "Ridge": "tacit.Ridge",
    "Lasso": "tacit.Lasso",
    "LinearRegression": "tacit.LinearRegression",
    "LinearSVC": "tacit.LinearSVC",
}
_SKIPPED = (None, "passthrough")


def is_skipped(step: Any) -> bool:
    """Whether a step stands for nothing."""
    return step is None or (isinstance(step, str) and step in _SKIPPED)


def check(name: str, step: Any) -> None:
    """Refuse a step that could learn something from the rows."""
    told = _refusal(step)
    if told is not None:
        raise ValueError(f"step {name!r}, {type(step).__name__}, {told}")


def _refusal(step: Any) -> str | None:
    """Why a step cannot be taken; None if it can."""
    rule = _RULES.get(type(step))
    if rule is not None:
        return rule(step)
    instead = _INSTEAD.get(type(step).__name__, "a step that Tacit knows to treat each row by itself")
    return f"may learn from the rows without noise, which voids the guarantee; use {instead}"


def _nothing(step: Any) -> None:  # noqa: ARG001
    """No parameter of it can do harm."""
    return


def is_plain(func: Any) -> bool:
    """Whether it is NumPy's or SciPy's own, and makes one number of one number.

    Anybody can make a ufunc (`np.frompyfunc`), and one with a signature (`np.matmul`) sees several numbers at once.
    """
    if type(func) is not np.ufunc or func.signature is not None or (func.nin, func.nout) != (1, 1):
        return False
    return any(getattr(room, func.__name__, None) is func for room in (np, scipy.special))


def _function(step: FunctionTransformer) -> str | None:
    plain = step.func is None or is_plain(step.func)
    if not plain or step.kw_args or step.inverse_func is not None or callable(step.feature_names_out):
        return (
            "is taken around a function of NumPy or SciPy that treats each number by itself (np.log1p), with nothing"
            " else set: any other function sees all rows at once"
        )
    return None


def _declared(step: Any) -> str | None:
    wanted = "ignore" if type(step) is OneHotEncoder else "use_encoded_value"
    asked = isinstance(step.categories, str) or step.min_frequency is not None or step.max_categories is not None
    if asked or step.handle_unknown != wanted:
        return (
            f"is taken with declared categories, handle_unknown={wanted!r} and neither min_frequency nor"
            " max_categories: else it learns from the rows; use PrivateEncoder"
        )
    return None


def _hashing(step: HashingVectorizer) -> str | None:
    set_ones = (step.preprocessor, step.tokenizer, step.analyzer, step.strip_accents)
    if any(map(callable, set_ones)) or step.input != "content":
        return "is taken with its own preprocessor, tokenizer, analyzer and strip_accents, and with texts as input"
    return None


def _columns(step: ColumnTransformer) -> str | None:
    for name, part, columns in _parts(step):
        if callable(columns) and type(columns) is not make_column_selector:
            return f"chooses the columns of {name!r} by a function, which sees the rows: name them"
        told = None if is_skipped(part) or (isinstance(part, str) and part == "drop") else _refusal(part)
        if told is not None:
            return f"holds {name!r}, {type(part).__name__}, which {told}"
    return None


def _inner(step: Pipeline) -> str | None:
    for name, part in step.steps:
        told = None if is_skipped(part) else _refusal(part)
        if told is not None:
            return f"holds {name!r}, {type(part).__name__}, which {told}"
    return None if step.memory is None else "is taken without memory, which would keep private rows on disk"


def check_after(name: str, step: Any) -> None:
    """Refuse a step that cannot follow a private one: it must give as many columns as it gets, whatever these are."""
    check(name, step)
    if type(step) not in _AFTER:
        raise ValueError(
            f"step {name!r}, {type(step).__name__}, must come before the private steps: after them it is not known"
            " beforehand which columns there are. Normalizer, Binarizer, RowClipper and FunctionTransformer may follow"
        )


def _parts(step: ColumnTransformer) -> Iterator[tuple[str, Any, Any]]:
    yield from step.transformers
    yield "remainder", step.remainder, None


_RULES: dict[type, Callable[[Any], str | None]] = {
    Normalizer: _nothing,
    Binarizer: _nothing,
    RowClipper: _nothing,
    FunctionTransformer: _function,
    OneHotEncoder: _declared,
    OrdinalEncoder: _declared,
    HashingVectorizer: _hashing,
    ColumnTransformer: _columns,
    Pipeline: _inner,
}


_AFTER = (Normalizer, Binarizer, RowClipper, FunctionTransformer)


class Stateless:
    """A checked step of scikit-learn, made ready without learning; its errors and warnings do not quote the rows."""

    def __init__(self, name: str, step: Any) -> None:
        check(name, step)
        self.name, self.step = name, clone(step)
        self._hashes = _holds_hashing(step)
        # By default the share of zeros among the rows decides whether the output is sparse: here a rule does.
        for part in _column_transformers(self.step):
            part.sparse_threshold = 1.0 if _holds_hashing(part) else 0.0
            for inner in () if _holds_hashing(part) else _within(part):
                if type(inner) is OneHotEncoder:
                    inner.sparse_output = False  # as data frames, which it may be asked for, hold no sparse rows
        # Rows that are changed where they lie reach a step twice, some of them alone: no step does so here.
        for part in _within(self.step):
            if type(part) in (Normalizer, Binarizer):
                part.copy = True

    def fit_transform(self, X: Any) -> Any:
        """The rows, each by itself."""
        return self._quietly(X, lambda table: self._ready(table).transform(table))

    def transform(self, X: Any) -> Any:
        """The rows, each by itself."""
        return self._quietly(X, lambda table: self.step.transform(table))

    def _ready(self, X: Any) -> Any:
        """The step as fitted, with nothing in it that the rows have decided."""
        self.step.fit(X)
        for part in _column_transformers(self.step):
            if hasattr(part, "sparse_output_"):
                # Where no cell is zero even the largest threshold says dense.
                part.sparse_output_ = _holds_hashing(part)
        return self.step

    def _quietly(self, X: Any, run: Callable[[Any], Any]) -> Any:
        if not _takes_texts(self.step):
            check_typed(X)
        try:
            silent = scipy.special.errstate(all="ignore")  # type: ignore[arg-type]
            with warnings.catch_warnings(), np.errstate(all="ignore"), silent:
                warnings.simplefilter("ignore")  # they may depend on the rows
                out = run(X if _takes_texts(self.step) else without_nulls(X))
            return csr_array(out) if self._hashes and not issparse(out) else out
        except Exception as error:
            kind = type(error) if type(error) in (TypeError, ValueError, MemoryError) else ValueError
        # Outside the handler, so that the error that may quote the data is not this one's context.
        raise kind(
            f"step {self.name!r}, {type(self.step).__name__}, cannot take this table; its message may quote the data,"
            " so it is not shown: try the step on made-up rows"
        )


def ready(steps: Sequence[Stateless], reading: Any) -> Callable[[Any], Any]:
    """Make steps ready by the first rows of some parts, and give back what they do to any table of their types.

    Types that pandas reads off the cells of each piece of a file may differ between pieces: one cell would then decide
    what a step makes of the rows next to it.
    """
    tables = (X for part in reading.parts for X, _ in part.tables())
    X = next((X for X in tables if rows_in(X) > 0), None)
    if X is None:
        raise ValueError("blocks must hold at least two rows together, got 0")
    types = types_of(X)
    for step in steps:
        X = step.fit_transform(X)
    return partial(_through, tuple(steps), types)


def _through(steps: Sequence[Stateless], types: tuple[Any, ...], X: Any) -> Any:
    if types_of(X) != types:
        raise ValueError(UNLIKE)
    for step in steps:
        X = step.transform(X)
    return X


def _within(step: Any) -> Iterator[Any]:
    """A step and all that it holds; once it is fitted, also the copies that were fitted."""
    yield step
    inner = [part for _, part in step.steps] if type(step) is Pipeline else []
    if type(step) is ColumnTransformer:
        inner = [part for _, part, _ in (*_parts(step), *getattr(step, "transformers_", ()))]
    for part in inner:
        yield from _within(part)


def _column_transformers(step: Any) -> list[ColumnTransformer]:
    return [part for part in _within(step) if type(part) is ColumnTransformer]


def _takes_texts(step: Any) -> bool:
    """Whether what it takes is a list of texts, and no table."""
    if type(step) is Pipeline:
        return next((_takes_texts(part) for _, part in step.steps if not is_skipped(part)), False)
    return type(step) is HashingVectorizer


def _holds_hashing(step: Any) -> bool:
    return any(type(part) is HashingVectorizer for part in _within(step))
