"""Black-box audits: what the outputs of a mechanism prove about its privacy, whatever its author claims.

A mechanism is run many times on two neighbouring inputs. Half of the runs choose one event (a score, a
threshold, a side); the other half only count how often each world hits it. Clopper-Pearson limits on the two
rates give a lower bound on epsilon, or on mu for a mechanism that is claimed to be Gaussian (mu-GDP).

What holds: if every call draws fresh, independent noise, a returned bound exceeds the truth with probability
at most 1 - confidence, for any mechanism, pair of neighbours and score. The event is fixed before the runs
that count are looked at, so nothing else needs a correction. The bounds on epsilon and on mu hold at this
confidence each, not jointly. They are finite: n runs a world cannot show an epsilon above about log(n/8).

What does not: silence proves nothing. A bound of 0 can mean privacy, too few runs, inputs that are not the
worst pair, or a leak where the learned scores do not look. They see shifts, changes of spread and values that
repeat, but not, for example, the low bits of a float; give a `score` to look there.
"""

import math
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri

from tacit._types import Floats
from tacit.privacy import checks

Array = NDArray[Any]
Mechanism = Callable[[Any], Any]
Score = Callable[[Array], Floats]
_Bound = Callable[[Floats, Floats], Floats]  # (P(S) at least, Q(S) at most) -> lower bound

_MIN_TRIALS = 20  # perfect separation then shows mu >= 1
_BY_IDENTITY: tuple[Any, ...] = (None, object.__hash__)


@dataclass(frozen=True, eq=False)
class Outputs:
    """Outputs on two neighbouring inputs, one row a run; which of the two is `present` does not matter.

    Real arrays become (trials, d). Lone integers, strings and other categories stay (trials,).
    """

    present: Array
    absent: Array

    def __post_init__(self) -> None:
        shape, other = np.shape(self.present), np.shape(self.absent)
        if shape != other or not shape:
            raise ValueError(f"present and absent must be arrays of one shape, got {shape} and {other}")
        trials = checks.count("trials", shape[0], least=_MIN_TRIALS)
        rows = _as_rows(np.concatenate((self.present, self.absent)))
        object.__setattr__(self, "present", rows[:trials])
        object.__setattr__(self, "absent", rows[trials:])


@dataclass(frozen=True)
class AuditResult:
    """Lower bounds on what a mechanism gives away; each holds at `confidence`, the two not jointly."""

    epsilon: float
    mu: float
    delta: float
    confidence: float
    trials: int

    def __str__(self) -> str:
        epsilon, mu = (math.floor(1000 * bound) / 1000 for bound in (self.epsilon, self.mu))  # never up
        return (
            f"with {100 * self.confidence:g}% confidence epsilon >= {epsilon:g} at delta = {self.delta:g} "
            f"and mu >= {mu:g} if Gaussian, from 2 x {self.trials:,} runs"
        )

    def contradicts(self, claimed_epsilon: float | None = None, claimed_mu: float | None = None) -> bool:
        """Whether a bound exceeds a claim: an epsilon at this `delta`, or the mu of a Gaussian mechanism."""
        if claimed_epsilon is None and claimed_mu is None:
            raise ValueError("claimed_epsilon and claimed_mu are both None: give at least one of them")
        claims = (("claimed_epsilon", claimed_epsilon, self.epsilon), ("claimed_mu", claimed_mu, self.mu))
        return any(claim is not None and bound > checks.real(name, claim) for name, claim, bound in claims)


def run(mechanism: Mechanism, data: Any, neighbour: Any, trials: int, *, n_jobs: int | None = None) -> Outputs:
    """Call `mechanism(data)` and `mechanism(neighbour)` `trials` times each, in turns.

    At least 20 times: half are held out, and fewer than ten show next to nothing, however large the leak.
    The mechanism must draw fresh noise in every call and leave its input as it was. It returns a real array
    of one shape, a number, a string or another hashable value. Exceptions propagate; one that comes in one
    world only is a leak, counted if the mechanism catches it and returns a value that stands for it.

    `n_jobs` spreads the runs over processes with joblib. A generator that the mechanism holds is then copied
    with its state into each, so make it inside the call; blocks of runs that repeat each other are refused.
    """
    trials = checks.count("trials", trials, least=_MIN_TRIALS)
    if n_jobs is None:
        return Outputs(*_alternate(mechanism, data, neighbour, trials))
    from joblib import Parallel, delayed, effective_n_jobs

    blocks = max(1, min(effective_n_jobs(n_jobs), trials // _MIN_TRIALS))
    sizes = [trials // blocks + (block < trials % blocks) for block in range(blocks)]
    done = Parallel(n_jobs=n_jobs)(delayed(_alternate)(mechanism, data, neighbour, size) for size in sizes)
    outputs = Outputs(*(np.concatenate(world) for world in zip(*done, strict=True)))
    first, *others = (outputs.present[start : start + sizes[-1]] for start in np.cumsum([0, *sizes[:-1]]))
    changes = np.sum(first[1:] != first[:-1])  # with a few of them a repetition is no coincidence
    if changes >= 5 and any(np.array_equal(first, other) for other in others):
        raise ValueError("mechanism repeats its noise in every process: make its generator inside the call")
    return outputs


def epsilon_lower_bound(
    outputs: Outputs, delta: float, *, confidence: float = 0.95, score: Score | None = None
) -> float:
    """Lower bound on the epsilon of any mechanism: log((P(S) - delta) / Q(S)) for a well chosen event S.

    It exceeds the truth with probability at most `1 - confidence`. `delta` lies in [0, 1), `confidence` in
    (0, 1). A `score` maps the outputs of one world to one number a run, each from its own row alone, and
    replaces the learned scores; threshold and side are still chosen on the first half of the runs.
    """
    delta = _check_delta(delta)
    return _lower_bound(outputs, lambda p, q: np.log(np.maximum(p - delta, 1e-300) / q), confidence, score)


def mu_lower_bound(outputs: Outputs, *, confidence: float = 0.95, score: Score | None = None) -> float:
    """Lower bound on the mu of a mu-GDP mechanism: Phi^-1(power) - Phi^-1(false positive rate) of one test.

    It can refute a claim of mu-GDP for any mechanism, but measures something only for Gaussian ones.
    Confidence and `score` are those of `epsilon_lower_bound`.
    """
    return _lower_bound(outputs, lambda p, q: np.asarray(ndtri(p) - ndtri(q)), confidence, score)


def audit(
    mechanism: Mechanism,
    data: Any,
    neighbour: Any,
    delta: float,
    trials: int = 2_000,
    *,
    confidence: float = 0.95,
    n_jobs: int | None = None,
    score: Score | None = None,
) -> AuditResult:
    """Run a mechanism on two neighbouring inputs and bound its epsilon and its mu from below.

    Parameters are those of `run` and `epsilon_lower_bound`. The two bounds hold at `confidence` each, not
    jointly: decide which one tests the claim before looking.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.privacy import audit
    >>> rng = np.random.default_rng(0)
    >>> result = audit.audit(lambda total: total + rng.normal(), 0.0, 2.0, delta=1e-5)
    >>> result.contradicts(claimed_mu=2.0), result.contradicts(claimed_mu=1.0)
    (False, True)
    """
    delta, confidence = _check_delta(delta), checks.open_unit("confidence", confidence)
    outputs = run(mechanism, data, neighbour, trials, n_jobs=n_jobs)
    epsilon = epsilon_lower_bound(outputs, delta, confidence=confidence, score=score)
    mu = mu_lower_bound(outputs, confidence=confidence, score=score)
    return AuditResult(epsilon, mu, delta, confidence, len(outputs.present))


def _lower_bound(outputs: Outputs, bound: _Bound, confidence: float, score: Score | None) -> float:
    """Choose one event, {score > threshold} or its complement, on half of the runs; count it on the rest."""
    level = (1 - checks.open_unit("confidence", confidence)) / 2  # a union bound over the two rates
    worlds = outputs.present, outputs.absent
    half = len(outputs.present) // 2
    n = len(outputs.present) - half
    learn = half // 2 if score is None else 0  # learned on one quarter, compared without flattery on the next
    lesson = outputs.present[:learn], outputs.absent[:learn]
    scores = _atom_scores(*lesson) + _numeric_scores(*lesson) if score is None else [score]
    choices = [_choose([_apply(s, world[learn:half]) for world in worlds], bound, n, level) for s in scores]
    if not choices:
        return 0.0
    (_, threshold, order), chosen = max(zip(choices, scores, strict=True), key=lambda pair: pair[0])
    above = np.array([np.sum(_apply(chosen, world[half:]) > threshold) for world in worlds])
    p_hit, q_missed = (_rates_at_least(counts, n, level)[order] for counts in _orders(above, n))
    return max(0.0, float(bound(p_hit, 1 - q_missed)))


def _choose(scores: list[Floats], bound: _Bound, n: int, level: float) -> tuple[float, float, int]:
    """The largest bound that n further runs a world promise, with its threshold and order of worlds."""
    thresholds, m = np.unique(scores), len(scores[0])
    above = np.array([m - np.searchsorted(np.sort(world), thresholds, side="right") for world in scores])
    # The limit to expect of n runs when k of m hit, a standard error (16%) off: else the noisiest event wins.
    low = _rates_at_least(n * _rates_at_least(np.arange(m + 1), m, 0.16), n, level)
    hits, misses = _orders(above, m)
    promises = bound(low[hits], 1 - low[misses])
    order, top = divmod(int(np.argmax(promises)), len(thresholds))
    return float(promises[order, top]), float(thresholds[top]), order


def _orders(above: Array, n: int) -> tuple[Array, Array]:
    """Hits of P and misses of Q in four orders: either world as P, the event above the threshold or not."""
    hits = np.concatenate((above, n - above))
    return hits, n - hits[[1, 0, 3, 2]]


def _rates_at_least(hits: Array, n: int, level: float) -> Floats:
    """One-sided Clopper-Pearson limits: each exceeds the true rate with probability at most `level`."""
    some = np.maximum(hits, 0.1)  # stands in for 0, whose limit is 0
    return np.where(hits > 0, betaincinv(some, n - some + 1, level), 0.0)


def _apply(score: Score, world: Array) -> Floats:
    values = np.asarray(score(world), dtype=np.float64)
    if values.shape != (len(world),) or np.isnan(values).any():
        raise ValueError(f"score must return shape ({len(world)},) without NaN, got shape {values.shape}")
    return values


def _atom_scores(present: Array, absent: Array) -> list[Score]:
    """Scores of exact values, summed over columns: log likelihood ratio, and seen in one world alone."""
    tables: dict[int, dict[Any, tuple[float, float]]] = {}
    for column, pair in enumerate(zip(_columns(present), _columns(absent), strict=True)):
        p, q = map(Counter, pair)
        seen = p.keys() | q.keys()
        if len(seen) < 2 * len(present):  # some repeat
            tables[column] = {v: (math.log((p[v] + 0.5) / (q[v] + 0.5)), (v in p) - (v in q)) for v in seen}

    def look_up(kind: int, world: Array) -> Floats:
        columns = _columns(world)
        found = [[table.get(v, (0, 0))[kind] for v in columns[column]] for column, table in tables.items()]
        return np.asarray(np.sum(found, axis=0))

    return [lambda world: look_up(0, world), lambda world: look_up(1, world)] if tables else []


def _columns(world: Array) -> list[list[Any]]:
    """Columns of hashable values; floats as bits, so that NaN equals itself and -0.0 differs from 0.0."""
    exact = world.view(np.int64) if world.dtype == np.float64 else world
    return [column.tolist() for column in exact.reshape(len(world), -1).T]


def _numeric_scores(present: Array, absent: Array) -> list[Score]:
    """Scores along the Fisher direction, away from the median, and a quadratic one for changes of spread."""
    if present.dtype == object:
        return []
    low, centre, high = np.quantile(_as_float(np.concatenate((present, absent))), (0.1, 0.5, 0.9), axis=0)
    width = np.where(high - low > 1e-200, high - low, 1.0)

    def scaled(world: Array) -> Floats:
        return np.asarray(np.clip((_as_float(world) - centre) / width, -30, 30))

    p, q = scaled(present), scaled(absent)
    p_mean, q_mean = p.mean(axis=0), q.mean(axis=0)
    p_weight, q_weight = (1 / (world.var(axis=0) + 1e-6) for world in (p, q))
    direction = p_mean - q_mean if p.shape[1] > 1 else np.ones(1)
    if 1 < p.shape[1] <= 500:  # beyond, correlations cost too much
        from sklearn.covariance import ledoit_wolf  # here because it is slow to import

        # The total covariance leads the same way as the covariance within the worlds, and is never 0.
        direction = np.linalg.lstsq(ledoit_wolf(np.concatenate((p, q)))[0], direction, rcond=None)[0]
    return [
        lambda world: scaled(world) @ direction,
        lambda world: np.abs(scaled(world) @ direction),
        lambda world: (scaled(world) - q_mean) ** 2 @ q_weight - (scaled(world) - p_mean) ** 2 @ p_weight,
    ]


def _as_float(world: Array) -> Floats:
    """Finite columns; NaN and infinity are left to the scores of exact values."""
    values = world.reshape(len(world), -1).astype(np.float64)
    return np.clip(np.nan_to_num(values, posinf=0.0, neginf=0.0), -1e100, 1e100)


def _alternate(mechanism: Mechanism, data: Any, neighbour: Any, trials: int) -> tuple[Array, Array]:
    # Copies, because a mechanism may hand out the same buffer every time.
    pairs = [(copy(mechanism(data)), copy(mechanism(neighbour))) for _ in range(trials)]
    present, absent = (np.fromiter(world, dtype=object, count=trials) for world in zip(*pairs, strict=True))
    return present, absent


def _as_rows(values: Array) -> Array:
    if values.dtype == object:
        with suppress(ValueError):  # several shapes
            dense = np.asarray(values.tolist())
            values = dense if dense.dtype.kind in "biuf" else values
    if values.dtype.kind == "f":
        return np.ascontiguousarray(values.reshape(len(values), -1), dtype=np.float64)
    if values.dtype.kind in "biu":
        return values.reshape(len(values), -1) if values.ndim > 1 else values
    values = values.astype(object)
    # What hashes by identity looks new in every run: the audit would be blind, and not say so.
    if values.ndim > 1 or any(v is not None and type(v).__hash__ in _BY_IDENTITY for v in values):
        raise TypeError("outputs must be numbers, real arrays of one shape, or values that hash by content")
    return values


def _check_delta(delta: float) -> float:
    if checks.closed_unit("delta", delta) == 1:
        raise ValueError("delta must lie in [0, 1), got 1: every mechanism is private at delta = 1")
    return float(delta)
