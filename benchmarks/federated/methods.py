"""The methods of the federated benchmark: both protocols, Frank-Wolfe on pooled data, and no privacy.

All private ones are add-remove, calibrated by the library's accountant, and find their bounds within the budget unless
the problem declares them. What is sent is counted on the wire format: the length of all replies of a party, the largest
of the parties being reported.
"""

import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone

import tacit
from benchmarks.federated.problems import Problem
from tacit.federated import FeatureSharing, FederatedLasso, FederatedLogisticRegression, Marginals, Sketching
from tacit.federated.protocols.feature_sharing import FeatureSharingProtocol
from tacit.federated.protocols.marginals import MarginalsProtocol
from tacit.privacy import Plan
from tacit.solvers import FrankWolfe

DELTA = 1e-6
PARTIES = 4
PLAIN = "not private"


@dataclass(frozen=True)
class Setting:
    """What a fit is run with."""

    epsilon: float = 1.0
    parties: int = PARTIES
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)  # of the method


Measured = tuple[dict[str, list[float]], float]
"""Scores, and the seconds of the fit."""


def scores_of(problem: Problem, predictions: Any, **more: float) -> dict[str, list[float]]:
    """Loss, relative excess loss, for classes the part of rows that are right; and what else there is to tell."""
    predicted = np.asarray(predictions, dtype=np.float64)
    loss = problem.value(predicted)
    found = {"loss": loss, "excess": loss - problem.optimum, "relative": problem.relative(loss)}
    if problem.loss == "logistic":
        found["accuracy"] = float(np.mean((predicted > 0.0) == (problem.y > 0.0)))
    return {key: [value] for key, value in (found | more).items()}


def _fitted(model: Any, *data: Any) -> float:
    """Fit without the warnings that a benchmark knows of: its seed, and few rows. Returns the seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        model.fit(*data)
        return time.perf_counter() - start


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
            model = FederatedLogisticRegression(setting.epsilon, DELTA, classes=[-1.0, 1.0], **told)
        model.set_params(**setting.options)
        parties = problem.parties(setting.parties)
        took = _fitted(model, parties)
        blocks = [party.X for party in parties]
        margins = model.predict(blocks) if problem.loss == "squared" else model.decision_function(blocks)
        sent = max(model.uplink_bytes_.values())
        more = {"uplink": float(sent), "rounds": float(model.n_rounds_), "norm": float(np.abs(model.coef_).sum())}
        if problem.loss == "squared":
            more["linear"] = problem.relative(problem.value(problem.A @ model.coef_ + model.intercept_))
        return scores_of(problem, margins, **more), took


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
            model = tacit.LogisticRegression(setting.epsilon, DELTA, classes=[-1.0, 1.0], **told)
        rows = problem.A.tocsr()
        took = _fitted(model, rows, problem.y)
        margins = model.predict(rows) if problem.loss == "squared" else model.decision_function(rows)
        return scores_of(problem, margins, norm=float(np.abs(model.coef_).sum())), took


def plain(problem: Problem) -> dict[str, list[float]]:
    """The optimum, which is what excess is counted from."""
    scores = scores_of(problem, problem.A @ problem.best[:-1] + problem.best[-1])
    return scores | {"zero": [problem.at_zero]}


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


CHOOSING = ("index", "value", "columns")  # releases by which a column is chosen; "value": geometry "best"
DESCRIBING = ("column", "correlations", "moments", "cross")  # and those of what the coordinator learns of it


def split_plan(plan: Plan, choosing: float) -> Plan:
    """The plan with this part of what a party spends on its columns for choosing them, the rest for describing them."""
    shares: dict[str, dict[str, float]] = {}
    for release in plan.releases:
        party, name = release.name.split("/")
        kind = "choosing" if name in CHOOSING else "describing" if name in DESCRIBING else "other"
        of = shares.setdefault(party, {"choosing": 0.0, "describing": 0.0, "other": 0.0})
        of[kind] += release.share or 0.0
    changed = []
    for release in plan.releases:
        party, name = release.name.split("/")
        of = shares[party]
        whole = of["choosing"] + of["describing"]
        if name in CHOOSING and of["describing"]:
            release = replace(release, share=(release.share or 0.0) / of["choosing"] * whole * choosing)
        elif name in DESCRIBING and of["choosing"]:
            release = replace(release, share=(release.share or 0.0) / of["describing"] * whole * (1.0 - choosing))
        changed.append(release)
    return Plan(*changed)


@contextmanager
def index_share(part: float) -> Iterator[None]:
    """Both protocols with another split of the budget."""
    kept = {protocol: protocol.plan for protocol in (FeatureSharingProtocol, MarginalsProtocol)}
    for protocol, plan in kept.items():
        protocol.plan = lambda self, plan=plan: split_plan(plan(self), part)  # type: ignore[method-assign]
    try:
        yield
    finally:
        for protocol, plan in kept.items():
            protocol.plan = plan  # type: ignore[method-assign]
