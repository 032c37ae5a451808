"""Equal ids give equal tags in any order; bad ids are refused without being quoted."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tacit.federated.alignment import Alignment
from tests.federated.conftest import SECRET

IDS = ["anna", "17", "bert", "zoë"]


def test_parties_agree_whatever_order_they_hold_their_rows_in():
    rng = np.random.default_rng(0)
    ids = rng.permutation(100)
    one, other = Alignment.of(ids, SECRET), Alignment.of(ids[::-1], SECRET)
    assert one.tag("study") == other.tag("study")
    np.testing.assert_array_equal(ids[one.order], ids[::-1][other.order])
    assert (np.diff(ids[one.order]) < 0).any()  # the order is the tags', not the ids'


def test_numbers_and_text_spell_the_same_id():
    tags = {
        Alignment.of(ids, SECRET).tag("s")
        for ids in (
            [1, 20],
            ["1", "20"],
            np.array([20, 1]),
            pd.Series([1, 20]),
            pl.Series([1, 20]),
            np.array(["20", "1"]),
        )
    }
    assert len(tags) == 1


def test_tags_tell_ids_secrets_and_studies_apart():
    tags = [
        Alignment.of(IDS, SECRET).tag("s"),
        Alignment.of(IDS, SECRET).tag("t"),
        Alignment.of(IDS, SECRET + b"!").tag("s"),
        Alignment.of([*IDS[:3], "zoe"], SECRET).tag("s"),
        Alignment.of(IDS[:3], SECRET).tag("s"),
    ]
    assert len(set(tags)) == len(tags)


@pytest.mark.parametrize(
    ("ids", "match"),
    [
        ([*IDS, "anna"], "unique"),
        ([17, "17"], "unique"),
        ([*IDS, None], "missing"),
        ([*IDS, ""], "missing"),
        ([1.0, float("nan")], "float"),
        ([float("nan")], "missing"),
        ([17.0], "float"),
        ([True], "bool"),
        ([["anna"]], "one column"),
    ],
)
def test_bad_ids(ids, match):
    with pytest.raises((ValueError, TypeError), match=match) as error:
        Alignment.of(ids, SECRET)
    assert "anna" not in str(error.value)
    assert "17" not in str(error.value)


def test_a_secret_that_can_be_guessed_is_refused():
    with pytest.raises(ValueError, match="at least 16 bytes"):
        Alignment.of(IDS, "hunter2")
    with pytest.raises(TypeError, match="bytes or text"):
        Alignment.of(IDS, 12345678901234567890)
