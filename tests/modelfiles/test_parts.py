"""Models that are made of parts: a table's columns, the parties of a study. The parts must fit together."""

import pytest

from tacit import LogisticRegression, PrivateEncoder, PrivateScaler, make_private_pipeline

from .support import LABELS, TEXTS, X, loaded, quiet, text_of

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


@pytest.mark.parametrize("text", ["\x1b[2K\r(0.1, 1e-6)-DP", "\u202eegaw", "\x9b31m", "x" * 20_000])
def test_texts_of_a_table_that_steer_a_terminal_are_refused(text, document, tmp_path):
    def refused(place, key):
        changed = document("table")
        told = changed["model"]["parameters"]
        held = {"target": told, "remark": told["not_covered"]["tuple"][0]["tuple"]}
        held["column"] = told["columns"]["tuple"][1]["column"]
        held["category"] = held["column"]["categories"]["tuple"]
        held[place][key] = text
        with pytest.raises(ValueError, match="without control characters"):
            loaded(changed, tmp_path)

    refused("target", "target")
    refused("remark", 1)
    refused("column", "name")
    refused("category", 1)


@pytest.mark.parametrize(
    "text", ["height\n(cm)", "a\tb", "Größe\u00a0", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"]
)
def test_texts_that_tables_have_are_kept(text, document, tmp_path):
    changed = document("table")
    changed["model"]["parameters"]["target"] = text
    assert loaded(changed, tmp_path).target == text


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


def edit_columns(model, **told):
    for column in model["attributes"]["columns_"]["tuple"]:
        if column["coded"]["is_text"]:
            column["coded"].update(told)


def without_guarantee(model):
    model.update(guarantee=None)
    del model["attributes"]["plan_"]


ENCODERS = {
    "no part of delta": lambda model: model["guarantee"].update(d0=0.0),
    "no part, no plan": lambda model: (model["guarantee"].update(d0=0.0), model["attributes"].pop("plan_")),
    "a small part, no plan": lambda model: (model["guarantee"].update(d0=1e-30), model["attributes"].pop("plan_")),
    "no guarantee": lambda model: without_guarantee(model),
    "no guarantee, a plan": lambda model: model.update(guarantee=None),
    "not found, it says": lambda model: edit_columns(model, found=False),
    "not found, no guarantee": lambda model: (edit_columns(model, found=False), without_guarantee(model)),
    "of a type": lambda model: edit_columns(model, found=False, typed=True),
    "found and of a type": lambda model: edit_columns(model, typed=True),
    "declared, as other ones": lambda model: model["parameters"].update(categories={"dict": {"kind": ["z"]}}),
    "declared and found": lambda model: model["parameters"].update(categories={"dict": {"size": ["L", "S"]}}),
}


@pytest.mark.parametrize("edit", ENCODERS)
@pytest.mark.parametrize("name", ["encoder", "encoder of a vote"])
def test_found_categories_need_a_guarantee_with_a_part_of_delta(name, edit, document, tmp_path):
    changed = document(name)
    assert loaded(changed, tmp_path).guarantee_.d0 > 0.0
    ENCODERS[edit](changed["model"])
    with pytest.raises(
        ValueError, match=r"plan_ and the guarantee keep different parts|there must be a plan|categories|to parse"
    ):
        loaded(changed, tmp_path)


@pytest.mark.parametrize("name", ["encoder of declared types", "encoder of an enum", "encoder of declared ones"])
def test_declared_categories_say_that_they_are(name, document, tmp_path):
    """They cost nothing, so there is no guarantee; the file then says who declared them."""
    changed = document(name)
    assert loaded(changed, tmp_path).guarantee_ is None
    edit_columns(changed["model"], typed="declared ones" in name)
    with pytest.raises(ValueError, match="that they are declared, that a type declares them, or that they were found"):
        loaded(changed, tmp_path)


@pytest.mark.parametrize(("key", "value"), [("found", 1), ("found", False), ("parsed", False), ("is_text", False)])
def test_a_column_that_a_vote_decided_on_says_so(key, value, document, tmp_path):
    changed = document("encoder of a vote")
    (size,) = [c["coded"] for c in changed["model"]["attributes"]["columns_"]["tuple"] if c["coded"]["name"] == "size"]
    assert size["found"] is size["parsed"] is True
    size[key] = value
    with pytest.raises(ValueError, match="columns_ must"):
        loaded(changed, tmp_path)


@pytest.mark.parametrize(
    "told",
    [{"categories": {"tuple": [f"c{k}" for k in range(30)]}}, {"empty": 20}, {"spare": True}],
    ids=["more than can be found", "more zeros than planned", "a number that was never voted on"],
)
def test_an_encoder_has_no_more_columns_than_were_planned(told, document, tmp_path):
    changed = document("encoder")
    edit_columns(changed["model"], **told)
    with pytest.raises(ValueError, match="no more columns than were planned"):
        loaded(changed, tmp_path)


def test_columns_of_zeros_stand_for_categories_that_were_to_be_found(document, tmp_path):
    changed = document("encoder of declared ones")
    edit_columns(changed["model"], empty=1)
    with pytest.raises(ValueError, match="empty columns only where categories were to be found"):
        loaded(changed, tmp_path)


def test_an_encoder_in_a_pipeline_cannot_say_that_it_has_released_nothing(document, tmp_path):
    changed = document("pipeline")
    (encoder,) = [part for part in changed["model"]["parts"].values() if part["class"] == "PrivateEncoder"]
    without_guarantee(encoder)
    edit_columns(encoder, found=False, typed=True)
    with pytest.raises(ValueError, match="must state the guarantee of the pipeline, and states none"):
        loaded(changed, tmp_path)


def test_an_encoder_that_is_fitted_again_keeps_no_plan_of_an_earlier_fit(tmp_path):
    model = PrivateEncoder(5.0).fit(TEXTS)
    assert model.plan_.event == model.guarantee_.event
    model.set_params(categories={"kind": ["x", "y"], "size": ["S", "L"]}).fit(TEXTS)
    assert not hasattr(model, "plan_")
    assert loaded(text_of(model, tmp_path), tmp_path).guarantee_ is None


SCALERS = {
    "scales that were found": lambda model, found: model.update(attributes=found["attributes"]),
    "another centre": lambda model, found: model["attributes"].update(mean_=found["attributes"]["mean_"]),
    "other clips": lambda model, found: model["attributes"].update(clip_low_=found["attributes"]["clip_low_"]),
    "no bounds": lambda model, _: model["parameters"].update(bounds=None),
    "other bounds": lambda model, _: model["parameters"].update(bounds={"tuple": [0.0, 2.0]}),
    "bounds of one column": lambda model, _: model["parameters"].update(bounds={"dict": {"a": {"tuple": [0.0, 1.0]}}}),
    "a row norm": lambda model, _: model["parameters"].update(bounds=None, trust_dtypes=True, row_norm=1.0),
}


@pytest.mark.parametrize("edit", SCALERS)
def test_a_scaler_without_a_guarantee_has_the_scales_of_its_bounds(edit, document, tmp_path):
    changed = document("scaler of declared columns")
    assert loaded(changed, tmp_path).guarantee_ is None
    SCALERS[edit](changed["model"], document("scaler")["model"])
    with pytest.raises(ValueError, match="a scaler without a guarantee must have declared bounds"):
        loaded(changed, tmp_path)


def test_types_that_are_trusted_stand_for_bounds_of_a_scaler(document, tmp_path):
    changed = document("scaler of declared columns")
    changed["model"]["parameters"].update(bounds=None, trust_dtypes=True)
    assert loaded(changed, tmp_path).guarantee_ is None


def test_a_scaler_that_is_fitted_again_keeps_no_plan_of_a_pipeline(tmp_path):
    scaler = make_private_pipeline(PrivateScaler(), LogisticRegression(), epsilon=5.0).fit(X, LABELS)[0]
    assert scaler.plan_.event == scaler.guarantee_.event
    scaler.set_params(bounds=(0.0, 1.0)).fit(X)
    assert not hasattr(scaler, "plan_")
    assert loaded(text_of(scaler, tmp_path), tmp_path).guarantee_ is None


STEPS = "pipeline with steps of others"


@pytest.mark.parametrize(
    ("step", "part", "changes", "message"),
    [
        ("functiontransformer", "parameters", {"func": {"function": "numpy.mean"}}, "makes one number of one number"),
        ("functiontransformer", "parameters", {"func": {"function": "os.system"}}, "makes one number of one number"),
        ("functiontransformer", "parameters", {"func": {"function": ["numpy.tanh"]}}, "makes one number of one number"),
        ("functiontransformer", "parameters", {"kw_args": {"dict": {"where": False}}}, "with nothing else set"),
        ("functiontransformer", "parameters", {"more": 1}, "must have exactly the keys"),
        ("normalizer", "attributes", {"n_features_in_": 2}, "as many columns"),
        ("normalizer", "attributes", {"n_features_in_": True}, "a whole number"),
        ("normalizer", "attributes", {"feature_names_in_": "a"}, "must name every column"),
        ("normalizer", None, {"class": "StandardScaler"}, "its class must be one of"),
        ("normalizer", None, {"guarantee": {}}, "has no guarantee of its own"),
        ("passthrough", "parameters", {"a": 1}, "must have exactly the keys"),
    ],
)
def test_steps_of_scikit_learn_are_held_to_what_a_pipeline_takes(step, part, changes, message, document, tmp_path):
    changed = document(STEPS)
    told = changed["model"]["parts"][step]
    (told if part is None else told[part]).update(changes)
    with pytest.raises(ValueError, match=message):
        loaded(changed, tmp_path)


@pytest.mark.parametrize(
    "changes",
    [
        {"categories": [["x", "z"], ["S", "L"]]},
        {"categories": "auto"},
        {"min_frequency": 3},
        {"handle_unknown": "error"},
        {"dtype": {"kind": "object"}},
    ],
)
def test_an_encoder_in_a_file_has_declared_categories(changes, document, tmp_path):
    changed = document("pipeline after declared categories")
    changed["model"]["parts"]["onehotencoder"]["parameters"].update(changes)
    with pytest.raises(ValueError, match=r"categories|must be one of float64"):
        loaded(changed, tmp_path)


def test_a_pattern_for_words_is_not_taken_from_a_file(document, tmp_path):
    changed = document("pipeline of words")
    changed["model"]["parts"]["hashingvectorizer"]["parameters"]["token_pattern"] = "(a+)+$"
    with pytest.raises(ValueError, match="token_pattern must be the default"):
        loaded(changed, tmp_path)


def test_a_step_of_scikit_learn_is_no_model_by_itself(document, tmp_path):
    changed = document(STEPS)
    changed["model"] = changed["model"]["parts"]["normalizer"]
    with pytest.raises(ValueError, match="its class must be one of"):
        loaded(changed, tmp_path)
