"""scikit-learn's validation, with messages that do not quote the data.

An error may end up in a log. scikit-learn prints the table when it is complex or has one dimension, and NumPy prints
the string that is not a number; what is raised here keeps the kind of error and what to do about it.
"""

import re
from typing import Any

from sklearn.utils.validation import validate_data

_QUOTED = re.compile(r"""(?<!dtype\()(['"]).*\1""")
_RESHAPE = (
    " Reshape your data either using array.reshape(-1, 1) if it has a single feature"
    " or array.reshape(1, -1) if it holds a single row."
)


def validated(estimator: Any, *data: Any, **options: Any) -> Any:
    """`validate_data`; its errors without the data."""
    try:
        return validate_data(estimator, *data, **options)
    except (TypeError, ValueError, OverflowError) as error:
        told = type(error) if type(error) in (TypeError, ValueError) else ValueError
        message = without_data(str(error))
    # Outside the handler, so that the error that quotes the data is not this one's context.
    raise told(message)


def without_data(message: str) -> str:
    """The first line, without what it quotes: tables come on later lines, strings in quotes."""
    if message.startswith("The feature names"):  # names of columns are public
        return message
    first = _QUOTED.sub("'...'", message.partition("\n")[0])
    return first.rstrip(":.") + "." + _RESHAPE if "Reshape your data" in message else first
