import json

import pytest

from tacit.commands.schema import Schema, parsed, split
from tacit.modelfiles import Column

TOML = """
target = "income"
classes = ["<=50K", ">50K"]
drop = ["wage"]

[columns]
age = "number"
kind = ["clerk", "farmer, or so"]
grade = [3, 1, 2]

[fill]
age = 40
kind = "clerk"
"""
VALUES = {
    "target": "income",
    "classes": ["<=50K", ">50K"],
    "drop": ["wage"],
    "columns": {"age": "number", "kind": ["clerk", "farmer, or so"], "grade": [3, 1, 2]},
    "fill": {"age": 40, "kind": "clerk"},
}


@pytest.mark.parametrize(("name", "text"), [("s.toml", TOML), ("s.json", json.dumps(VALUES))])
def test_a_file_says_what_the_flags_could(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert Schema.load(tmp_path / name) == Schema(
        columns={"age": None, "kind": ("clerk", "farmer, or so"), "grade": (1.0, 2.0, 3.0)},
        drop=("wage",),
        fill={"age": "40", "kind": "clerk"},
        target="income",
        classes=("<=50K", ">50K"),
    )


def test_the_command_line_goes_before_the_file(tmp_path):
    (tmp_path / "s.toml").write_text(TOML + "hours = 40\n")
    schema = Schema.load(tmp_path / "s.toml").with_words(["grade=a,b"], "hours", None, "x,y", ["age=0"], "0,1")
    assert schema.columns == {"age": None, "hours": None, "kind": ("clerk", "farmer, or so"), "grade": ("a", "b")}
    assert schema.drop == ("x", "y")
    assert schema.fill == {"age": "0", "kind": "clerk", "hours": "40"}
    assert schema.classes == (0.0, 1.0)
    assert schema.target == "income"


def test_truth_values_are_numbers_and_the_command_line_may_say_otherwise(tmp_path):
    (tmp_path / "s.toml").write_text("columns = {a = 'boolean', b = 'boolean', c = 'boolean'}")
    schema = Schema.load(tmp_path / "s.toml")
    assert (schema.columns, schema.truths) == (dict.fromkeys("abc"), {"a", "b", "c"})
    assert schema.with_words(["a=1,2"], "b", "d", None, [], None).truths == {"c", "d"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing here", "is not a schema"),
        ("[rows]", "unknown fields 'rows'"),
        ("target = 3", "target must be the name"),
        ("columns = 3", "columns must be a table"),
        ("drop = 'age'", "drop must be a list"),
        ("drop = [1]", "drop must be a list"),
        ("[columns]\nage = 3", "columns.age must be 'number', 'boolean' or the list"),
        ("[columns]\nage = []", "at least one value"),
        ("[columns]\nage = ['a', 'a']", "each of them once"),
        ("[columns]\nage = ['a', 1]", "a list of texts or a list of finite numbers"),
        ("[columns]\nage = [true, false]", "a list of texts or a list of finite numbers"),
        ("classes = 'ab'", "classes must be a list"),
        ("y_bounds = [1]", "y_bounds must be a pair"),
        ("y_bounds = [0, nan]", "y_bounds must be a pair"),
        ("fill = 1", "fill must be a table"),
        ("[fill]\nage = [1]", "fill.age must be a text or a finite number"),
    ],
)
def test_a_bad_file_is_refused(tmp_path, text, message):
    (tmp_path / "s.toml").write_text(text)
    with pytest.raises(ValueError, match=message):
        Schema.load(tmp_path / "s.toml")


def test_json_that_is_not_a_table_is_refused(tmp_path):
    (tmp_path / "s.json").write_text("[1]")
    with pytest.raises(ValueError, match="must hold the fields target, classes"):
        Schema.load(tmp_path / "s.json")


def test_lists_on_the_command_line():
    assert split('a, b,"c, d",') == ["a", "b", "c, d"]
    assert parsed("x", "3,1,2.5") == (1.0, 2.5, 3.0)
    assert parsed("x", "3,1,?") == ("3", "1", "?")
    assert parsed("x", "1,nan") == ("1", "nan")  # nan is no number to compare with
    with pytest.raises(ValueError, match="--fill takes column=value, got 'age'"):
        Schema().with_words([], None, None, None, ["age"], None)


def test_names_of_features():
    assert Column("age").features == ["age"]
    assert Column("kind", ("a", "b")).features == ["kind = a", "kind = b"]
    assert Column("grade", (1.0, 2.5)).features == ["grade = 1", "grade = 2.5"]
