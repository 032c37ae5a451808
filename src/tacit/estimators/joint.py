"""One plan for several private steps, and one run of it.

What holds: everything is planned before the first release, by public numbers; the steps then make their releases
through parts of one gate.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from sklearn.base import clone

from tacit.blocks.lazy import BlockTable, rows_in
from tacit.estimators.rowstage import RowStage
from tacit.estimators.stage import Facts, Stage
from tacit.estimators.stages import DEFAULT_SHARES, PRIVATE, EncoderStage, staged
from tacit.privacy import Budget, Gate, Plan, Promise, Release, Unit, checks
from tacit.privacy.path import promised, useful

_OWNED = ("epsilon", "delta", "adjacency", "random_state")


class Terms(NamedTuple):
    """The budget of all steps together, and the parts of some of them."""

    epsilon: float
    delta: float | None
    adjacency: str
    shares: Mapping[str, float]

    def share(self, name: str, step: Any) -> float:
        """The part of a private step that is not the last."""
        if name in self.shares:
            return checks.open_unit(f"shares[{name!r}]", self.shares[name])
        return DEFAULT_SHARES[type(step)]

    def set_on(self, step: Any) -> Any:
        """A copy of a private step, with this budget."""
        return clone(step).set_params(epsilon=self.epsilon, delta=self.delta, adjacency=self.adjacency)


def planned_jointly(steps: Sequence[tuple[str, Any]], X: Any, y: Any, terms: Terms) -> tuple[list[Stage], Promise]:
    """Every step from the first private one on, and every release; what is bad raises here, before any of them."""
    n = rows_in(X)
    budget = Budget.for_rows(n, *terms[:3], stacklevel=5)  # type: ignore[arg-type]
    useful(budget)
    in_parts = isinstance(X, BlockTable)
    facts, left = Facts(n, -1, X, X, in_parts=in_parts), 1.0
    stages: list[Stage] = []
    releases: list[Release] = []
    last = [name for name, step in steps if type(step) in PRIVATE][-1]
    for name, step in steps:
        if type(step) not in PRIVATE:
            stages.append(RowStage(name, step, facts))
            facts = stages[-1].out
            continue
        share = left if name == last else terms.share(name, step)
        stage = staged(name, terms.set_on(step), facts, y, _part(budget, share))
        left -= 0.0 if name == last or not stage.releases else share
        if left <= 0.0:
            raise ValueError("shares must leave something for the last private step: they add up to 1 or more")
        releases += _named(name, stage.releases, share)
        stages.append(stage)
        facts = replace(stage.out, in_parts=in_parts)
    if not releases:
        raise ValueError("no step releases anything: a pipeline needs a private model, or categories to find")
    solver = ", ".join(stage.solver for stage in stages if stage.releases)
    values = max(stage.values for stage in stages)
    return stages, promised(Plan(*releases), budget, Unit("row", n), solver, values)


def run_jointly(stages: Sequence[Stage], X: Any, gate: Gate) -> None:
    """All releases, step by step; after an encoder, the steps that follow are fitted to the table that came out."""
    for place, stage in enumerate(stages):
        stage.run(X, gate.part(f"{stage.name}/") if stage.releases else gate)
        if isinstance(stage, EncoderStage):
            chain = _chain(stages[place + 1 :], stage.made)
            if not all(later.follows(facts) for later, facts in chain):
                stage.fill()
                chain = _chain(stages[place + 1 :], stage.out)
            for later, facts in chain:
                later.follow(facts)
        if stage is not stages[-1]:
            X = stage.handed_on(X)


def _chain(stages: Sequence[Stage], facts: Facts) -> list[tuple[Stage, Facts]]:
    """The steps whose table has as many columns as came out, each with what it will see."""
    chain = []
    for stage in stages:
        chain.append((stage, facts))
        facts = stage.after(facts)
    return chain


def _named(name: str, releases: Sequence[Release], share: float) -> list[Release]:
    """The releases of a step, under its name, with shares that add up to the step's."""
    total = math.fsum(release.share for release in releases if release.share is not None)
    return [
        replace(r, name=f"{name}/{r.name}", share=None if r.share is None else r.share / total * share)
        for r in releases
    ]


def _part(budget: Budget, share: float) -> Budget:
    """A part of mu^2, as a budget of its own: what the rules of a step go by."""
    if not budget.is_private or share >= 1.0:
        return budget
    return Budget.from_mu(budget.mu * math.sqrt(share), budget.delta, budget.adjacency)


def check_terms(name: str, step: Any) -> None:
    """Refuse a step whose own budget was set: it would not be used."""
    default = type(step)()
    for parameter in _OWNED:
        if getattr(step, parameter) != getattr(default, parameter):
            raise ValueError(
                f"step {name!r} has {parameter}={getattr(step, parameter)!r}, which a pipeline does not use: set it on"
                " the pipeline, and shares= for the parts"
            )
