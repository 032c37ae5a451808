"""What is declared of the columns of a PCA, and what is missing in them."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import tacit

from .support import quiet

pytestmark = quiet
STORES = {"dense": np.asarray, "sparse": sparse.csr_array}
stored = pytest.mark.parametrize("store", STORES.values(), ids=STORES)


def rows(n=400):
    return np.random.default_rng(0).uniform(-1.0, 1.0, size=(n, 3)) * [3.0, 40.0, 0.2] + [0.0, 5.0, 0.0]


BOUNDS = [(-3, 3), (-35, 45), (-0.2, 0.2)]


def names_of(model):
    return [release.name for release in model.plan_.plan.releases]


@stored
def test_declared_columns_take_no_part_in_the_scale(store):
    whole = tacit.PCA(2, random_state=0, bounds=BOUNDS).fit(store(rows()))
    assert names_of(whole) == ["mean", "radius", "second moments"]
    assert names_of(tacit.PCA(2, random_state=0, bounds=BOUNDS, center_norm=50.0).fit(store(rows())))[:1] == ["mean"]
    some = tacit.PCA(2, random_state=0, bounds={0: (-3, 3)}).fit(store(rows()))
    assert names_of(some) == ["row norm", "mean", "radius", "second moments"]


@stored
def test_values_inside_their_bounds_are_not_clipped_and_others_are(store):
    X = rows()
    peer, ours = tacit.PCA(3, math.inf).fit(store(X)), tacit.PCA(3, math.inf, bounds=BOUNDS).fit(store(X))
    np.testing.assert_allclose(ours.explained_variance_, peer.explained_variance_, rtol=1e-6)
    np.testing.assert_allclose(ours.mean_, X.mean(axis=0), atol=1e-6)
    far = X.copy()
    far[:5, 1] = 1e6
    clipped = tacit.PCA(3, math.inf, bounds=BOUNDS).fit(store(np.clip(far, *np.transpose(BOUNDS))))
    again = tacit.PCA(3, math.inf, bounds=BOUNDS).fit(store(far))
    np.testing.assert_array_equal(again.explained_variance_, clipped.explained_variance_)


def test_bounds_bring_the_mean_nearer():
    """Of columns far from zero: without bounds the noise is in proportion to their distance from zero."""
    X = rows(2_000) + 1e3
    near = [(low + 1e3, high + 1e3) for low, high in BOUNDS]
    off = {
        told: np.median([np.abs(tacit.PCA(1, 0.5, random_state=s, bounds=b).fit(X).mean_ - X.mean(axis=0)).max()
                         for s in range(5)])
        for told, b in (("nothing", None), ("bounds", near))
    }  # fmt: skip
    assert off["bounds"] < 0.3 * off["nothing"]


def test_names_and_types_say_what_columns_lie_between():
    frame = pd.DataFrame(rows(), columns=list("abc"))
    told = tacit.PCA(2, random_state=0, bounds={"b": BOUNDS[1]}).fit(frame)
    np.testing.assert_array_equal(told.mean_, tacit.PCA(2, random_state=0, bounds={1: BOUNDS[1]}).fit(rows()).mean_)
    flags = frame > 0.0
    assert names_of(tacit.PCA(2, random_state=0, trust_dtypes=True).fit(flags))[0] == "mean"
    assert names_of(tacit.PCA(2, random_state=0).fit(flags))[0] == "row norm"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bounds": {"z": (0, 1)}}, "names the column 'z'"),
        ({"bounds": (1, 1)}, "low < high"),
        ({"bounds": {0: (math.nan, 1)}}, "must"),
        ({"bounds": [(0, 1)]}, "one pair for each of 3 columns"),
        ({"bounds": (0, 1), "row_norm": 1.0}, "declare one of them"),
    ],
)
@pytest.mark.parametrize("kind", [tacit.PCA, tacit.PrivateScaler])
def test_bounds_that_fit_no_table_are_refused_before_any_release(kind, options, message, releases):
    with pytest.raises(ValueError, match=message):
        kind(**options).fit(pd.DataFrame(rows(40), columns=list("abc")))
    assert releases == []


def test_bounds_of_wide_sparse_rows_must_hold_zero(releases):
    wide = sparse.csr_array((40, 257))
    with pytest.raises(ValueError, match="must hold 0"):
        tacit.PCA(1, bounds={0: (1, 3)}).fit(wide)
    assert releases == []
    tacit.PCA(1, bounds={0: (1, 3)}).fit(wide[:, :256])  # dense rows by another name


@stored
@pytest.mark.parametrize("bounds", [None, BOUNDS])
def test_what_is_missing_is_at_the_mean(store, bounds):
    X = rows()
    X[::7, 1] = np.nan
    model = tacit.PCA(2, math.inf, bounds=bounds).fit(store(X))
    filled = np.where(np.isnan(X), model.mean_, X)
    centred = filled - model.mean_
    np.testing.assert_allclose(
        np.sum(model.explained_variance_), np.linalg.eigvalsh(centred.T @ centred)[-2:].sum() / 399, rtol=1e-6
    )
    np.testing.assert_allclose(model.transform(store(X)), model.transform(filled), atol=1e-9)
    np.testing.assert_allclose(model.score_samples(store(X)), model.score_samples(filled), atol=1e-6)
    np.testing.assert_allclose(model.to_sklearn().transform(X), model.transform(X), atol=1e-9)


def test_a_stream_with_bounds_and_holes_gives_the_model_of_the_array():
    X = rows()
    X[::7, 1] = np.nan
    one = tacit.PCA(2, 3.0, random_state=0, bounds={0: (-1, 1)}).fit(X)
    other = tacit.PCA(2, 3.0, random_state=0, bounds={0: (-1, 1)}).fit_blocks([X[:150], X[150:]])
    np.testing.assert_allclose(one.components_, other.components_, atol=1e-9)
    np.testing.assert_allclose(one.mean_, other.mean_, atol=1e-9)


@pytest.mark.whole
@pytest.mark.parametrize("solver", ["stochastic", "variance-reduced", "power", "mod-sulq"])
@stored
def test_every_solver_reads_rows_inside_their_bounds(solver, store):
    X, far = rows(), rows()
    X[5, 0], far[5, 0] = 3.0, 1e9
    X[6, 1] = far[6, 1] = np.nan
    one, other = (tacit.PCA(1, 5.0, random_state=0, bounds=BOUNDS, solver=solver).fit(store(T)) for T in (X, far))
    np.testing.assert_array_equal(one.components_, other.components_)
