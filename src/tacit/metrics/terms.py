"""`Terms`: what every private score is asked to cost. One place documents them for all metrics."""

from typing import NamedTuple, Required, TypedDict

from tacit.privacy import checks


class Terms(TypedDict, total=False):
    """The keyword arguments that every metric and `evaluate` take: `accuracy_score(y, p, epsilon=1.0, delta=1e-6)`.

    Parameters
    ----------
    epsilon : float
        Privacy budget of the call, for all of its scores together. It must be given. `float("inf")` adds no noise, and
        the scores are then not private.
    delta : float, default=None
        The probability with which the promise of epsilon may fail. None: `n ** -1.5` for n rows.
    adjacency : {"add-remove", "replace-one"}, default="add-remove"
        What one person may change: whether their row is there, or what it holds.
    mechanism : {"auto", "laplace", "gaussian"}, default="auto"
        The law of the noise. "auto" takes the one with less noise at this budget. Choose "gaussian" where many scores
        will be composed: its cost adds up more slowly.
    random_state : int, default=None
        None draws fresh cryptographic noise. An integer makes the scores reproducible, and everyone who knows the
        integer can remove the noise.
    """

    epsilon: Required[float]
    delta: float | None
    adjacency: str
    mechanism: str
    random_state: int | None


class Agreed(NamedTuple):
    """The terms of a call in full: what was given, and the defaults."""

    epsilon: float
    delta: float | None = None
    adjacency: str = "add-remove"
    mechanism: str = "auto"
    random_state: int | None = None

    @classmethod
    def to(cls, terms: Terms) -> "Agreed":
        """Check the names as Python checks keyword arguments, and that epsilon is above zero."""
        for name in terms:
            if name not in cls._fields:
                raise TypeError(
                    f"unexpected keyword argument {name!r}: the terms of a score are {', '.join(cls._fields)};"
                    " in evaluate, a metric's own parameters go to its object, as in metrics=(RocAuc(bins=50),)"
                )
        if "epsilon" not in terms:
            raise TypeError("missing required keyword argument 'epsilon': the privacy budget")
        checks.positive("epsilon", terms["epsilon"], finite=False)
        return cls(**terms)
