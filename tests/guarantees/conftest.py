import pytest

from .cases import WITH_WIDE_FORM


@pytest.fixture(autouse=True)
def few_columns_are_many(request, monkeypatch):
    """Wide cases take the form for thousands of columns at three."""
    case = getattr(request.node, "callspec", None) and request.node.callspec.params.get("case")
    if getattr(case, "wide", False):
        monkeypatch.setattr(WITH_WIDE_FORM[case.solver.name], "FULL_MATRIX", 1)
