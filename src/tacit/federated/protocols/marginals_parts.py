"""What the coordinator of the protocol "marginals" reads of one party: released moments, and the noise in them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tacit.federated.protocols import moments
from tacit.federated.protocols.base import Arrays, Floats, RefusedError
from tacit.federated.protocols.marginals_party import Target
from tacit.federated.protocols.marginals_plan import AGAIN, PRODUCTS, SQUARES, SUMS, Agreement, largest_target

_FURTHER = 1.5  # than in the fit: what rows with few entries are clipped to in predictions
_FLOOR = 1.0  # of eigenvalues, in standard deviations of the noise of a second moment


@dataclass(frozen=True, eq=False)
class Part:
    """What one party released of its selected columns, as sums over rows, and the deviations of the noise in it."""

    selected: NDArray[np.int64]
    row_norm: float
    filled: float  # rows that are not zero in these columns
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

    def mostly_empty(self, n: int) -> bool:
        """Whether most rows have nothing in these columns."""
        return self.filled < 0.5 * n

    def norm_to_predict(self, n: int) -> float:
        """What rows are clipped to in predictions: a long row of few entries is one large entry, and goes on further.

        A long row of many entries is more often far from the rows that the model was made for.
        """
        return self.row_norm * (_FURTHER if self.mostly_empty(n) else 1.0)

    def slope(self, target_mean: float) -> Floats:
        """Of the columns with the target less `target_mean`, summed over rows; shrunk by what noise explains."""
        shrunk = moments.shrunk(self.products, self.variance_of_products)
        return self.target_bound * shrunk - self.sums * (target_mean - self.target_mean)


def read_part(
    agreed: Agreement, name: str, y_bounds: tuple[float, float], first: Mapping[str, Arrays], found: Arrays
) -> Part:
    """One party's answers, read; answers of another form are refused."""
    study, k, holder = agreed.study, agreed.n_selected[name], agreed.study.label_holder
    said = found if agreed.label_sketch is None else first[holder]
    mean = float(taken(said, "label mean", (1,))[0]) if study.fit_intercept else 0.0
    bound, label_error = largest_target(y_bounds, mean), 0.0
    if agreed.label_sketch is not None and name != holder:
        released = taken(said, "labels", (agreed.label_sketch.size,))
        largest = Target.from_sketch(agreed.label_sketch, released).bound
        bound, label_error = bound * largest, _label_error(agreed, released) / largest**2
    selected = np.arange(k)
    if agreed.selects(name):
        selected = taken(found, "columns", (k,)).astype(np.int64)
        if len(np.unique(selected)) < k or selected.min() < 0 or selected.max() >= study.member(name).n_features:
            raise RefusedError(f"party {name!r} answered with columns that it does not have")
    norm, filled = taken(found, "row norm", (2,)).tolist()
    if norm <= 0.0:
        raise RefusedError(f"party {name!r} answered with a row norm that is not above 0")
    products = taken(found, "correlations", (k, 2))
    squares = np.zeros((k, k))
    squares[np.triu_indices(k)] = taken(found, "moments", (k * (k + 1) // 2,))
    noise = agreed.noise(name, "correlations", PRODUCTS)
    return Part(
        selected=selected,
        row_norm=norm,
        filled=filled,
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


def taken(answer: Arrays, name: str, shape: tuple[int, ...]) -> Floats:
    """An array of an answer; another form is refused."""
    array = answer.get(name)
    if array is None or array.shape != shape or not np.all(np.isfinite(array)):
        raise RefusedError(f"expected an answer with finite numbers {name!r} of shape {shape}")
    return array


def with_more(agreed: Agreement, name: str, part: Part, answer: Arrays) -> Part:
    """A party's part with the products that it released twice, each by what its noise leaves of it."""
    once, again = agreed.noise(name, "correlations", PRODUCTS) ** 2, agreed.noise(name, "cross", AGAIN) ** 2
    weight = once / (once + again)
    change = taken(answer, "cross", part.products.shape) - part.products
    variance = part.variance_of_products - weight * once
    return replace(part, products=part.products + weight * change, variance_of_products=variance)
