"""What Lou and Cheung's theorems promise, with 1 for every constant that an O hides. Used by this comparison only.

Theorems 1 and 2 hold as printed, with the probability with which a block is really drawn.

Theorem 4 says n^(-2/3) because it takes two things in its C_g for constants: the entries of a column that are not zero,
of which the paper's data has 1% of n, and the leading singular value sigma(J) of the sketch. J has m rows and n columns
of norm about 1, so that sigma(J)^2 is about n / m, and m grows with log n alone. So C_g grows as n does, the iterations
that the theorem asks for become fewer, and the risk that it promises does not fall. `promised` has both readings.
Corollary 1 has log(n)^(1/3); the m of Table IV times K T has log(n).
"""

import math
from dataclasses import dataclass, replace

from benchmarks.federated.paper import sketch_norms

ENTRIES = 10  # of a column that are not zero, where their number is taken for a constant
PROJECTED = 10  # dimensions that a party's sketch of Remark 4 is to keep, in its favour
BYTES = 8  # of a number


def gap_bound(first_gap: float, curvature: float, least: float, t: int, inexact: float = 0.0) -> float:
    """Theorem 1, and with inexact gradients and oracles Theorem 2: the most that E f(x_t) - min f can be.

    `curvature` is the expected one, `least` the probability with which the rarest block is drawn, and `inexact` the
    rho of `inexactness`.
    """
    return 2.0 * (first_gap + (1.0 + inexact) * curvature / least) / (least * t + 2.0)


def inexactness(diameter: float, drawn: int, gradients: float, oracles: float) -> float:
    """Rho of Theorem 2, for a set of that diameter, at most `drawn` blocks at once, and rho_g and rho_l."""
    return (diameter + drawn) * gradients + oracles * drawn


@dataclass(frozen=True)
class Study:
    """What Theorem 4 and Corollary 1 depend on."""

    rows: int
    columns: int
    parties: int
    entries: int  # of a column that are not zero
    radius: float
    epsilon: float
    delta: float
    distortion: float  # theta, of the sketch
    curvature: float  # the expected one
    spread: float  # sigma(J)^2
    slope: float = 1.0  # G, of any coordinate

    @property
    def sketched(self) -> int:
        """M of Table IV, with the number of iterations taken as n at most."""
        return sketched(self.rows, self.delta, self.distortion)

    @property
    def noise(self) -> float:
        """C_g + C_l of Table IV."""
        K, entries = self.parties, self.entries
        shared = K * self.radius * self.distortion * entries + K**1.5 * math.sqrt(entries) * self.spread
        chosen = 2.0 * self.slope * self.radius * math.sqrt(32.0 * math.log(2.0 / self.delta))
        return shared * math.sqrt(math.log(1.0 / self.delta) + self.epsilon) + chosen

    @property
    def iterations(self) -> float:
        """T of Theorem 4."""
        return (self.curvature * self.rows * self.epsilon / self.noise) ** (2.0 / 3.0)

    @property
    def risk(self) -> float:
        """The excess risk that Theorem 4 promises."""
        logarithm = math.log(2.0 * self.slope * self.radius * self.columns * self.rows)
        scale = (self.noise**2 * self.curvature) ** (1.0 / 3.0)
        return scale * logarithm / (self.rows * self.epsilon) ** (2.0 / 3.0)

    @property
    def sent(self) -> float:
        """The numbers that a party sends by Algorithm 2: an index and a sketch in each iteration."""
        return self.iterations * (1.0 + self.sketched)

    @property
    def corollary(self) -> float:
        """The same by Corollary 1."""
        return math.log(self.rows) ** (1.0 / 3.0) * self.rows ** (2.0 / 3.0) / self.distortion**2


def sketched(rows: int, delta: float, distortion: float) -> int:
    """How many rows a sketch needs for that distortion."""
    return math.ceil(math.log(2.0 * rows / delta) / distortion**2)


def projection(rows: int, kept: int = PROJECTED) -> float:
    """The numbers that a party sends once, by Remark 4, in PRIDE (Heinze-Deml and others): n r log r."""
    return rows * kept * math.log(kept)


def promised(rows: int, columns: int, parties: int, density: float, radius: float) -> dict[str, float]:
    """With epsilon = 1 and delta = 1 / n, as the paper has them, and theta = 1 / 2.

    The curvature is that of K balls of the whole radius, whose columns have a mean square of `density`.
    """
    delta, distortion = 1.0 / rows, 0.5
    length = sketched(rows, delta, distortion)
    spread = sketch_norms(rows, length)[1] ** 2
    curvature = (2.0 * radius * parties) ** 2 * density
    fixed = Study(rows, columns, parties, ENTRIES, radius, 1.0, delta, distortion, curvature, spread=1.0)
    true = replace(fixed, entries=max(1, round(density * rows)), spread=spread)
    return {
        "rows of the sketch": length,
        "sigma squared": spread,
        "iterations, constant": fixed.iterations,
        "iterations, true": true.iterations,
        "risk, constant": fixed.risk,
        "risk, true": true.risk,
        "uplink, constant": BYTES * fixed.sent,
        "uplink, true": BYTES * true.sent,
        "uplink, Corollary 1": BYTES * fixed.corollary,
        "uplink, PRIDE": BYTES * projection(rows),
    }
