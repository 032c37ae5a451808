"""The counters that hold the house: arguments, constructors, spellings. `python tools/house.py` prints all of them."""

import re

from tools.house import SOURCE, constructors, long_signatures

MOST_PARAMETERS = 17
AGREEMENT = {"Study": 18}  # a line of a file for everything that organisations agree on


def test_no_function_has_more_than_eight_arguments():
    assert list(long_signatures()) == []


def test_constructors_can_be_held_in_mind():
    assert {name: count for name, count in constructors().items() if count > MOST_PARAMETERS} == AGREEMENT


def test_a_loss_has_one_spelling():
    other = re.compile("squared hinge|squared-hinge")
    found = {path.name for path in SOURCE.rglob("*.py") if other.search(path.read_text(encoding="utf8"))}
    assert found <= {"study.py"}  # the reader of older study files
