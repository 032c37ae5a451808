"""The coordinator's side of masked products: it opens sums, and solves. No data comes in here but under masks."""

import math
from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit._types import Floats
from tacit.federated.protocols import moments
from tacit.federated.protocols.base import Arrays, Model, Question, RefusedError, Rounds, largest_sum, taken
from tacit.federated.protocols.marginals.coordinator import ClassMoments, Moments
from tacit.federated.protocols.marginals.masked import words
from tacit.federated.protocols.marginals.masked.logistic import corrected
from tacit.federated.protocols.marginals.masked.party import (
    BOXES,
    CODE,
    CODES,
    KEY,
    KEYS,
    PRODUCTS,
    ROWS,
    SEEDS,
    UNITS,
)
from tacit.federated.protocols.marginals.masked.rules import MaskedAgreement
from tacit.federated.protocols.marginals.masked.seals import BOX_BYTES, CODE_BYTES, KEY_BYTES
from tacit.federated.protocols.marginals.masked.words import Words
from tacit.federated.protocols.marginals.parts import label_mean, of_classes, row_norm
from tacit.federated.protocols.marginals.rules import SUMS, largest_target
from tacit.federated.protocols.marginals.several import explained

Blocks = dict[tuple[str, str], Floats]
Answers = Mapping[str, Arrays]


def coordinate(agreed: MaskedAgreement) -> Rounds:
    """Three rounds, then the solve; for the logistic loss with rounds of slopes."""
    study = agreed.study
    first = yield {name: Question(UNITS) for name in study.names}
    hellos = {
        KEYS: np.stack([_bytes(name, first, KEY, (KEY_BYTES,)) for name in study.names]),
        CODES: np.stack([_bytes(name, first, CODE, (CODE_BYTES,)) for name in study.names]),
    }
    norms = {m.name: row_norm(study, m.name, m.n_features, first[m.name])[0] for m in study.members}
    y_bounds = agreed.label_range(first)
    holder = study.label_holder
    mean = label_mean(holder, first[holder], y_bounds, study.outputs) if study.fit_intercept else 0.0
    second = yield {name: Question(SEEDS, hellos) for name in study.names}
    shape = len(study.names), BOX_BYTES
    boxes = np.stack([_bytes(name, second, BOXES, shape) for name in study.names])
    answers = yield {name: Question(PRODUCTS, {**hellos, BOXES: boxes}) for name in study.names}

    covariance, slope, sums = _moments(agreed, opened(agreed, answers))
    if isinstance(mean, np.ndarray):
        covariance, slope = _in_classes(agreed, covariance, slope, mean)
    units = np.concatenate([np.full(member.n_features, norms[member.name]) for member in study.members])
    target = largest_target(y_bounds, mean)
    everything = {member.name: np.arange(member.n_features) for member in study.members}
    squares, products = covariance * np.outer(units, units), (slope.T * target * units).T
    given = (Moments if study.outputs == 1 else ClassMoments)(study, squares, products, sums * units, mean, everything)
    solved: Any = (yield from corrected(agreed, given, norms)) if agreed.has_slopes else given
    facts = {
        "y_bounds": y_bounds,
        "features": everything,
        "moments": solved,
        "row_norms": norms,
        "cross": "masked",
    }
    if study.entry_bound is not None:
        facts["entry_bounds"] = dict.fromkeys(study.names, study.entry_bound)
    coefs, intercept = solved.at(study.l1_radius)
    return Model(coefs, intercept, facts)


def settled(agreed: MaskedAgreement, answers: Answers) -> Answers:
    """Answers without masked rows: the first share of a pair is the opened sum then, and the second nothing."""
    if any(ROWS not in answer for answer in answers.values()):
        return answers
    kept = {name: {what: v for what, v in answer.items() if what != ROWS} for name, answer in answers.items()}
    for one, other in combinations(agreed.study.names, 2):
        total = _sum(agreed, answers, one, other)
        kept[one][agreed.share_name(other)] = total.view(np.int64)
        kept[other][agreed.share_name(one)] = np.zeros(total.shape, dtype=np.int64)
    return kept


def opened(agreed: MaskedAgreement, answers: Answers) -> Blocks:
    """All second moments by pairs of parties, as sums over rows of norm 1; with each party's own constant column."""
    names, n, steps = agreed.study.names, agreed.study.n_rows, agreed.grid.steps
    found: Blocks = {}
    for name in names:
        size = agreed.width(name) + 1
        most = largest_sum(n, agreed.own_norm(name) ** 2, agreed.noise(name, "moments", agreed.moments_of(name)))
        own = np.zeros((size, size))
        own[np.triu_indices(size)] = taken(name, answers[name], "moments", (size * (size + 1) // 2,), most)
        found[name, name] = own + np.triu(own, 1).T
    for one, other in combinations(names, 2):
        opened = words.signed(_sum(agreed, answers, one, other)) / steps**2
        most = largest_sum(n, agreed.norm(one) * agreed.norm(other), 2.0 * math.ldexp(1.0, agreed.grid.bits) / steps**2)
        if not np.all(np.abs(opened) <= most):
            raise RefusedError(
                f"the masked products of {one!r} and {other!r} do not open: one of them answered with numbers that no"
                " data gives, or they were not told the same"
            )
        found[one, other], found[other, one] = opened, opened.T
    return found


def _sum(agreed: MaskedAgreement, answers: Answers, one: str, other: str) -> Words:
    """The opened products of two parties: both shares and the product of the masked rows.

    Where rows were deleted, when the study was done, all of it is in the shares.
    """
    shape = agreed.width(one), agreed.width(other)
    total = _words(one, answers, agreed.share_name(other), shape) + _words(
        other, answers, agreed.share_name(one), shape
    )
    if not any(ROWS in answer for answer in answers.values()):
        return total
    rows = [_words(name, answers, ROWS, (agreed.study.n_rows, agreed.width(name))) for name in (one, other)]
    return total + words.product(*rows)


def _moments(agreed: MaskedAgreement, found: Blocks) -> tuple[Floats, Floats, Floats]:
    """Covariances of all columns, their products with the target, and their means; per row, rows of norm 1.

    As the `statistics` solver has it: where noise outweighs a direction, its eigenvalue is lifted to the noise.
    """
    study, n = agreed.study, agreed.study.n_rows
    sizes = {member.name: member.n_features for member in study.members}
    squares = np.block([[found[k, m][: sizes[k], : sizes[m]] for m in study.names] for k in study.names]) / n
    sums = np.concatenate([found[k, k][: sizes[k], -1] for k in study.names]) / (SUMS * n)
    holder, weight = study.label_holder, agreed.label_weight
    labels = sizes[holder] if study.outputs == 1 else slice(sizes[holder], sizes[holder] + study.outputs)
    products = np.concatenate([found[k, holder][: sizes[k], labels] for k in study.names]) / (weight * n)
    return moments.repaired(squares - np.outer(sums, sums), _floor(agreed) / n), products, sums


def _in_classes(agreed: MaskedAgreement, covariance: Floats, slope: Floats, parts: Floats) -> tuple[Floats, Floats]:
    """Covariances within classes, and products with labels less what cannot be of them."""
    slope, _ = of_classes(slope, 0.0)
    known = explained(slope * largest_target((), parts), parts)
    return moments.repaired(covariance - known, _floor(agreed) / agreed.study.n_rows), slope


def _floor(agreed: MaskedAgreement) -> float:
    """What eigenvalues are lifted to, about 0.7 of the largest that the noise alone would have."""
    study, names = agreed.study, agreed.study.names
    sizes = {member.name: member.n_features for member in study.members}
    total = sum(sizes.values())
    squares = sum((sizes[k] * agreed.noise(k, "moments", agreed.moments_of(k))) ** 2 / 2.0 for k in names)
    if agreed.study.budget.is_private:
        each = 2.0 * (math.ldexp(1.0, agreed.grid.bits) / agreed.grid.steps**2) ** 2
        squares += 2.0 * sum(sizes[k] * sizes[m] for k, m in combinations(names, 2)) * each
    return math.sqrt(2.0 * squares / total)


def _bytes(name: str, answers: Answers, what: str, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    return _array(name, answers, what, shape, np.dtype(np.uint8))


def _words(name: str, answers: Answers, what: str, shape: tuple[int, ...]) -> Words:
    return _array(name, answers, what, shape, np.dtype(np.int64)).view(np.uint64)


def _array(name: str, answers: Answers, what: str, shape: tuple[int, ...], kind: np.dtype) -> NDArray:
    """An array of a party's answer; another form is refused."""
    array = answers[name].get(what)
    if array is None or array.dtype != kind or array.shape != shape:
        raise RefusedError(f"party {name!r} did not answer with {what!r} as it should, {kind} of shape {shape}")
    return array
