"""Hashes of everything that seeded fits give away, to compare two trees on one machine.

    python tools/fingerprints.py --write before.json      # on the old tree
    python tools/fingerprints.py --compare before.json    # on the new one: prints what moved, and exits with 1

A refactoring must keep them all. They hold the bits of this machine's libraries, so they are not kept in the
repository. After a change of kernels set NUMBA_CACHE_DIR to an empty folder: numba does not see that a function of
another file, which is compiled into a cached one, has changed.
"""

import argparse
import hashlib
import itertools
import json
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from threadpoolctl import threadpool_limits

import tacit
from tacit import metrics, preprocessing
from tacit.federated import FederatedLasso, FederatedLinearSVC, FederatedLogisticRegression, Party
from tacit.solvers import SOLVERS
from tacit.solvers.pca import PCA_SOLVERS

N, D = 160, 5
ADJACENCIES = "add-remove", "replace-one"
Run = Callable[[], Any]


def linear(name: str, solver: str = "auto", options: Mapping[str, Any] | None = None, **asked: Any) -> Any:
    """An estimator with options for its solver: the one place that knows how they are spelled."""
    options = dict(options or {})
    if "l1_radius" in options:
        asked |= {"l1_radius": options.pop("l1_radius")}
    chosen = SOLVERS[solver](**options) if options else solver
    return getattr(tacit, name)(solver=chosen, random_state=1, **asked)


def components(solver: str, options: Mapping[str, Any] | None = None, **asked: Any) -> Any:
    """The same for PCA."""
    return tacit.PCA(2, solver=PCA_SOLVERS[solver](**options) if options else solver, random_state=1, **asked)


# --- data ------------------------------------------------------------------------------------------------------------


def table(n: int = N, d: int = D, density: float = 0.8) -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) * np.resize([1.0, 8.0, 0.2], d) + np.resize([0.0, 3.0, -0.5], d)
    return X * (rng.random((n, d)) < density)


def targets(X: np.ndarray, kind: str) -> np.ndarray:
    noise = np.random.default_rng(1).normal(size=len(X))
    margins = (X - X.mean(axis=0)) @ np.resize([1.0, -0.1, 3.0], X.shape[1]) + noise
    if kind == "number":
        return 2.0 * margins + 1.0
    return np.digitize(margins, [-1.0, 1.0]) if kind == "classes" else margins > 0


# --- runs ------------------------------------------------------------------------------------------------------------

REGRESSORS = {
    "LinearRegression": {},
    "Ridge": {"alpha": 2.0},
    "Lasso": {"alpha": 0.1},
    "ElasticNet": {"alpha": 0.1, "l1_ratio": 0.3},
}
SERVED = {
    "LinearRegression": ("auto", "gradient", "statistics", "coordinate", "frank-wolfe", "sgd"),
    "Ridge": ("auto", "gradient", "statistics", "objective", "coordinate", "dual", "sgd"),
    "Lasso": ("auto", "coordinate", "greedy", "frank-wolfe", "sgd"),
    "ElasticNet": ("auto", "coordinate", "greedy", "sgd"),
    "LogisticRegression": (*("auto", "gradient", "one-shot", "objective", "coordinate", "dual", "frank-wolfe", "sgd"),),
    "LinearSVC": ("auto", "dual", "coordinate", "frank-wolfe", "sgd"),
}
ADD_REMOVE_ONLY = {"dual", "sgd"}
MULTICLASS = {"LogisticRegression": ("auto", "gradient", "dual", "sgd"), "LinearSVC": ("auto", "dual")}
ASKED = {"LogisticRegression": {"C": 0.7}, "LinearSVC": {"C": 0.7}, **REGRESSORS}
STEPS = {"dual": {"batch_size": 40, "n_passes": 4}, "sgd": {"batch_size": 40, "n_passes": 4}}
STEPS |= {"frank-wolfe": {"n_iter": 20, "l1_radius": 3.0}, "greedy": {"n_iter": 5}}
VARIANTS: list[tuple[str, str, dict[str, Any]]] = [
    ("Lasso", "coordinate", {"order": "cyclic", "averaging": "periodic"}),
    ("Lasso", "coordinate", {"clipping": "coordinate", "averaging": "last"}),
    ("Lasso", "coordinate", {"order": "random", "clipping": "coordinate", "averaging": 2, "n_passes": 5}),
    ("LogisticRegression", "coordinate", {"order": "cyclic", "clipping": "coordinate", "averaging": "tail"}),
    ("Ridge", "coordinate", {"smoothness": (1.0, 0.7, 0.2, 0.4, 2.0), "averaging": 3, "n_passes": 7, "clip": 0.4}),
    ("Lasso", "coordinate", {"step": 0.5, "n_passes": 3}),
    ("Lasso", "greedy", {"n_iter": 7, "clip": 0.8, "step": 0.7, "smoothness": (1.0, 0.7, 0.2, 0.4, 2.0)}),
    ("Ridge", "dual", {"variant": "published", "batch_size": 20, "n_passes": 3, "clip": 0.5}),
    ("LogisticRegression", "dual", {"variant": "sequential", "batch_size": 20, "n_passes": 2, "clip": 0.5}),
    ("LinearSVC", "dual", {"variant": "primal", "batch_size": 8, "n_passes": 3, "clip": 1e-3}),
    ("LogisticRegression", "dual", {"inner": "newton", "batch_size": 20, "n_passes": 3}),
    ("Ridge", "dual", {"batch_size": N, "n_passes": 20}),
    ("LogisticRegression", "dual", {}),
    ("LogisticRegression", "sgd", {}),
    ("LogisticRegression", "sgd", {"batch_size": N, "n_passes": 20}),
    ("LogisticRegression", "gradient", {"n_iter": 7}),
    ("Lasso", "frank-wolfe", {"l1_radius": 3.0}),
    ("Lasso", "frank-wolfe", {"l1_radius": 3.0, "n_iter": 30, "sampler": "two-level"}),
    ("Lasso", "frank-wolfe", {"l1_radius": 3.0, "n_iter": 30, "sampler": "gumbel", "entry_bound": 2.0}),
    ("LogisticRegression", "frank-wolfe", {"l1_radius": 3.0, "n_iter": 30, "averaging": "tail"}),
    ("LogisticRegression", "frank-wolfe", {"l1_radius": 3.0, "n_iter": 30, "step": 0.1, "clip": 0.5}),
]


def kind_of(name: str) -> str:
    return "number" if name in REGRESSORS else "label"


def linear_runs() -> Iterator[tuple[str, Run]]:
    X = table()
    for name, solvers in SERVED.items():
        y = targets(X, kind_of(name))
        for solver, adjacency, stored in itertools.product(solvers, ADJACENCIES, (X, csr_array(X))):
            if adjacency == "replace-one" and (solver in ADD_REMOVE_ONLY or (name, solver) == ("LinearSVC", "auto")):
                continue
            asked = ASKED[name] | {"adjacency": adjacency, "epsilon": 3.0}
            words = f"{name} {solver} {adjacency} {'sparse' if issparse(stored) else 'dense'}"
            yield words, fit(name, solver, STEPS.get(solver), asked, stored, y)
            asked |= {"row_norm": 20.0, "fit_intercept": False} | (
                {"y_bounds": (-20.0, 20.0)} if y.dtype != bool else {}
            )
            yield f"{words} declared", fit(name, solver, STEPS.get(solver), asked, stored, y)
            limit = ASKED[name] | {"adjacency": adjacency, "epsilon": float("inf"), "row_norm": 20.0}
            if solver not in ("auto", "one-shot") and adjacency == "add-remove":
                yield f"{words} inf", fit(name, solver, STEPS.get(solver), limit, stored, y)
    for name, solver, options in VARIANTS:
        for stored, adjacency in itertools.product((X, csr_array(X)), ADJACENCIES):
            if adjacency == "replace-one" and solver in ADD_REMOVE_ONLY:
                continue
            y = targets(X, kind_of(name))
            words = " ".join(f"{key}={value}" for key, value in options.items())
            words = f"{name} {solver} {words} {adjacency} {'sparse' if issparse(stored) else 'dense'}"
            yield words, fit(name, solver, options, ASKED[name] | {"adjacency": adjacency, "epsilon": 3.0}, stored, y)
    y = targets(X, "classes")
    for name, solvers in MULTICLASS.items():
        for solver, stored in itertools.product(solvers, (X, csr_array(X))):
            words = f"{name} {solver} classes {'sparse' if issparse(stored) else 'dense'}"
            yield words, fit(name, solver, STEPS.get(solver), ASKED[name] | {"epsilon": 3.0}, stored, y)
    y = targets(X, "label")
    hinge = {"loss": "hinge", "epsilon": 3.0}
    for solver in ("auto", "dual", "sgd"):
        yield f"LinearSVC {solver} hinge", fit("LinearSVC", solver, STEPS.get(solver), hinge, X, y)
    bounded = {"coef_bounds": (-0.2, 0.3), "epsilon": 3.0}
    for name in SERVED:
        y = targets(X, kind_of(name))
        yield f"{name} coef_bounds", fit(name, "coordinate", None, ASKED[name] | bounded, X, y)
    yield from wide_runs()


def wide_runs() -> Iterator[tuple[str, Run]]:
    """Forms for many columns: text, curvature by its diagonal, one scale for all."""
    X = csr_array(np.abs(table(120, 2_600, 0.02)))
    y = targets(X.toarray(), "label")
    for solver, adjacency in itertools.product(("auto", "text", "one-shot", "objective"), ADJACENCIES):
        for epsilon in (0.3, 30.0):
            asked = {"adjacency": adjacency, "epsilon": epsilon}
            yield f"wide text {solver} {adjacency} {epsilon}", fit("LogisticRegression", solver, None, asked, X, y)
    yield "wide dense gradient", fit("Ridge", "gradient", {"n_iter": 3}, {"epsilon": 3.0}, X.toarray(), y + 0.0)
    yield "wide sparse gradient", fit("Ridge", "gradient", {"n_iter": 3}, {"epsilon": 3.0}, X, y + 0.0)
    yield "wide frank-wolfe", fit("Lasso", "frank-wolfe", {"l1_radius": 5.0}, {"epsilon": 3.0}, X, y + 0.0)
    yield "wide frank-wolfe logistic", fit("LogisticRegression", "frank-wolfe", {"l1_radius": 5.0}, {}, X, y)
    yield "wide lasso", fit("Lasso", "auto", None, {"alpha": 0.01, "epsilon": 30.0}, X[:, :400].toarray(), y + 0.0)


def fit(name: str, solver: str, options: Any, asked: Any, X: Any, y: Any) -> Run:
    def run() -> Any:
        model = linear(name, solver, options, **asked).fit(X, y)
        return model, model.predict(X)

    return run


def pca_runs() -> Iterator[tuple[str, Run]]:
    X = table(300, 6)
    for solver, adjacency in itertools.product(("auto", "gauss", "power", "mod-sulq"), ADJACENCIES):
        for stored, center in ((X, True), (X, False), (csr_array(X), False)):
            words = f"PCA {solver} {adjacency} {'sparse' if issparse(stored) else 'dense'} center={center}"
            yield words, pca(solver, None, {"adjacency": adjacency, "center": center}, stored)
    for solver in ("stochastic", "variance-reduced"):
        for clip, center in itertools.product((None, 0.5) if solver == "stochastic" else (None,), (True, False)):
            options = {} if clip is None else {"clip": clip}
            yield f"PCA {solver} clip={clip} center={center}", pca(solver, options, {"center": center}, X)
        yield f"PCA {solver} sparse", pca(solver, None, {"center": False}, csr_array(X))
    declared = {"row_norm": 9.0, "center_norm": 4.0, "whiten": True}
    for solver in ("gauss", "power", "mod-sulq", "stochastic", "variance-reduced"):
        yield f"PCA {solver} declared", pca(solver, None, declared, X)
        yield f"PCA {solver} inf", pca(solver, None, {"epsilon": float("inf"), "row_norm": 9.0}, X)

    def blocks() -> Any:
        return components("gauss", epsilon=2.0).fit_blocks(lambda: iter([X[:100], X[100:130], X[130:]]))

    yield "PCA blocks", blocks


def pca(solver: str, options: Any, asked: Any, X: Any) -> Run:
    def run() -> Any:
        model = components(solver, options, **({"epsilon": 2.0} | asked)).fit(X)
        return model, model.transform(X)

    return run


def other_runs() -> Iterator[tuple[str, Run]]:
    X = table()
    y, label = targets(X, "number"), targets(X, "label")
    for adjacency in ADJACENCIES:
        terms: dict[str, Any] = {"epsilon": 1.0, "adjacency": adjacency, "random_state": 1}
        yield f"scaler {adjacency}", lambda t=terms: preprocessing.PrivateScaler(**t).fit(X)
        yield f"scaler declared {adjacency}", lambda t=terms: preprocessing.PrivateScaler(row_norm=20.0, **t).fit(X)
        yield f"mean {adjacency}", lambda t=terms: preprocessing.private_mean(X, 20.0, **t)
        grid = np.linspace(-5, 5, 50)
        yield f"quantile {adjacency}", lambda t=terms, g=grid: preprocessing.private_quantile(X[:, 0], 0.5, g, **t)
        for mechanism in ("auto", "laplace", "gaussian"):
            told = terms | {"mechanism": mechanism}
            words = f"{adjacency} {mechanism}"
            score = X[:, 0] / 10.0
            prob = 1.0 / (1.0 + np.exp(-score))
            yield f"accuracy {words}", lambda t=told, s=score: metrics.accuracy_score(label, s > 0, **t)
            yield f"log loss {words}", lambda t=told, p=prob: metrics.log_loss(label, p, **t)
            auc = {"score_bounds": (-1.0, 1.0)}
            yield f"roc auc {words}", lambda t=told | auc, s=score: metrics.roc_auc_score(label, s, **t)
            bounds = {"y_bounds": (-20.0, 20.0)}
            yield f"r2 {words}", lambda t=told | bounds: metrics.r2_score(y, X[:, 1], **t)
            yield f"squared error {words}", lambda t=told | bounds: metrics.mean_squared_error(y, X[:, 1], **t)
            yield f"evaluate {words}", lambda t=told: evaluated(X, label, t)
    yield from federated_runs(X, y, label)


def evaluated(X: Any, y: Any, terms: dict[str, Any]) -> Any:
    model = linear("LogisticRegression", epsilon=3.0).fit(X, y)
    asked = ("accuracy", "log_loss", metrics.RocAuc(score_bounds=(-3.0, 3.0)))
    return metrics.evaluate(model, X, y, metrics=asked, **terms)


def federated_runs(X: np.ndarray, y: np.ndarray, label: np.ndarray) -> Iterator[tuple[str, Run]]:
    """Seeded runs move with the study's digest, which is in every party's key; those without noise do not."""

    def parties(labels: np.ndarray) -> list[Party]:
        return [Party(X[:, :2], labels, name="a"), Party(X[:, 2:], labels, name="b")]

    for epsilon, protocol in itertools.product((5.0, float("inf")), ("marginals", "feature-sharing")):
        told = {"epsilon": epsilon, "protocol": protocol, "l1_radius": 3.0, "random_state": 1}
        words = f"{protocol} {epsilon}"
        yield f"federated lasso {words}", lambda t=told: FederatedLasso(**t).fit(parties(y))
        declared = told | {"entry_bound": 5.0, "y_bounds": (-20.0, 20.0)}
        yield f"federated lasso declared {words}", lambda t=declared: FederatedLasso(**t).fit(parties(y))
        yield f"federated logistic {words}", lambda t=told: FederatedLogisticRegression(**t).fit(parties(label))
        if protocol == "feature-sharing":
            yield f"federated svc {words}", lambda t=told: FederatedLinearSVC(**t).fit(parties(label))


# --- hashes ----------------------------------------------------------------------------------------------------------


def told(value: Any) -> Any:
    """What a run gives away, as plain values: fitted attributes, guarantees, scores."""
    if isinstance(value, np.ndarray):
        array = np.ascontiguousarray(value)
        return f"{array.dtype.kind}{array.shape}", hashlib.sha256(array.tobytes()).hexdigest()
    if issparse(value):
        return told(value.toarray())
    if isinstance(value, tuple | list):
        return [told(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): told(item) for key, item in value.items()}
    if hasattr(value, "get_params"):
        return {key: told(item) for key, item in sorted(vars(value).items()) if key.endswith("_") and key != "plan_"}
    if hasattr(value, "recompute"):  # a guarantee
        return value.epsilon, value.delta, value.adjacency, str(value.event)
    if hasattr(value, "__dataclass_fields__"):
        return {key: told(getattr(value, key)) for key in value.__dataclass_fields__}
    return repr(value)


def fingerprint(run: Run) -> str:
    """The hash of all that a run gives away; of the kind of its error, if it refuses."""
    try:
        result = told(run())
    except (ValueError, TypeError, RuntimeError) as error:
        return f"refused: {type(error).__name__}: {error}"[:90]
    return hashlib.sha256(json.dumps(result, sort_keys=True, default=repr).encode()).hexdigest()[:16]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", type=Path, help="where to keep the fingerprints of this tree")
    parser.add_argument("--compare", type=Path, help="fingerprints of another tree")
    parser.add_argument("--only", default="", help="runs whose name has this in it")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    runs = [*linear_runs(), *pca_runs(), *other_runs()]
    with threadpool_limits(1):
        found = {name: fingerprint(run) for name, run in runs if given.only in name}
    if len(found) < len([name for name, _ in runs if given.only in name]):
        raise RuntimeError("two runs have the same name")
    if given.write is not None:
        given.write.write_text(json.dumps(found, indent=1) + "\n", encoding="utf8")
    print(f"{len(found)} runs, {sum(value.startswith('refused') for value in found.values())} refused")
    if given.compare is None:
        return 0
    before = {k: v for k, v in json.loads(given.compare.read_text(encoding="utf8")).items() if given.only in k}
    moved = sorted(name for name in found.keys() | before.keys() if found.get(name) != before.get(name))
    for name in moved:
        print(f"moved: {name}: {before.get(name, 'not there')} -> {found.get(name, 'not there')}")
    return 1 if moved else 0


if __name__ == "__main__":
    sys.exit(main())
