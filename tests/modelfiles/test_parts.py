"""Models that are made of parts: a table's columns, the parties of a study. The parts must fit together."""

import pytest

from .support import loaded, quiet

pytestmark = quiet


@pytest.mark.parametrize("part", ["table", "clipper", "scaler"])
def test_a_model_inside_a_table_must_fit_it(part, document, tmp_path):
    changed = document("table")
    changed["model"]["parts"]["model"] = document(part)["model"]
    with pytest.raises(ValueError, match=r"its class must be one of|columns must give as many features"):
        loaded(changed, tmp_path)


def test_columns_of_a_table_are_checked(document, tmp_path):
    for place, key, value in (
        (0, "name", 3),
        (0, "name", "kind"),
        (0, "fill", "x"),
        (0, "fill", {"float": "nan"}),
        (1, "categories", {"tuple": ["x"]}),
        (1, "categories", {"tuple": ["x", "x"]}),
        (1, "categories", {"tuple": ["x", 1.0]}),
        (1, "categories", ["x", "y"]),
        (1, "fill", 1.0),
    ):
        changed = document("table")
        changed["model"]["parameters"]["columns"]["tuple"][place]["column"][key] = value
        with pytest.raises(ValueError, match="column"):
            loaded(changed, tmp_path)


def test_parties_must_agree(document, tmp_path):
    for attribute in ("coefs_", "features_", "row_norms_", "uplink_bytes_"):
        changed = document("federated lasso")
        held = changed["model"]["attributes"][attribute]["dict"]
        held["north"] = held.pop("west")
        with pytest.raises(ValueError, match="must be about the same parties"):
            loaded(changed, tmp_path)
    changed = document("federated lasso")
    held = changed["model"]["attributes"]["coefs_"]["dict"]
    held["east"] = held.pop("east")  # the same parties in another order
    with pytest.raises(ValueError, match="coef_ must be the coefficients of the parties"):
        loaded(changed, tmp_path)
