"""What `PCA` promises: plans equal runs, accounting by others, audits, broken versions that must be caught."""

import itertools
import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from scipy import sparse

import tacit
from tacit.blocks import CentredRows
from tacit.bounding import Centring
from tacit.privacy import Gate, NoiseSource, Plan, audit, gdp
from tacit.privacy.mechanisms import GaussianMatrix, Sensitivity
from tacit.solvers.pca import PCA_SOLVERS, Stochastic, VarianceReduced
from tests.solvers.pca.support import centred, table_of, task_of

pytestmark = pytest.mark.filterwarnings("ignore:.*(random_state is set|is not below 1/n):UserWarning")

SOLVERS = tuple(PCA_SOLVERS)
PLAIN = ("gauss", "power", "mod-sulq")


def small_task(adjacency="add-remove", **asked):
    return task_of(30, 4, delta=1e-5, adjacency=adjacency, **asked)


def calibrated(solver, task):
    bounding = Centring(task)
    plan = Plan(*bounding.releases, *PCA_SOLVERS[solver]().at(task).releases(bounding.left))
    return plan.calibrate(task.budget, task.unit, "test")


# ---- accounting


@pytest.mark.parametrize("solver", PLAIN)
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_plans_of_gaussians_are_exact(solver, adjacency):
    X = np.random.default_rng(0).normal(size=(300, 5))
    guarantee = tacit.PCA(2, 0.7, 1e-6, adjacency, solver=solver, random_state=0).fit(X).guarantee_
    assert guarantee.mu == pytest.approx(gdp.mu_from_budget(0.7, 1e-6), rel=1e-4)
    accountant = PLDAccountant()
    accountant.compose(guarantee.event)
    assert 0.999 * 0.7 < accountant.get_epsilon(1e-6) <= 0.7


@pytest.mark.parametrize("solver", ["stochastic", "variance-reduced"])
def test_sampled_plans_against_a_direct_composition(solver):
    model = tacit.PCA(2, 0.7, 1e-6, solver=solver, random_state=0).fit(np.random.default_rng(0).normal(size=(300, 5)))
    accountant = PLDAccountant()
    for release, z in zip(model.plan_.plan.releases, model.plan_.multipliers, strict=True):
        event = dp_accounting.GaussianDpEvent(z)
        if release.sampling < 1.0:
            event = dp_accounting.PoissonSampledDpEvent(release.sampling, event)
        accountant.compose(event, release.count)
    assert 0.98 * 0.7 < accountant.get_epsilon(1e-6) <= 0.7
    sampled = [r for r in model.plan_.plan.releases if r.sampling < 1.0]
    assert [r.name for r in sampled] == [{"stochastic": "steps", "variance-reduced": "corrections"}[solver]]


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_plan_does_not_see_the_data(solver):
    rng = np.random.default_rng(0)
    first = tacit.PCA(2, solver=solver, random_state=0).fit(rng.normal(size=(100, 5)))
    other = tacit.PCA(2, solver=solver, random_state=1).fit(1e3 + 10.0 * rng.standard_cauchy(size=(100, 5)))
    assert first.plan_ == other.plan_
    assert set(vars(first)) == set(vars(other))


# ---- what one row can do to every value that is released


def transcript(solver, task, X, monkeypatch, absent=None, seed=0):
    """The exact value of every release and its sensitivity, with noise and samples that are the same in both worlds.

    Steps see the noisy values, so a neighbour's later steps would differ; the history is therefore replayed. The row
    `absent` is not there: n is as declared, the rows after it move up, and where it would be sampled nobody is.
    """
    seen = []
    release = Gate.release

    def watched(gate, name, mechanism, value, *d):
        exact = np.array(value, dtype=float)
        if isinstance(mechanism, GaussianMatrix) and d:
            exact *= np.where(np.equal(*np.triu_indices(*d)), 1.0, math.sqrt(2.0) if mechanism.isotropic else 1.0)
        out = release(gate, name, mechanism, value, *d)
        out = HISTORY[len(seen)].copy() if HISTORY else out.copy()
        seen.append((name, exact, mechanism.sensitivity.under(gate.adjacency), out))
        return out

    monkeypatch.setattr(Gate, "release", watched)
    if absent is not None:
        left, drawn = np.delete(np.arange(task.n), absent), Gate.sample
        X = X[left]
        monkeypatch.setattr(Gate, "sample", lambda gate, name: np.flatnonzero(np.isin(left, drawn(gate, name))))
    with Gate(calibrated(solver, task), NoiseSource(seed)) as gate:
        PCA_SOLVERS[solver]().at(task).run(Centring(task).run(table_of(X), gate), gate)
    monkeypatch.undo()
    return seen


HISTORY: list = []
TARGETS = ([0.0, 0.0, 0.0, 50.0], [60.0, 0.0, 0.0, 0.0], [-1.0, 0.2, 0.0, 0.1], [0.0] * 4, [1e200, 0.0, 0.0, 1e-200])


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_no_release_moves_by_more_than_its_sensitivity(solver, kind, monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 4)) * [2.0, 1.0, 0.3, 0.1] + 1.0
    worst = {}
    for adjacency in PCA_SOLVERS[solver].serves.adjacencies:
        task = small_task(adjacency, sparse=kind is not np.asarray)
        for place, target in itertools.product((0, 7, 29), TARGETS):
            neighbour = X.copy()
            neighbour[place] = target
            HISTORY.clear()
            absent = place if adjacency == "add-remove" else None
            first = transcript(solver, task, kind(X), monkeypatch, absent)
            HISTORY.extend(out for *_, out in first)
            second = transcript(solver, task, kind(neighbour), monkeypatch)
            HISTORY.clear()
            assert [name for name, *_ in first] == [name for name, *_ in second]
            assert {name for name, *_ in first} == {release.name for release in calibrated(solver, task).plan.releases}
            for (name, a, size, _), (_, b, other, _) in zip(first, second, strict=True):
                assert size == other
                moved = np.linalg.norm(np.ravel(b - a))
                assert moved <= size * (1 + 1e-12), (name, adjacency)
                worst[name] = max(worst.get(name, 0.0), moved / size)
    # The bounds are not slack: the rows above come close to most of them.
    assert sorted(worst.values())[len(worst) // 2] > 0.3
    assert max(worst.values()) > 0.9


# ---- audits: fits on worst-case neighbours, with fresh noise


def neighbours():
    """Rows along large directions, and one along a direction that no other row has, or absent.

    A row of zeros stands for the absent one: all bounds are declared below, so there are only sums, to which it adds
    nothing, and no histogram that would count it.
    """
    rng = np.random.default_rng(0)
    X = np.zeros((40, 3))
    X[:, :2] = rng.normal(size=(40, 2))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    other = X.copy()
    X[0], other[0] = 0.0, [0.0, 0.0, 1.0]
    return X, other


def released(solver, epsilon, X, **options):
    """The release that says most about the row: variance along the third column."""
    clipped = {"stochastic": Stochastic(clip=1.0), "variance-reduced": VarianceReduced(clip=1.0)}
    algorithm = clipped.get(solver, solver)
    model = tacit.PCA(3, epsilon, 1e-5, center=False, row_norm=1.0, solver=algorithm, **options).fit(X)
    found = (model.components_.T * np.nan_to_num(model.explained_variance_)) @ model.components_
    return np.array([found[2, 2], found[0, 0], model.components_[0, 2] ** 2])


@pytest.mark.slow
@pytest.mark.parametrize("solver", SOLVERS)
def test_audits_of_fits_do_not_contradict_the_guarantee(solver):
    X, other = neighbours()
    outputs = audit.run(lambda data: released(solver, 4.0, data), X, other, 150)
    assert audit.mu_lower_bound(outputs, confidence=0.9999) <= gdp.mu_from_budget(4.0, 1e-5)


def test_an_audit_catches_noise_that_is_ten_times_too_small(monkeypatch):
    X, other = neighbours()
    honest = CentredRows.moment_sensitivity

    def broken(rows):
        true = honest(rows)
        return Sensitivity(true.add_remove / 10, true.replace_one / 10)

    monkeypatch.setattr(CentredRows, "moment_sensitivity", broken)
    outputs = audit.run(lambda data: released("gauss", 4.0, data), X, other, 150)
    assert audit.mu_lower_bound(outputs, confidence=0.9999) > gdp.mu_from_budget(4.0, 1e-5)


def test_a_fit_without_the_bounding_step_is_caught():
    # The same property test on rows that are taken as they are.
    rows = centred(np.array([[30.0, 40.0]]), np.zeros(2), 1.0)
    honest = np.linalg.norm(rows.packed_moments())
    loose = np.linalg.norm(np.array([30.0 * 30.0, 30.0 * 40.0, 40.0 * 40.0]))
    assert honest <= rows.moment_sensitivity().add_remove < loose


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_release_too_many_is_refused(solver):
    task = small_task()
    algorithm, plan = PCA_SOLVERS[solver]().at(task), calibrated(solver, task)
    X = np.random.default_rng(0).normal(size=(30, 4))
    with Gate(plan, NoiseSource(0)) as gate:
        rows = Centring(task).run(table_of(X), gate)
        algorithm.run(rows, gate)
        with pytest.raises(tacit.privacy.PlanViolationError):
            algorithm.run(rows, gate)


# ---- samples


def test_stochastic_uses_the_expected_size_of_a_sample(monkeypatch):
    # Steps over samples of other sizes would be scaled otherwise if the realised size were used anywhere.
    X = np.eye(4)[np.arange(40) % 4] * [1.0, 0.5, 0.2, 0.1]
    seen = []
    honest = Gate.sample

    def sample(gate, name):
        honest(gate, name)
        return np.arange(seen.pop(), dtype=np.int64)

    def fit(size):
        seen.extend([size] * 100)
        monkeypatch.setattr(Gate, "sample", sample)
        values = []
        release = Gate.release

        def watched(gate, name, mechanism, *given):
            if name == "steps":
                values.append(np.array(given[0]))
            return release(gate, name, mechanism, *given)

        monkeypatch.setattr(Gate, "release", watched)
        tacit.PCA(1, 5.0, center=False, row_norm=1.0, solver=Stochastic(clip=1.0), random_state=0).fit(X)
        monkeypatch.undo()
        seen.clear()
        return values[0]

    np.testing.assert_allclose(np.linalg.norm(fit(40)) / np.linalg.norm(fit(20)), 2.0, rtol=1e-6)


def test_variance_reduced_noise_follows_the_public_change(monkeypatch):
    sizes = []
    honest = CentredRows.product_sensitivity

    def watched(rows, p, clip=None, stretch=1.0):
        found = honest(rows, p, clip, stretch)
        if stretch != 1.0:
            sizes.append(stretch)
            assert clip == pytest.approx(0.5 * rows.radius**2 * stretch)
            assert found.add_remove == pytest.approx(clip, rel=1e-6)
        return found

    monkeypatch.setattr(CentredRows, "product_sensitivity", watched)
    X = np.random.default_rng(0).normal(size=(4000, 6)) * [3.0, 1.0, 0.3, 0.1, 0.1, 0.1]
    solver = VarianceReduced(clip=0.5)
    tacit.PCA(1, 20.0, center=False, row_norm=5.0, solver=solver, random_state=0).fit(X)
    assert len(sizes) == 16
    assert sizes[-1] < 0.2 * sizes[0]
    assert max(sizes) <= 2.0 + 1e-9
