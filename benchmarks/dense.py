"""Test scores of the dense default on real data, next to scikit-learn without privacy.

    python benchmarks/dense.py --data ../shared/data [--seeds 5] [--out benchmarks/results/dense.md]

The folder holds the sets with their reader, `load.py`. Splits are 75/25 (stratified for classes), one for each seed,
with fresh noise; delta = n^-1.5; nothing is declared and nothing is tuned. Times are of fits in this run, in turns.
"""

import argparse
import importlib.util
import platform
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.linear_model import LinearRegression as PlainLinearRegression
from sklearn.linear_model import LogisticRegression as PlainLogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tacit import LinearRegression, LogisticRegression

EPSILONS = (0.1, 1.0, 10.0)
SETS = {
    "adult": "accuracy",
    "elec2": "accuracy",
    "phishing": "accuracy",
    "california_housing": "R2",
    "msd_subset_year": "R2",
}


def reader(folder: Path) -> Any:
    """The `load` function of the data folder."""
    spec = importlib.util.spec_from_file_location("tacit_benchmark_data", folder / "load.py")
    if spec is None or spec.loader is None:
        raise SystemExit(f"no load.py in {folder}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.load


def timed(model: Any, X: Any, y: Any) -> tuple[Any, float]:
    """The fitted model, and the seconds it took."""
    start = time.perf_counter()
    model.fit(X, y)
    return model, time.perf_counter() - start


def measure(X: Any, y: Any, kind: str, seeds: int) -> dict[str, list[tuple[float, float]]]:
    """(score, seconds) of each model for each seed."""
    rows: dict[str, list[tuple[float, float]]] = {}
    for seed in range(seeds):
        stratify = y if kind == "accuracy" else None
        X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=seed, stratify=stratify)
        plain = PlainLogisticRegression(max_iter=300) if kind == "accuracy" else PlainLinearRegression()
        models = {"not private": make_pipeline(StandardScaler(), plain)}
        private = LogisticRegression if kind == "accuracy" else LinearRegression
        models |= {f"{epsilon:g}": private(epsilon=epsilon) for epsilon in EPSILONS}
        for name, model in models.items():
            fitted, seconds = timed(model, X_train, y_train)
            rows.setdefault(name, []).append((fitted.score(X_test, y_test), seconds))
    return rows


def main() -> None:
    """Measure, print, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the sets and their load.py")
    parser.add_argument("--seeds", type=int, default=5, help="splits, each with fresh noise (default: %(default)s)")
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS), help="which sets (default: all)")
    parser.add_argument("--out", type=Path, help="also write the table to this file")
    arguments = parser.parse_args()
    load = reader(arguments.data)
    names = ["not private", *(f"{epsilon:g}" for epsilon in EPSILONS)]
    lines = [
        "# The dense default on real data",
        "",
        f"`python benchmarks/dense.py --seeds {arguments.seeds}`, Python {platform.python_version()},"
        f" scikit-learn {sklearn.__version__}.",
        "Mean and standard deviation over the seeds of the test score; seconds of a fit in brackets.",
        "",
        "| data | score | " + " | ".join(["not private", *(f"epsilon {epsilon:g}" for epsilon in EPSILONS)]) + " |",
        "|---|---|" + "---|" * len(names),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in arguments.sets:
            X, y = load(name)
            rows = measure(X, y, SETS[name], arguments.seeds)
            cells = []
            for model in names:
                scores, seconds = np.array(rows[model]).T
                cells.append(f"{scores.mean():.3f} ± {scores.std():.3f} [{np.median(seconds):.2f}]")
            lines.append(f"| {name} | {SETS[name]} | " + " | ".join(cells) + " |")
            print(lines[-1], flush=True)
    text = "\n".join(lines) + "\n"
    if arguments.out:
        arguments.out.write_text(text)


if __name__ == "__main__":
    main()
