"""How much one row can change a release, under each neighbour relation.

What holds: each number bounds the change for every pair of neighbours. The constructors name the shapes for which this
is proved in their docstrings.
"""

import math
from dataclasses import dataclass

from tacit.privacy import checks
from tacit.privacy.checks import ADJACENCIES, Adjacency


@dataclass(frozen=True)
class Sensitivity:
    """The largest change that one row can make, for each adjacency.

    Add-remove compares a row's contribution with nothing, so it is the contribution's norm. Replace-one compares two
    contributions; how far apart two of them can be depends on their shape, which is what the constructors name.
    """

    add_remove: float
    replace_one: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "add_remove", checks.non_negative("add_remove", self.add_remove))
        object.__setattr__(self, "replace_one", checks.non_negative("replace_one", self.replace_one))

    def under(self, adjacency: Adjacency) -> float:
        """The sensitivity for one of the two relations."""
        relation = checks.one_of("adjacency", adjacency, ADJACENCIES)
        return self.add_remove if relation == "add-remove" else self.replace_one

    @classmethod
    def vector(cls, norm: float) -> "Sensitivity":
        """Contributions of norm at most `norm` and any direction: two can be opposite."""
        norm = checks.non_negative("norm", norm)
        return cls(norm, 2.0 * norm)

    @classmethod
    def one_hot(cls, columns: int = 1) -> "Sensitivity":
        """A one in one bin of each of `columns` histograms: two rows differ in at most two bins of each."""
        columns = checks.count("columns", columns)
        return cls(math.sqrt(columns), math.sqrt(2.0 * columns))

    @classmethod
    def outer_product(cls, row_norm: float, clip: float | None = None) -> "Sensitivity":
        """The matrix x x^T (or x x^T V, V orthonormal) with |x| <= row_norm, in Frobenius norm, perhaps clipped.

        Two outer products have a non-negative inner product, so they are at most sqrt(2) row_norm^2 apart; multiplying
        by V brings them no further apart. Clipping projects onto a ball, which does not either, but it can leave
        x x^T V and z z^T V nearly opposite: then they are 2 clip apart.
        """
        full = checks.non_negative("row_norm", row_norm) ** 2
        if clip is None:
            return cls(full, math.sqrt(2.0) * full)
        clip = min(checks.non_negative("clip", clip), full)
        return cls(clip, min(2.0 * clip, math.sqrt(2.0) * full))

    @classmethod
    def non_negative(cls, bound: float) -> "Sensitivity":
        """A number between 0 and `bound`."""
        bound = checks.non_negative("bound", bound)
        return cls(bound, bound)
