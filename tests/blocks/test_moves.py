"""How far one row moves a sum: never further than is stated, and as far as that for some row."""

import math
from pathlib import Path

import numpy as np
import pytest

import tacit
from tacit.blocks import Moves
from tacit.kernels.rows import sum_depth
from tacit.privacy import float_sum_slack
from tests.solvers.support import either, task

N = 1_000
R = 1.7
MOVES = Moves(N, depth=30)


def at_most(vectors, norm):
    """The same vectors, scaled down to this norm where they are longer."""
    return vectors * np.minimum(1.0, norm / np.maximum(np.linalg.norm(vectors, axis=1), 1e-9))[:, None]


def outer(x):
    return np.outer(x, x).ravel()


def turned(x):
    """x x^T V clipped to a norm, V a single direction: two can be nearly opposite."""
    image = x * x[0]
    return image * min(1.0, 0.1 / max(np.linalg.norm(image), 1e-300))


ANY = np.random.default_rng(0).normal(size=(300, 3)) * np.geomspace(0.01, 10.0, 300)[:, None]
ALONG = np.vstack([np.eye(3), -np.eye(3), np.full((1, 3), 1 / math.sqrt(3.0)), np.zeros((1, 3)), ANY])
BALL = at_most(R * ALONG, R)
POSITIVE = np.abs(BALL)
DIAGONAL = np.array([[1.0, 1.0, 0.0], [1.0, -1.0, 0.0]]) / math.sqrt(2.0)
CUBE = np.clip(np.vstack([np.ones((1, 3)), -np.ones((1, 3)), ANY]), -1.0, 1.0)
SIMPLEX = np.array([[2.0, 2.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 2.0, 2.0, 1.0], [0.0] * 6])

SHAPES = {  # the sensitivity, all that a row can add, and how near the stated distance some pair comes
    "vector": (MOVES.vector(R), BALL, 1.0),
    "non-negative": (MOVES.non_negative(R), POSITIVE, 1.0),
    "between": (MOVES.between(-1.0, 3.0), np.linspace(-1.0, 3.0, 9)[:, None], 1.0),
    "outer": (MOVES.outer(R), np.array([outer(x) for x in BALL]), 1.0),
    "outer, clipped": (MOVES.outer(R, 0.1), np.array([turned(x) for x in BALL]), 0.9),
    "image": (MOVES.image(R), np.array([x * x[0] for x in BALL]), 1.0),
    "columns": (MOVES.columns(R, R, 3), BALL, 1.0),
    "unit columns": (MOVES.unit_columns(3), CUBE, 1.0),
    "squares": (MOVES.squares(2.0, 5.0, 6), SIMPLEX, 0.9),
    "squares that no sum holds": (MOVES.squares(1.0, 3.0, 3), np.abs(np.vstack([CUBE, np.zeros((1, 3))])), 1.0),
    "moments": (
        MOVES.moments(),
        np.hstack([both := at_most(np.vstack([ALONG, DIAGONAL]), 1.0), np.square(both)]),
        0.97,
    ),
    "weighted": (MOVES.weighted(math.sqrt(3.0), 2.0 * math.sqrt(3.0)), CUBE, 1.0),
}


@pytest.mark.parametrize(("stated", "terms", "near"), SHAPES.values(), ids=SHAPES)
def test_no_row_moves_a_sum_further_and_some_row_moves_it_as_far(stated, terms, near):
    furthest = np.linalg.norm(terms, axis=1).max()
    apart = np.linalg.norm(terms[:, None] - terms[None, :], axis=2).max()
    assert near * stated.add_remove * (1.0 - 1e-9) <= furthest <= stated.add_remove
    assert near * stated.replace_one * (1.0 - 1e-9) <= apart <= stated.replace_one


@pytest.mark.parametrize(("stated", "terms"), [shape[:2] for shape in SHAPES.values()], ids=SHAPES)
def test_the_rounding_of_the_sum_is_part_of_it(stated, terms):
    slack = float_sum_slack(N, 0.1 * np.linalg.norm(terms, axis=1).max(), 30)
    assert stated.add_remove >= np.linalg.norm(terms, axis=1).max() + slack
    assert stated.replace_one >= np.linalg.norm(terms[:, None] - terms[None, :], axis=2).max() + slack


@pytest.mark.parametrize(
    ("stated", "terms"),
    [(MOVES.sizes(2.0, 5.0, 6), SIMPLEX), (MOVES.sizes(1.0, 3.0, 3), np.vstack([np.ones((1, 3)), np.zeros((1, 3))]))],
)
def test_no_row_moves_sizes_further_in_the_norm_of_laplace_noise(stated, terms):
    furthest, apart = np.abs(terms).sum(axis=1).max(), np.abs(terms[:, None] - terms[None, :]).sum(axis=2).max()
    assert stated.add_remove * (1.0 - 1e-9) <= furthest < stated.add_remove
    assert stated.replace_one * (1.0 - 1e-9) <= apart < stated.replace_one


def test_what_is_summed_may_be_longer_than_what_it_makes():
    slack = float_sum_slack(N, 7.0, 30)
    for found in (MOVES.apart(1.0, 1.5, 7.0), MOVES.outer(1.0, summed=7.0), MOVES.between(0.0, 1.0, 7.0)):
        assert found.add_remove == 1.0 + slack
    assert MOVES.apart(1.0, 1.5, 7.0).replace_one == 1.5 + slack
    assert MOVES.apart(1.0, 1.5, more=0.25).add_remove == 1.0 + (float_sum_slack(N, 1.0, 30) + 0.25)


def test_further_roundings_are_counted_for_every_term():
    assert Moves(N, 30, roundings=20.0).slack(3.0) == MOVES.slack(3.0) + 20.0 * N * 3.0 * 2.0**-53


@either.table
@pytest.mark.parametrize("n", [1, 1024, 1025, 10**7])
def test_sparse_rows_are_added_one_by_one_and_dense_ones_in_blocks(n, sparse):
    assert Moves.of(task("squared", n, 3, sparse)) == Moves(n, n if sparse else sum_depth(n))
    assert Moves.in_blocks(n) == Moves(n, sum_depth(n))


def test_one_more_addition_is_more_rounding():
    assert 0.0 < Moves(N, 1).slack(1.0) < MOVES.slack(1.0) < Moves(N, N).slack(1.0) == float_sum_slack(N, 1.0)


def test_no_other_room_makes_up_a_slack_of_its_own():
    source = Path(tacit.__file__).parent
    found = {path for path in source.rglob("*.py") if "float_sum_slack(" in path.read_text(encoding="utf8")}
    rooms = {path.relative_to(source).parts[0] for path in found - {source / "blocks" / "moves.py"}}
    assert rooms <= {"privacy", "federated"}
