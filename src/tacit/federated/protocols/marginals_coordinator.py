"""The coordinator's side of the protocol "marginals": from what the parties released to one model.

No data comes in here. A party's columns are in the units of its rows, which are clipped to norm 1, until the model is
solved for in the users' units.

Moments between parties. From sketches of columns they are estimated one by one. From sketches of scores, one for each
party, only the correlations of scores are: a score is what the party's columns alone would predict, and columns of two
parties are taken as uncorrelated but for what their scores have in common. That is one number for a pair of parties,
and most of what matters: without it, what several parties know is counted several times.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from tacit.federated.protocols import moments
from tacit.federated.protocols.base import Arrays, Floats, Question, RefusedError, Rounds, Solution
from tacit.federated.protocols.marginals_party import Target
from tacit.federated.protocols.marginals_plan import (
    PRODUCTS,
    SCORE_CLIP,
    SCORE_VARIANCE,
    SQUARES,
    SUMS,
    Agreement,
    Cross,
    largest_target,
)

_FLOOR = 1.0  # of eigenvalues, in standard deviations of the noise of a second moment


@dataclass(frozen=True, eq=False)
class Part:
    """What one party released of its selected columns, as sums over rows, and the deviations of the noise in it."""

    selected: NDArray[np.int64]
    row_norm: float
    target_mean: float
    target_bound: float
    products: Floats  # of columns with the target, which is centred at `target_mean` and over `target_bound`
    sums: Floats
    squares: Floats
    variance_of_products: Floats
    noise_of_sums: float
    noise_of_squares: float  # on the diagonal; less by sqrt(2) off it

    def covariances(self, n: int) -> Floats:
        """Of the columns with each other, summed over rows; what lies within the noise is shrunk away."""
        centred = self.squares - np.outer(self.sums, self.sums) / n
        variances = np.full_like(centred, self.noise_of_squares**2 / 2.0)
        variances += np.add.outer(self.sums**2, self.sums**2) * (self.noise_of_sums / n) ** 2
        diagonal = moments.towards_mean(np.diag(centred), self.noise_of_squares**2)
        centred = moments.shrunk(centred, variances)
        np.fill_diagonal(centred, diagonal)
        return moments.repaired(centred, _FLOOR * self.noise_of_squares)

    def slope(self, target_mean: float) -> Floats:
        """Of the columns with the target less `target_mean`, summed over rows; shrunk by what noise explains."""
        shrunk = moments.shrunk(self.products, self.variance_of_products)
        return self.target_bound * shrunk - self.sums * (target_mean - self.target_mean)


def coordinate(agreed: Agreement) -> Rounds:
    """One to three rounds, then the solve."""
    study = agreed.study
    first: Mapping[str, Arrays] = {}
    if agreed.starts_with_bounds:
        first = yield agreed.bounds.questions()
    y_bounds = agreed.bounds.y_bounds(first)
    answers = yield {name: Question("marginals", _told(agreed, name, y_bounds, first)) for name in study.names}
    parts = [_part(agreed, name, y_bounds, first, answers[name]) for name in study.names]
    mean = float(np.mean([part.target_mean for part in parts]))
    blocks = [part.covariances(study.n_rows) for part in parts]
    covariance = block_diag(*blocks)
    if agreed.cross is not None:
        weights = [_own_weights(agreed, part, block, mean) for part, block in zip(parts, blocks, strict=True)]
        told = _scores(agreed.cross, study.n_rows, parts, blocks, weights)
        sketches = yield {name: Question("cross", told[i]) for i, name in enumerate(study.names)}
        if agreed.cross.columns:
            between, errors = _from_columns(agreed, agreed.cross, sketches, parts, blocks)
        else:
            between, errors = _from_scores(agreed, agreed.cross, sketches, blocks, weights)
        covariance = _joined(blocks, between, errors)
    units = np.concatenate([np.full(len(part.selected), part.row_norm) for part in parts])
    found = Moments(
        covariance=moments.repaired(covariance, 0.0) * np.outer(units, units) / study.n_rows,
        slope=np.concatenate([part.slope(mean) for part in parts]) * units / study.n_rows,
        mean=np.concatenate([part.sums for part in parts]) * units / study.n_rows,
        target_mean=mean,
    )
    solved, intercept = found.solve(study.loss, study.l1_radius, study.n_rows, fit_intercept=study.fit_intercept)
    coefs = {}
    for member, part, own in zip(study.members, parts, _split(solved, parts), strict=True):
        coefs[member.name] = np.zeros(member.n_features)
        coefs[member.name][part.selected] = own
    facts = {
        "y_bounds": y_bounds,
        "features": {name: part.selected for name, part in zip(study.names, parts, strict=True)},
        "row_norms": {name: part.row_norm for name, part in zip(study.names, parts, strict=True)},
        "cross": "zero" if agreed.cross is None else "columns" if agreed.cross.columns else "scores",
    }
    if study.entry_bound is not None:
        facts["entry_bounds"] = dict.fromkeys(study.names, study.entry_bound)
    return Solution(coefs, intercept, facts)


@dataclass(frozen=True, eq=False)
class Moments:
    """Per row, in the users' units: of all parties' selected columns, one party after the other, and of the target."""

    covariance: Floats
    slope: Floats
    mean: Floats
    target_mean: float

    def solve(self, loss: str, radius: float, n: int, *, fit_intercept: bool) -> tuple[Floats, float]:
        """The weights of all columns and the intercept, |weights|_1 <= radius."""
        if loss == "squared":
            centred = self.covariance if fit_intercept else self.covariance + np.outer(self.mean, self.mean)
            weights = moments.least_squares(centred, self.slope, radius)
            return weights, self.target_mean - float(self.mean @ weights) if fit_intercept else 0.0
        if not fit_intercept:  # labels are -1 and 1, not centred: as if half of them were positive
            return moments.logistic(self.covariance, self.slope / 2.0, 0.5, radius, self.mean)[0], 0.0
        least = 0.5 / n
        positive = min(1.0 - least, max(least, (self.target_mean + 1.0) / 2.0))
        weights, centre = moments.logistic(self.covariance, self.slope / 2.0, positive, radius)
        return weights, centre - float(self.mean @ weights)


def _told(agreed: Agreement, name: str, y_bounds: tuple[float, float], first: Mapping[str, Arrays]) -> Arrays:
    """What a party is told for its marginals."""
    if agreed.label_sketch is None:
        return {"y bounds": np.array(y_bounds)}
    holder = agreed.study.label_holder
    return {} if name == holder else {"labels": first[holder]["labels"]}


def _part(
    agreed: Agreement, name: str, y_bounds: tuple[float, float], first: Mapping[str, Arrays], found: Arrays
) -> Part:
    """One party's answers, read; answers of another form are refused."""
    study, k, holder = agreed.study, agreed.n_selected[name], agreed.study.label_holder
    said = found if agreed.label_sketch is None else first[holder]
    mean = float(_taken(said, "label mean", (1,))[0]) if study.fit_intercept else 0.0
    bound, label_error = largest_target(y_bounds, mean), 0.0
    if agreed.label_sketch is not None and name != holder:
        released = _taken(said, "labels", (agreed.label_sketch.size,))
        largest = Target.from_sketch(agreed.label_sketch, released).bound
        bound, label_error = bound * largest, _label_error(agreed, released) / largest**2
    selected = np.arange(k)
    if agreed.selects(name):
        selected = _taken(found, "columns", (k,)).astype(np.int64)
        if len(np.unique(selected)) < k or selected.min() < 0 or selected.max() >= study.member(name).n_features:
            raise RefusedError(f"party {name!r} answered with columns that it does not have")
    norm = float(_taken(found, "row norm", (1,))[0])
    if norm <= 0.0:
        raise RefusedError(f"party {name!r} answered with a row norm that is not above 0")
    products = _taken(found, "correlations", (k, 2))
    squares = np.zeros((k, k))
    squares[np.triu_indices(k)] = _taken(found, "moments", (k * (k + 1) // 2,))
    noise = agreed.noise(name, "correlations", PRODUCTS)
    return Part(
        selected=selected,
        row_norm=norm,
        target_mean=mean,
        target_bound=bound,
        products=products[:, 0],
        sums=products[:, 1] / SUMS,
        squares=squares + np.triu(squares, 1).T,
        variance_of_products=noise**2 + label_error * np.maximum(np.diag(squares), 0.0),
        noise_of_sums=noise / SUMS,
        noise_of_squares=agreed.noise(name, "moments", SQUARES),
    )


def _label_error(agreed: Agreement, released: Floats) -> float:
    """The mean squared error of a product of sketched labels with a column of norm 1: from noise, and the sketch."""
    sketch = agreed.label_sketch
    assert sketch is not None
    noise = agreed.noise(agreed.study.label_holder, "labels", sketch.sensitivity(1.0)) ** 2
    exact = max(float(released @ released) - sketch.size * noise, 0.0)
    return noise + (0.0 if sketch.size >= sketch.n_rows else exact / sketch.size)


def _taken(answer: Arrays, name: str, shape: tuple[int, ...]) -> Floats:
    """An array of an answer; another form is refused."""
    array = answer.get(name)
    if array is None or array.shape != shape or not np.all(np.isfinite(array)):
        raise RefusedError(f"expected an answer with finite numbers {name!r} of shape {shape}")
    return array


def _own_weights(agreed: Agreement, part: Part, block: Floats, mean: float) -> Floats:
    """What a party's columns would predict alone, for its rows of norm 1."""
    n = agreed.study.n_rows
    squares = block if agreed.study.fit_intercept else block + np.outer(part.sums, part.sums) / n
    return moments.least_squares(squares, part.slope(mean), agreed.study.l1_radius * part.row_norm)


def _scores(
    how: Cross, n: int, parts: Sequence[Part], blocks: Sequence[Floats], weights: Sequence[Floats]
) -> list[Arrays]:
    """What the parties are asked to sketch: weights and a constant, for a score clipped to [-1, 1]."""
    if how.columns:
        return [{} for _ in parts]
    told: list[Arrays] = []
    for part, block, own in zip(parts, blocks, weights, strict=True):
        deviation = math.sqrt(max(float(own @ block @ own) / n, 0.0))
        scaled = own / (SCORE_CLIP * deviation) if deviation > 0.0 else np.zeros_like(own)
        told.append({"score": np.append(scaled, -float(scaled @ part.sums) / n)})
    return told


def _from_scores(
    agreed: Agreement,
    how: Cross,
    sketches: Mapping[str, Arrays],
    blocks: Sequence[Floats],
    weights: Sequence[Floats],
) -> tuple[Floats, Floats]:
    """Covariances between parties from the correlations of their scores, and the error of those, for every column."""
    n, size, names = agreed.study.n_rows, how.sketch.size, agreed.study.names
    scores = np.column_stack([_taken(sketches[name], "cross", (size, 1)) for name in names])
    noise = np.array([agreed.noise(name, "cross", how.sketch.sensitivity(1.0)) ** 2 for name in names])
    noise /= n * SCORE_VARIANCE
    variances = np.add.outer(noise, noise) + size * np.outer(noise, noise) + (0.0 if size >= n else 1.0 / size)
    correlations = np.clip(
        moments.shrunk(scores.T @ scores / (n * SCORE_VARIANCE), variances, strictness=1.0), -1.0, 1.0
    )
    along = []  # covariances of a party's columns with its score, for a score of variance 1
    for block, own in zip(blocks, weights, strict=True):
        variance = float(own @ block @ own)
        along.append(block @ own / math.sqrt(variance) if variance > 0.0 else np.zeros_like(own))
    out = [[np.zeros((len(a), len(b))) for b in along] for a in along]
    for i, j in permutations(range(len(along)), 2):
        out[i][j] = correlations[i, j] * np.outer(along[i], along[j])
    return np.block(out), np.full(sum(map(len, blocks)), math.sqrt(float(variances.max())))


def _from_columns(
    agreed: Agreement, how: Cross, sketches: Mapping[str, Arrays], parts: Sequence[Part], blocks: Sequence[Floats]
) -> tuple[Floats, Floats]:
    """Covariances between parties, each from the sketches of its two columns, and their errors, by column."""
    n, size = agreed.study.n_rows, how.sketch.size
    ones = how.sketch.apply(np.ones((n, 1)))
    centred, noises = [], []
    for name, part in zip(agreed.study.names, parts, strict=True):
        sketch = _taken(sketches[name], "cross", (size, len(part.selected)))
        centred.append(sketch - ones * part.sums / n)
        noises.append(np.full(len(part.selected), agreed.noise(name, "cross", how.sketch.sensitivity(1.0)) ** 2))
    columns, owner = np.hstack(centred), np.repeat(np.arange(len(parts)), [len(part.selected) for part in parts])
    pairs = owner[:, None] < owner
    squares = np.concatenate([np.diag(block) for block in blocks])
    scales = np.sqrt(np.where(squares > 0.0, squares, 1.0))
    correlations = columns.T @ columns / np.outer(scales, scales)
    noise = np.concatenate(noises) / scales**2
    variances = np.add.outer(noise, noise) + size * np.outer(noise, noise) + (0.0 if size >= n else 1.0 / size)
    trust = np.zeros_like(correlations)
    trust[pairs] = moments.believed(correlations[pairs], variances[pairs])
    trust += trust.T
    return trust * correlations * np.outer(scales, scales), np.sqrt(np.sum(trust * variances, axis=1))


def _joined(blocks: Sequence[Floats], between: Floats, errors: Floats) -> Floats:
    """One covariance of all columns; relative to the blocks, no column is known to vary by less than its error."""
    if not errors.any():
        return block_diag(*blocks) + between
    roots, inverses = [], []
    for block in blocks:
        values, vectors = np.linalg.eigh(block)
        roots.append((vectors * np.sqrt(values)) @ vectors.T)
        inverses.append((vectors / np.sqrt(values)) @ vectors.T)
    root, inverse = block_diag(*roots), block_diag(*inverses)
    least = np.sqrt(np.clip(errors, 1e-6, 1.0))
    relative = (np.eye(len(root)) + inverse @ between @ inverse) / np.outer(least, least)
    return root @ (moments.repaired(relative, 1.0) * np.outer(least, least)) @ root


def _split(values: Floats, parts: Sequence[Part]) -> list[Floats]:
    return np.split(values, np.cumsum([len(part.selected) for part in parts])[:-1])
