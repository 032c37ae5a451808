"""The report on one private model: what it guarantees, what the budget went to, what it learned, what is not covered.

It is made from released numbers and public parameters only, so it may be shown to whoever may see the model.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tacit._types import Floats
from tacit.estimators.base import dense
from tacit.report.components import components
from tacit.report.guarantee import check, in_words
from tacit.report.page import COLOURS, Part, escaped, interval, number, page, section, stacked_bar, swatch, table

Grade = Literal["voids", "told", "public", "outside"]

MOST_ROWS = 200  # coefficients shown of one class

_GRADES: dict[Grade, str] = {
    "voids": "Would void the guarantee, if it happened",
    "told": "Told outside the budget",
    "public": "Taken as public",
    "outside": "Outside what such a guarantee speaks of",
}


@dataclass(frozen=True)
class Remark:
    """Something the guarantee does not cover, and how grave that is."""

    grade: Grade
    text: str

    def __post_init__(self) -> None:
        if self.grade not in get_args(Grade):
            raise ValueError(f"grade must be one of {', '.join(get_args(Grade))}, got {self.grade!r}")


def write(path: str | Path, model: Any, **options: Any) -> None:
    """Write `model_report(model, **options)` to a file."""
    Path(path).write_text(model_report(model, **options), encoding="utf8")


def model_report(
    model: Any,
    *,
    names: Sequence[str] | None = None,
    target: str | None = None,
    note: str | None = None,
    remarks: Iterable[Remark] = (),
) -> str:
    """The report as one HTML file that opens offline.

    Parameters
    ----------
    model : fitted estimator of Tacit
        `LogisticRegression`, `LinearRegression` or another linear model, or a `PCA`.
    names : sequence of str, optional
        The names of the features; by default `feature_names_in_`, or their numbers.
    target : str, optional
        What is predicted, for the title.
    note : str, optional
        How to read the coefficients of a linear model, where there is something to say.
    remarks : iterable of Remark, optional
        What happened around the fit that the guarantee does not cover; the model's own remarks are added.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from tacit import LogisticRegression
    >>> from tacit.report.model import model_report
    >>> model = LogisticRegression(epsilon=1.0, classes=[0, 1]).fit(*load_breast_cancer(return_X_y=True))
    >>> "had any one row been left out" in model_report(model)
    True
    """
    check_is_fitted(model)
    labels = _names(model, names)
    kind = type(model).__name__
    title = f"Private {kind}" + (f" of {target}" if target else "")
    body = (
        f"<header><h1>{escaped(title)}</h1>"
        f'<p class="soft">{escaped(model.guarantee_)}</p></header>\n'
        + section("guarantee", "What is guaranteed", in_words(model.guarantee_))
        + section("budget", "What the budget went to", _budget(model.plan_))
        + section(*_learned(model, labels, note))
        + section("not-covered", "What is not covered", _not_covered([*remarks, *_own_remarks(model)]))
        + section("check", "Check it yourself", check(model.guarantee_))
    )
    return page(title, body)


def _learned(model: Any, names: list[str], note: str | None) -> tuple[str, str, str]:
    """The section on what the fit found: of a PCA its components, else coefficients."""
    heading = "What was learned, and how noisy it is"
    if hasattr(model, "components_"):
        return "components", heading, components(model)
    return "coefficients", heading, _coefficients(model, names, note)


def _names(model: Any, names: Sequence[str] | None) -> list[str]:
    if names is None:
        names = getattr(model, "feature_names_in_", [f"column {j}" for j in range(model.n_features_in_)])
    if len(names) != model.n_features_in_:
        raise ValueError(f"names must hold {model.n_features_in_} names, one for each feature, got {len(names)}")
    return [str(name) for name in names]


# --- the budget ------------------------------------------------------------------------------------------------------


def _budget(calibrated: Any) -> str:
    releases = calibrated.plan.releases
    shares = [release.share for release in releases if release.share is not None]
    parts, rows = [], []
    for place, release in enumerate(releases):
        colour = COLOURS[place % len(COLOURS)]
        part = "fixed"
        if release.share is not None:
            parts.append(Part(release.name, release.share, colour))
            part = f"{release.share / sum(shares):.1%}"
        multiplier = calibrated.multiplier(release.name)
        rows.append(
            [
                swatch(colour) + escaped(release.name),
                part,
                f"{release.count:,}",
                release.kind,
                "all" if release.sampling == 1 else f"{release.sampling:.3g} of them, by chance",
                "none" if multiplier == 0 else number(multiplier),
            ]
        )
    told = "; ".join(f"{part.name} {part.share / sum(shares):.1%}" for part in parts)
    picture = stacked_bar(parts, f"Parts of the budget: {told}") if parts else ""
    head = ("release", "part", "times", "noise", "rows", "noise / sensitivity")
    caption = (
        "Every release was fixed before the data was read. The last column is the standard deviation of the noise over"
        " the most that one row can change the released sum (Laplace: its scale; exponential: one over the range by"
        " which one row moves the log-weights)."
    )
    return (
        "<p>Parts of the privacy budget, in the currency that adds up (mu<sup>2</sup> between Gaussian releases).</p>\n"
        + picture
        + table(head, rows, caption)
    )


# --- coefficients ----------------------------------------------------------------------------------------------------


def _coefficients(model: Any, names: list[str], note: str | None) -> str:
    coef = np.atleast_2d(dense(model.coef_))
    noise = np.atleast_2d(model.coef_noise_)
    intercepts = np.atleast_1d(model.intercept_)
    bounded = bool(np.all(np.isfinite(model.clip_low_) & np.isfinite(model.clip_high_)))
    span = model.clip_high_ - model.clip_low_ if bounded else np.ones(len(names))
    largest = float(np.max(np.abs(coef) * span + 2 * noise * span, initial=0.0))
    text = [
        "<p>Coefficients are in the units of the data. The noise level is the standard deviation that the privacy noise"
        " alone gives a coefficient, to first order; sampling error, clipping and the penalty come on top. A"
        " coefficient within two noise levels of zero could be noise alone, and is marked.</p>\n"
    ]
    if bounded:
        text.append(
            "<p>Each column is clipped to the range shown, in the fit and in predictions. The picture shows what the"
            f" {_output(model)} changes by from one end of that range to the other, with two noise levels to each side;"
            " all pictures share one axis, with zero in the middle.</p>\n"
        )
    else:
        text.append(
            "<p>The picture shows each coefficient with two noise levels to each side; all share one axis, with zero in"
            " the middle.</p>\n"
        )
    if getattr(model, "y_bounds_", None) is not None:
        low, high = model.y_bounds_
        text.append(f"<p>The target was clipped to [{number(low)}, {number(high)}].</p>\n")
    if note is not None:
        text.append(f"<p>{escaped(note)}</p>\n")
    for output, (row, level) in enumerate(zip(coef, noise, strict=True)):
        order = _shown(row, level)
        cells = [
            _coefficient_row(names[j], row[j], level[j], span[j], largest, _range(model, j) if bounded else None)
            for j in order
        ]
        cells.append(["intercept", number(intercepts[output]), *[""] * (len(cells[0]) - 2)])
        axis = f"{'change over the range' if bounded else 'coefficient'}, {number(-largest)} to {number(largest)}"
        head = ["column", "coefficient", "noise level", axis, ""]
        faint = int(np.sum(np.abs(row) <= 2 * level)) if np.any(level > 0) else 0
        caption = f"{faint:,} of {len(row):,} coefficients are within two noise levels of zero."
        if len(order) < len(row):
            caption += f" The {len(order):,} that stand out most are shown; the model holds the others."
        rows = table([*head, "clipped to"] if bounded else head, cells, caption, "numbers")
        name = _output_name(model, output, len(coef))
        text.append(f"<details{' open' * (output == 0)}><summary>{name}</summary>{rows}</details>\n" if name else rows)
    return "".join(text)


def _shown(coef: Floats, noise: Floats) -> list[int]:
    """All columns in their order; of very many, those furthest from zero in noise levels."""
    if len(coef) <= MOST_ROWS:
        return list(range(len(coef)))
    distance = np.abs(coef) / np.where(noise > 0, noise, 1.0)
    return sorted(np.argsort(-distance, kind="stable")[:MOST_ROWS].tolist())


def _coefficient_row(
    name: str, value: float, noise: float, span: float, largest: float, limits: str | None
) -> list[str]:
    faint = noise > 0 and abs(value) <= 2 * noise
    cells = [
        escaped(name),
        number(value),
        f"± {noise:.2g}" if noise > 0 else "no noise",
        interval(value * span, 2 * noise * span, largest),
        '<span class="mark">could be noise</span>' if faint else "",
    ]
    return cells if limits is None else [*cells, limits]


def _range(model: Any, j: int) -> str:
    return f"[{number(model.clip_low_[j])}, {number(model.clip_high_[j])}]"


def _output(model: Any) -> str:
    if hasattr(model, "predict_proba"):
        return "score (log-odds for two classes)"
    return "score" if hasattr(model, "classes_") else "prediction"


def _output_name(model: Any, output: int, outputs: int) -> str:
    if not hasattr(model, "classes_"):
        return ""
    if outputs == 1:
        return f"Towards class {escaped(model.classes_[1])}, away from {escaped(model.classes_[0])}"
    return f"Towards class {escaped(model.classes_[output])}"


# --- what is not covered ---------------------------------------------------------------------------------------------


def _own_remarks(model: Any) -> Iterable[Remark]:
    """What holds for every fit, and what this one's parameters say."""
    yield Remark(
        "voids",
        "A transformer fitted on the same rows before this model (scaling, imputation by a mean, selection of columns,"
        " target encoding), or rows left out because of what they hold. What was done to the table before is not known"
        " here.",
    )
    yield Remark(
        "voids",
        "Choices made by looking at these rows: parameters tuned on them, or the best of several fits. Each fit, and"
        " each score on private rows, costs budget of its own; tacit.privacy.compose adds them up.",
    )
    if model.guarantee_.seeded:
        yield Remark("voids", "The random_state is fixed; whoever knows it can take the noise off again.")
    else:
        yield Remark(
            "outside",
            "The noise comes from the operating system's randomness; a clone of a running machine repeats it.",
        )
    if hasattr(model, "classes_") and getattr(model, "classes", None) is None:
        yield Remark(
            "told", "The list of classes was learned from the data: it tells whether anyone has a class. Declare them."
        )
    yield Remark("told", "Whether the table could be fitted: a missing value or another bad entry raises an error.")
    yield Remark("public", "The number of rows, the names and the number of columns, and all parameters of the fit.")
    yield Remark("public", "That one row is one person. A person with several rows is protected less.")
    yield Remark("outside", "How long the fit took, and what other programs on the same machine could observe.")
    yield Remark(
        "outside",
        "What is true of people in general. A model may still predict well for someone who was never in the data.",
    )


def _not_covered(remarks: Sequence[Remark]) -> str:
    text = []
    for grade, heading in _GRADES.items():
        items = "".join(f"<li>{escaped(remark.text)}</li>" for remark in remarks if remark.grade == grade)
        if items:
            text.append(f'<h3>{heading}</h3>\n<ul class="{grade}">{items}</ul>\n')
    return "".join(text)
