"""The path of a private score: one plan for all that is asked, noise on sums over rows, scores read off the sums.

A query says how far one row can move its sums. It holds public numbers only. `released_scores` takes queries with
their exact sums, and is the only place that these sums go to.

**The law of the noise.** One score at (epsilon, delta) = (1, 1e-6) takes Laplace noise of standard deviation 1.4 times
its sensitivity, or Gaussian noise of 4.2. Gaussian noise composes better, and is the smaller from nine equal scores on.
"auto" calibrates both from public numbers, and keeps the smaller. Laplace noise is offered where the accountant is
quick and close: epsilon from 0.001 to 100, delta up to 0.01.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Protocol, get_args

import numpy as np
from numpy.typing import ArrayLike

from tacit._types import Floats
from tacit.blocks import Moves
from tacit.metrics.score import Score
from tacit.metrics.terms import Agreed
from tacit.privacy import Budget, Gate, Plan, Promise, Release, Unit, checks
from tacit.privacy.mechanisms import GaussianVector, LaplaceVector, Sensitivity
from tacit.privacy.path import promised

Law = Literal["laplace", "gaussian"]

_DEVIATION = {"gaussian": 1.0, "laplace": math.sqrt(2.0)}  # standard deviation over scale
_ORDER = {"gaussian": 2, "laplace": 1}  # of the norm that a sensitivity is in


class Reading(NamedTuple):
    """A value read off noisy sums, and the standard error that the noise gives it."""

    value: float
    noise: float


class BoundedSums(ABC):
    """A query: sums over rows of statistics that lie in [-1, 1], each with a public weight, and the scores they give.

    A row that is left out adds nothing. So a row moves the weighted sums by at most |weights|, and replacing it by
    twice that, or by less where `apart` derives it. `math.fsum` is right to the last bit, whatever the number of
    rows; the sensitivity has room for two roundings (`tacit.blocks.Moves`): one for the rows of a block, and one for
    the sums of all blocks.
    """

    name: str  # of the release
    n: int  # rows, a public number

    @abstractmethod
    def scores(self, sums: Floats, deviation: float) -> dict[str, Reading]:
        """What noisy sums say, the noise in each of them having this standard deviation."""

    @property
    def weights(self) -> tuple[float, ...]:
        """The largest that a row can add to each sum."""
        return (1.0,)

    @property
    def size(self) -> int:
        """One sum for each weight."""
        return len(self.weights)

    @property
    def bound(self) -> float:
        """A public bound on the absolute value of a sum: all rows at the limit."""
        return self.n * max(self.weights)

    def sensitivity(self, law: Law) -> Sensitivity:
        """How far one row can move all sums together, in the l1 norm for Laplace and in l2 for Gaussian noise."""
        return Moves(self.n, depth=2).weighted(self.norm(law), self.apart(law))

    def norm(self, law: Law) -> float:
        """The largest that a row can be."""
        return float(np.linalg.norm(self.weights, _ORDER[law]))

    def apart(self, law: Law) -> float:
        """The furthest that two rows can be apart."""
        return 2.0 * self.norm(law)

    def weighted(self, *statistics: Floats) -> Floats:
        """The weighted sums of one array of statistics for each weight; clipped here, whatever they hold."""
        pairs = zip(self.weights, statistics, strict=True)
        return np.array([math.fsum((np.clip(s, -1.0, 1.0) * w).tolist()) for w, s in pairs])

    def means(self, sums: Floats) -> Floats:
        """The mean of each statistic, from weighted sums or their deviations."""
        return np.asarray(sums / (self.n * np.array(self.weights)))


class Asked(NamedTuple):
    """A query with its exact sums, which are private, and its share of the budget."""

    query: BoundedSums
    sums: Floats
    share: float = 1.0


class Metric(Protocol):
    """What is measured, with its public parameters."""

    def asked(self, y_true: Any, y_pred: Any, epsilon: float, rows: int | None = None, /) -> Asked:
        """What to release of these rows, or what they add to it if they are some of `rows`.

        `epsilon` is the metric's part of the budget.
        """


def scored(y_true: ArrayLike, parts: Sequence[tuple[Metric, Any, float]], terms: Agreed) -> dict[str, Score]:
    """The scores of metrics, each with the predictions that it takes and its share of the budget.

    The public functions call it directly, so that warnings point to the line that called them.
    """
    whole = sum(share for _, _, share in parts)
    return released_scores(
        [
            metric.asked(y_true, predicted, terms.epsilon * share / whole)._replace(share=share)
            for metric, predicted, share in parts
        ],
        terms,
    )


def released_scores(questions: Sequence[Asked], terms: Agreed) -> dict[str, Score]:
    """All scores that are asked for, on the same rows, under one guarantee."""
    n = questions[0].query.n
    budget = Budget.for_rows(n, terms.epsilon, terms.delta, terms.adjacency, stacklevel=5)  # type: ignore[arg-type]
    promise, law = _promised(questions, budget, terms.mechanism)
    noisy = []
    with Gate.open(promise, seed=terms.random_state, stacklevel=5) as gate:
        for query, sums, _ in questions:
            mechanism = LaplaceVector if law == "laplace" else GaussianVector
            noisy.append(gate.release(query.name, mechanism(query.sensitivity(law), bound=query.bound), sums))
    guarantee, deviations = gate.guarantee, _deviations(questions, promise, law)
    return {
        metric: Score(metric, float(value), float(noise), guarantee)
        for (query, _, _), sums, deviation in zip(questions, noisy, deviations, strict=True)
        for metric, (value, noise) in query.scores(sums, deviation).items()
    }


def _promised(questions: Sequence[Asked], budget: Budget, mechanism: str) -> tuple[Promise, Law]:
    """The plan with its noise, under the law asked for or the one that gives less noise over all queries."""
    unit, size = Unit("row", questions[0].query.n), max(query.size for query, _, _ in questions)
    choices: list[tuple[Promise, Law]] = []
    for law in _laws(budget, mechanism):
        plan = Plan(*(Release(query.name, law, share=share) for query, _, share in questions))
        values = size**2 if law == "laplace" else size
        choices.append((promised(plan, budget, unit, "evaluation", values), law))
    if len(choices) > 1:
        choices.sort(key=lambda choice: sum(map(math.log, _deviations(questions, *choice))))
    return choices[0]


def _laws(budget: Budget, mechanism: str) -> list[Law]:
    """The laws that come into question."""
    checks.one_of("mechanism", mechanism, ("auto", *get_args(Law)))
    served = 1e-3 <= budget.epsilon <= 100.0 and budget.delta <= 0.01
    if mechanism == "auto":
        return ["laplace", "gaussian"] if served else ["gaussian"]
    if mechanism == "gaussian":
        return ["gaussian"]
    if budget.is_private and not served:
        raise ValueError(
            "mechanism='laplace' serves epsilon from 0.001 to 100 and delta up to 0.01,"
            f" got epsilon={budget.epsilon!r}, delta={budget.delta!r}; use 'gaussian'"
        )
    return ["laplace"]


def _deviations(questions: Sequence[Asked], promise: Promise, law: Law) -> list[float]:
    """The standard deviation of the noise in each query's sums."""
    unit, adjacency = _DEVIATION[law], promise.budget.adjacency
    return [
        unit * promise.multiplier(query.name) * query.sensitivity(law).under(adjacency) for query, _, _ in questions
    ]
