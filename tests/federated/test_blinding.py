"""What is used of `openmined-psi`: two keys commute, and what is no point is refused and kills nobody."""

import numpy as np
import pytest

from tacit.federated import RefusedError, blinding
from tacit.federated.blinding import KEY_BYTES, POINT_BYTES, Blinder, new_key

pytest.importorskip("private_set_intersection", reason="needs the extra psi, which has wheels for some machines")

IDS = [f"p{i}" for i in range(7)]


def test_two_keys_commute_in_the_order_of_the_ids(monkeypatch):
    one, other = Blinder(new_key()), Blinder(new_key())
    whole = one.blind(IDS)
    assert whole.shape == (len(IDS), POINT_BYTES)
    np.testing.assert_array_equal(other.again(whole), one.again(other.blind(IDS)))
    monkeypatch.setattr(blinding, "_AT_ONCE", 3)  # pieces change nothing
    np.testing.assert_array_equal(one.blind(IDS), whole)
    np.testing.assert_array_equal(other.again(whole), one.again(other.blind(IDS)))


def test_a_key_is_all_that_is_needed_to_go_on():
    key = new_key()
    assert len(key) == KEY_BYTES
    np.testing.assert_array_equal(Blinder(key).blind(IDS), Blinder(key).blind(IDS))
    assert not (Blinder(new_key()).blind(IDS) == Blinder(key).blind(IDS)).all(axis=1).any()


def test_what_is_no_point_is_refused():
    rng, blinder = np.random.default_rng(0), Blinder(new_key())
    points = blinder.blind(IDS)
    for bad in (np.zeros(POINT_BYTES), np.full(POINT_BYTES, 255), [4, *points[0, 1:]]):
        with pytest.raises(RefusedError, match="no blinded ids"):
            blinder.again(np.array([bad], dtype=np.uint8))
    refused = 0
    for _ in range(1_000):
        changed = points[:2].copy()
        changed[rng.integers(2), rng.integers(POINT_BYTES)] ^= np.uint8(1 << rng.integers(8))
        try:
            assert blinder.again(changed).shape == changed.shape  # every second number is the x of some point
        except RefusedError:
            refused += 1
    assert 300 < refused < 700


def test_who_lacks_the_package_is_told_where_it_is(monkeypatch):
    monkeypatch.setattr(blinding, "find_spec", lambda _: None)
    with pytest.raises(ImportError, match=r"pip install 'tacit\[psi\]'"):
        new_key()
