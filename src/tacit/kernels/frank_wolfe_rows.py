"""What a row adds to the whole gradient of Frank-Wolfe: its slope times its entry, both clipped."""

from tacit.problems.compiled import kernel

MOST_UNITS = 2**43  # that a row may add to a score: a block of dense rows then adds up exactly in float64


@kernel
def clipped(number: float, bound: float) -> float:
    """A slope or an entry, within [-bound, bound]."""
    return min(max(number, -bound), bound)
