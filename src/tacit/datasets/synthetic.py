"""A synthetic set for each paper.

Two of the papers say how they made theirs. For the others the generator makes data like theirs, and its docstring says
so. `random_state` is anything that `numpy.random.default_rng` takes; the same integer gives the same data.
"""

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
from scipy import sparse
from scipy.special import expit
from sklearn.preprocessing import normalize
from sklearn.utils import check_scalar

Function = TypeVar("Function", bound=Callable[..., Any])

_RETURNS = """Returns
    -------
    X : array of shape (n_samples, n_features)
        CSR where the paper's data is sparse.
    y : array of shape (n_samples,)
        Values, or classes -1 and 1.
    coef : array of shape (n_features,)
        Only with `coef=True`."""


def _documented(function: Function) -> Function:
    """Put what the generators return into a docstring."""
    function.__doc__ = (function.__doc__ or "").replace("<returns>", _RETURNS)
    return function


@_documented
def make_dp_cd(
    n_samples: int = 1000,
    n_features: int = 1000,
    *,
    n_informative: int = 10,
    noise: float = 0.1,
    imbalance: float = 0.0,
    coef: bool = False,
    random_state: Any = None,
) -> Any:
    """The "Sparse LASSO" set of DP-CD (Mangold et al. 2022, section 6): a regression on a few of many columns.

    Columns are independent and standard normal; y is a noisy linear combination of `n_informative` of them. The
    defaults have the paper's size, 1,000 x 1,000 with 10 active columns. The paper does not give the law of the
    coefficients and of the noise: here the coefficients are standard normal and the noise is normal.

    Parameters
    ----------
    n_samples, n_features : int
        Rows and columns.
    n_informative : int
        How many columns y depends on.
    noise : float
        The standard deviation of the noise in y.
    imbalance : float
        Column j is multiplied by exp(imbalance * z_j) with z_j standard normal, and its coefficient divided by it:
        columns on different scales, where coordinate descent gains most. The paper has real sets for this
        (section 6.1).
    coef, random_state
        Whether the coefficients are returned too, and what numpy.random.default_rng takes (None: other data each time).

    <returns>

    Examples
    --------
    >>> from tacit.datasets import make_dp_cd
    >>> X, y, w = make_dp_cd(random_state=0, coef=True)
    >>> X.shape, int((w != 0).sum())
    ((1000, 1000), 10)
    """
    _count(n_samples=n_samples, n_features=n_features)
    _informative(n_informative, n_features)
    _real(noise=noise, imbalance=imbalance)
    rng = np.random.default_rng(random_state)
    X = rng.standard_normal((n_samples, n_features))
    weights = _few(rng, n_features, n_informative)
    y = X @ weights + noise * rng.standard_normal(n_samples)
    scale = np.exp(imbalance * rng.standard_normal(n_features))
    return (X * scale, y, weights / scale) if coef else (X * scale, y)


@_documented
def make_dp_scd(
    n_samples: int = 10_000,
    n_features: int = 90,
    *,
    task: str = "regression",
    noise: float = 0.1,
    coef: bool = False,
    random_state: Any = None,
) -> Any:
    """Rows of norm 1 with values, or with classes -1 and 1, as DP-SCD wants them (Damaskinos et al. 2021, appendix E).

    The paper has real sets only. It scales each column by its largest absolute value, then each row to norm 1, and
    centres the values to be predicted. The rows here are normal vectors scaled to norm 1, so that they lie evenly on
    the sphere and no scale has to be read off the data. A value is w.x plus normal noise, where w.x has deviation 1; it
    is centred by construction, not by its mean. A class is 1 with probability 1 / (1 + exp(-w.x / noise)).

    Parameters
    ----------
    n_samples, n_features : int
        Rows and columns; the default number of columns is that of YearPredictionMSD.
    task : {"regression", "classification"}
        What y is.
    noise : float
        The standard deviation of the noise; for classes, the temperature of the logistic function (0: no noise).
    coef, random_state
        Whether the coefficients are returned too, and what numpy.random.default_rng takes (None: other data each time).

    <returns>

    Examples
    --------
    >>> from tacit.datasets import make_dp_scd
    >>> X, y = make_dp_scd(task="classification", random_state=0)
    >>> sorted(set(y.tolist()))
    [-1, 1]
    """
    _count(n_samples=n_samples, n_features=n_features)
    _real(noise=noise)
    if task not in ("regression", "classification"):
        raise ValueError(f"task must be 'regression' or 'classification', got {task!r}")
    rng = np.random.default_rng(random_state)
    X = normalize(rng.standard_normal((n_samples, n_features)))
    direction = rng.standard_normal(n_features)
    weights = direction * np.sqrt(n_features) / np.linalg.norm(direction)
    margin = X @ weights
    y = margin + noise * rng.standard_normal(n_samples) if task == "regression" else _classes(rng, margin, noise)
    return (X, y, weights) if coef else (X, y)


@_documented
def make_sparse_frank_wolfe(
    n_samples: int = 1000,
    n_features: int = 10_000,
    *,
    row_nonzeros: int = 50,
    n_informative: int = 50,
    n_dense: int = 0,
    noise: float = 0.1,
    coef: bool = False,
    random_state: Any = None,
) -> Any:
    """Sparse rows with more columns than rows, and two classes, for sparse Frank-Wolfe (Raff, Khanna, Lu 2023).

    The paper has real sets only: text and the like (its table 2). The columns here are used as words are, the j-th most
    frequent one with weight 1/j; values lie in (0, 1]. Each row draws `row_nonzeros` words, and a word drawn twice
    counts once. The `n_informative` columns that matter are the first, most frequent ones, with coefficients of one
    size and random sign; a class is 1 with probability 1 / (1 + exp(-m / noise)), where m is w.x, centred, of deviation
    1. With `n_dense` the first columns are dense, as in the paper's set URL, which has 200 dense and informative ones
    (section 4).

    Parameters
    ----------
    n_samples, n_features : int
        Rows and columns.
    row_nonzeros : int
        How many words a row draws.
    n_informative : int
        How many columns the class depends on.
    n_dense : int
        How many of the columns are dense, with values uniform in (0, 1].
    noise : float
        The temperature of the logistic function (0: no noise).
    coef, random_state
        Whether the coefficients are returned too, and what numpy.random.default_rng takes (None: other data each time).

    <returns>

    Examples
    --------
    >>> from tacit.datasets import make_sparse_frank_wolfe
    >>> X, y = make_sparse_frank_wolfe(random_state=0)
    >>> X.shape, X.format
    ((1000, 10000), 'csr')
    """
    _count(n_samples=n_samples, n_features=n_features, row_nonzeros=row_nonzeros)
    _informative(n_informative, n_features)
    check_scalar(n_dense, "n_dense", Integral, min_val=0, max_val=n_features - 1)
    _real(noise=noise)
    rng = np.random.default_rng(random_state)
    frequency = 1.0 / np.arange(1, n_features - n_dense + 1)
    words = rng.choice(len(frequency), size=(n_samples, row_nonzeros), p=frequency / frequency.sum())
    columns = [np.unique(row) for row in words]
    X = _csr(1.0 - rng.random(sum(map(len, columns))), columns, len(frequency))
    if n_dense:
        X = sparse.hstack([sparse.csr_array(1.0 - rng.random((n_samples, n_dense))), X], format="csr")
    weights = np.zeros(n_features)
    weights[:n_informative] = rng.choice([-1.0, 1.0], size=n_informative)
    weights /= float(np.std(X @ weights)) or 1.0
    margin = X @ weights
    y = _classes(rng, margin - margin.mean(), noise)
    return (X, y, weights) if coef else (X, y)


@_documented
def make_featurewise_frank_wolfe(
    n_samples: int = 800,
    n_features: int = 8000,
    *,
    density: float = 0.01,
    coef_density: float = 0.01,
    noise_variance: float = 0.001,
    coef: bool = False,
    random_state: Any = None,
) -> Any:
    """The synthetic set of the featurewise distributed Frank-Wolfe paper (Lou and Cheung, section V).

    A matrix A with a share `density` of entries that are not zero, a vector x with a share `coef_density`, both with
    standard normal entries, and y = A x + noise with noise from N(0, 0.001), where 0.001 is read as the variance. The
    defaults are the 800 x 8,000 set with 1% of section V-E; the paper also has ratios 0.1, 0.05 and 0.001, and sizes
    200 x 2,000, 2,000 x 20,000 and 10,000 rows. An entry of A is not zero with probability `density`, each by itself; x
    has `coef_density * n_features` nonzeros, rounded, at least one.

    To give the columns to K parties as the paper does, split them evenly:
    `numpy.array_split(numpy.arange(n_features), K)`.

    Parameters
    ----------
    n_samples, n_features : int
        Rows and columns.
    density, coef_density : float
        In (0, 1].
    noise_variance : float
        The variance of the noise in y.
    coef, random_state
        Whether the coefficients are returned too, and what numpy.random.default_rng takes (None: other data each time).

    <returns>

    Examples
    --------
    >>> from tacit.datasets import make_featurewise_frank_wolfe
    >>> A, y, x = make_featurewise_frank_wolfe(random_state=0, coef=True)
    >>> A.shape, int((x != 0).sum())
    ((800, 8000), 80)
    """
    _count(n_samples=n_samples, n_features=n_features)
    for name, value in (("density", density), ("coef_density", coef_density)):
        check_scalar(value, name, Real, min_val=0, max_val=1, include_boundaries="right")
    _real(noise_variance=noise_variance)
    rng = np.random.default_rng(random_state)
    lengths = rng.binomial(n_features, density, size=n_samples)
    columns = [np.sort(rng.choice(n_features, size=length, replace=False, shuffle=False)) for length in lengths]
    A = _csr(rng.standard_normal(lengths.sum()), columns, n_features)
    x = _few(rng, n_features, max(1, round(coef_density * n_features)))
    y = A @ x + np.sqrt(noise_variance) * rng.standard_normal(n_samples)
    return (A, y, x) if coef else (A, y)


def make_dp_pca(
    n_samples: int = 10_000,
    n_features: int = 100,
    *,
    n_components: int = 10,
    signal: float = 10.0,
    decay: float = 0.8,
    components: bool = False,
    random_state: Any = None,
) -> Any:
    """Rows of norm 1 around a few directions, as DP-PCA expects them (Shang et al.; a spiked covariance).

    The paper has real sets only, with normalised rows. The rows here are normal with the covariance
    I + sum_i signal * decay^i v_i v_i', i = 0 ..., for orthonormal v_i drawn evenly, and then scaled to norm 1. Scaling
    a row of this law moves no direction: the v_i remain the principal components, in this order, with other variances.

    Parameters
    ----------
    n_samples, n_features : int
        Rows and columns.
    n_components : int
        How many directions stand out.
    signal : float
        By how much the variance of the first direction exceeds that of the rest.
    decay : float
        In (0, 1]: from one direction to the next.
    components : bool
        If True, the directions are returned too.
    random_state : int, Generator or None
        None: other data every time.

    Returns
    -------
    X : array of shape (n_samples, n_features)
    components : array of shape (n_components, n_features)
        Only with `components=True`.

    Examples
    --------
    >>> from tacit.datasets import make_dp_pca
    >>> X, V = make_dp_pca(random_state=0, components=True)
    >>> X.shape, V.shape
    ((10000, 100), (10, 100))
    """
    _count(n_samples=n_samples, n_features=n_features)
    check_scalar(n_components, "n_components", Integral, min_val=1, max_val=n_features)
    _real(signal=signal)
    check_scalar(decay, "decay", Real, min_val=0, max_val=1, include_boundaries="right")
    rng = np.random.default_rng(random_state)
    basis, triangle = np.linalg.qr(rng.standard_normal((n_features, n_components)))
    directions = (basis * np.sign(np.diag(triangle))).T  # with these signs they are evenly distributed
    spikes = rng.standard_normal((n_samples, n_components)) * np.sqrt(signal * decay ** np.arange(n_components))
    X = normalize(rng.standard_normal((n_samples, n_features)) + spikes @ directions)
    return (X, directions) if components else X


def _csr(values: Any, columns: list[Any], n_features: int) -> Any:
    """Rows with these values, in these columns."""
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in columns])])
    return sparse.csr_array((values, np.concatenate(columns), indptr), shape=(len(columns), n_features))


def _few(rng: np.random.Generator, n_features: int, count: int) -> Any:
    """Coefficients of which `count` are standard normal and the others zero."""
    weights = np.zeros(n_features)
    weights[rng.choice(n_features, size=count, replace=False)] = rng.standard_normal(count)
    return weights


def _classes(rng: np.random.Generator, margin: Any, noise: float) -> Any:
    """Class 1 with probability 1 / (1 + exp(-margin / noise)), else -1."""
    chance = expit(margin / noise) if noise > 0 else (margin > 0).astype(float)
    return np.where(rng.random(len(margin)) < chance, 1, -1)


def _count(**values: int) -> None:
    for name, value in values.items():
        check_scalar(value, name, Integral, min_val=1)


def _informative(n_informative: int, n_features: int) -> None:
    check_scalar(n_informative, "n_informative", Integral, min_val=1, max_val=n_features)


def _real(**values: float) -> None:
    for name, value in values.items():
        check_scalar(value, name, Real, min_val=0)
