"""How far one row moves a sum over rows: the sensitivity of every such sum, derived in one place.

A row's part of a sum is its term. Add-remove neighbours differ by one term, so a sum moves by its norm; replace-one
neighbours by the difference of two terms, and how long that is depends on their shape. The methods of `Moves` are named
for that shape.

Float64 sums are rounded, in both worlds. Adding n terms of norm at most C, each through at most m additions, is off by
at most gamma n C, gamma = m u / (1 - m u), u = 2^-53; so one row moves the sum by up to 2 gamma n C more than its
term says. That is the slack (`tacit.privacy.float_sum_slack`), and every sensitivity here includes it. Where a method
counts the slack twice for replace-one it charges more than it must, by parts in a billion.
"""

import math
from dataclasses import dataclass
from typing import Self

from tacit.kernels.rows import sum_depth
from tacit.privacy import float_sum_slack
from tacit.privacy.mechanisms import Sensitivity
from tacit.problems.task import Task


@dataclass(frozen=True)
class Moves:
    """The sensitivities of float64 sums over n rows.

    Parameters
    ----------
    n : int
        Rows. It is public, and does not change between neighbours.
    depth : int
        m, the longest chain of additions that a term passes through: n, if rows are added one after the other. 0 if
        sums are exact.
    roundings : float
        Further roundings of the sum, each of 2^-53 of what all terms may add up to.
    """

    n: int
    depth: int
    roundings: float = 0.0

    @classmethod
    def of(cls, task: Task) -> Self:
        """Of sums as `Passes` and coordinate solvers take them: dense rows in blocks, sparse ones one by one."""
        return cls(task.n, task.n if task.sparse else sum_depth(task.n))

    @classmethod
    def in_blocks(cls, n: int) -> Self:
        """Of sums over blocks of rows, which are then added up."""
        return cls(n, sum_depth(n))

    @classmethod
    def exact(cls, n: int) -> Self:
        """Of sums of whole numbers, which are not rounded (`tacit.blocks.exact`)."""
        return cls(n, depth=0)

    def slack(self, norm: float) -> float:
        """What rounding adds, where no term has a larger norm than this."""
        if self.depth == 0:
            return 0.0
        return float_sum_slack(self.n, norm, self.depth) + self.roundings * self.n * norm * 2.0**-53

    def apart(self, norm: float, apart: float, summed: float | None = None, more: float = 0.0) -> Sensitivity:
        """Terms of norm at most `norm`, two of which are at most `apart` apart; both as the caller derives them.

        `summed` bounds the norm of what is added up, where that is longer than the term it makes in the end; `more` is
        rounding from elsewhere.
        """
        slack = self.slack(norm if summed is None else summed) + more
        return Sensitivity(norm + slack, apart + slack)

    def vector(self, norm: float) -> Sensitivity:
        """Vectors in any direction: `norm`, and twice that for replace-one, as two can be opposite.

        The slack is counted twice as well.
        """
        return Sensitivity.vector(norm + self.slack(norm))

    def non_negative(self, norm: float) -> Sensitivity:
        """Vectors without negative entries: `norm`, and sqrt(2) times that.

        |x - z|^2 = |x|^2 + |z|^2 - 2 x.z, and x.z is not negative.
        """
        return self.apart(norm, math.sqrt(2.0) * norm)

    def between(self, low: float, high: float, summed: float | None = None) -> Sensitivity:
        """Numbers from `low` to `high`: the larger size, and the distance of the two. `summed` as for `apart`."""
        return self.apart(max(abs(low), abs(high)), high - low, summed)

    def outer(self, radius: float, clip: float | None = None, summed: float | None = None) -> Sensitivity:
        """Outer products x x^T with |x| <= radius R, in Frobenius norm: R^2, and sqrt(2) R^2.

        Two of them have the inner product (x.z)^2, which is not negative. The same holds for a part of the matrix, such
        as its diagonal, and for x x^T V and V^T x x^T V with V of spectral norm at most 1. For such terms clipped to
        `clip` see `Sensitivity.outer_product`. `summed` as for `apart`.
        """
        plain = Sensitivity.outer_product(radius, clip)
        slack = self.slack(radius**2 if summed is None else summed)
        return Sensitivity(plain.add_remove + slack, plain.replace_one + slack)

    def image(self, radius: float) -> Sensitivity:
        """Vectors x (x.v) with |x| <= radius R and |v| = 1: R^2 for both neighbour relations.

        The eigenvalues of x x^T - z z^T lie between -R^2 and R^2.
        """
        return self.apart(radius**2, radius**2)

    def columns(self, norm: float, entry: float, count: int) -> Sensitivity:
        """Vectors of norm at most `norm`, with no more than `count` entries, each at most `entry` and summed by itself.

        `norm`, and twice that. Every entry has a slack of its own, together sqrt(count) times as long.
        """
        return Sensitivity.vector(norm + math.sqrt(count) * self.slack(entry))

    def unit_columns(self, count: int) -> Sensitivity:
        """Vectors of `count` entries, each between -1 and 1 and summed by itself: sqrt(count), and twice that."""
        return Sensitivity.vector(math.sqrt(count) * (1.0 + self.slack(1.0)))

    def squares(self, largest: float, total: float, count: int) -> Sensitivity:
        """`count` non-negative numbers, none above `largest` b, which add up to `total` T at most: sqrt(b T), and more.

        Their squares add up to at most b T. For replace-one sqrt(2) times that, as two such vectors have no negative
        inner product, or b sqrt(count), as no number changes by more than b. Every number is summed by itself.
        """
        size, slack = math.sqrt(largest * total), math.sqrt(count) * self.slack(largest)
        return Sensitivity(size + slack, min(math.sqrt(2.0) * size, math.sqrt(count) * largest) + 2.0 * slack)

    def sizes(self, largest: float, total: float, count: int) -> Sensitivity:
        """The same numbers in the l1 norm, for Laplace noise: T, and 2 T or b times their count, whichever is less."""
        slack = count * self.slack(largest)
        return Sensitivity(total + slack, min(2.0 * total, count * largest) + 2.0 * slack)

    def moments(self) -> Sensitivity:
        """Pairs (x, x^2), entry by entry, of vectors with |x| <= 1: sqrt(2), and sqrt(4.5).

        |x|^2 + |x^2|^2 <= 2. For two of them take u = x - z, v = x + z and t = u.v = |x|^2 - |z|^2, so that
        |u|^2 + |v|^2 <= 4 - 2 |t|. The products p_i = u_i v_i add up to t and their sizes to at most |u| |v|, hence
        |p|^2 <= (|u|^2 |v|^2 + t^2) / 2, and |u|^2 + |p|^2 is at most 4.5 - 3 |t| + t^2, largest at t = 0.
        """
        slack = 1.0 + self.slack(1.0)
        return Sensitivity(math.sqrt(2.0) * slack, math.sqrt(4.5) * slack)

    def weighted(self, norm: float, apart: float) -> Sensitivity:
        """Weighted numbers of [-1, 1], each summed by itself, whose weights have this norm; two are `apart` at most.

        The slack of a sum is its weight times that of 1, so all of them together have `norm` times that.
        """
        slack = norm * self.slack(1.0)
        return Sensitivity(norm + slack, apart + slack)
