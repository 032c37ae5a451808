"""What the tests of this room share: repeatable property tests and a few strategies."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

repeatable = settings(derandomize=True, deadline=None, max_examples=60, database=None)

# Margins over many sizes, to +-1e4.
margins = st.one_of(st.floats(-1e4, 1e4), st.floats(-8.0, 8.0), st.just(0.0))
signs = st.sampled_from([-1.0, 1.0])
reals = st.floats(-100.0, 100.0)
strengths = st.floats(0.0, 5.0)
steps = st.floats(0.01, 5.0)


def vectors(limit=10.0, min_size=1, max_size=6):
    return arrays(
        np.float64,
        st.integers(min_size, max_size),
        elements=st.floats(-limit, limit, allow_subnormal=False),
    )
