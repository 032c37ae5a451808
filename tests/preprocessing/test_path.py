"""A scaler, a mean and a quantile take the path of a fit: the same refusals, and warnings where the call is."""

import numpy as np
import pytest

from tacit import PrivateScaler
from tacit.preprocessing import private_mean, private_quantile

X = np.random.default_rng(0).normal(size=(100, 3))
CALLS = {
    "scaler": lambda **terms: PrivateScaler(**terms).fit(X),
    "mean": lambda **terms: private_mean(X, 1.0, **terms),
    "quantile": lambda **terms: private_quantile(X[:, 0], 0.5, [-1.0, 0.0, 1.0], **terms),
}
every_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


@every_call
@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"epsilon": 1e-40, "delta": 1e-300}, "too small for any useful noise|no zCDP budget fits"),
        ({"epsilon": 1e-11, "delta": 1e-300}, "too small for any useful noise|no zCDP budget fits"),
        ({"epsilon": 1e300}, "too large: use float"),
    ],
    ids=str,
)
def test_budgets_whose_noise_fits_no_grid_are_refused(call, terms, message):
    with pytest.raises(ValueError, match=message):
        call(**terms)


@every_call
def test_warnings_point_to_the_call(call):
    with pytest.warns(UserWarning, match="random_state is set|not below 1/n") as caught:
        call(epsilon=5.0, delta=0.5, random_state=0)
    assert len(caught) == 2
    assert {warning.filename for warning in caught} == {__file__}


@every_call
def test_other_terms_are_refused(call):
    with pytest.raises(TypeError, match="unexpected keyword argument 'epsilom'"):
        call(epsilom=1.0)
