"""A table of people with text in it, and pipelines on it."""

import numpy as np
import pandas as pd
import pytest

from tacit import LogisticRegression, PrivateEncoder, make_private_pipeline

quiet = pytest.mark.filterwarnings("ignore:random_state", "ignore:the budget is too small", "ignore:delta=")

N = 1500
RNG = np.random.default_rng(0)
JOB = RNG.choice(["clerk", "nurse", "smith"], N)
FRAME = pd.DataFrame({"job": JOB, "town": RNG.choice(["A", "B"], N), "age": RNG.uniform(20, 60, N)})
Y = ((JOB == "nurse") ^ (RNG.random(N) < 0.1)).astype(int)
T = FRAME["age"].to_numpy() / 10 + (JOB == "smith") + RNG.normal(0, 0.3, N)


def made(*steps, **terms):
    return make_private_pipeline(*steps, **({"epsilon": 5.0, "random_state": 0} | terms))


def fitted(*steps, y=Y, **terms):
    return made(*(steps or (PrivateEncoder(), LogisticRegression())), **terms).fit(FRAME, y)
