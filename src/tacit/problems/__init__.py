"""What is minimised, and over what: losses, the penalty, constraints and bounded rows.

A linear model minimises a loss of its margins plus a penalty on its coefficients, perhaps inside a constraint, on rows
of bounded size. Each of these is a small frozen object:

- a **loss** (`Loss`, one object for each) has `value`, `derivative`, and bounds on both derivatives;
- a **penalty** (`Penalty`) has strengths, bounds and `prox`;
- a **constraint** (`L1Ball`) has `project` and `linear_oracle`;
- **rows** are clipped by `clip_rows`, each by itself.

`slopes` holds the losses' derivatives one number at a time, for compiled loops over rows.

Nothing here is random, reads a budget or knows of a solver. Of the library this room may import only `tacit.privacy`.
"""

from tacit.problems.constraints import L1Ball
from tacit.problems.data import clip_rows, row_norm
from tacit.problems.losses import (
    HINGE,
    HUBER,
    LOGISTIC,
    LOSSES,
    MULTINOMIAL,
    SQUARED,
    SQUARED_HINGE,
    Loss,
    sigmoid,
    softmax,
)
from tacit.problems.penalty import Penalty

__all__ = [
    "HINGE",
    "HUBER",
    "LOGISTIC",
    "LOSSES",
    "MULTINOMIAL",
    "SQUARED",
    "SQUARED_HINGE",
    "L1Ball",
    "Loss",
    "Penalty",
    "clip_rows",
    "row_norm",
    "sigmoid",
    "softmax",
]
