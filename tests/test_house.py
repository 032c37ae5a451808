"""The counters that hold the house: arguments, constructors, spellings. `python tools/house.py` prints all of them."""

import re

from tools.house import SOURCE, constructors, long_signatures

MOST_PARAMETERS = 17
STILL_LONG = {  # kernels that do not take tuples yet: the list may only get shorter
    "_dense_sum",
    "_moves",
    "_single",
    "column_sum",
    "dense_batch",
    "dense_gradient",
    "dense_pass",
    "dense_steps",
    "draw_by_rates",
    "lazy_step",
    "look_at_rows",
    "residual_sums",
    "sparse_batch",
    "sparse_gradient",
    "sparse_pass",
    "sparse_products",
    "sparse_step",
    "sparse_steps",
    "sparse_walk",
}


def test_no_other_function_has_more_than_eight_arguments():
    long = {where.split()[-1] for _, where in long_signatures()}
    assert long == STILL_LONG


def test_constructors_can_be_held_in_mind():
    assert {name: count for name, count in constructors().items() if count > MOST_PARAMETERS} == {}


def test_a_loss_has_one_spelling():
    other = re.compile("squared hinge|squared-hinge")
    found = {path.name for path in SOURCE.rglob("*.py") if other.search(path.read_text(encoding="utf8"))}
    assert found <= {"study.py"}  # the reader of older study files
