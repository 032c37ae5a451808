"""What is known of a fit before the data is read: its size, its budget, and what is asked for. All of it is public."""

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from tacit.privacy import Budget, Unit
from tacit.problems.bounds import Bounds
from tacit.problems.losses import Loss
from tacit.problems.penalty import Penalty

PenaltyName = Literal["l2", "l1", "bounds"]


@dataclass(frozen=True, kw_only=True)
class Task:
    """The public facts of any fit.

    Parameters
    ----------
    unit : Unit
        Whose data it is, and how many there are.
    d : int
        Columns.
    budget : Budget
        What the fit may give away.
    sparse, streamed : bool
        How the rows are stored: CSR, or blocks that are read again for every pass.
    row_norm : float, optional
        A declared bound on the norm of a row.
    bounds : Bounds, optional
        What columns are declared to lie between.
    """

    unit: Unit
    d: int
    budget: Budget
    sparse: bool = False
    streamed: bool = False
    row_norm: float | None = None
    bounds: Bounds | None = None

    @property
    def n(self) -> int:
        """How many units there are."""
        return self.unit.n

    @property
    def nu(self) -> float:
        """The noise that one parameter meets, over the signal of n rows: (d + 1) / (n mu)."""
        return (self.d + 1) / (self.n * self.budget.mu)


@dataclass(frozen=True, kw_only=True)
class LinearTask(Task):
    """A linear model: a loss of its margins, and a penalty on its coefficients or a ball that they stay in.

    Parameters
    ----------
    loss : Loss
        Of one margin, or of one for each class.
    outputs : int
        Margins of a row.
    fit_intercept : bool
        Whether the model has an intercept.
    penalty : Penalty
        Strengths for dense columns are those of standardised ones; all else is in the user's units.
    l1_radius : float, optional
        Of an l1 ball, on the bounded data, that takes the place of the penalty.
    y_bounds : (float, float), optional
        Declared bounds of a regression's target.
    class_weight : tuple of float or "balanced", optional
        What a row of each class weighs, or that classes shall weigh the same.
    """

    loss: Loss
    outputs: int = 1
    fit_intercept: bool = True
    penalty: Penalty = field(default_factory=Penalty)
    l1_radius: float | None = None
    y_bounds: tuple[float, float] | None = None
    class_weight: tuple[float, ...] | Literal["balanced"] | None = None

    @property
    def classes(self) -> int:
        """Of a classifier: two for one output."""
        return max(self.outputs, 2)

    @property
    def balanced(self) -> bool:
        """Whether weights follow from class counts, which are released."""
        return self.class_weight == "balanced"

    @property
    def penalties(self) -> tuple[PenaltyName, ...]:
        """What a solver must serve. Without any penalty that is l2 of strength 0: plain losses are smooth."""
        p = self.penalty
        has_l1, has_l2 = bool(np.any(np.greater(p.l1, 0.0))), bool(np.any(np.greater(p.l2, 0.0)))
        bounded = bool(np.any(np.isfinite(p.low)) or np.any(np.isfinite(p.high)))
        asked: list[PenaltyName] = ["l2"] if has_l2 or not has_l1 else []
        asked += ["l1"] if has_l1 else []
        asked += ["bounds"] if bounded else []
        return tuple(asked)

    @property
    def width(self) -> int:
        """The length of a row with its intercept entry."""
        return self.d + self.fit_intercept

    @property
    def calm(self) -> float:
        """How small the noise is: above 1, rules need no protection against it."""
        return 1e-3 / self.nu if self.nu > 0 else math.inf

    @property
    def most_values(self) -> int:
        """No release holds more numbers than this."""
        return (self.d + 1) * max(100, self.outputs, min(self.d, 2_000))


@dataclass(frozen=True, kw_only=True)
class ComponentsTask(Task):
    """A PCA of `k` components, about the mean or about zero.

    `center_norm` is a declared bound on the distance of a row from the mean.
    """

    k: int
    center: bool = True
    center_norm: float | None = None

    @property
    def most_values(self) -> int:
        """No release holds more numbers than this."""
        return (self.d + 1) ** 2
