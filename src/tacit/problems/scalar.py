"""Every formula of this room on plain numbers, for compiled loops over rows and coordinates.

A solver must not let one row touch another's arithmetic, as BLAS does in the last bits: it calls these in a
loop over the row. The objects in `losses` and `penalties` apply the same formulas to arrays, so that each is
written once.

`margin` is x.w, and derivatives are taken in it. `y` is a real number for the squared and Huber losses, and
-1 or +1 for the logistic, hinge and squared hinge losses.
"""

import numpy as np

from tacit.problems.compiled import kernel

# --- regression: r = margin - y -----------------------------------------------------------------------------


@kernel
def squared_value(margin: float, y: float) -> float:
    """Squared loss: r^2 / 2."""
    residual = margin - y
    return 0.5 * residual * residual


@kernel
def squared_derivative(margin: float, y: float) -> float:
    """Derivative of the squared loss: r."""
    return margin - y


@kernel
def huber_value(margin: float, y: float, delta: float) -> float:
    """Huber loss: r^2 / 2 up to |r| = delta, then delta (|r| - delta / 2)."""
    # With c = clip(r, -delta, delta), both branches are c (r - c / 2).
    residual = margin - y
    clipped: float = np.minimum(np.maximum(residual, -delta), delta)
    return clipped * (residual - 0.5 * clipped)


@kernel
def huber_derivative(margin: float, y: float, delta: float) -> float:
    """Derivative of the Huber loss: r clipped to [-delta, delta]."""
    clipped: float = np.minimum(np.maximum(margin - y, -delta), delta)
    return clipped


# --- classification: z = y margin, y in {-1, +1} ------------------------------------------------------------


@kernel
def sigmoid(margin: float) -> float:
    """The logistic function 1 / (1 + exp(-margin)), with full relative accuracy in both tails."""
    # exp(min(m, 0)) / (1 + exp(-|m|)): neither exponent is ever positive.
    probability: float = np.exp(np.minimum(margin, 0.0)) / (1.0 + np.exp(-np.abs(margin)))
    return probability


@kernel
def logistic_value(margin: float, y: float) -> float:
    """Logistic loss: log(1 + exp(-z))."""
    z = y * margin
    value: float = np.maximum(-z, 0.0) + np.log1p(np.exp(-np.abs(z)))
    return value


@kernel
def logistic_derivative(margin: float, y: float) -> float:
    """Derivative of the logistic loss: -y / (1 + exp(z))."""
    z = y * margin
    derivative: float = -y * np.exp(np.minimum(-z, 0.0)) / (1.0 + np.exp(-np.abs(z)))
    return derivative


@kernel
def hinge_value(margin: float, y: float) -> float:
    """Hinge loss: max(0, 1 - z)."""
    value: float = np.maximum(1.0 - y * margin, 0.0)
    return value


@kernel
def hinge_derivative(margin: float, y: float) -> float:
    """Derivative of the hinge loss: -y where z < 1, else 0; at the kink z = 1 it is the subgradient 0."""
    return -y * (y * margin < 1.0)


@kernel
def squared_hinge_value(margin: float, y: float) -> float:
    """Squared hinge loss: max(0, 1 - z)^2."""
    slack: float = np.maximum(1.0 - y * margin, 0.0)
    return slack * slack


@kernel
def squared_hinge_derivative(margin: float, y: float) -> float:
    """Derivative of the squared hinge loss: -2 y max(0, 1 - z)."""
    slack: float = np.maximum(1.0 - y * margin, 0.0)
    return -2.0 * y * slack
