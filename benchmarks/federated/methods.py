"""The methods of the federated benchmark: both protocols, Frank-Wolfe on pooled data, and no privacy.

All private ones are add-remove, calibrated by the library's accountant, and find their bounds within the budget unless
the problem declares them. What is sent is counted on the wire format: the length of all replies of a party, the largest
of the parties being reported.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any
from unittest import mock

import numpy as np
from sklearn.base import clone

import tacit
from benchmarks.federated.problems import Problem
from benchmarks.frame.solvers import fitted, margins
from tacit.federated import (
    FeatureSharing,
    FederatedLasso,
    FederatedLinearSVC,
    FederatedLogisticRegression,
    Marginals,
    Sketching,
)
from tacit.federated.protocols.marginals import MarginalsProtocol
from tacit.privacy import Plan, Release
from tacit.solvers import FrankWolfe

DELTA = 1e-6
PARTIES = 4
REPETITIONS = 20  # of the paper
PLAIN = "not private"


@dataclass(frozen=True)
class Setting:
    """What a fit is run with."""

    epsilon: float = 1.0
    parties: int = PARTIES
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)  # of the method
    choosing: float | None = None  # the part of the budget for choosing columns, if not the protocol's own


Measured = tuple[dict[str, float], float]
"""Scores, and the seconds of the fit."""


def scores_of(problem: Problem, predictions: Any, **more: float) -> dict[str, float]:
    """Loss, relative excess loss, for classes the part of rows that are right; and what else there is to tell."""
    predicted = np.asarray(predictions, dtype=np.float64)
    loss = problem.value(predicted)
    found = {"loss": loss, "excess": loss - problem.optimum, "relative": problem.relative(loss)}
    if problem.loss != "squared":
        found["accuracy"] = float(np.mean((predicted > 0.0) == (problem.y > 0.0)))
    return found | more


@dataclass(frozen=True)
class Federated:
    """An estimator between parties."""

    label: str
    protocol: Marginals | FeatureSharing

    def measure(self, problem: Problem, setting: Setting) -> Measured:
        """One fit in this process, by the same bytes that would cross a network."""
        told = {
            "l1_radius": problem.radius,
            "protocol": clone(self.protocol),
            "entry_bound": problem.entry_bound,
            "fit_intercept": problem.intercept,
            "sketch": Sketching(),
            "random_state": setting.seed,
        }
        model: Any
        if problem.loss == "squared":
            model = FederatedLasso(setting.epsilon, DELTA, **told)
        else:
            kind = FederatedLogisticRegression if problem.loss == "logistic" else FederatedLinearSVC
            model = kind(setting.epsilon, DELTA, classes=[-1.0, 1.0], **told)
        model.set_params(**setting.options)
        if isinstance(self.protocol, FeatureSharing):
            model.set_params(protocol__seed=setting.seed, protocol__choosing=setting.choosing)
        parties = problem.parties(setting.parties)
        with choosing(setting.choosing if isinstance(self.protocol, Marginals) else None):
            took = fitted(model, parties)
        more = {"uplink": float(max(model.uplink_bytes_.values())), "rounds": float(model.n_rounds_)}
        if problem.loss == "squared":
            more["linear"] = problem.relative(problem.value(problem.A @ model.coef_ + model.intercept_))
        predicted = margins(model, [party.X for party in parties])
        return scores_of(problem, predicted, norm=float(np.abs(model.coef_).sum()), **more), took


@dataclass(frozen=True)
class Central:
    """Private Frank-Wolfe by somebody who holds all columns: what distribution costs is the distance to it.

    Its radius is in units of a third of the target's range, so that range is declared, three standard deviations of the
    target to each side, and the ball becomes the one that the others have.
    """

    label: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def measure(self, problem: Problem, setting: Setting) -> Measured:
        """One fit on the pooled data."""
        told: dict[str, Any] = {
            "solver": FrankWolfe(**{"entry_bound": problem.entry_bound, **self.options, **setting.options}),
            "l1_radius": problem.radius,
            "fit_intercept": problem.intercept,
            "random_state": setting.seed,
        }
        model: Any
        if problem.loss == "squared":
            unit = float(np.std(problem.y))
            told |= {"l1_radius": problem.radius / unit, "y_bounds": (-3.0 * unit, 3.0 * unit)}
            model = tacit.Lasso(setting.epsilon, DELTA, **told)
        else:
            kind = tacit.LogisticRegression if problem.loss == "logistic" else tacit.LinearSVC
            model = kind(setting.epsilon, DELTA, classes=[-1.0, 1.0], **told)
        rows = problem.A.tocsr()
        took = fitted(model, rows, problem.y)
        return scores_of(problem, margins(model, rows), norm=float(np.abs(model.coef_).sum())), took


def plain(problem: Problem) -> dict[str, float]:
    """The optimum, which is what excess is counted from."""
    return scores_of(problem, problem.A @ problem.best[:-1] + problem.best[-1], zero=problem.at_zero)


MARGINALS, CENTRAL, SHORT = "marginals", "central", "central short"
SHORT_COUNT = 16
PRODUCT, SERIAL, BEST = "product", "serial", "best"
SHARING = (PRODUCT, SERIAL, BEST)
METHODS: dict[str, Federated | Central] = {
    MARGINALS: Federated("marginals", Marginals()),
    **{geometry: Federated(f"feature-sharing, {geometry}", FeatureSharing(geometry=geometry)) for geometry in SHARING},
    CENTRAL: Central("central DP Frank-Wolfe, by its rules"),
    SHORT: Central(f"central DP Frank-Wolfe, {SHORT_COUNT} iterations", {"n_iter": SHORT_COUNT}),
}
"""By the names that records have."""
LABELS = {name: method.label for name, method in METHODS.items()}
LABELS |= {"marginals, cross": "marginals, cross moments sketched", "central, given": "central DP Frank-Wolfe"}


CHOOSING, DESCRIBING = ("columns",), ("correlations", "moments", "cross")


def split_plan(plan: Plan, choosing: float) -> Plan:
    """The plan of marginals with this part of what a party spends on its columns for choosing them, the rest for
    describing them.
    """
    spent: dict[tuple[str, bool], float] = defaultdict(float)  # by party, and whether it is for choosing
    for release in plan.releases:
        party, name = release.name.split("/")
        if name in CHOOSING + DESCRIBING:
            spent[party, name in CHOOSING] += release.share or 0.0

    def changed(release: Release) -> Release:
        party, name = release.name.split("/")
        first, second = spent[party, True], spent[party, False]
        if name not in CHOOSING + DESCRIBING or not first or not second:
            return release
        own, part = (first, choosing) if name in CHOOSING else (second, 1.0 - choosing)
        return replace(release, share=(release.share or 0.0) / own * (first + second) * part)

    return Plan(*map(changed, plan.releases))


@contextmanager
def choosing(part: float | None) -> Iterator[None]:
    """Marginals with another split of the budget, if one is given: it has no option for it."""
    plan = MarginalsProtocol.plan
    with (
        nullcontext()
        if part is None
        else mock.patch.object(MarginalsProtocol, "plan", lambda self: split_plan(plan(self), part))
    ):
        yield
