"""`PCA` as an estimator: scikit-learn's surface, bad input, streams, and what it says about itself."""

import inspect
import pickle
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn import decomposition
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import tacit
from tacit.estimators import FewRowsWarning
from tacit.metrics import captured_variance_ratio, principal_angles
from tacit.solvers import Gradient
from tacit.solvers.pca import PCA_SOLVERS, Gauss, Power, Stochastic, VarianceReduced, choose, most_candidates
from tests.solvers.pca.support import task_of

from .support import quiet

SOLVERS = tuple(PCA_SOLVERS)
INF = float("inf")

pytestmark = quiet


def digits():
    X = load_digits().data
    return X / np.linalg.norm(X, axis=1).max()


def spiked(n=400, d=6, seed=0):
    """Directions of clearly different variance, off the origin."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
    return rng.normal(size=(n, d)) * np.array([8.0, 4.0, 2.0, 0.5, 0.3, 0.2])[:d] @ turn + 3.0


def test_scikit_learns_own_checks():
    done = check_estimator(tacit.PCA(), on_skip=None, on_fail="raise")
    assert sum(result["status"] == "passed" for result in done) > 40


def test_signature_is_the_documented_one():
    parameters = inspect.signature(tacit.PCA).parameters
    assert list(parameters)[:4] == ["n_components", "epsilon", "delta", "adjacency"]
    text = inspect.getdoc(tacit.PCA)
    assert all(f"{name} : " in text for name in parameters)
    for word in ("Unit: one row", "Neighbours", "Mechanism", "Released", "Assumed"):
        assert word in text[text.index("Privacy\n~~~~~~~") :]


@pytest.mark.skipif(not sklearn.__version__.startswith("1.9."), reason="the tables are those of scikit-learn 1.9")
def test_the_page_names_everything_that_scikit_learn_has():
    text = (Path(__file__).resolve().parents[2] / "docs" / "scikit-learn.md").read_text()
    chapter = text[text.index("\n## PCA\n") : text.index("\n## Only in Tacit\n")]
    told = dict(re.findall(r"^\| `(\w+)` \| (supported|different|refused) \|", chapter, re.MULTILINE))
    frame = pd.DataFrame(spiked(), columns=list("abcdef"))
    peer, ours = decomposition.PCA(2).fit(frame), tacit.PCA(2, 5.0, random_state=0).fit(frame)
    names, own = ({name for name in {*dir(m), *vars(m)} if not name.startswith("_")} for m in (peer, ours))
    assert set(told) == names
    assert {name for name, verdict in told.items() if verdict != "refused"} == names & own
    assert all(f"`{name}`" in chapter for name in own)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("center", [True, False], ids=["centred", "plain"])
def test_without_noise_it_is_scikit_learns(solver, kind, center):
    X = spiked()
    model = tacit.PCA(3, INF, center=center, solver=solver, random_state=0).fit(kind(X))
    if center:
        peer = decomposition.PCA(3).fit(X)
        np.testing.assert_allclose(model.mean_, X.mean(axis=0), rtol=1e-9)
        np.testing.assert_allclose(model.explained_variance_, peer.explained_variance_, rtol=1e-6)
        np.testing.assert_allclose(model.explained_variance_ratio_, peer.explained_variance_ratio_, rtol=1e-6)
        np.testing.assert_allclose(model.singular_values_, peer.singular_values_, rtol=1e-6)
        np.testing.assert_allclose(model.noise_variance_, peer.noise_variance_, rtol=1e-4)
        np.testing.assert_allclose(model.transform(kind(X)), peer.transform(X), atol=1e-5)
        expected = peer.components_
    else:
        assert not model.mean_.any()
        expected = np.linalg.svd(X)[2][:3]
    assert principal_angles(model.components_, expected).max() < 1e-6
    for k in range(3):
        assert principal_angles(model.components_[k : k + 1], expected[k : k + 1])[0] < 1e-6
    assert model.noise_floor_ == 0.0
    np.testing.assert_allclose(model.reliability_, 1.0)


def test_the_bounded_data_is_what_is_fitted():
    X = spiked()
    center = X.mean(axis=0)
    Z = X - center
    Z *= np.minimum(1.0, 3.0 / np.linalg.norm(Z, axis=1))[:, None]
    model = tacit.PCA(2, INF, center_norm=3.0).fit(X)
    assert model.radius_ == 3.0
    assert principal_angles(model.components_, np.linalg.svd(Z)[2][:2]).max() < 1e-6
    plain = tacit.PCA(2, INF, center=False, row_norm=2.0).fit(X)
    Y = X * np.minimum(1.0, 2.0 / np.linalg.norm(X, axis=1))[:, None]
    assert principal_angles(plain.components_, np.linalg.svd(Y)[2][:2]).max() < 1e-6


@pytest.mark.parametrize("solver", SOLVERS)
def test_components_are_orthonormal_and_the_plan_is_spent(solver, releases):
    model = tacit.PCA(4, 1.0, solver=solver, random_state=1).fit(digits())
    np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(4), atol=1e-9)
    planned = {release.name: release.count for release in model.plan_.plan.releases}
    assert {name: releases.count(name) for name in planned} == planned
    assert set(releases) == set(planned)
    assert model.guarantee_.recompute() <= 1.0 + 1e-9
    assert model.guarantee_.recompute() > 0.98
    assert model.guarantee_.solver == solver


def test_captures_most_of_the_variance_of_digits():
    found = [
        captured_variance_ratio(
            tacit.PCA(10, 1.0, 1e-5, row_norm=1.0, random_state=seed).fit(digits()).components_, digits()
        )
        for seed in range(3)
    ]
    assert min(found) > 0.9


def test_nothing_declared_loses_little():
    model = tacit.PCA(10, 1.0, 1e-5, random_state=0).fit(load_digits().data)
    assert captured_variance_ratio(model.components_, load_digits().data) > 0.85


def test_below_the_noise_floor_nothing_is_claimed():
    X = np.random.default_rng(0).normal(size=(200, 20))
    model = tacit.PCA(3, 0.1, row_norm=8.0, random_state=0).fit(X)
    assert np.isnan(model.explained_variance_).all()
    assert np.isnan(model.singular_values_).all()
    np.testing.assert_array_equal(model.reliability_, 0.0)
    assert model.noise_floor_ > 1.0
    assert np.isfinite(model.noise_variance_)
    whitened = tacit.PCA(3, 0.1, row_norm=8.0, whiten=True, random_state=0).fit(X)
    np.testing.assert_allclose(whitened.transform(X), model.transform(X) / np.sqrt(model.noise_floor_))


def test_explained_variance_is_that_of_the_components():
    # Cleared of noise: the plain eigenvalue of the noisy matrix would be 60% too large for the last of these.
    rng = np.random.default_rng(0)
    Z = np.linalg.qr(rng.normal(size=(40, 40)))[0][:3]
    X = rng.normal(size=(3000, 3)) * [0.3, 0.22, 0.17] @ Z
    X *= np.minimum(1.0, 1.0 / np.linalg.norm(X, axis=1))[:, None]
    ratios, cosines = [], []
    for seed in range(8):
        model = tacit.PCA(3, 0.5, 1e-5, center=False, row_norm=1.0, random_state=seed).fit(X)
        truth = np.sum((X @ model.components_.T) ** 2, axis=0) / len(X)
        ratios.append(model.explained_variance_ / truth)
        exact = np.linalg.svd(X, full_matrices=False)[2][:3]
        cosines.append(np.sum(model.components_ * exact, axis=1) ** 2 - model.reliability_)
    assert np.abs(np.nanmean(ratios, axis=0) - 1.0).max() < 0.12
    assert np.abs(np.nanmean(cosines, axis=0)).max() < 0.2


@pytest.mark.parametrize("whiten", [False, True])
def test_transform_inverse_and_export(whiten):
    X = spiked()
    model = tacit.PCA(6, INF, whiten=whiten).fit(X)
    Z = model.transform(X)
    np.testing.assert_allclose(model.inverse_transform(Z), X, atol=1e-9)
    np.testing.assert_allclose(model.transform(sparse.csr_array(X)), Z, atol=1e-9)
    plain = model.to_sklearn()
    assert [type(step) for _, step in plain.steps] == [SimpleImputer, decomposition.PCA]
    np.testing.assert_allclose(plain.transform(X), Z, atol=1e-9)
    np.testing.assert_allclose(plain[-1].inverse_transform(Z), X, atol=1e-9)
    if whiten:
        np.testing.assert_allclose(Z.std(axis=0, ddof=1), 1.0, rtol=1e-6)
    assert plain[-1].components_ is not model.components_


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("k", [2, 6], ids=["some", "all"])
def test_without_noise_the_normal_law_is_scikit_learns(kind, k):
    X = spiked()
    model, peer = tacit.PCA(k, INF).fit(kind(X)), decomposition.PCA(k).fit(X)
    np.testing.assert_allclose(model.get_covariance(), peer.get_covariance(), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(model.get_precision(), peer.get_precision(), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(model.score_samples(kind(X)), peer.score_samples(X), rtol=1e-5)
    assert model.score(kind(X)) == pytest.approx(peer.score(X), rel=1e-6)


def test_the_normal_law_has_a_density_where_variances_are_not_known():
    X = np.random.default_rng(0).normal(size=(200, 20))
    for n_components, epsilon in ((3, 0.1), (20, 0.1), (3, 1.0)):
        model = tacit.PCA(n_components, epsilon, row_norm=8.0, random_state=0).fit(X)
        covariance = model.get_covariance()
        assert np.linalg.eigvalsh(covariance).min() > 0.0
        if model.noise_variance_ > 0.0:
            np.testing.assert_allclose(covariance @ model.get_precision(), np.eye(20), atol=1e-6)
        assert np.isfinite(model.score(X))
    unknown = tacit.PCA(3, 0.1, row_norm=8.0, random_state=0).fit(X)
    np.testing.assert_allclose(unknown.get_covariance(), unknown.noise_variance_ * np.eye(20), atol=1e-12)


@pytest.mark.parametrize("solver", SOLVERS)
def test_noise_keeps_the_components_that_stand_above_it(solver):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4_000, 30)) * np.r_[4.0, 2.0, np.full(28, 0.01)] @ np.linalg.qr(rng.normal(size=(30, 30)))[0]
    model = tacit.PCA("noise", 8.0, 1e-6, row_norm=10.0, center=False, solver=solver, random_state=0).fit(X)
    assert model.n_components_ == len(model.components_) == len(model.explained_variance_) == 2
    assert np.all(model.reliability_ > 0.0)
    assert np.all(model.explained_variance_ > 0.0)
    assert model.transform(X).shape == (4_000, 2)
    assert captured_variance_ratio(model.components_, X, center=False) > 0.99
    assert model.guarantee_.recompute() <= 8.0 + 1e-9


def test_where_nothing_stands_above_the_noise_one_component_is_kept():
    X = np.random.default_rng(0).normal(size=(200, 20))
    model = tacit.PCA("noise", 0.1, row_norm=8.0, random_state=0).fit(X)
    assert model.n_components_ == 1
    assert np.isnan(model.explained_variance_).all()
    np.testing.assert_array_equal(model.reliability_, 0.0)


def test_a_pipeline_plans_for_a_number_of_components(releases):
    line = tacit.PrivatePipeline([("pca", tacit.PCA("noise")), ("model", tacit.LogisticRegression(classes=[0, 1]))])
    with pytest.raises(ValueError, match="must have a number of components"):
        line.fit(spiked(), np.arange(400) % 2)
    assert not releases


def test_how_many_are_looked_for_is_public():
    assert [most_candidates(Gauss(), d) for d in (5, 2_000, 2_001)] == [5, 2_000, 200]
    assert most_candidates(Power(), 5) == 20  # and no more than there are columns
    rng = np.random.default_rng(0)
    first, other = (tacit.PCA("noise", 1.0, random_state=0).fit(X) for X in (spiked(), rng.normal(size=(400, 6))))
    assert first.plan_ == other.plan_


def test_names_and_output_containers():
    frame = pd.DataFrame(spiked(), columns=list("abcdef"))
    model = tacit.PCA(2, 5.0, random_state=0).set_output(transform="pandas").fit(frame)
    out = model.transform(frame)
    assert list(out.columns) == ["pca0", "pca1"] == list(model.get_feature_names_out())
    assert list(model.to_sklearn().feature_names_in_) == list("abcdef")
    line = make_pipeline(tacit.PCA(2, 5.0, random_state=0))
    assert line.fit_transform(frame).shape == (400, 2)


def test_clone_pickle_and_none():
    model = tacit.PCA(random_state=3).fit(spiked())
    assert model.n_components_ == 6
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.components_, model.components_)
    same = clone(model).fit(spiked())
    np.testing.assert_allclose(same.components_, model.components_, atol=1e-9)
    assert "seeded" in str(model.guarantee_)
    other = tacit.PCA().fit(spiked())
    assert not np.array_equal(other.components_, tacit.PCA().fit(spiked()).components_)


# ---- streams


@pytest.mark.parametrize("solver", ["gauss", "mod-sulq", "power"])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_blocks_give_what_the_array_gives(solver, kind):
    X = spiked()
    blocks = [kind(X[:150]), kind(X[150:150]), kind(X[150:])]
    whole = tacit.PCA(2, 2.0, solver=solver, random_state=5).fit(kind(X))
    for source in (blocks, lambda: iter(blocks)):
        parts = tacit.PCA(2, 2.0, solver=solver, random_state=5).fit_blocks(source)
        np.testing.assert_allclose(parts.components_, whole.components_, atol=1e-6)
        assert parts.guarantee_.event == whole.guarantee_.event


def test_the_number_of_passes_is_the_documented_one():
    for options, passes in (
        ({}, 5),
        ({"row_norm": 9.0, "center_norm": 9.0}, 3),
        ({"row_norm": 9.0, "center": False}, 2),
    ):
        rows = Counted()
        tacit.PCA(2, random_state=0, **options).fit_blocks(rows)
        assert rows.read == passes


class Counted:
    """Blocks in memory, which are read again for every pass; what a function gives is read once and held."""

    read = 0

    def __iter__(self):
        self.read += 1
        return iter([spiked()])


def test_memory_mapped_rows(tmp_path):
    np.save(tmp_path / "X.npy", spiked())
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    for solver in SOLVERS:
        model = tacit.PCA(2, 2.0, solver=solver, random_state=5).fit(mapped)
        again = tacit.PCA(2, 2.0, solver=solver, random_state=5).fit(spiked())
        np.testing.assert_allclose(model.components_, again.components_, atol=1e-9)


# ---- bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 7}, "n_components must be at most 6"),
        ({"n_components": 0}, "integer of at least 1"),
        ({"n_components": 0.9}, "from the private spectrum"),
        ({"n_components": "mle"}, "from the private spectrum"),
        ({"n_components": True}, "integer of at least 1"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"row_norm": 0.0}, "row_norm"),
        ({"center_norm": -1.0}, "center_norm"),
        ({"solver": Stochastic(clip=0.0)}, "clip"),
        ({"solver": Stochastic(clip=1e-200)}, "clip must lie between"),
        ({"memory_limit": 0.0}, "memory_limit"),
        ({"memory_limit": 100.0, "solver": "gauss"}, "needs 168 bytes"),
        ({"solver": "wishart"}, "solver must be one of"),
        ({"adjacency": "replace-one", "solver": "stochastic"}, "'gauss', 'power', 'mod-sulq' do"),
        ({"adjacency": "replace-one", "solver": Stochastic()}, "solver='stochastic' does not serve adjacency"),
        ({"memory_limit": 100.0, "solver": Gauss()}, "solver='gauss' needs 168 bytes"),
        ({"center": False, "center_norm": 1.0}, "declare row_norm"),
        ({"epsilon": 1e-40, "delta": 1e-300}, "too small for any useful noise"),
        ({"epsilon": 1e-11, "delta": 1e-300}, "too small for any useful noise"),
    ],
)
def test_bad_parameters_are_refused_before_anything_is_released(options, message, releases):
    with pytest.raises(ValueError, match=message):
        tacit.PCA(**options).fit(spiked())
    assert not releases


@pytest.mark.parametrize(
    "options",
    [
        {"center": 1},
        {"whiten": "yes"},
        {"random_state": np.random.default_rng(0)},
        {"epsilon": "1"},
        {"solver": Stochastic(clip="much")},
        {"solver": Stochastic},
        {"solver": Gradient()},
        {"solver": None},
    ],
)
def test_bad_kinds_are_refused(options):
    with pytest.raises(TypeError):
        tacit.PCA(**options).fit(spiked())


def test_only_solvers_that_clip_take_a_clip():
    for kind in PCA_SOLVERS.values():
        if kind in (Stochastic, VarianceReduced):
            assert kind(clip=0.5).clip == 0.5
        else:
            with pytest.raises(TypeError, match="clip"):
                kind(clip=0.5)
    with pytest.raises(TypeError, match="clip"):
        tacit.PCA(clip=0.5)


def test_a_search_reaches_the_options_of_a_solver():
    search = GridSearchCV(
        tacit.PCA(2, 5.0, solver=VarianceReduced(), random_state=0),
        {"solver__n_snapshots": [2, 4], "solver__n_inner": [0, 1]},
        cv=2,
        error_score="raise",
    ).fit(spiked())
    assert search.best_estimator_.solver.n_snapshots in (2, 4)
    assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))


def test_a_solver_is_its_name_or_an_object_with_options():
    by_name, by_object = (
        tacit.PCA(2, 2.0, solver=solver, random_state=5).fit(spiked()) for solver in ("power", Power())
    )
    np.testing.assert_array_equal(by_object.components_, by_name.components_)
    assert by_object.guarantee_ == by_name.guarantee_
    model = clone(tacit.PCA(solver=Stochastic(clip=0.5)).set_params(solver__clip=0.25))
    assert model.solver.clip == 0.25
    assert repr(model) == "PCA(solver=Stochastic(clip=0.25))"


def test_bad_rows_are_refused_without_quoting_them(releases):
    X = spiked()
    X[399, 5] = np.inf
    blocks = [X[:200], X[200:]]
    with pytest.raises(ValueError, match="infinity") as told:
        tacit.PCA(2).fit_blocks(blocks)
    assert "3." not in str(told.value)
    with pytest.raises(ValueError, match="the same columns"):
        tacit.PCA(2).fit_blocks([spiked(), spiked(d=5)])
    with pytest.raises(ValueError, match="at least two rows together, got 0"):
        tacit.PCA(2).fit_blocks([])
    with pytest.raises(ValueError, match="at least two rows together, got 1"):
        tacit.PCA(1).fit_blocks([spiked(n=1)])
    with pytest.raises(ValueError, match="all dense or all sparse"):
        tacit.PCA(2).fit_blocks([spiked(), sparse.csr_array(spiked())])
    with pytest.raises(ValueError, match="readable several times"):
        tacit.PCA(2).fit_blocks(block for block in blocks)
    with pytest.raises(TypeError, match="iterable of blocks"):
        tacit.PCA(2).fit_blocks(3)
    with pytest.raises(ValueError, match="256 columns cannot give; 'gauss', 'power', 'mod-sulq' read"):
        tacit.PCA(2, solver="stochastic").fit_blocks([sparse.csr_array((9, 257))])
    with pytest.raises(ValueError, match="0 sample"):
        tacit.PCA(2).fit(np.empty((0, 3)))
    assert not releases


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("epsilon", [1.0, INF])
def test_rows_of_zeros_are_rows_like_others(solver, epsilon):
    # An error would tell that no row differs from zero, which one row can change.
    model = tacit.PCA(2, epsilon, solver=solver, row_norm=1.0, random_state=0).fit(np.zeros((50, 4)))
    assert np.all(np.isfinite(model.components_))
    with pytest.warns(FewRowsWarning, match="declare row_norm"):
        tacit.PCA(2, epsilon, solver=solver, random_state=0).fit(np.zeros((50, 4)))


@pytest.mark.parametrize("method", ["fit", "fit_blocks"])
def test_warnings_point_to_whoever_fits(method, monkeypatch):
    for name in ("FULL_MATRIX", "LAST_RESORT", "_RESIDUAL", "_NOISY_RESIDUAL"):  # no search can converge
        monkeypatch.setattr(f"tacit.solvers.pca.spectrum.{name}", 0)
    X = np.zeros((50, 20))
    with pytest.warns() as told:
        getattr(tacit.PCA(2, delta=0.5, random_state=0), method)(X if method == "fit" else [X])
    words = ("is not below 1/n", "random_state is set", "did not converge", "find the scale")
    assert [next(w for w in words if w in str(warning.message)) for warning in told] == list(words)
    assert {warning.filename for warning in told} == {__file__}


def test_auto_is_a_rule_in_public_numbers():
    def chosen(d, sparse=False, streamed=False, adjacency="add-remove", limit=2e9):
        task = task_of(1000, d, 2, adjacency=adjacency, sparse=sparse, streamed=streamed)
        return choose("auto", task, limit).name

    assert chosen(20_000) == "gauss"
    assert chosen(40_000) == "stochastic"
    assert chosen(4_000, sparse=True) == "gauss"
    assert chosen(4_001, sparse=True) == "stochastic"
    assert chosen(4_001, sparse=True, streamed=True) == "power"
    assert chosen(40_000, adjacency="replace-one") == "power"
    assert chosen(100, limit=1e4) == "stochastic"


def test_progress_tells_the_plan_and_nothing_else(capsys):
    tacit.PCA(2, verbose=1, random_state=0).fit(spiked())
    first = capsys.readouterr().err
    tacit.PCA(2, verbose=1, random_state=0).fit(10.0 * spiked(seed=9))
    assert first == capsys.readouterr().err != ""
