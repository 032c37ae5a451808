"""More than two classes, from one joint release: what the coordinator makes of it. No data comes in here.

Labels are one-hot vectors. So there are products of columns with each class, from which the columns' mean in each class
follows; the second moments are of all rows, and released once. Columns are taken as normal within each class, with
covariances that all classes share: what they are over all rows, less what the means of the classes explain. Then the
classes' chances are exactly those of a linear model with weights C^-1 (m_c - m), and that is what is solved for, each
class in an l1 ball of its own. There are no slopes, which tell more of two classes (`masked.slopes`): without any noise
they help on one set of three and harm on two, for half of the budget (benchmarks/results/federated_classes.md).

Between parties, columns are taken as independent within each class where nothing is known of them; with a budget that
is large enough, covariances within classes are estimated from sketches (`between`).
"""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.linalg import block_diag

from tacit._types import Floats
from tacit.federated.protocols import moments
from tacit.federated.protocols.base import Arrays, Question
from tacit.federated.protocols.marginals import between
from tacit.federated.protocols.marginals.parts import Part
from tacit.federated.protocols.marginals.rules import Agreement


def explained(slope: Floats, parts: Floats) -> Floats:
    """The covariances that follow from the means of classes; `slope` has products with centred one-hot labels."""
    return (slope / parts) @ slope.T


def joined(agreed: Agreement, parts: list[Part], mean: Floats) -> between.Asking:
    """Asks for sketches of columns, if that was agreed on; returns as `between.joined`, with covariances in classes."""
    sketches: Mapping[str, Arrays] = {}
    if agreed.cross is not None and len(parts) > 1:
        sketches = yield {name: Question("cross") for name in agreed.study.names}
        agreed, parts = between.stayed(agreed, parts, sketches)
    n = agreed.study.n_rows
    blocks = [_within(part, mean, n) for part in parts]
    if not sketches or agreed.cross is None or len(parts) == 1:
        return agreed, parts, block_diag(*blocks), "zero"
    known = explained(_slopes(parts, mean), mean) / n
    found = between.from_columns(agreed, agreed.cross, sketches, parts, blocks, known)
    return agreed, parts, between.whole(blocks, *found), "columns"


def _slopes(parts: Sequence[Part], mean: Floats) -> Floats:
    return np.concatenate([part.slope(mean) for part in parts])


def _within(part: Part, mean: Floats, n: int) -> Floats:
    """A party's covariances within classes, summed over rows."""
    return moments.repaired(part.covariances(n) - explained(part.slope(mean), mean) / n, part.floor)
