"""Messages come out as they went in; bytes that no party wrote are refused and do nothing else."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from tacit.federated import RefusedError, messages
from tacit.federated.messages import Refusal, Reply, Request

STUDY = "ab" * 32
ARRAYS = {"w": np.array([[1.0, -2.0]]), "at": np.array([3, 4], dtype=np.int32), "none": np.zeros((0, 3), np.uint8)}
REQUEST = messages.write(Request(STUDY, "a", 3, "value", ARRAYS))

KINDS = st.sampled_from(["<f8", "<f4", "<i8", "<i4", "<i2", "|i1", "|u1"])
VALUES = KINDS.flatmap(
    lambda kind: arrays_of.arrays(
        kind,
        arrays_of.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
        elements={"allow_nan": False, "allow_infinity": False} if "f" in kind else None,
    )
)


@settings(max_examples=50)
@given(st.dictionaries(st.text(max_size=20), VALUES, max_size=4), st.integers(0, 2**32 - 1))
def test_a_message_is_read_as_it_was_written(arrays, number):
    for message in (Request(STUDY, "ä", number, "step", arrays), Reply(STUDY, "ä", number, b"d" * 32, arrays)):
        data = messages.write(message)
        back = messages.read(data)
        assert type(back) is type(message)
        assert (back.study, back.party, back.round, back.version) == (STUDY, "ä", number, message.version)
        assert set(back.arrays) == set(arrays)
        for name, values in arrays.items():
            assert back.arrays[name].dtype == values.dtype
            np.testing.assert_array_equal(back.arrays[name], values, strict=True)
        assert messages.write(back) == data


def test_equal_messages_have_equal_bytes():
    turned = dict(reversed(ARRAYS.items())) | {"w": np.asfortranarray(ARRAYS["w"]).astype(">f8")}
    assert messages.write(Request(STUDY, "a", 3, "value", turned)) == REQUEST


def test_refusals():
    refusal = Refusal(STUDY, "a", 3, b"d" * 32, "no")
    assert messages.read(messages.write(refusal)) == refusal


def test_what_is_cut_short_or_goes_on_is_refused():
    refusal = messages.write(Refusal(STUDY, "a", 3, b"d" * 32, "no"))
    whole = {len(messages.write(Request(STUDY, "a", 3, "value", dict(sorted(ARRAYS.items())[:k])))) for k in range(3)}
    for data in (REQUEST, refusal):
        for end in set(range(len(data))) - whole:  # where an array ends, a shorter message is whole
            with pytest.raises(RefusedError):
                messages.read(data[:end])
        with pytest.raises(RefusedError):
            messages.read(data + b"\0")


@settings(max_examples=200)
@given(st.one_of(st.binary(max_size=120), st.tuples(st.integers(0, len(REQUEST) - 1), st.integers(0, 255))))
def test_garbage_is_read_or_refused(data):
    if isinstance(data, tuple):
        changed = bytearray(REQUEST)
        changed[data[0]] = data[1]
        data = bytes(changed)
    try:
        message = messages.read(data)
    except RefusedError:
        return
    assert messages.write(message) == data  # so no message has two spellings


def test_what_a_message_does_not_carry():
    for values in ([np.nan], [np.inf]):
        with pytest.raises(ValueError, match="'x' holds numbers that are not finite"):
            messages.write(Request(STUDY, "a", 0, "s", {"x": np.array(values)}))
    for kind in (object, complex, "<u8", "U3"):
        with pytest.raises(TypeError, match="'x'"):
            messages.write(Request(STUDY, "a", 0, "s", {"x": np.zeros(2).astype(kind)}))


def test_numbers_that_are_not_finite_are_refused():
    data = messages.write(Request(STUDY, "a", 0, "s", {"x": np.array([1.0])}))
    for number in (np.nan, -np.inf):
        with pytest.raises(RefusedError, match="not finite"):
            messages.read(data[:-8] + np.float64(number).tobytes())


def test_another_version_is_told_apart():
    with pytest.raises(RefusedError, match="wire version 9"):
        messages.read(REQUEST[:2] + b"\x09" + REQUEST[3:])


def test_a_reply_is_small():
    arrays = {"indices": np.arange(16, dtype=np.int32), "moments": np.zeros(153), "sums": np.zeros(17)}
    data = messages.write(Reply(STUDY, "hospital-a", 1, b"d" * 32, arrays))
    assert len(data) - sum(values.nbytes for values in arrays.values()) < 150
