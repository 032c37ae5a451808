"""Rows in parts: what the scratch holds, what is read once, how bounded rows are cut, and who is told of an error."""

import gc
import warnings
from dataclasses import replace

import numpy as np
import pytest

from tacit import LogisticRegression
from tacit.blocks import Kept, Raw, Source, scratch
from tacit.blocks.here import Spooled, ThisMachine
from tacit.blocks.reading import BlockPart, ChangedRowsError, Reading, Seen, opened, quietly
from tacit.blocks.scratch import Filed, Held, Scratch
from tacit.kernels.exact import BLOCK, LONG_BLOCK
from tacit.kernels.given import Block


class Rows:
    """A part of made-up rows."""

    def __init__(self, X, y):
        self.X, self.y = X, y

    def blocks(self):
        for start in range(0, max(len(self.y), 1), 1_000):
            yield Raw(self.X[start : start + 1_000], self.y[start : start + 1_000])


def as_block(raw):
    return Block(raw.X.astype(np.float32), 1.0, raw.y, np.abs(raw.y))


def source_of(place, sizes, d=3):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(sum(sizes), d)), rng.normal(size=sum(sizes))
    ends = np.cumsum(sizes)
    parts = [Rows(X[end - size : end], y[end - size : end]) for end, size in zip(ends, sizes, strict=True)]
    return X, y, Source(d, parts, sizes, place)


@pytest.mark.parametrize("in_memory", [0, 2**28, 40_000])
def test_kept_rows_come_back_in_full_blocks(in_memory, monkeypatch):
    monkeypatch.setattr(scratch, "IN_MEMORY", in_memory)
    with ThisMachine() as place:
        X, y, source = source_of(place, [5_000, 0, 1, 3_000])
        kept = source.kept(as_block)
        blocks = [block for part in kept.parts for block in part.blocks()]
        assert max(len(block.targets) for block in blocks) <= BLOCK
        np.testing.assert_array_equal(np.concatenate([block.rows for block in blocks]), X.astype(np.float32))
        np.testing.assert_array_equal(np.concatenate([block.targets for block in blocks]), y)
        np.testing.assert_array_equal(np.concatenate([block.norms for block in blocks]), np.abs(y))
        assert sum(kept.rows) == len(y)


def test_kept_rows_come_in_longer_blocks_for_who_asks():
    with ThisMachine() as place:
        _, y, source = source_of(place, [30_000, 5_000])
        (*parts,) = (replace(part, size=LONG_BLOCK) for part in source.kept(as_block).parts)
        blocks = [block for part in parts for block in part.blocks()]
        assert BLOCK < max(len(block.targets) for block in blocks) <= LONG_BLOCK
        np.testing.assert_array_equal(np.concatenate([block.targets for block in blocks]), y)


def test_rows_at_some_places_are_found_in_their_parts():
    with ThisMachine() as place:
        X, y, source = source_of(place, [4_000, 10, 2_500])
        kept = source.kept(as_block)
        for places in (np.array([0, 3_999, 4_000, 4_009, 4_010, 6_509]), np.arange(0), np.arange(6_510)):
            picked = kept[places]
            blocks = [block for part in picked.parts for block in part.blocks()]
            np.testing.assert_array_equal(np.concatenate([block.targets for block in blocks]), y[places])
            np.testing.assert_array_equal(np.concatenate([b.rows for b in blocks]), X[places].astype(np.float32))
            assert sum(picked.rows) == len(places)


def test_class_counts_are_those_of_all_parts():
    kept = Kept([Rows(np.zeros((2, 1)), np.array([-1.0, 1.0]))] * 3, [2, 2, 2], lambda f, parts: map(f, parts))
    kept = Kept([_Blocks(part) for part in kept.parts], kept.rows, kept.run)
    assert kept.class_counts(2).tolist() == [3, 3]


class _Blocks:
    def __init__(self, part):
        self.part = part

    def blocks(self):
        return map(as_block, self.part.blocks())


def test_a_scratch_gives_back_what_it_was_given(monkeypatch):
    rng = np.random.default_rng(1)
    arrays = rng.normal(size=7), rng.integers(0, 5, size=(3, 2)), rng.normal(size=(4, 2)).astype(np.float32)
    for most, kind in ((2**20, Held), (0, Filed)):
        monkeypatch.setattr(scratch, "IN_MEMORY", most)
        held = Scratch()
        stored = [held.put(*arrays) for _ in range(3)]
        assert {type(one) for one in stored} == {kind}
        for one in stored:
            for found, given in zip(one.read(), arrays, strict=True):
                assert found.dtype == given.dtype
                np.testing.assert_array_equal(found, given)
        held.close()


def test_a_scratch_file_has_no_name_and_is_closed_with_the_fit(monkeypatch, tmp_path):
    monkeypatch.setattr(scratch, "IN_MEMORY", 0)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    X = np.random.default_rng(0).normal(size=(3_000, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        warnings.filterwarnings("ignore", "random_state is set")
        seen = []

        def blocks():
            seen.append(list(tmp_path.iterdir()))
            yield X, (X[:, 0] > 0).astype(int)
            seen.append(list(tmp_path.iterdir()))

        LogisticRegression(random_state=0).fit_blocks(blocks)
        gc.collect()
    assert not any(seen)
    assert list(tmp_path.iterdir()) == []


def test_a_slow_part_is_read_once(monkeypatch):
    monkeypatch.setattr(scratch, "IN_MEMORY", 0)
    X, y = np.arange(12.0).reshape(6, 2), np.array(list("abcabc"))
    reads = []

    def blocks():
        reads.append(1)
        yield X[:4], y[:4]
        yield X[4:], y[4:]

    held = Scratch()
    part = Spooled(BlockPart(blocks, None, is_slow=True), held)
    for _ in range(3):
        tables = list(part.tables())
        np.testing.assert_array_equal(np.concatenate([table for table, _ in tables]), X)
        assert np.concatenate([labels for _, labels in tables]).tolist() == y.tolist()
    assert len(reads) == 1
    held.close()


def test_a_part_with_text_is_read_again():
    reads = []

    def blocks():
        reads.append(1)
        yield np.array([["a", "b"]], dtype=object), np.array([1.0])

    part = Spooled(BlockPart(blocks, None, is_slow=True), Scratch())
    assert [len(list(part.tables())) for _ in range(2)] == [1, 1]
    assert len(reads) == 2


def test_a_part_that_was_left_half_read_is_read_again():
    part = Spooled(BlockPart(lambda: [(np.zeros((1, 1)), np.zeros(1))] * 3, None, is_slow=True), Scratch())
    next(part.tables())
    assert len(list(part.tables())) == 3


@pytest.mark.parametrize("change", ["fewer", "more", "wider", "labels"])
def test_rows_that_change_between_passes_stop_the_fit_and_say_what_is_spent(change):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(4_000, 3)), rng.integers(0, 2, size=4_000)
    others = {
        "fewer": [(X[:-1], y[:-1])],
        "more": [(X, y), (X[:1], y[:1])],
        "wider": [(np.column_stack([X, y]), y)],
        "labels": [(X, y + 5)],
    }[change]

    class Blocks:
        """Gives others in the third pass: the first checks, the second is that of the first histogram."""

        passes = 0

        def __iter__(self):
            self.passes += 1
            return iter([(X, y)] if self.passes < 3 else others)

    with pytest.raises(ChangedRowsError, match="changed since the first pass") as caught:
        LogisticRegression(random_state=0).fit_blocks(Blocks())
    assert "count the whole budget as spent" in caught.value.__notes__[0]


def test_errors_of_readers_are_told_by_their_kind_alone():
    def tables():
        yield 1
        raise RuntimeError("a cell: secret")

    with pytest.raises(ValueError, match="the file cannot be read: RuntimeError") as caught:
        list(quietly("the file", tables()))
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_what_is_seen_of_blocks_is_joined():
    one = Seen(3, 2, ("a", "b"), (0, 1), np.array(["x"]))
    assert one.joined(Seen()) == one
    assert Seen().joined(one) == one
    both = one.joined(one._replace(rows=4, truths=(1,), labels=np.array(["y"])))
    assert (both.rows, both.truths, both.labels.tolist()) == (7, (1,), ["x", "y"])
    assert "same columns" in one.joined(one._replace(names=("b", "a"))).problem[1]
    assert "all dense or all sparse" in one.joined(one._replace(sparse=True)).problem[1]
    assert "more than 1,000 classes" in one.joined(one._replace(labels=np.arange(2_000).astype(str))).problem[1]


def test_what_cannot_be_read_again_is_refused():
    with pytest.raises(ValueError, match="readable several times"):
        opened(iter([1]))
    with pytest.raises(TypeError, match="iterable of blocks"):
        opened(np.zeros((3, 2)))
    with pytest.raises(TypeError, match="target must be the name"):
        opened([1], 3)
    with pytest.raises(ValueError, match="pairs"):
        Reading([BlockPart(lambda: [np.zeros((3, 2))], None)]).seen("labels")
