import dataclasses

import numpy as np
import pytest
from scipy.sparse import csr_array

from tacit.blocks import Bounded
from tests.solvers.support import rows


def test_rows_do_not_show_themselves():
    private = rows("squared", 3, 2)
    assert repr(private) == str(private) == "Bounded(private)"
    assert "private" in f"{[private]}"
    assert repr(private.some(np.array([1]))) == "Bounded(private)"
    with pytest.raises(dataclasses.FrozenInstanceError):
        private.Z = np.zeros((3, 2))
    assert isinstance(private, Bounded)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("places", [[], [2], [0, 3, 4]], ids=str)
def test_some_rows_are_those_at_the_places(sparse, places):
    whole = dataclasses.replace(rows("squared", 5, 3, sparse), entry=2.0, units="meters")
    some = whole.some(np.array(places, dtype=np.int64))
    expected = whole.Z.toarray() if sparse else whole.Z
    assert isinstance(some.Z, csr_array) == sparse
    np.testing.assert_array_equal(some.Z.toarray() if sparse else some.Z, expected[places])
    np.testing.assert_array_equal(some.targets, whole.targets[places])
    assert some.penalty is whole.penalty
    assert (some.entry, some.units) == (2.0, "meters")
