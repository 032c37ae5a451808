"""`tacit calibrate`: from epsilon to noise and back. No data is read.

Ways to ask:

- `--epsilon` (or `--mu`) with `--rows` and `--columns`: every release that such a fit would make, with its noise;
- `--epsilon` alone: the noise of `--count` Gaussian releases, each on a `--sampling` part of the rows;
- `--noise-multiplier`, or `--mu`, alone: the epsilon that this noise gives;
- `--recompute FILE`: the epsilon of a stored guarantee, whichever solver it is of.
"""

import json
import math
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dp_accounting import DpEvent

from tacit.estimators.fit import planned
from tacit.privacy import (
    Budget,
    Guarantee,
    Plan,
    Release,
    Unit,
    UnsupportedEventError,
    checks,
    epsilon_of,
    events,
    mu_of,
)
from tacit.privacy.calibration import calibrate
from tacit.problems import LOGISTIC, LOSSES, MULTINOMIAL, SQUARED
from tacit.problems.task import LinearTask
from tacit.solvers import choose, is_table


def run(arguments: Namespace) -> int:
    """Answer, as text or as JSON."""
    answer = _answer(arguments)
    print(json.dumps(answer.to_dict(), indent=2, allow_nan=False) if arguments.json else answer)
    return 0


@dataclass(frozen=True)
class Answer:
    """Releases with their noise, and what they cost together; `asked` is the epsilon that they were to meet."""

    event: DpEvent
    delta: float
    releases: tuple[tuple[Release, float], ...] = ()
    asked: float | None = None
    fit: str = ""
    d0: float = 0.0  # of delta, beside the event

    @property
    def epsilon(self) -> float:
        """What the accountant says of the event alone."""
        return epsilon_of(self.event, self.delta - self.d0)

    @property
    def mu(self) -> float | None:
        """The same as Gaussian DP; None if not all releases are Gaussian, or a part of delta lies beside them."""
        try:
            return None if self.d0 > 0.0 else mu_of(self.event)
        except UnsupportedEventError:
            return None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; infinity is "inf"."""
        total = sum(release.share or 0.0 for release, _ in self.releases)
        rows = [
            {
                "name": release.name,
                "kind": release.kind,
                "share": None if release.share is None else release.share / total,
                "count": release.count,
                "sampling": release.sampling,
                "noise_multiplier": multiplier,
            }
            for release, multiplier in self.releases
        ]
        return {
            "asked_epsilon": _plain(self.asked),
            "epsilon": _plain(self.epsilon),
            "delta": self.delta,
            "mu": _plain(self.mu),
            "releases": rows,
            "event": events.to_dict(self.event),
        }

    def __str__(self) -> str:
        lines = [self.fit] if self.fit else []
        if self.releases:
            lines += _lines(self.to_dict()["releases"])
        lines.append(events.describe(self.event))
        told = "" if self.asked is None else f"   (asked for {self.asked:g})"
        lines.append(f"epsilon  {self.epsilon:.6g} at delta {self.delta:.3g}, by the accountant{told}")
        if self.mu is not None:
            lines.append(f"mu       {self.mu:.6g}, exact (Gaussian DP)")
        return "\n".join(lines)


def _answer(arguments: Namespace) -> Answer:
    ways = ("epsilon", "mu", "noise_multiplier", "recompute")
    asked = [way for way in ways if getattr(arguments, way) is not None]
    if len(asked) != 1:
        raise ValueError("give exactly one of --epsilon, --mu, --noise-multiplier and --recompute")
    if asked == ["recompute"]:
        return _recomputed(arguments.recompute, arguments.delta)
    delta = _delta(arguments)
    if asked == ["noise_multiplier"]:
        return _of_noise(arguments, delta)
    if asked == ["mu"]:
        mu = checks.positive("mu", arguments.mu)
        if arguments.columns is None:
            return Answer(events.gaussian(1.0 / mu), delta)
        budget = Budget.from_mu(mu, delta, arguments.adjacency)
    else:
        budget = Budget(arguments.epsilon, delta, arguments.adjacency)
    if arguments.columns is not None:
        return _of_fit(arguments, budget)
    [(count, sampling)] = _times(arguments, 1)
    plan = Plan(Release("gaussian", "gaussian", share=1.0, count=count, sampling=sampling))
    return _of_plan(plan, budget, calibrate(plan, budget))


def _of_plan(plan: Plan, budget: Budget, multipliers: tuple[float, ...], fit: str = "") -> Answer:
    releases = tuple(zip(plan.releases, multipliers, strict=True))
    return Answer(plan.event(multipliers), budget.delta, releases, budget.epsilon, fit)


def _of_fit(arguments: Namespace, budget: Budget) -> Answer:
    """The releases that find scales included."""
    if arguments.rows is None:
        raise ValueError("a fit needs --rows as well as --columns")
    loss = LOSSES[checks.one_of("loss", arguments.loss, tuple(LOSSES))]
    classes = checks.count("classes", arguments.classes, least=2)
    if classes > 2 and loss == LOGISTIC:
        loss = MULTINOMIAL
    n, d = checks.count("rows", arguments.rows, least=2), checks.count("columns", arguments.columns)
    task = LinearTask(
        unit=Unit("row", n),
        d=d,
        budget=budget,
        sparse=arguments.sparse and not is_table(n, d, arguments.solver, arguments.row_norm),
        row_norm=arguments.row_norm,
        loss=loss,
        outputs=classes if classes > 2 and loss != SQUARED else 1,
        fit_intercept=not arguments.no_intercept,
        y_bounds=tuple(arguments.y_bounds) if arguments.y_bounds else None,
    )
    solver = choose(arguments.solver, task)
    promise = planned(task, solver).promise
    told = f"{solver.name} solver, {loss.words} loss, {task.n:,} rows, {task.d:,} columns, {budget.adjacency}"
    return _of_plan(promise.plan, budget, promise.multipliers, told)


def _of_noise(arguments: Namespace, delta: float) -> Answer:
    """Gaussian releases with the multipliers given, each as often and on such a part of the rows as told."""
    multipliers = [checks.positive("noise-multiplier", value) for value in arguments.noise_multiplier]
    releases = tuple(
        (Release(f"release {place}", "gaussian", count=count, sampling=sampling, multiplier=z), z)
        for place, (z, (count, sampling)) in enumerate(
            zip(multipliers, _times(arguments, len(multipliers)), strict=True), start=1
        )
    )
    if arguments.adjacency == "replace-one" and any(release.sampling < 1 for release, _ in releases):
        raise ValueError("sampled releases are accounted for --adjacency add-remove only")
    return Answer(events.composed(release.event(z) for release, z in releases), delta, releases)


def _times(arguments: Namespace, releases: int) -> list[tuple[int, float]]:
    """How often each release is made, and on which part of the rows: one number for all, or one for each."""
    counts, samplings = arguments.count or [1], arguments.sampling or [1.0]
    for name, values in (("--count", counts), ("--sampling", samplings)):
        if len(values) not in (1, releases):
            raise ValueError(f"{name} takes one number, or one for each of {releases} releases, got {len(values)}")
    return [(counts[k % len(counts)], samplings[k % len(samplings)]) for k in range(releases)]


def _recomputed(path: Path, delta: float | None) -> Answer:
    try:
        guarantee = Guarantee.from_json(path.read_text(encoding="utf8"))
    except ValueError as error:
        raise ValueError(f"{path} holds no guarantee: {error}") from None
    at = guarantee.delta if delta is None else checks.open_unit("delta", delta)
    if at <= guarantee.d0:
        raise ValueError(f"--delta must be above {guarantee.d0!r}, which the thresholded counts take; got {at!r}")
    asked = guarantee.epsilon if delta is None else None
    return Answer(guarantee.event, at, asked=asked, fit=str(guarantee), d0=guarantee.d0)


def _delta(arguments: Namespace) -> float:
    if arguments.delta is not None:
        return checks.open_unit("delta", arguments.delta)
    if arguments.rows is None:
        raise ValueError("give --delta, or --rows for the default of rows^-1.5")
    return float(checks.count("rows", arguments.rows, least=2) ** -1.5)


def _lines(rows: list[dict[str, Any]]) -> list[str]:
    """A table in plain text."""
    width = max(len("release"), *(len(row["name"]) for row in rows))
    lines = [f"{'release':<{width}}  {'kind':<11}  {'part':>6}  {'times':>7}  {'sampling':>8}  noise multiplier"]
    for row in rows:
        part = "fixed" if row["share"] is None else f"{row['share']:.1%}"
        lines.append(
            f"{row['name']:<{width}}  {row['kind']:<11}  {part:>6}  {row['count']:>7,}  {row['sampling']:>8.4g}"
            f"  {row['noise_multiplier']:.6g}"
        )
    return lines


def _plain(value: float | None) -> float | str | None:
    return "inf" if value is not None and math.isinf(value) else value
