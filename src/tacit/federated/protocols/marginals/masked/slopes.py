"""A party's side of slopes: the sums of its rows times what residuals are on average, given what the party has itself.

The gradient of the logistic loss in the weights of party k is the sum over people of z (sigma(m) - y), z a person's row
at k and m the margin over all parties, which k does not know. With normal columns m given z is normal, z.u plus an
offset, with a deviation that is the same for everyone; the coordinator knows all three from the moments. So it asks for

    sum of (z, b) (E sigma(z.u + offset + deviation g) - 1/2),   g standard normal, b the weight of sums

and takes off the products with labels, which it has. Where columns are not normal, most of what moments miss is in z
itself, and that is right here. No message goes between parties, nothing is masked, and nobody deals anything.

Privacy
-------
The factor of a row lies in [-1/2, 1/2] for every question, and a row has a norm of at most 1, sqrt(1 + b^2) with the
constant: a row that comes or goes moves the release by sqrt(1 + b^2) / 2 at most, one that is replaced by twice that.
The factor is a function of that row alone, to the last bit, or weights that cancel could turn others' factors around.
Every party draws the full noise, and nobody else knows it.
"""

import numpy as np

from tacit._types import Floats
from tacit.federated.protocols import columns
from tacit.federated.protocols.base import Answer, Arrays, Holding, Question, RefusedError
from tacit.federated.protocols.marginals.masked.rules import SLOPES, MaskedAgreement
from tacit.federated.protocols.marginals.party import bounded, slack, times
from tacit.federated.protocols.marginals.rules import SUMS
from tacit.privacy import Gate
from tacit.privacy.mechanisms import GaussianVector
from tacit.problems.slopes import sigmoid_each

STEP, RELEASE = "slopes", "slopes"
DIRECTION, PLACE = "direction", "place"  # asked with: u; offset and deviation
LARGEST_ASKED = 1e100  # margins stay finite
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


def slopes(agreed: MaskedAgreement, holding: Holding, question: Question, gate: Gate, memory: Arrays) -> Answer:
    """The step "slopes", for rows as they were clipped for the moments."""
    if not agreed.has_slopes or "row norm" not in memory:
        raise RefusedError("the step 'slopes' is not part of this study, or comes before 'units'")
    rows = columns.unit_rows(bounded(agreed.study, holding.X), float(memory["row norm"][0]))
    if set(question.arrays) != {DIRECTION, PLACE}:
        raise RefusedError(f"the step 'slopes' takes the arrays {DIRECTION!r} and {PLACE!r}")
    direction = _asked(question, DIRECTION, rows.shape[1])
    offset, deviation = _asked(question, PLACE, 2).tolist()
    factors = expected(columns.images(rows, direction) + offset, deviation)
    sums = np.append(np.asarray(rows.T @ factors, dtype=np.float64), SUMS * factors.sum())
    n = agreed.study.n_rows
    noise = GaussianVector(times(SLOPES, slack(n)), bound=float(n))
    return Answer({RELEASE: gate.release(RELEASE, noise, sums)})


def expected(centres: Floats, deviation: float) -> Floats:
    """What sigma - 1/2 is on average over normal margins; between -1/2 and 1/2, whatever is asked."""
    total, each = np.zeros((2, len(centres)))
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        sigmoid_each(centres + deviation * node, each)
        total += weight * each
    return np.clip(total - 0.5, -0.5, 0.5)


def _asked(question: Question, name: str, size: int) -> Floats:
    """An array of numbers of a question, so many; another form is refused, and what is too large to work with."""
    array = question.arrays[name]
    if array.dtype != np.float64 or array.shape != (size,):
        raise RefusedError(f"the array {name!r} of the step 'slopes' must hold {size} numbers")
    if not np.all(np.abs(array) <= LARGEST_ASKED):
        raise RefusedError(f"the array {name!r} of the step 'slopes' must be finite, and no larger than any model has")
    return array
