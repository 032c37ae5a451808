"""Errors name the column and what to do about it, and never a value."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tacit import LinearRegression, LogisticRegression

TEXT = ["secret"] * 20
FRAMES = {
    "text": pd.DataFrame({"a": np.arange(20.0), "income": TEXT}),
    "objects": pd.DataFrame({"a": np.arange(20.0), "income": np.array(TEXT, dtype=object)}),
    "a hole": pd.DataFrame({"a": np.arange(20.0), "income": ["secret", None] * 10}),
    "category": pd.DataFrame({"a": np.arange(20.0), "income": pd.Categorical(TEXT)}),
    "polars": pl.DataFrame({"a": np.arange(20.0), "income": TEXT}),
    "enum": pl.DataFrame({"a": np.arange(20.0), "income": pl.Series(TEXT, dtype=pl.Enum(["secret"]))}),
}


@pytest.mark.parametrize("name", FRAMES)
def test_a_column_of_words_is_named_with_a_remedy(name):
    with pytest.raises(ValueError, match=r"^column 'income' of dtype \w+: encode it with PrivateEncoder") as error:
        LogisticRegression().fit(FRAMES[name], [0, 1] * 10)
    assert "secret" not in str(error.value)
    assert error.value.__context__ is None


@pytest.mark.whole
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("days", [1, 30])
def test_a_column_of_dates_is_named_with_a_remedy(frame, days):
    born = pd.date_range("1984-05-17", periods=20, freq=f"{days}D").to_numpy()
    table = frame({"a": np.arange(20.0), "born": born if days > 1 else born - born[0]})  # or spans of time
    with pytest.raises(ValueError, match=r"(?i)column 'born' of dtype \w+.*turn it into numbers") as error:
        LogisticRegression().fit(table, [0, 1] * 10)
    assert "1984" not in str(error.value)


def test_polars_dates_are_refused_too():
    table = pl.DataFrame({"a": np.arange(20.0), "born": pl.Series([5] * 20).cast(pl.Date)})
    with pytest.raises(ValueError, match=r"column 'born' of dtype Date: turn it into numbers"):
        LogisticRegression().fit(table, [0, 1] * 10)


@pytest.mark.parametrize("wrap", [np.ma.masked_invalid, lambda X: X.view(Adding)], ids=["masked", "subclass"])
def test_an_array_that_adds_up_something_else_hides_no_infinity(wrap):
    X = np.random.default_rng(0).normal(size=(50, 3))
    X[0, 0] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        LinearRegression().fit(wrap(X), X[:, 1])


class Adding(np.ndarray):
    """Says of itself that it is finite."""

    def sum(self, *_, **__):
        return 0.0
