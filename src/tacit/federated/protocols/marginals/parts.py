"""What the coordinator of the protocol "marginals" reads of one party: released moments, and the noise in them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tacit._types import Floats
from tacit.federated.protocols import moments
from tacit.federated.protocols.base import Arrays, RefusedError, largest_sum, taken
from tacit.federated.protocols.bounds import LARGEST_BOUND, SMALLEST_BOUND
from tacit.federated.protocols.marginals.party import Target
from tacit.federated.protocols.marginals.rules import AGAIN, PRODUCTS, SQUARES, SUMS, Agreement, largest_target
from tacit.federated.study import Study

_FURTHER = 1.5  # than in the fit: what rows with few entries are clipped to in predictions
_LARGEST = 1e100  # of a number of rows that is only compared
_ROUNDED = 1e-6  # that parts of a whole may be off
_FLOOR = 1.0  # of eigenvalues, in standard deviations of the noise of a second moment


@dataclass(frozen=True, eq=False)
class Part:
    """What one party released of its selected columns, as sums over rows, and the deviations of the noise in it."""

    selected: NDArray[np.int64]
    row_norm: float
    filled: float  # rows that are not zero in these columns
    target_mean: float | Floats  # of one-hot labels of more than two classes: what part each has
    target_bound: float
    products: Floats  # of columns with the target, which is centred at `target_mean` and over `target_bound`
    sums: Floats
    squares: Floats
    variance_of_products: Floats
    noise_of_sums: float
    noise_of_squares: float  # on the diagonal; less by sqrt(2) off it

    def covariances(self, n: int) -> Floats:
        """The columns' covariances, summed over rows; what lies within the noise is shrunk away."""
        centred = self.squares - np.outer(self.sums, self.sums) / n
        variances = np.full_like(centred, self.noise_of_squares**2 / 2.0)
        variances += np.add.outer(self.sums**2, self.sums**2) * (self.noise_of_sums / n) ** 2
        diagonal = moments.towards_mean(np.diag(centred), self.noise_of_squares**2)
        centred = moments.shrunk(centred, variances)
        np.fill_diagonal(centred, diagonal)
        return moments.repaired(centred, self.floor)

    @property
    def floor(self) -> float:
        """What no direction is taken to vary by less than."""
        return _FLOOR * self.noise_of_squares

    def mostly_empty(self, n: int) -> bool:
        """Whether most rows have nothing in these columns."""
        return self.filled < 0.5 * n

    def norm_to_predict(self, n: int) -> float:
        """What rows are clipped to in predictions.

        Where most rows are empty a long row is one large entry, which may go further than in the fit. Elsewhere it is
        more often far from the rows that the model was made for.
        """
        return self.row_norm * (_FURTHER if self.mostly_empty(n) else 1.0)

    def slope(self, target_mean: float | Floats) -> Floats:
        """Products of columns and target less `target_mean`, summed over rows; shrunk by what noise explains.

        Of more than two classes, a column for each.
        """
        shrunk = moments.shrunk(self.products.T, self.variance_of_products).T
        return self.target_bound * shrunk - np.multiply.outer(self.sums, target_mean - self.target_mean)


def read_part(
    agreed: Agreement, name: str, y_bounds: tuple[float, float], first: Mapping[str, Arrays], found: Arrays
) -> Part:
    """One party's answers, read; answers of another form are refused."""
    study, k, holder = agreed.study, agreed.n_selected[name], agreed.study.label_holder
    n = study.n_rows
    speaker, said = (name, found) if agreed.label_sketch is None else (holder, first[holder])
    mean = label_mean(speaker, said, y_bounds, study.outputs) if study.fit_intercept else 0.0
    bound, label_error = largest_target(y_bounds, mean), 0.0
    if agreed.label_sketch is not None and name != holder:
        released = sketched_labels(agreed, first)
        largest = Target.from_sketch(agreed.label_sketch, released).bound
        bound, label_error = bound * largest, _label_error(agreed, released) / largest**2
    selected = np.arange(k)
    if agreed.selects(name):
        selected = _columns(agreed, name, found)
    norm, filled = row_norm(study, name, k, found)
    noise, noise_of_squares = agreed.noise(name, "correlations", PRODUCTS), agreed.noise(name, "moments", SQUARES)
    products = taken(name, found, "correlations", (k, study.outputs + 1), largest_sum(n, 1.0, noise))
    of_target, variance = (products[:, 0], noise**2) if study.outputs == 1 else of_classes(products[:, :-1], noise**2)
    squares = np.zeros((k, k))
    most = largest_sum(n, 1.0, noise_of_squares)
    squares[np.triu_indices(k)] = taken(name, found, "moments", (k * (k + 1) // 2,), most)
    return Part(
        selected=selected,
        row_norm=norm,
        filled=filled,
        target_mean=mean,
        target_bound=bound,
        products=of_target,
        sums=products[:, -1] / SUMS,
        squares=squares + np.triu(squares, 1).T,
        variance_of_products=variance + label_error * np.maximum(np.diag(squares), 0.0),
        noise_of_sums=noise / SUMS,
        noise_of_squares=noise_of_squares,
    )


def sketched_labels(agreed: Agreement, first: Mapping[str, Arrays]) -> Floats:
    """What the party that holds the labels released of them."""
    holder = agreed.study.label_holder
    assert agreed.label_sketch is not None
    return agreed.taken_sketch(agreed.label_sketch, holder, first[holder], "labels")


def of_classes(products: Floats, variance: float) -> tuple[Floats, float]:
    """Products with centred one-hot labels, which add up to zero over the classes, and the variance that is left."""
    return products - products.mean(axis=1, keepdims=True), variance * (1.0 - 1.0 / products.shape[1])


def label_mean(name: str, said: Arrays, y_bounds: tuple[float, float], outputs: int = 1) -> float | Floats:
    """The mean of the labels, which lies within their bounds, but for rounding; or what part each of K classes has."""
    if outputs > 1:
        parts = taken(name, said, "label mean", (outputs,), 1.0)
        if not (np.all(parts > 0.0) and abs(float(parts.sum()) - 1.0) < _ROUNDED):
            raise RefusedError(f"party {name!r} answered 'label mean' with numbers that are not parts of a whole")
        return parts
    low, high = y_bounds
    mean = float(taken(name, said, "label mean", (1,), 2.0 * max(-low, high, high - low))[0])
    if not low - (high - low) <= mean <= high + (high - low):
        raise RefusedError(f"party {name!r} answered 'label mean' with a number that is not between the bounds")
    return mean


def _columns(agreed: Agreement, name: str, found: Arrays) -> NDArray[np.int64]:
    """The columns that a party selected."""
    k, features, columns = agreed.n_selected[name], agreed.study.member(name).n_features, found.get("columns")
    if columns is None or columns.shape != (k,) or columns.dtype.kind != "i":
        raise RefusedError(f"party {name!r} did not answer with 'columns' as it should")
    if len(np.unique(columns)) < k or columns.min() < 0 or columns.max() >= features:
        raise RefusedError(f"party {name!r} answered with columns that it does not have")
    return columns.astype(np.int64)


def row_norm(study: Study, name: str, columns: int, found: Arrays) -> tuple[float, float]:
    """What a party clipped its rows of so many columns to, and how many of them are not zero."""
    declared = study.entry_bound
    longest = LARGEST_BOUND if declared is None else math.sqrt(columns) * declared
    norm, filled = taken(name, found, "row norm", (2,), _LARGEST).tolist()
    if not min(SMALLEST_BOUND, longest) <= norm <= max(longest, 1.0):
        raise RefusedError(f"party {name!r} answered 'row norm' with a number that no data gives")
    return norm, filled


def _label_error(agreed: Agreement, released: Floats) -> float:
    """The mean squared error of a product of sketched labels with a column of norm 1: from noise, and the sketch."""
    sketch = agreed.label_sketch
    assert sketch is not None
    noise = agreed.noise(agreed.study.label_holder, "labels", sketch.sensitivity(1.0)) ** 2
    exact = max(float(released @ released) - sketch.size * noise, 0.0)
    return noise + (0.0 if sketch.size >= sketch.n_rows else exact / sketch.size)


def with_more(agreed: Agreement, name: str, part: Part, answer: Arrays) -> Part:
    """A party's part with the products that it released twice, each by what its noise leaves of it."""
    once, again = agreed.noise(name, "correlations", PRODUCTS) ** 2, agreed.noise(name, "cross", AGAIN) ** 2
    weight = once / (once + again)
    most = largest_sum(agreed.study.n_rows, 1.0, math.sqrt(again))
    change = taken(name, answer, "cross", part.products.shape, most) - part.products
    variance = part.variance_of_products - weight * once
    return replace(part, products=part.products + weight * change, variance_of_products=variance)
