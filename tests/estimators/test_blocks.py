"""`fit_blocks` of pipelines, encoder, scaler and PCA: the model of `fit`, to the last bit, and what stops a fit."""

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.preprocessing import OneHotEncoder

import tacit
from tacit import PCA, LogisticRegression, PrivateEncoder, PrivateScaler, Ridge, RowClipper, make_private_pipeline
from tacit.blocks import lazy, scratch
from tacit.blocks.reading import ChangedRowsError
from tacit.solvers.pca import PCA_SOLVERS

pd = pytest.importorskip("pandas")
N = 3_000
pytestmark = pytest.mark.filterwarnings("ignore:random_state is set", "ignore:the budget is too small")


def numbers():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3)) * [1.0, 10.0, 0.1] + 3.0
    X[::17, 1] = np.nan
    return pd.DataFrame(X, columns=["a", "b", "c"]), (X[:, 0] + rng.normal(size=N) > 3.0).astype(int)


def table():
    rng = np.random.default_rng(1)
    frame, y = numbers()
    frame["job"] = rng.choice(np.array(["clerk", "nurse", "spy", None], dtype=object), N, p=[0.5, 0.3, 0.1, 0.1])
    return frame, y


def cut(X, y=None, sizes=(700, 1, 0, 1_299, 1_000)):
    ends = np.cumsum(sizes)
    pieces = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    return [X[piece] if y is None else (X[piece], y[piece]) for piece in pieces]


PIPELINES = {
    "encoder": [PrivateEncoder(), LogisticRegression()],
    "encoder, indicator, scaler": [PrivateEncoder(missing_indicator=["job"]), PrivateScaler(), LogisticRegression()],
    "encoder, rows, components": [PrivateEncoder(), PCA(2), Ridge()],
    "declared": [PrivateEncoder(categories={"job": ["nurse", "clerk"]}), LogisticRegression()],
}
OF_NUMBERS = {
    "scaler": [PrivateScaler(), LogisticRegression()],
    "model alone": [LogisticRegression()],
    "components": [PCA(2), LogisticRegression()],
    "components last": [PrivateScaler(), PCA(2)],
    "power": [PCA(2, solver="power"), Ridge()],
}


def same(one, other):
    last, again = one[-1], other[-1]
    for name in ("coef_", "intercept_", "components_", "mean_", "clip_low_"):
        if hasattr(last, name):
            np.testing.assert_array_equal(getattr(last, name), getattr(again, name))
    assert str(one.guarantee_) == str(other.guarantee_)
    assert [str(release) for release in one.plan_.plan.releases] == [str(r) for r in other.plan_.plan.releases]


@pytest.mark.parametrize("in_memory", [0, 2**28])
@pytest.mark.parametrize("name", [*PIPELINES, *OF_NUMBERS])
def test_a_pipeline_on_blocks_is_that_of_the_whole(name, in_memory, monkeypatch):
    monkeypatch.setattr(scratch, "IN_MEMORY", in_memory)
    X, y = table() if name in PIPELINES else numbers()
    steps = (PIPELINES | OF_NUMBERS)[name]
    whole = make_private_pipeline(*steps, random_state=3).fit(X, y)
    same(whole, make_private_pipeline(*steps, random_state=3).fit_blocks(cut(X, y)))


def test_steps_before_the_private_ones_see_the_names_of_columns():
    X, y = numbers()
    X = X.fillna(0.0)
    steps = RowClipper(9.0), PrivateScaler(), LogisticRegression()
    whole = make_private_pipeline(*steps, random_state=3).fit(X, y)
    parts = make_private_pipeline(*steps, random_state=3).fit_blocks(cut(X, y))
    same(whole, parts)
    assert parts.feature_names_in_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(whole.predict(X), parts.predict(X))


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_files_with_text_and_holes(kind, tmp_path):
    X, y = table()
    encoder = PrivateEncoder() if kind == "parquet" else PrivateEncoder(parse=["job"])
    whole = make_private_pipeline(encoder, LogisticRegression(), random_state=3).fit(X, y)
    frame = X.assign(y=y)
    if kind == "parquet":
        pytest.importorskip("pyarrow")
        frame[:1_000].to_parquet(tmp_path / "0.parquet", row_group_size=300)
        frame[1_000:].to_parquet(tmp_path / "1.parquet")
    else:
        frame[:1_000].to_csv(tmp_path / "0.csv", index=False)
        frame[1_000:].to_csv(tmp_path / "1.csv", index=False)
    parts = make_private_pipeline(encoder, LogisticRegression(), random_state=3)
    same(whole, parts.fit_blocks(str(tmp_path / f"*.{kind}"), target="y"))


def test_text_in_a_csv_file_is_declared_and_never_guessed(tmp_path):
    X, y = table()
    X.assign(y=y).to_csv(tmp_path / "all.csv", index=False)
    with pytest.raises(ValueError, match="column 'job' holds something else than numbers: name it in `parse`"):
        make_private_pipeline(PrivateEncoder(), LogisticRegression()).fit_blocks(tmp_path / "all.csv", target="y")


def test_scaler_and_encoder_and_components_alone():
    X, _ = numbers()
    whole, parts = PrivateScaler(random_state=0).fit(X), PrivateScaler(random_state=0).fit_blocks(cut(X))
    np.testing.assert_array_equal(whole.scale_, parts.scale_)
    np.testing.assert_array_equal(whole.clip_high_, parts.clip_high_)
    assert parts.feature_names_in_.tolist() == ["a", "b", "c"]
    frame, _ = table()
    found = PrivateEncoder(random_state=0).fit_blocks(cut(frame))
    assert found.categories_ == PrivateEncoder(random_state=0).fit(frame).categories_
    assert not hasattr(found, "_truths")
    for solver in PCA_SOLVERS:
        whole = PCA(2, random_state=0, solver=solver).fit(X)
        parts = PCA(2, random_state=0, solver=solver).fit_blocks(cut(X))
        np.testing.assert_array_equal(whole.components_, parts.components_)


def test_columns_whose_kind_differs_between_blocks_are_refused():
    X, y = table()
    other = X[1_000:].assign(a=X["a"][1_000:].astype(str))
    with pytest.raises(ValueError, match="the same columns of the same types"):
        make_private_pipeline(PrivateEncoder(), LogisticRegression()).fit_blocks(
            [(X[:1_000], y[:1_000]), (other, y[1_000:])]
        )


def test_labels_of_two_kinds_are_refused():
    X, y = numbers()
    with pytest.raises(ValueError, match="labels of one kind"):
        LogisticRegression().fit_blocks([(X[:10], y[:10]), (X[10:], y[10:].astype(str))])


def test_what_is_sequential_is_refused_with_what_serves():
    X, y = numbers()
    steps = PrivateScaler(), LogisticRegression(solver="coordinate")
    with pytest.raises(ValueError, match="rows that are not all in memory; these do: gradient"):
        make_private_pipeline(*steps).fit_blocks(cut(X, y))


class Turning:
    """Blocks that are others from some pass on."""

    def __init__(self, blocks, others, passes):
        self.blocks, self.others, self.passes = blocks, others, passes

    def __iter__(self):
        self.passes -= 1
        return iter(self.blocks if self.passes >= 0 else self.others)


@pytest.mark.parametrize("passes", [1, 2])
def test_rows_that_change_stop_the_pipeline_and_what_is_spent_is_said(passes):
    X, y = table()
    blocks = Turning(cut(X, y), cut(X[:-1], y[:-1], (1_000, 1_999)), passes)
    with pytest.raises(ChangedRowsError, match="changed since the first pass") as caught:
        make_private_pipeline(PrivateEncoder(), LogisticRegression(), random_state=0).fit_blocks(blocks)
    notes = getattr(caught.value, "__notes__", [])  # in the second pass nothing was released yet
    assert ["count the whole budget as spent" in note for note in notes] == [True] * (passes - 1)


def test_rows_that_change_stop_an_encoder_before_they_are_counted():
    X, _ = table()
    with pytest.raises(ChangedRowsError, match="changed since the first pass"):
        PrivateEncoder().fit_blocks(Turning(cut(X), cut(X[:-1], sizes=(1_000, 1_999)), 1))


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("change", ["touched", "longer", "gone"])
def test_a_file_that_changes_between_passes_stops_the_fit(kind, change, tmp_path, monkeypatch):
    """After the first release: the file is read again by the encoder, and is another one."""
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    X, y = table()
    path, frame = tmp_path / f"rows.{kind}", X.assign(y=y)
    write = frame.to_parquet if kind == "parquet" else lambda place: frame.to_csv(place, index=False)
    write(path)
    honest = tacit.privacy.Gate.release

    def release(gate, name, *given):
        if change == "touched":
            import os

            os.utime(path, ns=(1, 1))
        elif change == "longer":
            path.write_bytes(path.read_bytes() + b"\n")
        else:
            path.unlink()
        return honest(gate, name, *given)

    monkeypatch.setattr(tacit.privacy.Gate, "release", release)
    encoder = PrivateEncoder() if kind == "parquet" else PrivateEncoder(parse=["job"])
    with pytest.raises(ChangedRowsError, match="has changed since the fit began") as caught:
        make_private_pipeline(encoder, LogisticRegression(), random_state=0).fit_blocks(path, target="y")
    assert "count the whole budget as spent" in caught.value.__notes__[0]


WORDS = np.random.default_rng(2).choice(["a b", "b c c", "d"], N).tolist()
OF_TEXTS = {
    "model": [HashingVectorizer(n_features=64), LogisticRegression()],
    "components": [HashingVectorizer(n_features=64), PCA(2), Ridge()],
}


@pytest.mark.parametrize("steps", OF_TEXTS.values(), ids=OF_TEXTS)
@pytest.mark.parametrize("store", [list, pd.Series])
def test_texts_are_hashed_while_they_are_read(steps, store, monkeypatch):
    monkeypatch.setattr(lazy, "_SPARSE_ROWS", 300)
    _, y = numbers()
    y = np.where([text == "d" for text in WORDS], 1 - y, y)
    whole = make_private_pipeline(*steps, random_state=3).fit(WORDS, y)
    pieces = [(store(texts), pd.Series(labels)) for texts, labels in cut(WORDS, y)]
    same(whole, make_private_pipeline(*steps, random_state=3).fit_blocks(pieces))


def test_sparse_blocks_that_are_too_wide_or_reach_a_scaler_are_refused():
    _, y = numbers()
    for steps, message in (
        ([HashingVectorizer(n_features=2_001), LogisticRegression()], "at most 2,000 columns"),
        ([HashingVectorizer(n_features=8), PrivateScaler(), LogisticRegression()], "linear models and PCA, with no"),
    ):
        with pytest.raises(ValueError, match=message):
            make_private_pipeline(*steps).fit_blocks(cut(WORDS, y))


def test_a_step_before_is_made_ready_by_the_first_block_that_has_rows():
    X, y = table()
    jobs = OneHotEncoder(categories=[["clerk", "nurse"]], handle_unknown="ignore")
    steps = make_column_transformer((jobs, ["job"]), remainder="passthrough"), LogisticRegression()
    whole = make_private_pipeline(*steps, random_state=3).fit(X, y)
    same(whole, make_private_pipeline(*steps, random_state=3).fit_blocks(cut(X, y, (0, 1_000, 2_000))))
