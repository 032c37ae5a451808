"""The demo: private and non-private models on real data, score against epsilon, a plot and a page."""

import html
import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.linear_model import LinearRegression as PlainLinearRegression
from sklearn.linear_model import LogisticRegression as PlainLogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tacit.estimators import LinearRegression, LogisticRegression
from tacit.privacy import Guarantee

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0, math.inf)


@dataclass(frozen=True)
class Example:
    """One dataset, the private model and the one people would fit without privacy."""

    name: str
    score: str
    load: Callable[..., Any]
    private: Callable[[float], Any]
    plain: Callable[[], Any]


EXAMPLES = (
    Example(
        "breast cancer, malignant or benign",
        "accuracy",
        load_breast_cancer,
        lambda epsilon: LogisticRegression(epsilon=epsilon),
        lambda: make_pipeline(StandardScaler(), PlainLogisticRegression()),
    ),
    Example(
        "handwritten digits, ten classes",
        "accuracy",
        load_digits,
        lambda epsilon: LogisticRegression(epsilon=epsilon, classes=range(10)),
        lambda: make_pipeline(StandardScaler(), PlainLogisticRegression(max_iter=1000)),
    ),
    Example(
        "diabetes progression, y between 0 and 400",
        "R2",
        load_diabetes,
        lambda epsilon: LinearRegression(epsilon=epsilon, y_bounds=(0.0, 400.0)),
        lambda: make_pipeline(StandardScaler(), PlainLinearRegression()),
    ),
)


@dataclass(frozen=True)
class Result:
    """Test scores of one dataset: one for each epsilon, and without privacy."""

    example: Example
    rows: int
    plain: float
    scores: tuple[float, ...]
    guarantees: tuple[Guarantee, ...]


def run(folder: Path, epsilons: Iterable[float] = EPSILONS, repeats: int = 3) -> list[Result]:
    """Fit, print, and write `index.html` into the folder, with a plot in `accuracy.png` where matplotlib is there."""
    epsilons = tuple(epsilons)
    results = [_measure(example, epsilons, repeats) for example in EXAMPLES]
    for result in results:
        print(_text(result, epsilons))
    folder.mkdir(parents=True, exist_ok=True)
    page, plot = folder / "index.html", folder / "accuracy.png"
    plotted = _plot(results, epsilons, plot)
    page.write_text(_page(results, epsilons, plot.name if plotted else None), encoding="utf8")
    print(f"Wrote {plot} and {page}." if plotted else f"Wrote {page}. {_NO_PLOT}")
    return results


def _measure(example: Example, epsilons: tuple[float, ...], repeats: int) -> Result:
    """The mean test score over fresh noise; the split is fixed."""
    X, y = example.load(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=0)
    plain = example.plain().fit(X_train, y_train).score(X_test, y_test)
    scores, guarantees = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # small data at epsilon = 0.1 warns of lost columns; the score shows it
        for epsilon in epsilons:
            models = [example.private(epsilon).fit(X_train, y_train) for _ in range(repeats)]
            scores.append(float(np.mean([model.score(X_test, y_test) for model in models])))
            guarantees.append(models[-1].guarantee_)
    return Result(example, len(X_train), float(plain), tuple(scores), tuple(guarantees))


def _text(result: Result, epsilons: tuple[float, ...]) -> str:
    lines = [f"{result.example.name}: {result.rows:,} rows, test {result.example.score}"]
    lines.append(f"  not private          {result.plain:6.3f}   scikit-learn")
    for epsilon, score, guarantee in zip(epsilons, result.scores, result.guarantees, strict=True):
        lines.append(f"  epsilon = {epsilon:<10g} {score:6.3f}   {guarantee}")
    return "\n".join(lines) + "\n"


def _plot(results: list[Result], epsilons: tuple[float, ...], path: Path) -> bool:
    """Draw score against epsilon; False without matplotlib, which is an extra."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return False
    finite = [i for i, epsilon in enumerate(epsilons) if math.isfinite(epsilon)]
    figure = Figure(figsize=(4 * len(results), 3.4), layout="constrained")
    FigureCanvasAgg(figure)
    for place, result in enumerate(results):
        axes = figure.add_subplot(1, len(results), place + 1)
        axes.semilogx([epsilons[i] for i in finite], [result.scores[i] for i in finite], "o-", label="tacit")
        axes.axhline(result.plain, color="grey", linestyle="--", label="not private")
        axes.set_title(result.example.name, fontsize=9)
        axes.set_xlabel("epsilon")
        axes.set_ylabel(f"test {result.example.score}")
        axes.set_ylim(min(0.0, *result.scores), 1.02)
        axes.legend(loc="lower right", fontsize=8)
    figure.savefig(path, dpi=120)
    return True


def _page(results: list[Result], epsilons: tuple[float, ...], plot: str | None) -> str:
    """A page that needs nothing but the plot beside it, if there is one."""
    parts = []
    for result in results:
        score_name = html.escape(result.example.score)
        rows = "".join(
            f"<tr><td>{epsilon:g}</td><td>{score:.3f}</td><td>{html.escape(str(guarantee))}</td></tr>"
            for epsilon, score, guarantee in zip(epsilons, result.scores, result.guarantees, strict=True)
        )
        parts.append(
            f"<h2>{html.escape(result.example.name)}</h2>"
            f"<p>{result.rows:,} rows; without privacy: {result.plain:.3f} ({score_name}).</p>"
            f"<table><tr><th>epsilon</th><th>test {score_name}</th><th>guarantee</th></tr>{rows}</table>"
        )
    picture = "" if plot is None else _PICTURE.format(plot=html.escape(plot))
    return _FRAME.format(picture=picture, body="".join(parts))


_FRAME = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Tacit: score against epsilon</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #222; }}
table {{ border-collapse: collapse; }}
td, th {{ padding: .25rem .8rem; border-bottom: 1px solid #ddd; text-align: left; }}
img {{ max-width: 100%; }}
</style></head><body>
<h1>Score against epsilon</h1>
<p>Private models on data that ships with scikit-learn. Nothing was tuned; units were found inside each budget.</p>
{picture}{body}
</body></html>
"""
_PICTURE = '<img src="{plot}" alt="Test score against epsilon, one panel for each dataset">\n'
_NO_PLOT = "With matplotlib there would be a plot of these scores, too: pip install 'tacit[report]'."
