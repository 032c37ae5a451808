"""What both solvers for text do with odd rows."""

import numpy as np
from scipy.sparse import csr_array

from tests.solvers.support import bounded, rows, table


def check_odd_rows(run, sparse):
    """Rows without a direction, or whose norm is no number, leave weights and noise finite."""
    tables = {
        "zeros": np.zeros((5, 3)),
        "overflow": np.full((5, 3), 1e200),
        "tiny": np.full((5, 3), 1e-200),
        "one row": np.diag([1.0, 0.0, 0.0, 0.0, 0.0])[:, :3],
    }
    for Z in tables.values():
        for targets in (np.ones(5), -np.ones(5), np.array([1.0, -1.0, 1.0, -1.0, 1.0])):
            solution = run(bounded(csr_array(Z) if sparse else Z, targets))
            assert np.all(np.isfinite(solution.weights))
            assert np.all(np.isfinite(solution.noise))


def check_overflowing_row(run):
    """It adds to no sum and to no count: whatever its numbers and its class are, all is the same to the last bit."""
    data = rows("logistic", 50, 4, sparse=True)
    Z = table(data)
    found = []
    for label, value in ((1.0, 1e200), (-1.0, -1e250), (-1.0, 1e300)):
        Z[0], data.targets[0] = value, label
        found.append(run(bounded(csr_array(Z), data.targets)).weights)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
