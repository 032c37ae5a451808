"""A party's side of the protocol "marginals": what it makes of a question. Sensitivities are in `marginals`."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit._types import Floats
from tacit.federated.protocols import columns
from tacit.federated.protocols.base import Answer, Arrays, Holding, Question, RefusedError
from tacit.federated.protocols.bounds import Magnitudes, part_beyond
from tacit.federated.protocols.columns import one_entry_per_row
from tacit.federated.protocols.marginals.rules import (
    AGAIN,
    PRODUCTS,
    SQUARES,
    SUMS,
    Agreement,
    Cross,
    largest_target,
)
from tacit.federated.sketches import Sketch
from tacit.federated.study import Study
from tacit.privacy import Gate, float_sum_slack
from tacit.privacy.mechanisms import GaussianMatrix, GaussianVector, Sensitivity, TopK
from tacit.solvers.classes import believable

_SKETCH_CLIP = 2.0  # of sketched labels, in deviations of what the sketch says
_LARGEST = 1e100  # of what a question says of the target: sums of squares stay finite
_ROUNDED_UP = 1.0 + 2.0**-40  # the norm of a row that was scaled to norm 1 in float64


@dataclass(frozen=True, eq=False)
class Target:
    """What columns are multiplied with, already less its released mean: numbers of at most `bound` in absolute size.

    Of more than two classes, a vector of each row, of at most that norm.
    """

    values: Floats
    bound: float

    @classmethod
    def of(cls, labels: Any, bounds: tuple[float, ...], mean: float) -> "Target":
        """Labels, clipped and centred."""
        low, high = bounds
        return cls(np.clip(labels, low, high) - mean, largest_target(bounds, mean))

    @classmethod
    def of_classes(cls, numbers: Floats, parts: Floats) -> "Target":
        """A one in the column of each row's class, less what parts of all rows the classes have."""
        return cls((numbers[:, None] == np.arange(len(parts))) - parts, largest_target((), parts))

    @classmethod
    def from_sketch(cls, sketch: Sketch, released: Floats) -> "Target":
        """What a released sketch says of the labels, in units of their bound; clipped where it is mostly noise."""
        values = sketch.back(released)
        bound = float(np.abs(values).max())
        if sketch.size < sketch.n_rows:
            bound = min(bound, _SKETCH_CLIP * math.sqrt(float(np.mean(np.square(values)))))
        bound = max(bound, 1e-100)
        return cls(np.clip(values, -bound, bound), bound)


def bounds(agreed: Agreement, holding: Holding, question: Question, gate: Gate) -> Answer:
    """The step "bounds": the range of the target, and where labels are sketched their mean and their sketch."""
    if question.arrays or not agreed.starts_with_bounds:
        raise RefusedError("the step 'bounds' is not part of this study, or was asked with arrays")
    found = agreed.bounds.answer(holding, question, gate) if agreed.bounds.needed else {}
    sketch = agreed.label_sketch
    if sketch is None or holding.name != agreed.study.label_holder:
        return Answer(found)
    limits = agreed.bounds.y_bounds({holding.name: found})
    told = own_target(agreed.study, holding, limits, agreed.bounds.y_core({holding.name: found}), gate)
    target = _target(agreed, holding, told)
    if agreed.finds_label_mean(holding.name):
        found["label mean"] = told["label mean"]
    labels = (target.values / target.bound)[:, None]
    found["labels"] = sketch.release(gate, "labels", labels, 1.0, _ROUNDED_UP)[:, 0]
    return Answer(found, told)


def marginals(agreed: Agreement, holding: Holding, question: Question, gate: Gate, memory: Arrays) -> Answer:
    """The step "marginals": the columns selected, and their moments with the target and with each other."""
    told = _told(agreed, holding, question, gate, memory)
    target = _target(agreed, holding, told)
    X, count = bounded(agreed.study, holding.X), agreed.n_selected[holding.name]
    selects = agreed.selects(holding.name)
    selected = _selected(agreed, X, *_core(target, told), count, gate) if selects else np.arange(count)
    own = X[:, selected]
    norm, filled = row_norm(agreed.study, own, gate)
    rows = columns.unit_rows(own, norm)
    sides = np.column_stack([target.values / target.bound, np.full(len(target.values), SUMS)])
    n = agreed.study.n_rows
    products = GaussianVector(times(PRODUCTS, slack(n)), bound=float(n))  # however many classes a target speaks of
    squares = GaussianMatrix(times(SQUARES, slack(n)), bound=float(n))
    releases = {
        "row norm": np.array([norm, filled]),
        "correlations": gate.release("correlations", products, columns.product(rows, sides)),
        "moments": gate.release("moments", squares, columns.product(rows, rows))[np.triu_indices(count)],
    }
    if selects:
        releases["columns"] = selected.astype(np.int32)
    if agreed.finds_label_mean(holding.name) and agreed.label_sketch is None:
        releases["label mean"] = told["label mean"]
    return Answer(releases, {**told, "selected": selected, "row norm": np.array([norm])})


def cross(agreed: Agreement, how: Cross, holding: Holding, question: Question, gate: Gate, memory: Arrays) -> Answer:
    """The step "cross": a sketch of the columns selected before, or of one score of them."""
    score = None
    if not how.columns:
        score = _array(question, "score", (agreed.n_selected[holding.name] + 1,))
    elif question.arrays:
        raise RefusedError("the step 'cross' takes no arrays in this study")
    rows = _remembered_rows(agreed, holding, question, memory)
    if score is not None:
        with np.errstate(over="ignore", invalid="ignore"):  # infinity less infinity: such a row counts as zero
            rows = np.nan_to_num(np.clip(columns.images(rows, score[:-1]) + score[-1], -1.0, 1.0))[:, None]
    return Answer({"cross": how.sketch.release(gate, "cross", rows, 1.0, _ROUNDED_UP)})


def again(agreed: Agreement, holding: Holding, question: Question, gate: Gate, memory: Arrays) -> Answer:
    """The step "again", in place of a score: the products with the target once more, with noise of their own."""
    if question.arrays:
        raise RefusedError("the step 'again' takes no arrays")
    rows = _remembered_rows(agreed, holding, question, memory)
    target = _target(agreed, holding, memory)
    n = agreed.study.n_rows
    products = GaussianVector(times(AGAIN, slack(n)), bound=float(n))
    return Answer({"cross": gate.release("cross", products, columns.product(rows, target.values / target.bound))})


def _remembered_rows(agreed: Agreement, holding: Holding, question: Question, memory: Arrays) -> Any:
    """Rows of the columns selected before, of norm 1 at most."""
    if "selected" not in memory:
        raise RefusedError(f"the step {question.step!r} comes after 'marginals'")
    return columns.unit_rows(bounded(agreed.study, holding.X)[:, memory["selected"]], float(memory["row norm"][0]))


def bounded(study: Study, X: Any) -> Any:
    """The party's columns, clipped to what was declared."""
    bound = study.entry_bound
    return X if bound is None else columns.clipped(X, bound)


def _core(target: Target, told: Arrays) -> tuple[Floats, float]:
    """Targets less their middle, clipped to the width of their core, and that width.

    Without a known core they stay as they are. So do labels of two classes: the rarer class has the larger targets, and
    most of what there is to learn, so none of it is cut off.
    """
    if "y core" not in told:
        return target.values, target.bound
    middle, width = told["y core"].tolist()
    return np.clip(target.values - (middle - float(told["label mean"][0])), -width, width), width


def _selected(agreed: Agreement, X: Any, target: Floats, width: float, count: int, gate: Gate) -> Any:
    """Private selection by products of clipped entries and targets, of at most `width`; in increasing order.

    Both are clipped to what about half of them lie within, so that products are nearly signs. Their sum finds the same
    columns, a row moves it less, and columns with few entries are treated like others if the targets add up to zero.
    Of more than two classes a row's targets are a vector of that length, and a score is the norm of the sum of vectors.
    """
    sizes = Magnitudes.released(gate, "entry size", np.abs(one_entry_per_row(X)), agreed.study.n_rows)
    bound = sizes.bound(0.5) or 1.0
    terms = agreed.study.n_rows + 2 * agreed.study.outputs - 1  # of a sum, and then of a norm over classes
    step = bound * width + float_sum_slack(terms, bound * width)
    scores = columns.clipped_products(X, target, bound)
    scores = np.abs(scores) if scores.ndim == 1 else np.linalg.norm(scores, axis=1)
    return np.sort(gate.release("columns", TopK(count, Sensitivity(2.0 * step, 4.0 * step)), scores))


def row_norm(study: Study, own: Any, gate: Gate) -> tuple[float, float]:
    """What rows of the selected columns are clipped to, found within what was declared; and how many are not zero."""
    found = Magnitudes.released(gate, "row norm", columns.row_norms(own), study.n_rows)
    norm = found.bound(part_beyond(study))
    if study.entry_bound is not None:
        longest = math.sqrt(own.shape[1]) * study.entry_bound
        norm = min(norm or longest, longest)
    return norm or 1.0, found.count


def _told(agreed: Agreement, holding: Holding, question: Question, gate: Gate, memory: Arrays) -> Arrays:
    """What this party's target follows from, to be remembered: bounds and the released mean, or sketched labels."""
    sketch = agreed.label_sketch
    if sketch is None:
        low, high, *core = _array(question, "y bounds", (4 if agreed.bounds.finds_labels else 2,)).tolist()
        if not 1.0 / _LARGEST < high - low < _LARGEST:
            raise RefusedError("the bounds of the target must be two numbers, the lower one first")
        if core and not (abs(core[0]) < _LARGEST and 1.0 / _LARGEST < core[1] < _LARGEST):
            raise RefusedError("the core of the target must be its middle and a width above 0")
        return own_target(agreed.study, holding, (low, high), core or None, gate)
    if holding.name != agreed.study.label_holder:
        labels = _array(question, "labels", (sketch.size,))
        if not np.all(np.abs(labels) < _LARGEST):
            raise RefusedError("the sketched labels are too large to be squared")
        return {"labels": labels}
    if question.arrays or "y bounds" not in memory:
        raise RefusedError("the party that holds the labels takes no arrays, and is asked for 'bounds' first")
    return {name: memory[name] for name in ("y bounds", "label mean", "y core") if name in memory}


def _target(agreed: Agreement, holding: Holding, told: Arrays) -> Target:
    """The labels, or what the sketch of them says."""
    if "labels" in told:
        assert agreed.label_sketch is not None
        return Target.from_sketch(agreed.label_sketch, told["labels"])
    return remembered_target(agreed.study, holding, told)


def remembered_target(study: Study, holding: Holding, told: Arrays) -> Target:
    """The labels, less their released mean."""
    assert holding.targets is not None
    if study.outputs > 1:
        return Target.of_classes(holding.targets, told["label mean"])
    return Target.of(holding.targets, tuple(told["y bounds"].tolist()), float(told["label mean"][0]))


def own_target(
    study: Study, holding: Holding, limits: tuple[float, float], core: Sequence[float] | None, gate: Gate
) -> Arrays:
    """The bounds of the labels, their released mean, zero for a model without intercept, and their core."""
    labels = holding.targets
    assert labels is not None
    if study.outputs > 1:
        return {"y bounds": np.array(limits), "label mean": _class_parts(study, labels, gate)}
    mean = 0.0
    if study.fit_intercept:
        low, high = limits
        middle, half, n = low + (high - low) / 2.0, (high - low) / 2.0, study.n_rows
        with np.errstate(over="ignore"):
            total = np.clip((labels - middle) / half, -1.0, 1.0).sum()
        sensitivity = Sensitivity.vector(1.0 + float_sum_slack(n, 1.0))
        noisy = float(gate.release("label mean", GaussianVector(sensitivity, bound=float(n)), total))
        mean = middle + half * min(1.0, max(-1.0, noisy / n))
    told = {"y bounds": np.array(limits), "label mean": np.array([mean])}
    return told if core is None else told | {"y core": np.array(core)}


def _class_parts(study: Study, numbers: Floats, gate: Gate) -> Floats:
    """What parts of all rows the classes have, from their counts: sums of whole numbers, which are exact."""
    mechanism = GaussianVector(Sensitivity.one_hot(), bound=float(study.n_rows))
    noise = gate.noise("label mean", mechanism.sensitivity) / study.n_rows
    counts = np.bincount(numbers.astype(np.int64), minlength=study.outputs).astype(np.float64)
    return believable(gate.release("label mean", mechanism, counts) / study.n_rows, noise, study.n_rows)


def slack(n: int) -> float:
    """What float sums over rows of norm 1 may add to a sensitivity, as a factor."""
    return _ROUNDED_UP * (1.0 + float_sum_slack(n, 1.0))


def times(sensitivity: Sensitivity, factor: float) -> Sensitivity:
    return Sensitivity(sensitivity.add_remove * factor, sensitivity.replace_one * factor)


def _array(question: Question, name: str, shape: tuple[int, ...]) -> Floats:
    """The only array of a question; another form is refused."""
    array = np.asarray(question.arrays.get(name))
    if set(question.arrays) != {name} or array.dtype != np.float64 or array.shape != shape:
        raise RefusedError(f"the step {question.step!r} takes one array, {name!r}, of shape {shape}")
    if not np.all(np.isfinite(array)):
        raise RefusedError(f"the array {name!r} of the step {question.step!r} must be finite")
    return array
