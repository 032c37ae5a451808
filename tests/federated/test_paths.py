"""Models of other radii are those that a fit with the radius would give, and cost nothing."""

import math

import numpy as np
import pytest

from tacit import load, save
from tacit.federated import FeatureSharing, FederatedLasso, FederatedLogisticRegression, Marginals, Party

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (200, 5))
Y = X[:, 0] - 0.5 * X[:, 3] + 0.1 * RNG.normal(size=200)
RADII = [0.2, 1.0, 3.0]


def parties(y=Y):
    return [Party(X[:, :2], y), Party(X[:, 2:])]


@pytest.mark.parametrize(
    ("kind", "labels"),
    [(FederatedLasso, "shared"), (FederatedLogisticRegression, "shared"), (FederatedLasso, "held")],
)
def test_a_path_is_that_of_separate_fits_without_noise(kind, labels):
    y, more = (Y, {"y_bounds": (-2, 2)}) if kind is FederatedLasso else (Y > 0, {})
    products = {"shared": "local", "held": "masked"}[labels]
    told = {"epsilon": math.inf, "entry_bound": 1.0, "labels": labels, "protocol": Marginals(products=products)} | more
    secret = {"ids": range(200), "secret": b"sixteen bytes or more"} if labels == "held" else {}
    given = [Party(X[:, :2], y, **secret), Party(X[:, 2:], **secret)]
    coefs, intercepts = kind(**told, l1_radius=1.0).fit(given).l1_path(RADII)
    assert coefs.shape == (3, 5)
    for radius, coef, intercept in zip(RADII, coefs, intercepts, strict=True):
        alone = kind(**told, l1_radius=radius).fit(given)
        np.testing.assert_allclose(coef, np.ravel(alone.coef_), atol=1e-6)
        np.testing.assert_allclose(intercept, alone.intercept_, atol=1e-6)
        assert np.abs(coef).sum() <= radius * (1 + 1e-9)


def test_a_private_path_goes_through_the_model(tmp_path):
    model = FederatedLasso(epsilon=5.0, l1_radius=1.0, entry_bound=1.0, y_bounds=(-2, 2), random_state=1)
    model.fit(parties())
    coefs, intercepts = model.l1_path([1.0])
    assert coefs[0].tolist() == model.coef_.tolist()
    assert intercepts[0] == model.intercept_
    with pytest.raises(ValueError, match="radii must be above 0"):
        model.l1_path([0.0])
    save(model, tmp_path / "model.json")
    with pytest.raises(ValueError, match="a model that was loaded has none"):
        load(tmp_path / "model.json").l1_path([1.0])
    model.set_params(protocol=FeatureSharing(n_iter=2)).fit(parties())
    with pytest.raises(ValueError, match="which the protocol 'marginals' has"):
        model.l1_path([1.0])
