"""Sketches: norms, sensitivities, agreement between parties, and what a sketch estimates."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from tacit.federated import Sketching
from tacit.federated.sketches import Gaussian, Identity, Sketch, SparseSign, default_size, sketch_for
from tacit.federated.study import Member, Study
from tacit.privacy import Budget

DRAWN = [SparseSign, Gaussian]


def matrix(sketch: Sketch) -> Any:
    return sketch.apply(np.eye(sketch.n_rows))


@pytest.mark.parametrize("size", [1, 3, 4, 7, 64])
def test_columns_of_a_sparse_sketch_have_norm_one_exactly(size: int) -> None:
    J = matrix(SparseSign(200, size, seed=5))
    entries = np.count_nonzero(J, axis=0)
    assert np.all(entries == (4 if size >= 4 else 1))  # in distinct rows: none was added to another
    assert np.all(np.square(J).sum(axis=0) == 1.0)
    assert SparseSign(200, size, seed=5).column_norm == 1.0


def test_the_norm_of_a_gaussian_sketch_is_that_of_its_own_columns() -> None:
    sketch = Gaussian(300, 20, seed=1)
    norms = np.linalg.norm(matrix(sketch), axis=0)
    assert norms.max() <= sketch.column_norm <= norms.max() * (1 + 1e-8)
    assert sketch.column_norm > 1.3  # far above the norm that a column has on average


@pytest.mark.parametrize("kind", DRAWN)
def test_apply_and_back_are_one_matrix_for_any_layout(kind: type[Sketch], monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    A = sparse.random_array((150, 6), density=0.2, rng=rng, format="csc")
    sketch = kind(150, 13, seed=2)
    J = matrix(sketch)
    np.testing.assert_allclose(sketch.apply(A.toarray()), J @ A.toarray(), atol=1e-12)
    np.testing.assert_allclose(sketch.apply(A), J @ A.toarray(), atol=1e-12)
    q = rng.normal(size=(13, 3))
    np.testing.assert_allclose(sketch.back(q), J.T @ q, atol=1e-12)
    np.testing.assert_allclose(sketch.back(q[:, 0]), J.T @ q[:, 0], atol=1e-12)
    monkeypatch.setattr("tacit.federated.sketches._KEPT_ENTRIES", 0)  # drawn again each time, in the same blocks
    np.testing.assert_array_equal(matrix(kind(150, 13, seed=2)), J)
    assert not np.array_equal(matrix(kind(150, 13, seed=3)), J)


@pytest.mark.parametrize("kind", DRAWN)
def test_products_are_kept_on_average_with_the_error_of_the_size(kind: type[Sketch]) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 400))
    pairs = np.column_stack([a, b])
    sketched = np.array([kind(400, 50, seed=seed).apply(pairs) for seed in range(300)])
    products = np.einsum("si,si->s", sketched[:, :, 0], sketched[:, :, 1])
    scale = np.linalg.norm(a) * np.linalg.norm(b) / math.sqrt(50)
    assert abs(products.mean() - a @ b) < 4 * scale / math.sqrt(300)  # four standard errors: false alarm below 1e-4
    assert 0.8 < products.std() / scale < 1.2
    norms = np.linalg.norm(sketched[:, :, 0], axis=1) / np.linalg.norm(a)
    assert abs(norms.mean() - 1) < 0.03
    assert norms.std() < 0.15


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 40), st.integers(1, 30), st.integers(0, 9), st.sampled_from(DRAWN), st.integers(0, 2**32))
def test_one_row_changes_a_sketch_by_no_more_than_its_sensitivity(
    n: int, size: int, seed: int, kind: type[Sketch], data: int
) -> None:
    rng = np.random.default_rng(data)
    k, bound = 3, 0.7
    A = np.clip(rng.standard_cauchy((n, k)), -bound, bound)
    sketch, row = kind(n, size, seed), int(rng.integers(n))
    sensitivity = sketch.sensitivity(bound * math.sqrt(k))
    removed, replaced = A.copy(), A.copy()
    removed[row] = 0.0
    replaced[row] = -A[row]
    assert np.linalg.norm(sketch.apply(A) - sketch.apply(removed)) <= sensitivity.add_remove
    assert np.linalg.norm(sketch.apply(A) - sketch.apply(replaced)) <= sensitivity.replace_one


def test_the_sensitivity_is_attained_so_it_cannot_shrink_with_n() -> None:
    sketch = SparseSign(1_000, 20, seed=0)
    A = np.zeros((1_000, 1))
    A[3] = 2.0
    assert np.linalg.norm(sketch.apply(A)) == pytest.approx(sketch.sensitivity(2.0).add_remove, rel=1e-9)


def _study(**changes: Any) -> Study:
    values: dict[str, Any] = {"name": "s", "members": (Member("a", 3, labels=True),), "n_rows": 500, "l1_radius": 1.0}
    return Study(loss="squared", **(values | changes))


def test_a_study_names_its_sketch() -> None:
    assert isinstance(sketch_for(_study(sketch=Sketching(size=20))), SparseSign)
    assert isinstance(sketch_for(_study(sketch=Sketching(kind="gaussian", size=20))), Gaussian)
    one, other = (_study(sketch=Sketching(size=20), name=name) for name in ("one", "another"))
    assert sketch_for(one) is sketch_for(other)
    assert sketch_for(_study(sketch=Sketching(size=20)), 30).size == 20
    assert sketch_for(_study(), 30).size == 30
    full = sketch_for(_study(sketch=Sketching(size=500)))
    A = np.random.default_rng(0).normal(size=(500, 2))
    assert isinstance(full, Identity)
    np.testing.assert_array_equal(full.apply(A), A)
    np.testing.assert_array_equal(full.back(A), A)


def test_the_default_size_grows_with_the_budget_to_no_compression() -> None:
    sizes = [default_size(100_000, Budget(epsilon, 1e-6)) for epsilon in (0.1, 1.0, 10.0, math.inf)]
    assert sizes == sorted(sizes)
    assert (sizes[0], sizes[-1]) == (64, 100_000)
    assert default_size(30, Budget(0.1, 1e-3)) == 30


def test_wrong_shapes_are_refused() -> None:
    sketch = SparseSign(10, 4, seed=0)
    with pytest.raises(ValueError, match="10 rows"):
        sketch.apply(np.zeros((9, 2)))
    with pytest.raises(ValueError, match="4 rows"):
        sketch.back(np.zeros(10))
