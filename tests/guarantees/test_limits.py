"""As the noise vanishes every solver is its non-private counterpart, on the bounded data."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.linear_model import ElasticNet, LogisticRegression, Ridge
from sklearn.svm import SVC

from tacit.blocks.clip import clip_rows
from tacit.bounding.norms import _NORM_GRID
from tacit.problems import SQUARED_HINGE

from .cases import CASES, TEXT, D, private_fit, quiet, sample
from .recorder import transcript

pytestmark = quiet


def objective(loss, Z, targets, coef, intercept, l2):
    margins = Z @ coef.T + intercept
    if loss == "multinomial":
        values = logsumexp(margins, axis=1) - margins[np.arange(len(Z)), targets.astype(int)]
    else:
        values = {
            "squared": lambda m: np.square(m - targets) / 2,
            "logistic": lambda m: np.logaddexp(0.0, -targets * m),
            "hinge": lambda m: np.maximum(1 - targets * m, 0.0),
            "squared_hinge": lambda m: np.maximum(1 - targets * m, 0.0) ** 2,
        }[loss](margins[:, 0])
    return float(values.mean() + l2 / 2 * np.sum(coef**2))


def support_vectors(Z, targets, l2, fit_intercept):
    """The hinge loss, solved exactly; without an intercept by the same rows twice, turned around, which want none."""
    if not fit_intercept:
        Z, targets = np.vstack([Z, -Z]), np.concatenate([targets, -targets])
    model = SVC(kernel="linear", C=1 / len(Z) / l2, tol=1e-6).fit(Z, targets)
    return model.coef_, model.intercept_ * fit_intercept


def squared_hinge(Z, targets, l2, fit_intercept):
    """The squared hinge loss: smooth, so a quasi-Newton method finds it (scikit-learn penalises the intercept)."""
    n, d = Z.shape
    wide = np.hstack([Z, np.full((n, 1), float(fit_intercept))])
    loss = SQUARED_HINGE

    def value_and_slope(w):
        margins, penalty = wide @ w, l2 * np.append(w[:d], 0.0)
        value = loss.value(margins, targets).mean() + penalty @ w / 2
        return value, wide.T @ loss.derivative(margins, targets) / n + penalty

    found = minimize(value_and_slope, np.zeros(d + 1), jac=True, method="BFGS", options={"gtol": 1e-9})
    return found.x[None, :d], found.x[d:]


def peer(loss, Z, targets, l2, fit_intercept):
    if loss == "hinge":
        return support_vectors(Z, targets, l2, fit_intercept)
    if loss == "squared_hinge":
        return squared_hinge(Z, targets, l2, fit_intercept)
    if loss == "squared":
        model = Ridge(alpha=l2 * len(Z), fit_intercept=fit_intercept)
    else:
        model = LogisticRegression(C=1 / l2 / len(Z), fit_intercept=fit_intercept, tol=1e-10, max_iter=10_000)
    model.fit(Z, targets)
    return np.atleast_2d(model.coef_), model.intercept_


def fitted(case, request, X, targets):
    """A fit: the bounded data, its weights on them (coefficients, intercept), and the scales that lead to them."""
    with transcript() as steps:
        fit = private_fit(request, case.store(X), targets)
    if case.sparse:  # rows clipped to the norm, in the user's units
        centre, scale = np.zeros(D), np.ones(D)
        Z = clip_rows(X, request.task.row_norm or _NORM_GRID[steps[0].released])
    else:
        centre, scale = (fit.clip_low + fit.clip_high) / 2, (fit.clip_high - fit.clip_low) / 6
        Z = (np.clip(X, fit.clip_low, fit.clip_high) - centre) / scale
    if fit.y_bounds is not None:
        targets = np.clip(targets, *fit.y_bounds)
    return Z, targets, (fit.coef * scale, fit.intercept + fit.coef @ centre), scale


def _params(cases):
    """Both storages take turns with bounds that are declared or not; the other half is for the long run."""
    slow = [pytest.mark.slow]
    return [pytest.param(c, marks=slow * (c.sparse != c.declared or c.adjacency != "add-remove")) for c in cases]


barely_noisy = pytest.mark.parametrize("epsilon", [pytest.param(1e8, marks=pytest.mark.slow), math.inf])


@barely_noisy
@pytest.mark.parametrize("fit_intercept", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "case",
    _params(c for c in CASES + TEXT if c.optimises and not c.whole and (c.adjacency == "add-remove" or c.declared)),
    ids=str,
)
def test_without_noise_it_is_scikit_learn_on_the_bounded_data(case, fit_intercept, epsilon):
    n, l2 = 600, 0.01
    X, targets = sample(case, n)
    request = case.request(epsilon, n=n, l2=l2, fit_intercept=fit_intercept, seed=0, solver=case.solver())
    Z, targets, ours, _ = fitted(case, request, X, targets)
    best = objective(case.loss, Z, targets, *peer(case.loss, Z, targets, l2, fit_intercept), l2)
    assert best * (1 - 1e-6) <= objective(case.loss, Z, targets, *ours, l2) <= best * (1 + 1e-3)


# --- penalties and bounds that make corners ---------------------------------------------------------------------------

BOUNDS = (np.array([-0.2, -math.inf, 0.05]), np.array([0.2, 0.03, 0.9]))  # in the user's units


def cornered(Z, targets, l1, l2, low, high):
    """The squared loss with all of it, by a quasi-Newton method; |w| is u + v with w = u - v and u, v >= 0."""
    d = Z.shape[1]

    def value(x):
        w = x[:d] - x[d : 2 * d]
        return objective("squared", Z, targets, w[None, :], x[-1:], l2) + l1 * x[:-1].sum()

    sides = [(max(lo, 0.0), max(hi, 0.0)) for lo, hi in zip(low, high, strict=True)]
    sides += [(max(-hi, 0.0), max(-lo, 0.0)) for lo, hi in zip(low, high, strict=True)]
    options = {"maxiter": 10_000, "maxfun": 100_000, "ftol": 1e-14, "gtol": 1e-9}
    found = minimize(value, np.zeros(2 * d + 1), method="L-BFGS-B", bounds=[*sides, (None, None)], options=options).x
    return (found[:d] - found[d : 2 * d])[None, :], found[-1:]


CORNERS = {  # what is asked of coefficients, and l2
    "lasso": ({"l1": 0.3}, 0.0),
    "elastic net": ({"l1": 0.15}, 0.15),
    "non-negative elastic net": ({"l1": 0.15, "coef_bounds": (0.0, math.inf)}, 0.15),
    "box": ({"coef_bounds": BOUNDS}, 0.01),
}
SERVED = [
    (case, kind)
    for case in CASES
    for kind, (asked, _) in CORNERS.items()
    if case.loss == "squared" and case.adjacency == "add-remove" and case.sparse == case.declared and not case.whole
    if {"bounds" if name == "coef_bounds" else name for name in asked} <= set(case.solver.serves.penalties)
]


@barely_noisy
@pytest.mark.parametrize(("case", "kind"), SERVED, ids=str)
def test_without_noise_corners_are_those_of_scikit_learn(case, kind, epsilon):
    asked, l2 = CORNERS[kind]
    n = 600
    X, targets = sample(case, n)
    request = case.request(epsilon, n=n, l2=l2, seed=0, solver=case.solver(), **asked)
    Z, targets, ours, scale = fitted(case, request, X, targets)
    l1 = asked.get("l1", 0.0)
    if kind == "box":
        theirs = cornered(Z, targets, l1, l2, *(np.broadcast_to(side, D) * scale for side in BOUNDS))
    else:
        model = ElasticNet(alpha=l1 + l2, l1_ratio=l1 / (l1 + l2), positive="coef_bounds" in asked, tol=1e-10)
        model.set_params(max_iter=100_000).fit(Z, targets)
        theirs = model.coef_[None, :], np.array([model.intercept_])

    def value(coef, intercept):
        return objective("squared", Z, targets, coef, intercept, l2) + l1 * np.abs(coef).sum()

    assert value(*theirs) * (1 - 1e-6) <= value(*ours) <= value(*theirs) * (1 + 1e-4)
    if "coef_bounds" in asked:
        low, high = (np.broadcast_to(side, D) for side in asked["coef_bounds"])
        coef = ours[0][0] / scale
        assert np.all((coef >= low - 1e-9) & (coef <= high + 1e-9))
        assert np.any(np.isclose(coef, low) | np.isclose(coef, high))
