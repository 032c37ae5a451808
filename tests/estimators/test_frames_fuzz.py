"""Frames as people have them, made at random: pandas and polars alike, to the last released bit, or refused alike."""

import datetime
import math
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tacit import PCA, LogisticRegression, PrivateEncoder, PrivateScaler, make_private_pipeline
from tacit.privacy.mechanisms import ThresholdedCounts
from tests.guarantees.recorder import transcript

from .tables import quiet

pytestmark = quiet
WORDS = ["", "?", "1", "01", "1.0", "nan", "ä=b", "x" * 300, "line\nbreak", "NA", "\u202e", "True", "2020-01-01", " 1"]
BORN = datetime.date(2001, 1, 1)


def holes(rng, n):
    return rng.random(n) < rng.choice([0.0, 0.2, 1.0], p=[0.5, 0.4, 0.1])


def numbers(rng, n):
    missing, values = holes(rng, n), rng.choice([rng.normal(size=n), np.full(n, 3.0), rng.normal(size=n) * 1e300])
    cells = [None if m else v for m, v in zip(missing, values, strict=True)]
    return pd.Series(np.where(missing, np.nan, values)), pl.Series(cells, dtype=pl.Float64)


def whole_numbers(rng, n):
    values, kind = rng.integers(0, 90, n), rng.choice(["int64", "int8", "uint16"])
    return pd.Series(values, dtype=kind), pl.Series(values.astype(kind))


def nullable(rng, n):
    missing, values = holes(rng, n), rng.integers(-5, 5, n)
    cells = [None if m else int(v) for m, v in zip(missing, values, strict=True)]
    return pd.Series(pd.array(cells, dtype="Int64")), pl.Series(cells, dtype=pl.Int64)


def truths(rng, n):
    values = rng.random(n) < 0.5
    return pd.Series(values), pl.Series(values.tolist())


def texts(rng, n):
    missing, values = holes(rng, n), rng.choice(WORDS, n).tolist()
    cells = [None if m else v for m, v in zip(missing, values, strict=True)]
    kind = rng.choice(["object", "string", "category"])
    other = pl.Categorical if kind == "category" else pl.String
    return pd.Series(cells, dtype=object).astype(kind), pl.Series(cells, dtype=pl.String).cast(other)


def codes(rng, n):
    """Categories that look like numbers, of which there are up to 10,000."""
    cells = [str(k) for k in rng.integers(0, rng.choice([3, 50, 10_000]), n)]
    return pd.Series(cells, dtype=object), pl.Series(cells)


def nothing(rng, n):  # noqa: ARG001
    return pd.Series(np.full(n, np.nan)), pl.Series([None] * n, dtype=pl.Float64)


KINDS = (numbers, whole_numbers, nullable, truths, texts, texts, codes, nothing)


def frames(rng, n):
    """The same table twice, with names that are hard to read."""
    names = rng.permutation(["a", "b", "a=b", " ", "", "0", "x0", "é", "a is missing"])[: int(rng.integers(1, 8))]
    both = {str(name): rng.choice(KINDS)(rng, n) for name in names}
    one = pd.DataFrame({name: pair[0] for name, pair in both.items()})
    return one, pl.DataFrame({name: pair[1] for name, pair in both.items()})


def encoder_for(rng, frame, epsilon):
    text = [name for name in frame.columns if frame[name].dtype.kind not in "iufb"]
    parse = [name for name in text if rng.random() < 0.2]
    marked = [name for name in frame.columns if rng.random() < 0.3]
    most = int(rng.integers(1, 30))
    return PrivateEncoder(epsilon, delta=1e-4, max_categories=most, missing_indicator=marked, parse=parse)


def check_encoder(seed):
    rng = np.random.default_rng(seed)
    n, epsilon = int(rng.integers(2, 300)), float(rng.choice([0.1, 5.0, 100.0, math.inf]))
    both = frames(rng, n)
    encoder = encoder_for(rng, both[0], epsilon).set_params(random_state=seed)
    shuffled = both[0].sample(frac=1.0, random_state=seed)
    found, outputs = [], []
    for frame in (*both, shuffled):
        with transcript() as steps:
            found.append((encoder.fit(frame).columns_, encoder.guarantee_, [step.public for step in steps]))
        Z = encoder.transform(frame)
        assert Z.shape == (n, len(encoder.get_feature_names_out()))
        assert Z.shape[1] <= sum(len(list(c.sources)) for c in encoder._read(frame).planned) or Z.shape[1] == 1
        outputs.append(Z)
    assert found[0] == found[1] == found[2]  # the order of rows is no matter either
    np.testing.assert_array_equal(outputs[0], outputs[1])
    np.testing.assert_array_equal(outputs[0][shuffled.index], outputs[2])
    check_votes(encoder._read(both[0]), encoder._read(both[0].iloc[:-1]) if n > 2 else None)


def check_votes(whole, less):
    """A person has one vote in a column, or none."""
    if less is None or not whole.found:
        return
    counted = []
    for reading in (whole, less):
        votes = [reading.columns[place].named(reading.frame, place) for place in reading.found]
        counted.append(ThresholdedCounts(len(votes), reading.frame.n, 9).counts(votes))
    for more, fewer in zip(*counted, strict=True):
        moved = [more.get(value, 0) - fewer.get(value, 0) for value in more.keys() | fewer.keys()]
        assert sum(moved) <= 1
        assert min(moved, default=0) >= 0


def check_pipeline(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 300))
    both, y = frames(rng, n), rng.integers(0, 2, n)
    encoder = encoder_for(rng, both[0], 1.0).set_params(epsilon=1.0, delta=None)
    model = LogisticRegression(classes=[0, 1], solver=str(rng.choice(["auto", "coordinate"])))
    fits = []
    for frame in both:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of budgets that are too small for so few rows
            fits.append(make_private_pipeline(encoder, model, epsilon=2.0, random_state=seed).fit(frame, y))
    assert fits[0].plan_ == fits[1].plan_
    np.testing.assert_array_equal(fits[0][-1].coef_, fits[1][-1].coef_)
    np.testing.assert_array_equal(fits[0].predict_proba(both[1]), fits[1].predict_proba(both[0]))
    assert np.isfinite(fits[0].predict_proba(both[0])).all()


@pytest.mark.whole
@pytest.mark.parametrize("seed", range(12))
def test_any_table_is_encoded_alike_by_pandas_and_polars_in_any_order_of_rows(seed):
    check_encoder(seed)


@pytest.mark.parametrize("seed", range(100, 103))
def test_any_table_gives_the_same_model_by_pandas_and_polars(seed):
    check_pipeline(seed)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(1_000, 2_000, 100))
def test_a_thousand_tables(start):
    for seed in range(start, start + 100):
        check_encoder(seed)
        if seed % 10 == 0:
            check_pipeline(seed)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([BORN, BORN, BORN], "column 'born' holds dates.*days since a public date"),
        ([datetime.datetime(2001, 1, 1)] * 3, "column 'born' holds dates.*days since a public date"),
        ([datetime.timedelta(days=1)] * 3, "column 'born' holds dates"),
        ([[1], [2], [3]], "column 'born' .*convert it or drop it"),
        ([b"a", b"b", b"c"], "column 'born' .*convert it or drop it"),
    ],
)
def test_dates_and_what_is_no_value_are_refused_with_a_remedy(make, cells, message):
    frame = make({"age": [1.0, 2.0, 3.0] * 20, "born": cells * 20})
    steps = [PrivateEncoder(), LogisticRegression()]
    for fit in (PrivateEncoder().fit, make_private_pipeline(*steps).fit):
        with transcript() as releases, pytest.raises(TypeError, match=message):
            fit(frame, [0, 1, 0] * 20)
        assert releases == []


PIPELINE = make_private_pipeline(PrivateEncoder(), LogisticRegression())


@pytest.mark.parametrize("model", [PIPELINE, LogisticRegression(), PrivateScaler(), PCA(1)], ids=str)
def test_columns_of_one_name_are_refused_by_their_names_and_polars_has_none(model):
    twice = pd.DataFrame([[1.0, 1.0], [0.0, 2.0]] * 50, columns=["x", "x"])
    with transcript() as releases, pytest.raises(ValueError, match="different names, got twice: 'x'"):
        model.fit(twice, [0, 1] * 50)
    assert releases == []
