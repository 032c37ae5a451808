import dataclasses
import math

import pytest

from tacit.problems import Penalty
from tests.solvers.support import task


def test_the_noise_level_of_a_task():
    problem = task("logistic", 1000, 9)
    assert problem.nu == pytest.approx(10 / (1000 * problem.budget.mu))
    assert problem.calm == pytest.approx(1e-3 / problem.nu)
    assert problem.width == 10
    assert task("logistic", 1000, 9, fit_intercept=False).width == 9
    assert task("logistic", 1000, 9, epsilon=math.inf).calm == math.inf


@pytest.mark.parametrize(
    ("penalty", "names"),
    [
        (Penalty(), ("l2",)),
        (Penalty(l2=1.0), ("l2",)),
        (Penalty(l1=1.0), ("l1",)),
        (Penalty(l1=1.0, l2=1.0), ("l2", "l1")),
        (Penalty(low=0.0), ("l2", "bounds")),
        (Penalty(l1=1.0, high=2.0), ("l1", "bounds")),
    ],
)
def test_the_penalties_that_a_task_asks_for(penalty, names):
    assert task("squared", 10, 2, penalty=penalty).penalties == names


def leaves(value):
    """What is in nested dicts."""
    return [leaf for part in value.values() for leaf in leaves(part)] if isinstance(value, dict) else [value]


def test_a_task_is_public_numbers_only():
    problem = task("logistic", 10, 2, epsilon=math.inf)
    kinds = {type(value) for value in leaves(dataclasses.asdict(problem))}
    assert kinds <= {int, float, str, bool, type(None)}
