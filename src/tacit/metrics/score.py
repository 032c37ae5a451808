"""`Score`: what a private evaluation returns."""

import math
from dataclasses import dataclass

from tacit.privacy import Guarantee


@dataclass(frozen=True, repr=False)
class Score:
    """A released score. `float(score)` is its value.

    Attributes
    ----------
    metric : str
        What was measured, by the name that `evaluate` has for it.
    value : float
        The score; NaN where the noise hides it (`noise` is then infinite).
    noise : float
        The standard error that privacy adds, to first order, from released numbers. It leaves out the error that a
        finite test set has anyway, and what clipping and binning do.
    guarantee : Guarantee
        What the release gave away. Scores from one call of `evaluate` share one guarantee, which is paid once.

    Examples
    --------
    >>> from tacit.metrics import accuracy_score
    >>> score = accuracy_score([0, 1, 1, 0] * 500, [0, 1, 1, 1] * 500, epsilon=1.0)
    >>> abs(float(score) - 0.75) < 0.01
    True
    """

    metric: str
    value: float
    noise: float
    guarantee: Guarantee

    def __float__(self) -> float:
        return self.value

    def __format__(self, spec: str) -> str:
        return format(self.value, spec) if spec else str(self)

    def __str__(self) -> str:
        return f"{self.metric} {self._number()}; {self.guarantee}"

    def __repr__(self) -> str:
        return f"Score({self})"

    def _number(self) -> str:
        """Value and noise to the digits that the noise leaves."""
        if math.isnan(self.value):
            return "undefined: the noise hides it, or the rows do not define it"
        if self.noise == 0.0:
            return f"{self.value:.6g}, without noise"
        digits = min(max(1 - math.floor(math.log10(self.noise)), 0), 12)
        return f"{self.value:.{digits}f} ± {self.noise:.{digits}f} from noise"
