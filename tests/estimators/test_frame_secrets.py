"""Every error that a frame can cause names the column and what to do, and quotes no cell."""

import datetime
import decimal
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.compose import make_column_transformer
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder

from tacit import PCA, LinearSVC, LogisticRegression, PrivateEncoder, PrivateScaler, Ridge, make_private_pipeline

from .tables import quiet
from .test_secrets import told_by

pytestmark = quiet
WORD, DATE = "SECRET", datetime.date(1987, 6, 5)
SECRETS = (WORD, "1987", "Timestamp", "987654", "987_654")
N = 60


def cells(value, other):
    return [value] + [other] * (N - 1)


CELLS = {
    "text": cells(WORD, "a"),
    "text among numbers": cells(WORD, 1.0),
    "a list": cells([WORD], "a"),
    "bytes": cells(WORD.encode(), b"a"),
    "a date": [DATE] * N,
    "a time": pd.Series(pd.to_datetime([DATE] * N)),
    "a period": pd.Series(pd.period_range("1987-06-05", periods=N)),
    "an interval": pd.Series(pd.interval_range(987654, periods=N)),
    "categories": pd.Series(cells(WORD, "a"), dtype="category"),
    "infinity": [np.inf, 987654.25] * (N // 2),
    "complex": [987654.25 + 1j] * N,
    "a decimal": cells(decimal.Decimal("987654.25"), decimal.Decimal(1)),
    "strings": pd.Series(cells(WORD, "a"), dtype="string"),
    "a dict": cells({WORD: 1}, {}),
    "a struct": pd.Series([{WORD: 1}] * N, dtype=pd.ArrowDtype(pa.struct([(WORD, pa.int64())]))),
    "infinity in objects": np.array([np.inf, 1] * (N // 2), dtype=object),
}
POLARS = ("text", "a list", "bytes", "a date", "infinity", "a decimal", "a dict")
BAD_TARGETS = {"text of a target": cells(WORD, 1.0), "a hole": [np.nan, 987654.25] * (N // 2), "dates": [DATE] * N}


def framed():
    for name, column in CELLS.items():
        yield name, pd.DataFrame({"fine": np.arange(N, dtype=float), "bad": column})
    for name in POLARS:
        yield f"{name}, polars", pl.DataFrame({"fine": np.arange(N, dtype=float), "bad": CELLS[name]}, strict=False)


def piped(*steps):
    return make_private_pipeline(*steps, epsilon=5.0)


MODELS = {
    "classifier": lambda: LogisticRegression(5.0),
    "svc": lambda: LinearSVC(5.0),
    "regressor": lambda: Ridge(5.0),
    "PCA": lambda: PCA(1, epsilon=5.0),
    "scaler": lambda: PrivateScaler(5.0),
    "encoder": lambda: PrivateEncoder(5.0),
    "declared": lambda: PrivateEncoder(5.0, categories={"bad": ["a", "b"]}),
    "pipeline": lambda: piped(PrivateEncoder(), LogisticRegression()),
    "with a step before": lambda: piped(
        make_column_transformer((FunctionTransformer(np.log1p), ["bad"])), LogisticRegression()
    ),
    "with categories before": lambda: piped(
        make_column_transformer((OneHotEncoder(categories=[["a"]], handle_unknown="ignore"), ["bad"])), Ridge()
    ),
    "with a step between": lambda: piped(PrivateEncoder(), Normalizer(), LogisticRegression()),
    "with a scaler": lambda: piped(PrivateEncoder(), PrivateScaler(), Ridge()),
}


def heard(call):
    """What an error and the warnings of a call say; None where it is taken."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call()
            told = None
        except Exception as error:
            told = told_by(error)
    said = " ".join(str(warning.message) for warning in caught) + (told or "")
    assert not [secret for secret in SECRETS if secret in said.replace("datetime", "")], said
    return told


@pytest.mark.parametrize("name", MODELS)
def test_no_cell_is_quoted_and_the_column_is_named(name):
    y = np.arange(N) % 2
    refused = 0
    for case, frame in framed():
        told = heard(lambda frame=frame: MODELS[name]().fit(frame, y))
        if told is not None:
            refused += 1
            nameless = name == "with a step before" and case[:7] in ("infinit", "complex")  # an array
            assert "'bad'" in told or "columntransformer" in told or nameless, (case, told)
    assert refused > 5
    fine = pd.DataFrame({"fine": np.arange(N, dtype=float), "bad": np.arange(N, dtype=float)})
    model = MODELS[name]()
    if name not in ("declared", "with categories before"):
        model.fit(fine, y)
        method = "predict" if hasattr(model, "predict") else "transform"
        told = [heard(lambda frame=frame: getattr(model, method)(frame)) for _, frame in framed()]
        assert len([one for one in told if one is not None]) > 5
    for target in BAD_TARGETS.values():
        heard(lambda target=target: MODELS[name]().fit(fine, target))


@pytest.mark.parametrize("case", ["text", "categories", "strings"])
def test_the_remedy_for_text_is_named(case):
    frame = pd.DataFrame({"fine": np.arange(N, dtype=float), "bad": CELLS[case]})
    for model in (LogisticRegression(), Ridge(), PCA(1), PrivateScaler()):
        with pytest.raises((TypeError, ValueError), match=r"column 'bad' of dtype .*PrivateEncoder, or drop it"):
            model.fit(frame, np.arange(N) % 2)
