"""More than two classes between three organisations: next to one table; and what slopes would add, without noise.

    python -m benchmarks.federated.classes [--seeds 3]

Writes benchmarks/results/federated_classes.md.
"""

import argparse
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

import tacit
from benchmarks.frame import Floats, sets
from tacit.federated import FederatedLogisticRegression, Marginals, Party
from tacit.federated.protocols import moments
from tacit.problems import softmax

EPSILON, DELTA, PARTIES, TESTED = 1.0, 1e-6, 3, 10_000
SETS = {"mnist": 100.0, "normal classes": 200.0}  # with the l1 radius of each class
PARTS = (0.36, 0.49, 0.06, 0.005, 0.015, 0.03, 0.04)  # of the classes that are made: a few have most rows
WITH_SLOPES = ("mnist", "digits", "normal classes")
PAGE = Path(__file__).parents[1] / "results" / "federated_classes.md"
_NODES, _STEPS, _FURTHEST, _SMALL, _ROWS = 64, 3, 1.0, 1e-3, 20_000

Scores = tuple[float, float]


def data(name: str, seed: int = 0) -> tuple[Floats, Floats]:
    """Columns from 0 to 1, or made ones of size 1, and classes."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return X / 16.0, y
    if name == "normal classes":
        rng = np.random.default_rng([seed, 41])
        y = rng.choice(len(PARTS), 110_000, p=PARTS)
        means = 0.2 * np.random.default_rng(41).standard_normal((len(PARTS), 54))
        mixed = np.eye(54) + 0.1 * np.random.default_rng(42).standard_normal((54, 54))
        return (means[y] + rng.standard_normal((len(y), 54)) @ mixed) / 5.0, y
    X, y = sets.paper_set(name)
    pixels = np.asarray(X, dtype=np.float64).reshape(len(X), 14, 2, 14, 2)  # squares of four are averaged
    return pixels.mean(axis=(2, 4)).reshape(len(X), -1) / max(1.0, float(pixels.max())), np.asarray(y).astype(int)


def judged(chances: Floats, classes: Floats, truth: Floats) -> Scores:
    """Accuracy and log-loss."""
    return float(np.mean(classes[chances.argmax(axis=1)] == truth)), float(log_loss(truth, chances, labels=classes))


def between(held: bool, epsilon: float, radius: float, X: Floats, y: Floats, seed: int) -> Any:
    """A model of three blocks of neighbouring columns."""
    how: dict[str, Any] = {"labels": "held", "protocol": Marginals(products="masked")} if held else {}
    parties = [Party(X_k, y if k == 1 or not held else None) for k, X_k in enumerate(blocks(X))]
    model = FederatedLogisticRegression(
        epsilon, DELTA, l1_radius=radius, entry_bound=1.0, classes=range(y.max() + 1), random_state=seed, **how
    )
    return model.fit(parties)


def blocks(X: Floats) -> list[Floats]:
    """Columns in their order, to each party as many."""
    return np.array_split(X, PARTIES, axis=1)


def ways(name: str, seed: int) -> Iterator[tuple[str, Scores]]:
    """Each way, with its accuracy and loss on other rows."""
    train, test, y, truth = train_test_split(*data(name, seed), test_size=TESTED, random_state=seed)
    classes = np.arange(y.max() + 1)
    even = np.broadcast_to(np.bincount(y) / len(y), (len(truth), len(classes)))
    yield "the same chances for all", judged(even, classes, truth)
    best = LogisticRegression(C=10.0, max_iter=50).fit(train, y)
    yield "one table, not private", judged(best.predict_proba(test), classes, truth)
    bounds = (-1.0, 1.0) if name == "normal classes" else (0.0, 1.0)
    central = tacit.LogisticRegression(EPSILON, DELTA, bounds=bounds, random_state=seed, classes=classes)
    yield "one table", judged(central.fit(train, y).predict_proba(test), classes, truth)
    for held, epsilon in ((True, np.inf), (True, EPSILON), (False, EPSILON)):
        model = between(held, epsilon, SETS[name], train, y, seed)
        way = "masked" if held else "local, labels shared"
        yield (
            way + ("" if np.isfinite(epsilon) else ", no noise"),
            judged(model.predict_proba(blocks(test)), classes, truth),
        )


def table(seeds: int) -> list[str]:
    """Means over seeds of split and noise, and standard errors."""
    found: dict[str, dict[str, list[Scores]]] = {name: defaultdict(list) for name in SETS}
    for name, scores in found.items():
        for seed in range(seeds):
            for way, score in ways(name, seed):
                scores[way].append(score)
    names = list(next(iter(found.values())))
    lines = [f"| {way} | {' | '.join(shown(found[name][way]) for name in SETS)} |" for way in names]
    head = [f"{name}, radius {radius:g}" for name, radius in SETS.items()]
    return [f"| accuracy / log-loss | {' | '.join(head)} |", "|---|" + "---|" * len(SETS), *lines]


def shown(scores: list[Scores]) -> str:
    """Means and standard errors of both."""
    means, errors = np.mean(scores, axis=0), np.std(scores, axis=0, ddof=1) / np.sqrt(len(scores))
    return " / ".join(f"{mean:.3f} ± {error:.3f}" for mean, error in zip(means, errors, strict=True))


# Slopes, without noise.


def expected(centres: Floats, covariance: Floats) -> Floats:
    """The chances of classes on average over normal margins with these means, rows, and one covariance."""
    half = np.random.default_rng(0).standard_normal((_NODES // 2, len(covariance)))
    nodes = np.concatenate([half, -half])
    nodes = np.linalg.solve(np.linalg.cholesky(nodes.T @ nodes / _NODES), nodes.T).T
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.mean([softmax(centres + root @ node) for node in nodes], axis=0)


def slopes(Z: Floats, W: Floats, b: Floats, covariance: Floats) -> tuple[Floats, Floats]:
    """What the parties' slopes would say: products of columns with chances, given their own columns; and chances."""
    places, gradient, level = np.arange(Z.shape[1]), np.zeros_like(W), np.zeros_like(b)
    for own in np.array_split(places, PARTIES):
        others = np.setdiff1d(places, own)
        common = covariance[np.ix_(own, others)] @ W[others]
        regressed = np.linalg.lstsq(covariance[np.ix_(own, own)], common, rcond=1e-10)[0]
        left = W[others].T @ covariance[np.ix_(others, others)] @ W[others] - regressed.T @ common
        chances = expected(Z[:, own] @ (W[own] + regressed) + b, left)
        gradient[own] = Z[:, own].T @ chances / len(Z)
        level += chances.mean(axis=0) / PARTIES
    return gradient, level


def steps(name: str) -> Iterator[tuple[str, list[Scores]]]:
    """From both starts, scores on other rows: there, after each step of slopes, and after as many exact gradients.

    Steps are Newton's with the second derivatives at zero weights, which go less far than those where the model is.
    """
    X, test, y, truth = train_test_split(*data(name), train_size=0.75, random_state=0)
    X, y = X[:_ROWS], y[:_ROWS]
    mean, parts = X.mean(axis=0), np.bincount(y) / len(y)
    Z, classes = X - mean, np.arange(len(parts))
    covariance, target = Z.T @ Z / len(Z), Z.T @ (np.eye(len(parts))[y] - parts) / len(Z)
    covariance = moments.repaired(covariance, 1e-6 * float(np.trace(covariance)))
    inverse = np.linalg.pinv(np.diag(parts) - np.outer(parts, parts), rcond=_SMALL)
    model = between(True, np.inf, SETS.get(name, 100.0), X, y, 0)
    starts = {
        "normal within classes": (model.coef_.T, model.intercept_ + model.coef_ @ mean),
        "one step from zero": (np.linalg.solve(covariance, target) @ inverse, np.log(parts)),
    }
    for start, given in starts.items():
        found: list[Scores] = []
        for exact in (False, True):
            (W, b), scores = given, []
            for _ in range(_STEPS + 1):
                scores.append(judged(softmax((test - mean) @ W + b), classes, truth))
                chances = softmax(Z @ W + b)
                told = (Z.T @ chances / len(Z), chances.mean(axis=0)) if exact else slopes(Z, W, b, covariance)
                b = b - np.clip(inverse @ (told[1] - parts), -_FURTHEST, _FURTHEST)
                W = W - np.linalg.solve(covariance, told[0] - target) @ inverse
            found += scores[-1:] if exact else scores
        yield start, found


def with_slopes() -> list[str]:
    """Scores without noise, of moments and of steps of slopes."""
    lines = []
    for name in WITH_SLOPES:
        for start, found in steps(name):
            told = " | ".join(f"{accuracy:.3f} / {loss:.3f}" for accuracy, loss in found)
            lines.append(f"| {name} | {start} | {told} |")
    after = " | ".join(f"after {k} of slopes" for k in range(1, _STEPS + 1))
    head = f"| accuracy / log-loss, no noise | start | there | {after} | after {_STEPS} exact gradients |"
    return [head, "|---|" + "---|" * (_STEPS + 3), *lines]


def page(seeds: int) -> str:
    """All of it."""
    return "\n".join(
        [
            "# More than two classes between organisations",
            "",
            f"`python -m benchmarks.federated.classes`. {PARTIES} parties with blocks of neighbouring columns; epsilon"
            f" = {EPSILON:g}, delta = {DELTA:g}, add-remove. Accuracy / log-loss on {TESTED:,} other rows, mean ±"
            f" standard error over {seeds} seeds of split and noise. mnist has 60,000 rows and 14 x 14 pixels, each the"
            " mean of four. `normal classes` are made, with columns that are normal within classes: 100,000 rows, 54"
            f" columns, {len(PARTS)} classes with parts from {min(PARTS):.1%} to {max(PARTS):.0%}. One table is"
            ' `tacit.LogisticRegression` with the same budget; masked has the labels at the second party. "no noise"'
            " is what the moments say by themselves.",
            "",
            *table(seeds),
            "",
            "Slopes, which take the logistic loss of two classes further than moments do, are left out for more; they"
            f" would take half of the budget. Below, without any noise and on at most {_ROWS:,} rows: where the library"
            " ends; one step from zero, where two classes begin; and steps of slopes from both, in which a party's own"
            " columns are as they are, and only what they do not tell of the others' margins is taken as normal.",
            "",
            *with_slopes(),
            "",
        ]
    )


def main() -> None:
    """Measure, and write the page."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seeds", type=int, default=3)
    arguments.add_argument("--out", type=Path, default=PAGE)
    told = arguments.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        told.out.write_text(page(told.seeds), encoding="utf8")
    print(told.out.read_text(encoding="utf8"))


if __name__ == "__main__":
    main()
