import pytest

from tacit import ElasticNet, Lasso, LinearRegression, LogisticRegression, PrivateScaler, Ridge, RowClipper, utils

ESTIMATORS = [ElasticNet(), Lasso(), LinearRegression(), LogisticRegression(), PrivateScaler(), Ridge(), RowClipper()]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_every_expected_failure_has_a_reason(estimator):
    checks = utils.expected_failed_checks(estimator)
    assert all(name.startswith("check_") and len(reason) > 10 for name, reason in checks.items())


def test_reasons_are_by_class_and_handed_out_as_a_copy(monkeypatch):
    monkeypatch.setitem(utils._REASONS, "Ridge", {"check_x": "because of the noise"})
    first = utils.expected_failed_checks(Ridge())
    assert first == {"check_x": "because of the noise"}
    first.clear()
    assert utils.expected_failed_checks(Ridge()) == {"check_x": "because of the noise"}
    assert utils.expected_failed_checks(LinearRegression()) == {}


def test_other_objects_have_none():
    assert utils.expected_failed_checks(object()) == {}
