"""Steps of scikit-learn in the file of a pipeline: those that treat each row by itself, so that nothing was learned.

What holds: a step is made again from its parameters, which the pipeline checks as if a user had given them. Encoders
are then fitted on one made-up row of the categories that are declared; the others have nothing to fit. A function is
one of NumPy's or SciPy's that makes a number of a number, by its name.
"""

from functools import cache
from typing import Any

import numpy as np
import scipy.special
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.preprocessing import Binarizer, FunctionTransformer, Normalizer, OneHotEncoder, OrdinalEncoder

from tacit.estimators.rowstage import Rows
from tacit.estimators.stages import PRIVATE
from tacit.estimators.stateless import Stateless, is_plain, is_skipped
from tacit.modelfiles.arrays import Json
from tacit.modelfiles.table import pandas

ONE_TO_ONE = (Normalizer, Binarizer, FunctionTransformer)
ENCODERS = (OneHotEncoder, OrdinalEncoder)
ROW_STEPS = (*ONE_TO_ONE, *ENCODERS, HashingVectorizer)
NUMBER_KINDS = {kind.__name__: kind for kind in (np.float64, np.float32, np.int64, np.int32)}
"""Types that encoders give their output in, by the names that a file has."""


class Passthrough:
    """Stands for "passthrough" in a file."""

    def get_params(self, deep: bool = False) -> dict[str, Any]:  # noqa: ARG002
        """None."""
        return {}


ONLY_STEPS = frozenset(kind.__name__ for kind in (*ROW_STEPS, Passthrough))
"""Classes that a file has as steps of a pipeline, and not by themselves."""


@cache
def _functions() -> dict[str, Any]:
    rooms = {"numpy": np, "scipy.special": scipy.special}
    found = {(room, name): value for room, place in rooms.items() for name, value in vars(place).items()}
    return {f"{room}.{name}": f for (room, name), f in found.items() if is_plain(f) and f.__name__ == name}


def written_function(function: Any) -> Json:
    """The name of a function, or None where it has none in a file."""
    return next((name for name, known in _functions().items() if known is function), None)


def read_function(content: Json, where: str) -> Any:
    """The function of this name."""
    if not isinstance(content, str) or content not in _functions():
        raise ValueError(f"{where} must be a function of NumPy or SciPy that makes one number of one number")
    return _functions()[content]


def read_kind(content: Json, where: str) -> Any:
    """The type of numbers of this name."""
    if not isinstance(content, str) or content not in NUMBER_KINDS:
        raise ValueError(f"{where} must be one of {', '.join(NUMBER_KINDS)}")
    return NUMBER_KINDS[content]


def check_row_step(step: Any) -> None:
    """Refuse what does not fit together, and make an encoder ready."""
    if isinstance(step, HashingVectorizer):
        if step.token_pattern != HashingVectorizer().token_pattern:
            raise ValueError("token_pattern must be the default in a model file: others may take for ever on a text")
        return
    width, names = step.n_features_in_, getattr(step, "feature_names_in_", None)
    if isinstance(width, bool) or not isinstance(width, int) or width < 1:
        raise ValueError("n_features_in_ must be a whole number of at least 1")
    if names is not None and (not isinstance(names, np.ndarray) or names.shape != (width,)):
        raise ValueError("feature_names_in_ must name every column")
    if isinstance(step, ENCODERS):
        cells = _first_categories(step, width)
        step.fit(np.column_stack(cells) if names is None else pandas().DataFrame(dict(zip(names, cells, strict=True))))


def _first_categories(step: Any, width: int) -> list[Any]:
    """A value of each column, of the type that its categories were compared in."""
    known = step.categories_
    arrays = isinstance(known, list) and all(isinstance(v, np.ndarray) and v.ndim == 1 and len(v) for v in known)
    told = step.categories if isinstance(step.categories, list | tuple) else ()
    if not arrays or len(known) != width or len(told) != width:
        raise ValueError("categories_ must have an array for each column")
    if not all(list(mine) == list(declared) for mine, declared in zip(known, told, strict=True)):
        raise ValueError("categories_ must be the categories that are declared")
    return [values[:1] for values in known]


def made_ready(steps: list[tuple[str, Any]]) -> dict[str, Stateless]:
    """The steps that treat each row by itself, as a fitted pipeline has them."""
    found: dict[str, Stateless] = {}
    after = False
    for name, step in steps:
        if type(step) in PRIVATE:
            after = True
        elif not is_skipped(step) and isinstance(step, ROW_STEPS):
            found[name] = (Rows if after else Stateless)(name, step)
            found[name].step = step  # which is fitted
    return found
