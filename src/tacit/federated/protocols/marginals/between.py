"""Moments between columns of different parties, for the coordinator of the protocol "marginals".

With a large budget each moment is estimated from the sketches of its two columns. With a smaller one, only one
correlation is estimated for each pair of parties, that of their scores. A party's score is what its columns alone would
predict. Columns of two parties are then taken as uncorrelated, except for what follows from their scores. Without that,
what several parties know would be counted several times.

Scores are correlated by their sketches. Where most rows are zero in the selected columns, such sketches are mostly
noise; the products with the target are asked for once more instead. In both cases the scores together cannot explain
more of the target than its variance. Where they seem to, their correlations are raised until they do not.

Correlations of scores only ever reduce what is counted: no combination of columns gets a smaller variance than the
parties' own moments give it.
"""

import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag

from tacit._types import Floats
from tacit.federated.protocols import moments
from tacit.federated.protocols.base import Arrays, Question
from tacit.federated.protocols.marginals.parts import Part, with_more
from tacit.federated.protocols.marginals.rules import SCORE_CLIP, SCORE_VARIANCE, Agreement, Cross, options

_ROUNDED = 2.0**-50  # of the largest eigenvalue: the others are not known any better

Joined = tuple[Agreement, list[Part], Floats, str]
Asking = Generator[Mapping[str, Question], Mapping[str, Arrays], Joined]


@dataclass(frozen=True, eq=False)
class Score:
    """What a party's columns alone would predict, for rows of norm 1; its moments are sums over rows."""

    weights: Floats
    centre: float  # of all rows together, over sqrt(n)
    variance: float  # about the centre
    product: float  # with the target
    along: Floats  # covariances with the columns, for a score of variance 1

    @classmethod
    def of(cls, agreed: Agreement, part: Part, block: Floats, mean: float) -> "Score":
        """The score that fits a party's moments best, in the l1 ball."""
        study, slope = agreed.study, part.slope(mean)
        squares = block if study.fit_intercept else block + np.outer(part.sums, part.sums) / study.n_rows
        weights = moments.least_squares(squares, slope, study.l1_radius * part.row_norm)
        variance = max(float(weights @ block @ weights), 0.0)
        along = block @ weights / math.sqrt(variance) if variance > 0.0 else np.zeros_like(weights)
        centre = float(weights @ part.sums) / math.sqrt(study.n_rows)
        return cls(weights, centre, variance, float(weights @ slope), along)

    def question(self, n: int) -> Question:
        """Asks for a sketch of it: weights and a constant, for a score clipped to [-1, 1]."""
        deviation = math.sqrt(self.variance / n)
        scale = 1.0 / (SCORE_CLIP * deviation) if deviation > 0.0 else 0.0
        return Question("cross", {"score": scale * np.append(self.weights, -self.centre / math.sqrt(n))})


def joined(agreed: Agreement, parts: list[Part], mean: float, square: float | None) -> Asking:
    """Asks for what there is to ask.

    Returns what those agreed on who answered, their parts, one covariance of all columns, and what it was made from.
    `mean` is the target's; `square` bounds its mean square (with an intercept its variance), where that is known.
    """
    study, cross, n = agreed.study, agreed.cross, agreed.study.n_rows
    wanted = options(study).cross
    if wanted == "zero" or len(parts) == 1:
        return agreed, parts, block_diag(*(part.covariances(n) for part in parts)), "zero"
    if cross is not None and cross.columns:
        sketches = yield {name: Question("cross") for name in study.names}
        agreed, parts = stayed(agreed, parts, sketches)
        blocks = [part.covariances(n) for part in parts]
        return agreed, parts, whole(blocks, *from_columns(agreed, cross, sketches, parts, blocks)), "columns"
    blocks, scores = _scores(agreed, parts, mean)
    how = "zero"
    if cross is not None and (wanted == "sketched" or not any(part.mostly_empty(n) for part in parts)):
        answers = yield {name: score.question(n) for name, score in zip(study.names, scores, strict=True)}
        agreed, parts = stayed(agreed, parts, answers)
        blocks, scores = _scores(agreed, parts, mean)
        correlations, how = _from_scores(agreed, cross, answers), "scores"
    elif cross is not None:
        answers = yield {name: Question("again") for name in study.names}
        agreed, parts = stayed(agreed, parts, answers)
        named = zip(agreed.study.names, parts, strict=True)
        parts = [with_more(agreed, name, part, answers[name]) for name, part in named]
        blocks, scores = _scores(agreed, parts, mean)
        correlations, how = np.eye(len(parts)), "again"
    else:
        correlations = np.eye(len(parts))
    if square is not None:
        correlations = _possible(correlations, scores, square * n, centred=study.fit_intercept)
    along = block_diag(*(score.along[:, None] for score in scores))
    between = along @ (correlations - np.diag(np.diag(correlations))) @ along.T
    return agreed, parts, whole(blocks, between, np.ones(len(between))), how


def stayed(agreed: Agreement, parts: Sequence[Part], answers: Mapping[str, Arrays]) -> tuple[Agreement, list[Part]]:
    """Of the parties that answered."""
    named = zip(agreed.study.names, parts, strict=True)
    return agreed.of(answers), [part for name, part in named if name in answers]


def _scores(agreed: Agreement, parts: Sequence[Part], mean: float) -> tuple[list[Floats], list[Score]]:
    """Each party's covariances, and its score."""
    blocks = [part.covariances(agreed.study.n_rows) for part in parts]
    return blocks, [Score.of(agreed, part, block, mean) for part, block in zip(parts, blocks, strict=True)]


def _possible(correlations: Floats, scores: Sequence[Score], square: float, *, centred: bool) -> Floats:
    """Correlations of scores that do not explain more of the target than there is, the sum of its squares.

    Without an intercept what is explained goes by squares about zero.
    """
    deviations = np.sqrt([score.variance if score.variance > 0.0 else 1.0 for score in scores])
    centres = np.array([0.0 if centred else score.centre for score in scores])
    sizes = np.hypot(deviations, centres)
    products = (correlations * np.outer(deviations, deviations) + np.outer(centres, centres)) / np.outer(sizes, sizes)
    alone = np.array([score.product for score in scores]) / (sizes * math.sqrt(max(square, 1e-300)))
    raised = moments.possible(products, alone) - products
    return correlations + raised * np.outer(sizes, sizes) / np.outer(deviations, deviations)


def _from_scores(agreed: Agreement, how: Cross, sketches: Mapping[str, Arrays]) -> Floats:
    """The correlations of the parties' scores."""
    n, size, names = agreed.study.n_rows, how.sketch.size, agreed.study.names
    if len(names) == 1:
        return np.eye(1)
    scores = np.column_stack(
        [agreed.taken_sketch(how.sketch, name, sketches[name], "cross", columns=(1,)) for name in names]
    )
    noise = np.array([agreed.noise(name, "cross", how.sketch.sensitivity(1.0)) ** 2 for name in names])
    noise /= n * SCORE_VARIANCE
    variances = np.add.outer(noise, noise) + size * np.outer(noise, noise) + (0.0 if size >= n else 1.0 / size)
    pairs = np.triu_indices(len(names), 1)
    products = (scores.T @ scores / (n * SCORE_VARIANCE))[pairs]
    found = np.eye(len(names))
    found[pairs] = np.clip(moments.towards_common(products, float(variances[pairs].mean())), -1.0, 1.0)
    return found + np.triu(found, 1).T


def from_columns(
    agreed: Agreement,
    how: Cross,
    sketches: Mapping[str, Arrays],
    parts: Sequence[Part],
    blocks: Sequence[Floats],
    known: Floats | float = 0.0,
) -> tuple[Floats, Floats]:
    """Covariances between parties less what is known of them, each from the sketches of its two columns.

    With their errors, by column.
    """
    n, size = agreed.study.n_rows, how.sketch.size
    ones = how.sketch.apply(np.ones((n, 1)))
    centred, noises = [], []
    for name, part in zip(agreed.study.names, parts, strict=True):
        shape = (len(part.selected),)
        sketch = agreed.taken_sketch(how.sketch, name, sketches[name], "cross", columns=shape)
        centred.append(sketch - ones * part.sums / n)
        noises.append(np.full(len(part.selected), agreed.noise(name, "cross", how.sketch.sensitivity(1.0)) ** 2))
    columns, owner = np.hstack(centred), np.repeat(np.arange(len(parts)), [len(part.selected) for part in parts])
    pairs = owner[:, None] < owner
    squares = np.concatenate([np.diag(block) for block in blocks])
    scales = np.sqrt(np.where(squares > 0.0, squares, 1.0))
    correlations = (columns.T @ columns - known) / np.outer(scales, scales)
    noise = np.concatenate(noises) / scales**2
    variances = np.add.outer(noise, noise) + size * np.outer(noise, noise) + (0.0 if size >= n else 1.0 / size)
    trust = np.zeros_like(correlations)
    trust[pairs] = moments.believed(correlations[pairs], variances[pairs])
    trust += trust.T
    return trust * correlations * np.outer(scales, scales), np.sqrt(np.sum(trust * variances, axis=1))


def whole(blocks: Sequence[Floats], between: Floats, errors: Floats) -> Floats:
    """One covariance of all columns; relative to the blocks, no column is known to vary by less than its error."""
    if not errors.any():
        return block_diag(*blocks) + between
    roots, inverses = [], []
    for block in blocks:
        values, vectors = np.linalg.eigh(block)
        values = np.maximum(values, _ROUNDED * max(float(values[-1]), 1e-300))
        roots.append((vectors * np.sqrt(values)) @ vectors.T)
        inverses.append((vectors / np.sqrt(values)) @ vectors.T)
    root, inverse = block_diag(*roots), block_diag(*inverses)
    least = np.sqrt(np.clip(errors, 1e-6, 1.0))
    relative = (np.eye(len(root)) + inverse @ between @ inverse) / np.outer(least, least)
    return root @ (moments.repaired(relative, 1.0) * np.outer(least, least)) @ root
