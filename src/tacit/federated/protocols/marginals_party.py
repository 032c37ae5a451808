"""A party's side of the protocol "marginals": what it makes of a question. Sensitivities are in `marginals`."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.federated.protocols import columns
from tacit.federated.protocols.base import Answer, Arrays, Floats, Holding, Question, RefusedError
from tacit.federated.protocols.bounds import magnitude_bound, one_entry_per_row, part_beyond
from tacit.federated.protocols.marginals_plan import (
    PRODUCTS,
    PRODUCTS_BEYOND,
    SQUARES,
    SUMS,
    Agreement,
    Cross,
    largest_target,
)
from tacit.federated.sketches import Sketch
from tacit.privacy import Meter, float_sum_slack
from tacit.privacy.mechanisms import GaussianMatrix, GaussianVector, Sensitivity, TopK

_SKETCH_CLIP = 2.0  # of sketched labels, in deviations of what the sketch says
_ROUNDED_UP = 1.0 + 2.0**-40  # the norm of a row that was scaled to norm 1 in float64


@dataclass(frozen=True, eq=False)
class Target:
    """What columns are multiplied with: values up to `bound` in absolute size, already less their released mean."""

    values: Floats
    mean: float
    bound: float

    @classmethod
    def of(cls, labels: Any, bounds: tuple[float, ...], mean: float) -> "Target":
        """Labels, clipped and centred."""
        low, high = bounds
        return cls(np.clip(labels, low, high) - mean, mean, largest_target(bounds, mean))

    @classmethod
    def from_sketch(cls, sketch: Sketch, released: Floats) -> "Target":
        """What a released sketch says of the labels, in units of their bound; clipped where it is mostly noise."""
        values = sketch.back(released)
        bound = float(np.abs(values).max())
        if sketch.size < sketch.n_rows:
            bound = min(bound, _SKETCH_CLIP * math.sqrt(float(np.mean(np.square(values)))))
        bound = max(bound, 1e-100)
        return cls(np.clip(values, -bound, bound), 0.0, bound)


def bounds(agreed: Agreement, holding: Holding, question: Question, meter: Meter) -> Answer:
    """The step "bounds": the range of the target, and where labels are sketched their mean and their sketch."""
    if question.arrays or not agreed.starts_with_bounds:
        raise RefusedError("the step 'bounds' is not part of this study, or was asked with arrays")
    found = agreed.bounds.answer(holding, question, meter) if agreed.bounds.needed else {}
    sketch = agreed.label_sketch
    if sketch is None or holding.name != agreed.study.label_holder:
        return Answer(found)
    limits = agreed.bounds.y_bounds({holding.name: found})
    target = _own_target(agreed, holding, limits, meter)
    if agreed.finds_label_mean(holding.name):
        found["label mean"] = np.array([target.mean])
    found["labels"] = _sketched(sketch, (target.values / target.bound)[:, None], meter, "labels")[:, 0]
    return Answer(found, {"label mean": np.array([target.mean]), "y bounds": np.array(limits)})


def marginals(agreed: Agreement, holding: Holding, question: Question, meter: Meter, memory: Arrays) -> Answer:
    """The step "marginals": the columns selected, and their moments with the target and with each other."""
    target = _target(agreed, holding, question, meter, memory)
    X, count = _bounded(agreed, holding.X), agreed.n_selected[holding.name]
    selects = agreed.selects(holding.name)
    selected = _selected(agreed, X, target.values, count, meter) if selects else np.arange(count)
    own = X[:, selected]
    norm = _row_norm(agreed, own, meter)
    rows = columns.unit_rows(own, norm)
    sides = np.column_stack([target.values / target.bound, np.full(len(target.values), SUMS)])
    n = agreed.study.n_rows
    slack = _ROUNDED_UP * (1.0 + float_sum_slack(n, 1.0))
    products = GaussianVector(_times(PRODUCTS, slack), bound=float(n))
    squares = GaussianMatrix(_times(SQUARES, slack), bound=float(n))
    releases = {
        "row norm": np.array([norm]),
        "correlations": products.release(meter, "correlations", columns.product(rows, sides)),
        "moments": squares.release(meter, "moments", columns.product(rows, rows))[np.triu_indices(count)],
    }
    if selects:
        releases["columns"] = selected.astype(np.int32)
    if agreed.finds_label_mean(holding.name) and agreed.label_sketch is None:
        releases["label mean"] = np.array([target.mean])
    return Answer(releases, {"selected": selected, "row norm": np.array([norm])})


def cross(agreed: Agreement, how: Cross, holding: Holding, question: Question, meter: Meter, memory: Arrays) -> Answer:
    """The step "cross": a sketch of the columns selected before, or of one score of them."""
    if "selected" not in memory:
        raise RefusedError("the step 'cross' comes after 'marginals'")
    selected = memory["selected"]
    if how.columns and question.arrays:
        raise RefusedError("the step 'cross' takes no arrays in this study")
    score = None if how.columns else _array(question, "score", (len(selected) + 1,))
    rows = columns.unit_rows(_bounded(agreed, holding.X)[:, selected], float(memory["row norm"][0]))
    if score is not None:
        with np.errstate(over="ignore", invalid="ignore"):  # infinity less infinity: such a row counts as zero
            rows = np.nan_to_num(np.clip(rows @ score[:-1] + score[-1], -1.0, 1.0))[:, None]
    return Answer({"cross": _sketched(how.sketch, rows, meter, "cross")})


def _bounded(agreed: Agreement, X: Any) -> Any:
    """The party's columns, clipped to what was declared."""
    bound = agreed.study.entry_bound
    return X if bound is None else columns.clipped(X, bound)


def _selected(agreed: Agreement, X: Any, target: Floats, count: int, meter: Meter) -> Any:
    """Private selection by clipped products with the target; in increasing order."""
    with np.errstate(over="ignore"):
        products = np.abs(one_entry_per_row(X) * target)
    bound = magnitude_bound(meter, "product bound", products, PRODUCTS_BEYOND * part_beyond(agreed.study)) or 1.0
    step = bound + float_sum_slack(agreed.study.n_rows, bound)
    scores = np.abs(columns.clipped_products(X, target, bound))
    return np.sort(TopK(count, Sensitivity(2.0 * step, 4.0 * step)).release(meter, "columns", scores))


def _row_norm(agreed: Agreement, own: Any, meter: Meter) -> float:
    """What rows of the selected columns are clipped to: found, or at most what a declared entry bound implies."""
    found = magnitude_bound(meter, "row norm", columns.row_norms(own), part_beyond(agreed.study))
    if agreed.study.entry_bound is None:
        return found or 1.0
    longest = math.sqrt(own.shape[1]) * agreed.study.entry_bound
    return min(found or longest, longest)


def _target(agreed: Agreement, holding: Holding, question: Question, meter: Meter, memory: Arrays) -> Target:
    """The labels, or what the sketch of them says."""
    sketch = agreed.label_sketch
    if sketch is None:
        low, high = _array(question, "y bounds", (2,)).tolist()
        if not 1e-100 < high - low < 1e100:
            raise RefusedError("the bounds of the target must be two numbers, the lower one first")
        return _own_target(agreed, holding, (low, high), meter)
    if holding.name != agreed.study.label_holder:
        return Target.from_sketch(sketch, _array(question, "labels", (sketch.size,)))
    if question.arrays or "y bounds" not in memory:
        raise RefusedError("the party that holds the labels takes no arrays, and is asked for 'bounds' first")
    return Target.of(holding.targets, tuple(memory["y bounds"].tolist()), float(memory["label mean"][0]))


def _own_target(agreed: Agreement, holding: Holding, limits: tuple[float, float], meter: Meter) -> Target:
    """The labels, centred at their released mean; at zero for a model without intercept."""
    labels = holding.targets
    assert labels is not None
    if not agreed.study.fit_intercept:
        return Target.of(labels, limits, 0.0)
    low, high = limits
    middle, half, n = low + (high - low) / 2.0, (high - low) / 2.0, agreed.study.n_rows
    with np.errstate(over="ignore"):
        total = np.clip((labels - middle) / half, -1.0, 1.0).sum()
    sensitivity = Sensitivity.vector(1.0 + float_sum_slack(n, 1.0))
    noisy = float(GaussianVector(sensitivity, bound=float(n)).release(meter, "label mean", total))
    return Target.of(labels, limits, middle + half * min(1.0, max(-1.0, noisy / n)))


def _sketched(sketch: Sketch, rows: Any, meter: Meter, name: str) -> Floats:
    """The sketch of rows of norm 1 at most, with noise."""
    bound = sketch.n_rows * sketch.column_norm
    return GaussianVector(sketch.sensitivity(_ROUNDED_UP), bound=bound).release(meter, name, sketch.apply(rows))


def _times(sensitivity: Sensitivity, factor: float) -> Sensitivity:
    return Sensitivity(sensitivity.add_remove * factor, sensitivity.replace_one * factor)


def _array(question: Question, name: str, shape: tuple[int, ...]) -> Floats:
    """The only array of a question; another form is refused."""
    array = np.asarray(question.arrays.get(name))
    if set(question.arrays) != {name} or array.dtype != np.float64 or array.shape != shape:
        raise RefusedError(f"the step {question.step!r} takes one array, {name!r}, of shape {shape}")
    if not np.all(np.isfinite(array)):
        raise RefusedError(f"the array {name!r} of the step {question.step!r} must be finite")
    return array
