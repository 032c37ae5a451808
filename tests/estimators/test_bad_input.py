"""Bad input: a clear error before anything is released, or a finite model; never a crash, never the data in a message.

`test_secrets.py` looks for the data in messages in more ways.
"""

import math

import numpy as np
import pytest
from scipy import sparse

from tacit.problems import HINGE, LOSSES
from tacit.solvers import SOLVERS
from tacit.solvers.pca import Gauss

from .support import (
    CLASSIFIERS,
    ELASTIC_NET,
    LASSO,
    LOGISTIC,
    REGRESSORS,
    RIDGE,
    SVC,
    classifiers,
    every,
    quiet,
    regressors,
)

pytestmark = quiet
SENTINEL = 987654.321


def with_cell(X, value):
    X = X.astype(np.result_type(X, type(value)) if not isinstance(value, str | dict | int) else object)
    X[3, 1] = value
    return X


# What X (or y) becomes, and a part of the message.
REFUSED_DATA = {
    "NaN": (lambda X, y: (with_cell(X, math.nan), y), "NaN"),
    "infinity": (lambda X, y: (with_cell(X, math.inf), y), "infinity"),
    "NaN in CSR": (lambda X, y: (sparse.csr_array(with_cell(X, math.nan)), y), "NaN"),
    "beyond float64": (lambda X, y: (with_cell(X, 10**400), y), "too large"),
    "no rows": (lambda X, y: (X[:0], y[:0]), "0 sample"),
    "no columns": (lambda X, y: (X[:, :0], y), "0 feature"),
    "one row": (lambda X, y: (X[:1], y[:1]), "minimum of 2"),
    "strings": (lambda X, y: (X.astype(str), y), None),
    "words": (lambda X, y: (np.full(X.shape, "SECRET"), y), "convert string"),
    "bytes": (lambda X, y: (np.full(X.shape, b"SECRET"), y), "convert string"),
    "complex": (lambda X, y: (X + 1j * SENTINEL, y), "Complex"),
    "complex CSR": (lambda X, y: (sparse.csr_array(X + 1j * SENTINEL), y), "Complex"),
    "a word among numbers": (lambda X, y: (with_cell(X, "SECRET"), y), "convert string"),
    "a dict among numbers": (lambda X, y: (with_cell(X, {"SECRET": 1}), y), "must be a string or a real number"),
    "one dimension": (lambda X, y: (X[:, 0], y), "Reshape your data"),
    "no dimension": (lambda X, y: (X[0, 0], y), "Reshape your data"),
    "three dimensions": (lambda X, y: (X[:, :, None], y), "dim 3"),
    "sparse of one dimension": (lambda X, y: (sparse.coo_array(X[:, 0]), y), "Reshape your data"),
    "rows of two lengths": (lambda X, y: ([row[: 2 + i % 2].tolist() for i, row in enumerate(X)], y), "inhomogeneous"),
    "a dict": (lambda X, y: ({"SECRET": X}, y), "number"),
    "nothing": (lambda _, y: (None, y), "NoneType|2D array|None"),
    "other lengths": (lambda X, y: (X, y[:-1]), "inconsistent numbers of samples"),
    "no target": (lambda X, _: (X, None), "requires y"),
    "NaN in y": (lambda X, y: (X, np.where(y == y[3], math.nan, y)), "NaN"),
    "infinity in y": (lambda X, y: (X, np.where(y == y[3], math.inf, y)), "infinity"),
    "two targets": (lambda X, y: (X, np.column_stack([y, y])), "1d array|shape"),
    "complex y": (lambda X, y: (X, y + 1j * SENTINEL), "Complex|complex"),
    "a dict as y": (lambda X, y: (X, {"SECRET": y}), "1d array"),
}


@every
@pytest.mark.parametrize("name", REFUSED_DATA)
def test_bad_data_is_refused_before_anything_is_released(kind, name, releases):
    change, message = REFUSED_DATA[name]
    X, y = kind.problem(60)
    X[0, 0] = SENTINEL
    if name == "strings":  # numbers written as strings are read, as in scikit-learn
        model = kind.make().fit(*change(X, y))
        assert np.all(np.isfinite(model.coef_))
        return
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        kind.make().fit(*change(X, y))
    assert releases == []
    assert "987654" not in str(caught.value)
    assert "SECRET" not in str(caught.value)


REFUSED_LABELS = {
    "one class": ({}, lambda y: np.zeros(len(y)), "one class"),
    "numbers": ({}, lambda y: y + np.linspace(0, 0.9, len(y)), "Unknown label type"),
    "several types": ({}, lambda y: np.array([1, "SECRET"], dtype=object)[y], "Unknown label type|not supported"),
    "a class that is not declared": ({"classes": [0, 5]}, lambda y: y, "`classes` does not name"),
    "a word that is not declared": ({"classes": ["a", "b"]}, lambda y: np.array(["a", "SECRET"])[y], "not name"),
    "words for numbers": ({"classes": [0, 1]}, lambda y: np.array(["a", "SECRET"])[y], "does not name"),
    "numbers for words": ({"classes": ["a", "b"]}, lambda y: y, "does not name"),
    "mixed types": ({"classes": ["a", "b"]}, lambda y: np.array([1, "SECRET"], dtype=object)[y], "does not name"),
    "numbers, with classes": ({"classes": [0, 1]}, lambda y: y + 0.5, "does not name"),
    "one class declared": ({"classes": [1]}, lambda y: y, "at least two classes"),
    "a number as classes": ({"classes": 2}, lambda y: y, "at least two classes"),
    "a table of classes": ({"classes": [[0, 1]]}, lambda y: y, "at least two classes"),
}


@classifiers
@pytest.mark.parametrize("name", REFUSED_LABELS)
def test_bad_labels_are_refused_before_anything_is_released(kind, name, releases):
    options, change, message = REFUSED_LABELS[name]
    X, y = kind.problem(60)
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        kind.make(**options).fit(X, change(y))
    assert releases == []
    assert "SECRET" not in str(caught.value)


@regressors
@pytest.mark.parametrize("y", [["SECRET"] * 60, np.array(["SECRET"] * 60, dtype=object), np.full(60, "NaT", "M8[D]")])
def test_targets_that_are_not_numbers_are_refused(kind, y, releases):
    with pytest.raises(ValueError, match=r"real numbers|could not convert|NaN|contains") as caught:
        kind.make().fit(kind.problem(60)[0], y)
    assert releases == []
    assert "SECRET" not in str(caught.value)


REFUSED_PARAMETERS = [
    *[{"epsilon": v} for v in (0, -1.0, math.nan, -math.inf, "1", None, True, 1e100, 1e300)],
    *[{"delta": v} for v in (0.0, 1.0, 1, 2.0, -1e-6, math.nan, "small")],
    {"epsilon": 1e-300, "delta": 1e-300},
    {"epsilon": 1e-9, "delta": 1e-300},
    *[{"adjacency": v} for v in ("", "remove", None, 3)],
    *[{"row_norm": v} for v in (-1.0, 0.0, math.nan, math.inf, "1", 1e-300, 1e300)],
    *[{"bounds": v} for v in (3, "ab", (1, 0), (1, 1), (0, math.nan), (0, math.inf), (0, "1"), (-1e101, 0), (0, 1, 2))],
    *[{"bounds": v} for v in ([(0, 1)] * 3, [(0, 1)] * 5, [(0, 1), (1, 0), None, None], [0, 1, 2, 3], [(0, 1), 2])],
    *[{"bounds": v} for v in ({"age": (0, 1)}, {4: (0, 1)}, {-1: (0, 1)}, {0: 1}, {0: (2, 1)}, {1.0: (0, 1)})],
    {"bounds": (0, 1), "row_norm": 1.0},
    *[{"solver": v} for v in ("lbfgs", None, 1)],
    *[{"fit_intercept": v} for v in ("yes", None, 1)],
    *[{"random_state": v} for v in (-1, 1.5, "1", np.random.RandomState(0), np.random.default_rng(0))],
    *[{"verbose": v} for v in (-1, "a", None, 1.5)],
    *[{"coef_bounds": v} for v in (0, "ab", (0,), (0, 1, 2), (1, 0), (0.5, 0.25), (math.nan, 1), (0, math.nan))],
    *[{"coef_bounds": v} for v in ((math.inf, None), (None, -math.inf), (True, 2), ("0", 1), (0, 1e101), (0, 1j))],
    *[{"coef_bounds": v} for v in (([0] * 3, None), (0, [1.0] * 5), ([0] * 4, [1] * 3), ([1] * 4, [2, 2, 0, 2]))],
    *[{"coef_bounds": v} for v in (([[0] * 4], 1), ([0, None, 0, 0], 1), (0, [[1, 2], [3]]), (0, ["1"] * 4))],
]
NOT_SIZES = (0, -1.0, math.nan, math.inf, "1", True, 1e-300, 1e300)
REFUSED_OPTIONS = [
    *[(name, {"n_iter": v}) for name in ("gradient", "text", "greedy") for v in (0, -1, 1.5, "1", True)],
    *[("frank-wolfe", {"n_iter": v}) for v in (0, -1, 1.5, "1", True)],
    *[(name, {"n_passes": v}) for name in ("coordinate", "dual") for v in (0, -1.0, math.nan, math.inf, "1", True)],
    *[("sgd", {"n_passes": v}) for v in (0, -1.0, math.nan, math.inf, "1", True)],
    *[(name, {"batch_size": v}) for name in ("dual", "sgd") for v in (0, -1, 1.5, "1", True)],
    *[("coordinate", {"order": v}) for v in ("Cyclic", "", 1, "random")],  # "random" does not go with clipping="row"
    *[("coordinate", {"clipping": v}) for v in ("rows", None, 2.0)],
    *[(name, {"clip": v}) for name in ("coordinate", "greedy", "dual", "frank-wolfe") for v in NOT_SIZES],
    *[(name, {"step": v}) for name in ("coordinate", "greedy", "frank-wolfe") for v in NOT_SIZES],
    *[(name, {"averaging": v}) for name in ("coordinate", "frank-wolfe") for v in ("mean", 0, -1, 2.5, True)],
    *[("dual", {"variant": v}) for v in ("public", None, 1)],
    *[("dual", {"inner": v}) for v in ("Newton", None, 1)],
    *[("frank-wolfe", {"entry_bound": v}) for v in NOT_SIZES],
    *[("frank-wolfe", {"sampler": v}) for v in ("alias", None, 1)],
    *[
        (name, {"smoothness": v})
        for name in ("coordinate", "greedy")
        for v in ("public", None, 1.0, [1, 1, 1, 0], [1, 1, 1, -1.0], [1, 1, 1, math.nan], [1, 1, 1, math.inf])
    ],
    *[("coordinate", {"smoothness_share": v}) for v in (0.0, 1.0, -0.1, math.nan, "0.1", True)],
    *[("coordinate", {"coef_init": v}) for v in ([1.0] * 3, [[1.0] * 4], ["1"] * 4, [1, 1, 1, math.inf], 1.0, "zero")],
    *[("coordinate", {"intercept_init": v}) for v in (math.nan, math.inf, 1e200, "1", True)],
    *[("coordinate", {"rescale": v}) for v in (None, 1, "no", False)],  # False needs bounds of all columns
    *[("coordinate", {"keep_path": v}) for v in (None, 1, "yes")],
    *[("coordinate", {"smoothness": v}) for v in ([1.0] * 3, [1.0] * 5, [[1.0] * 4], ["1"] * 4, [True] * 4)],
]
OWN_PARAMETERS = [
    *[(kind, {"C": v}) for kind in CLASSIFIERS for v in (0.0, -1.0, math.nan, "1", None, 1e-320)],
    *[(SVC, {"loss": v}) for v in ("squared hinge", "logistic", "", None, 1, ["hinge"])],
    *[
        (kind, {"alpha": v})
        for kind in (RIDGE, LASSO, ELASTIC_NET)
        for v in (-1.0, -1e-300, math.nan, math.inf, "1", None, 1e300)
    ],
    *[(ELASTIC_NET, {"l1_ratio": v}) for v in (-0.1, 1.1, math.nan, math.inf, "0.5", None, [0.5])],
    *[
        (kind, {"y_bounds": v})
        for kind in REGRESSORS
        for v in ((1, 0), (0, 0), (0, math.inf), (math.nan, 1), (0,), 3.0, "ab", (0, "1"), (-1e308, 1e308))
    ],
]


def refuses(kind, options, releases, X, y):
    with pytest.raises((ValueError, TypeError)) as caught:
        kind.make(**options).fit(X, y)
    assert any(name in str(caught.value) for name in options)
    assert releases == []
    assert not hasattr(caught.value, "__notes__")


@every
@pytest.mark.parametrize(
    "options",
    REFUSED_PARAMETERS,
    ids=lambda options: ", ".join(
        f"{k}={type(v).__name__}" if "random" in k else f"{k}={v}" for k, v in options.items()
    ),
)
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
@pytest.mark.whole
def test_bad_parameters_are_refused_by_name(kind, options, store, releases):
    X, y = kind.problem(60)
    refuses(kind, options, releases, store(X), y)


@every
@pytest.mark.parametrize(("solver", "options"), REFUSED_OPTIONS, ids=str)
@pytest.mark.whole
def test_bad_options_of_a_solver_are_refused_by_name(kind, solver, options, releases):
    X, y = kind.problem(60)
    with pytest.raises((ValueError, TypeError)) as caught:
        kind.make(solver=SOLVERS[solver](**options)).fit(X, y)
    assert next(iter(options)) in str(caught.value)
    assert releases == []


@pytest.mark.parametrize("option", ["order", "clipping", "clip", "step", "averaging", "smoothness"])
def test_options_of_other_solvers_are_refused_by_name(option):
    with pytest.raises(TypeError, match=option):
        SOLVERS["gradient"](**{option: 1.0})


@every
def test_only_solvers_are_solvers(kind, releases):
    X, y = kind.problem(60)
    for other in (object(), SOLVERS["sgd"], kind.make(), Gauss()):
        with pytest.raises(TypeError, match=r"solver must be a name or an object of tacit\.solvers"):
            kind.make(solver=other).fit(X, y)
    assert releases == []


@pytest.mark.parametrize("solver", ["auto", *SOLVERS])
def test_bounds_on_the_coefficients_of_many_classes_are_refused(solver, releases):
    X, y = LOGISTIC.problem(60, classes=3)
    with pytest.raises(ValueError, match=r"bounds on coefficients|multinomial loss"):
        LOGISTIC.make(coef_bounds=(0, None), solver=solver).fit(X, y)
    assert releases == []


@pytest.mark.parametrize("solver", ["coordinate", "objective"])
def test_solvers_for_two_classes_refuse_more_and_name_those_that_can(solver, releases):
    message = f"solver='{solver}' does not serve the multinomial loss of more than two classes; these do: gradient, sgd"
    with pytest.raises(ValueError, match=message):
        LOGISTIC.make(solver=solver).fit(*LOGISTIC.problem(60, classes=3))
    assert releases == []


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_a_support_vector_machine_of_three_classes_is_fitted_or_refused(loss, solver, releases):
    X, y = SVC.problem(60, classes=3)
    model = SVC.make(loss=loss, solver=solver)
    if LOSSES[loss] in SOLVERS[solver].serves.multiclass:
        assert model.fit(X, y).coef_.shape == (3, 4)
        assert np.all(np.isfinite(model.decision_function(X)))
        return
    message = (
        rf"does not serve the {LOSSES[loss].words} loss of more than two classes( and dense rows)?; these do: dual$"
    )
    for declared, labels in ((None, y), ([0, 1, 2], np.minimum(y, 1))):
        with pytest.raises(ValueError, match=message):
            model.set_params(classes=declared).fit(X, labels)
    assert releases == []


@pytest.mark.parametrize("solver", [name for name, solver in SOLVERS.items() if HINGE not in solver.serves.losses])
def test_solvers_that_cannot_serve_the_hinge_refuse_it_and_name_those_that_can(solver, releases):
    with pytest.raises(ValueError, match=r"does not serve the hinge loss.*; these do: .*\bsgd\b"):
        SVC.make(loss="hinge", solver=solver).fit(*SVC.problem(60))
    assert releases == []


@pytest.mark.parametrize(("kind", "options"), OWN_PARAMETERS, ids=str)
def test_bad_parameters_of_one_estimator_are_refused_by_name(kind, options, releases):
    refuses(kind, options, releases, *kind.problem(60))


@every
def test_parameters_are_refused_before_the_data_is_looked_at(kind):
    with pytest.raises(ValueError, match="epsilon"):
        kind.make(epsilon=-1.0).fit("SECRET", None)


# Strange, and still a fit.
ACCEPTED = {
    "a constant column": lambda X: np.where(np.arange(X.shape[1]) == 1, 7.0, X),
    "a zero column": lambda X: np.where(np.arange(X.shape[1]) == 1, 0.0, X),
    "only zeros": np.zeros_like,
    "only one value": lambda X: np.full_like(X, 3.0),
    "huge": lambda X: np.sign(X) * 1e300,
    "one huge value": lambda X: with_cell(X, 1e300),
    "the largest float": lambda X: with_cell(X, np.finfo(float).max),
    "denormals": lambda X: np.sign(X) * 5e-324,
    "tiny": lambda X: X * 1e-300,
    "from tiny to huge": lambda X: X * 10.0 ** np.linspace(-300, 300, X.shape[1]),
    "two rows": lambda X: X[:2],
    "more columns than rows": lambda X: np.random.default_rng(0).normal(size=(len(X), len(X) + 5)),
    "one column": lambda X: X[:, :1],
    "equal columns": lambda X: np.repeat(X[:, :1], 5, axis=1),
}
# Epsilon, intercept and what is declared take turns.
SETTINGS = (
    (0.1, True, None),
    (0.1, False, 1e100),
    (10.0, False, None),
    (10.0, True, 1.0),
    (10.0, True, 1e-100),
    (math.inf, True, None),
)


@every
@pytest.mark.parametrize("name", ACCEPTED)
@pytest.mark.parametrize("store", [np.asarray, pytest.param(sparse.csr_array, marks=pytest.mark.slow)])
def test_strange_data_gives_a_finite_model(kind, name, store):
    X, y = kind.problem(40)
    X = ACCEPTED[name](X)
    y = np.array([0, 1]) if len(X) == 2 else y
    for epsilon, fit_intercept, norm in SETTINGS:
        model = kind.make(epsilon=epsilon, fit_intercept=fit_intercept, row_norm=norm).fit(store(X), y)
        assert np.all(np.isfinite(model.coef_))
        assert np.all(np.isfinite(model.intercept_))
        assert not np.any(np.isnan([model.clip_low_, model.clip_high_]))
        if store is np.asarray:
            assert np.all(np.isfinite(model.predict(X)))


@regressors
@pytest.mark.parametrize("scale", [0.0, 1e-300, 1e300])
@pytest.mark.parametrize("bounds", [None, (-1e100, 1e100), (0.0, 1e-320)])
def test_strange_targets_give_a_finite_model(kind, scale, bounds):
    X, y = kind.problem(40)
    for epsilon in (0.1, math.inf):
        model = kind.make(epsilon=epsilon, y_bounds=bounds).fit(X, np.sign(y - 40.0) * scale)
        assert np.all(np.isfinite([*model.coef_, model.intercept_, *model.y_bounds_]))


@every
@pytest.mark.parametrize("epsilon", [1e-300, 1e-6, 1e6, 1e15])
def test_extreme_budgets_give_a_finite_model(kind, epsilon):
    X, y = kind.problem(60)
    for given in (X, sparse.csr_array(X)):
        assert np.all(np.isfinite(kind.make(epsilon=epsilon).fit(given, y).coef_))


@regressors
@pytest.mark.parametrize("solver", ["coordinate", "greedy"])
@pytest.mark.parametrize("name", ACCEPTED)
def test_strange_data_and_bounds_give_a_finite_model_within_them(kind, solver, name):
    X, y = kind.problem(40)
    X = ACCEPTED[name](X)
    y = y[: len(X)]
    for store, declared in (
        (np.asarray, {}),
        (np.asarray, {"row_norm": 1e-100, "y_bounds": (0.0, 1e-320)}),
        (np.asarray, {"row_norm": 1e-100, "y_bounds": (-1e100, 1e100)}),
        (sparse.csr_array, {"row_norm": 1e100, "y_bounds": (0.0, 1e-320)}),
    ):
        for low, high in ((0, None), (-1e-100, 1e100), (2.0, 2.0)):
            model = kind.make(epsilon=10.0, solver=solver, coef_bounds=(low, high), **declared).fit(store(X), y)
            assert np.all(np.isfinite(model.coef_))
            assert np.all(np.isfinite(model.intercept_))
            assert np.all(model.coef_ >= low)
            assert high is None or np.all(model.coef_ <= high)


@pytest.mark.parametrize("kind", [LASSO, ELASTIC_NET], ids=str)
@pytest.mark.parametrize("alpha", [1e-300, 1e-100, 1e100])
def test_extreme_alphas_give_a_finite_model(kind, alpha):
    X, y = kind.problem(60)
    for given, norm, bounds in (
        (X, None, None),
        (X, 1e-100, (0.0, 1e-320)),
        (sparse.csr_array(X), 1e-100, (0.0, 1e-320)),
        (sparse.csr_array(X), 1e100, (-1e100, 1e100)),
    ):
        model = kind.make(alpha=alpha, row_norm=norm, y_bounds=bounds).fit(given, y)
        assert np.all(np.isfinite(model.coef_))
        assert np.all(np.isfinite(model.coef_noise_))
        if alpha == 1e100 and bounds != (-1e100, 1e100):
            assert not np.any(model.coef_)


@classifiers
def test_extreme_penalties_give_a_finite_model(kind):
    X, y = kind.problem(60)
    for C in (1e-100, 1e-10, 1e300, math.inf):
        for given, norm in ((X, None), (sparse.csr_array(X), 1e-100), (sparse.csr_array(X), 1e100)):
            model = kind.make(C=C, row_norm=norm).fit(given, y)
            assert np.all(np.isfinite(model.coef_))
            assert np.all(np.isfinite(model.decision_function(given)))
            if kind.has_probabilities:
                assert np.all(np.abs(model.predict_proba(given) - 0.5) <= 0.5)
