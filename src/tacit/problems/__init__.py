"""What is minimised, and over what: losses, penalties, constraints and bounded data.

A linear model minimises a loss of its margins plus a penalty on its coefficients, perhaps inside a
constraint, on data that lies within declared bounds. Each of these is a small frozen object, and all of a
kind have one shape, so that a solver can say what it needs of them:

- a **loss** (`Loss`) has `value`, `derivative`, and the bounds `curvature` and `lipschitz` on its second and
  first derivative; `conjugate` and `probability` where they are natural;
- a **penalty** (`Penalty`) has strengths, bounds and `prox`;
- a **constraint** has `project` and `linear_oracle`;
- **rows** are clipped by `clip_rows`, each by itself.

`scalar` holds the same formulas one number at a time, for compiled loops over rows.

Nothing here is random, reads a budget or knows of a solver. Of the library this room may import only
`tacit.privacy`, and so far it needs nothing.
"""

from tacit.problems.constraints import L1Ball
from tacit.problems.data import clip_rows, row_norm
from tacit.problems.losses import HingeLoss, HuberLoss, LogisticLoss, Loss, SquaredHingeLoss, SquaredLoss
from tacit.problems.multinomial import MultinomialLoss
from tacit.problems.penalty import Penalty

__all__ = [
    "HingeLoss",
    "HuberLoss",
    "L1Ball",
    "LogisticLoss",
    "Loss",
    "MultinomialLoss",
    "Penalty",
    "SquaredHingeLoss",
    "SquaredLoss",
    "clip_rows",
    "row_norm",
]
