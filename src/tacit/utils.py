"""Small helpers for those who build on Tacit."""

from typing import Any


def expected_failed_checks(estimator: Any) -> dict[str, str]:
    """The checks of scikit-learn's `check_estimator` that a private estimator cannot meet, each with its reason.

    Pass it as `check_estimator(estimator, expected_failed_checks=...)`.

    Examples
    --------
    >>> from tacit import Ridge
    >>> from tacit.utils import expected_failed_checks
    >>> expected_failed_checks(Ridge())
    {}
    """
    return dict(_REASONS.get(type(estimator).__name__, {}))


_WEIGHTS = {
    "check_class_weight_classifiers": "a weight of 1,000 multiplies the noise by as much, and there are few rows"
}
_LISTS = "of a list a single cell decides which type all of it has: a data frame or an array is asked for"
_REASONS: dict[str, dict[str, str]] = {
    "LogisticRegression": _WEIGHTS,
    "LinearSVC": _WEIGHTS,
    "PrivateEncoder": {"check_transformer_data_not_an_array": _LISTS},
}
