"""Which classes can be saved, what each has released, and how that must fit together.

What holds: a file names a class of this list or none, so no name in a file chooses which code is imported. Only the
parameters and the attributes listed here are written; nothing else that a model may hold ever reaches a file.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from tacit.estimators import (
    PCA,
    ElasticNet,
    Lasso,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    PrivatePipeline,
    Ridge,
)
from tacit.federated import FederatedLasso, FederatedLinearSVC, FederatedLogisticRegression
from tacit.federated.models import study_of
from tacit.modelfiles.pipelines import check_encoder, check_pipeline
from tacit.modelfiles.table import Column, TableModel, feature_names
from tacit.modelfiles.texts import HARMLESS, harmless
from tacit.modelfiles.values import parameters_of
from tacit.preprocessing import PrivateEncoder, PrivateScaler, RowClipper
from tacit.privacy import Budget, checks
from tacit.problems.bounds import Bounds
from tacit.problems.declared import declared_size, per_feature
from tacit.solvers import Coordinate

WITHHELD = frozenset({"random_state", "directory"})
"""Parameters that are never written: the noise could be subtracted with the first, or with what lies in the second."""

NAMES = "feature_names_in_"

Sizes = dict[str, int]

NUMBERS = {
    **{"coef_": "rows d", "coef_noise_": "rows d", "intercept_": "rows", "mean_": "d", "scale_": "d"},
    **{"clip_low_": "d", "clip_high_": "d", "components_": "k d", "reliability_": "k", "explained_variance_": "k"},
    **{"explained_variance_ratio_": "k", "singular_values_": "k"},
    **{"noise_variance_": "", "noise_floor_": "", "radius_": ""},
    **{"coef_path_": "iterates d", "intercept_path_": "iterates"},
}
"""The sides of what is released as floats. A side that a class has no size for is left out: of none, it is a float."""

_MAY_BE_NAN = {"explained_variance_", "explained_variance_ratio_", "singular_values_"}  # below the noise floor
_MAY_BE_INFINITE = {"clip_low_", "clip_high_"}


@dataclass(frozen=True)
class Entry:
    """A class that can be saved."""

    kind: type
    attributes: tuple[str, ...]  # all that a fit leaves on it, but for the guarantee
    sizes: Callable[[Any], Sizes]  # by which arrays must fit together; checks parameters, and what is not in `NUMBERS`
    parts: tuple[str, ...] = ()  # parameters that are models themselves
    guaranteed: bool = True
    optional: tuple[str, ...] = (NAMES,)  # attributes that some fits leave and others do not
    has_steps: bool = False  # its parts are fitted steps, by their names

    @property
    def parameters(self) -> frozenset[str]:
        """What is written of the constructor's parameters."""
        return parameters_of(self.kind) - WITHHELD - set(self.parts) - ({"steps"} if self.has_steps else set())

    def check(self, model: Any) -> None:
        """Refuse a model that was read, if a parameter is not accepted or its attributes do not fit together."""
        sizes = self.sizes(model)
        for name in (*self.attributes, *self.optional):
            if name in NUMBERS and hasattr(model, name):
                shape = tuple(sizes[side] for side in NUMBERS[name].split() if side in sizes)
                _check_numbers(name, getattr(model, name), shape, sparse=self.sizes is _classifier and name == "coef_")
        if "clip_low_" in self.attributes and np.any(model.clip_low_ > model.clip_high_):
            raise ValueError("clip_low_ must be at most clip_high_")
        if "scale_" in self.attributes and np.any(model.scale_ <= 0.0):
            raise ValueError("scale_ must be above 0")
        if "coefs_" in self.attributes and not np.array_equal(
            np.ravel(model.coef_), np.hstack([*model.coefs_.values()])
        ):
            raise ValueError("coef_ must be the coefficients of the parties in coefs_")


def _check_numbers(name: str, value: Any, shape: tuple[int, ...], *, sparse: bool) -> None:
    """Refuse what is not an array of finite floats of this shape, or one such float."""
    if sparse and isinstance(value, csr_array):
        if value.shape != shape or not np.isfinite(value.data).all():
            raise ValueError(f"{name} must hold finite numbers and be of shape {shape}")
    elif not shape:
        if not isinstance(value, float) or not math.isfinite(value):
            raise ValueError(f"{name} must be a finite number")
    elif not isinstance(value, np.ndarray) or value.dtype.kind != "f" or value.shape != shape:
        raise ValueError(f"{name} must be an array of numbers of shape {shape}")
    elif np.isnan(value).any() > (name in _MAY_BE_NAN) or np.isinf(value).any() > (name in _MAY_BE_INFINITE):
        raise ValueError(f"{name} must hold finite numbers")


def _count(value: Any, name: str, least: int = 0) -> int:
    if not isinstance(value, int):
        raise ValueError(f"{name} must be a whole number")
    return checks.count(name, value, least=least)


def _width(model: Any) -> int:
    """The number of features; their names must be as many."""
    d = _count(model.n_features_in_, "n_features_in_", least=1)
    names = getattr(model, NAMES, None)
    if names is not None:
        texts = isinstance(names, np.ndarray) and names.dtype == object and names.shape == (d,)
        if not texts or not all(isinstance(name, str) and harmless(name) for name in names):
            raise ValueError(f"{NAMES} must hold one text for each of {d} features, {HARMLESS}")
    return d


def _iterates(model: Any) -> Sizes:
    """How many iterates a model keeps, if it does: for both of its paths, or for none."""
    path = [name for name in ("coef_path_", "intercept_path_") if hasattr(model, name)]
    if len(path) == 1 or np.ndim(getattr(model, "intercept_path_", [0.0])) != 1:
        raise ValueError("coef_path_ and intercept_path_ must go together, with a row and a number for each iterate")
    if not path:
        return {}
    if not isinstance(model.solver, Coordinate) or not model.solver.keep_path:
        raise ValueError("coef_path_ and intercept_path_ belong to solver=Coordinate(keep_path=True)")
    return {"iterates": len(model.intercept_path_)}


def _declared(model: Any, d: int) -> None:
    """What is declared must fit the columns."""
    if isinstance(model.bounds, dict) and not all(harmless(key) for key in model.bounds if isinstance(key, str)):
        raise ValueError(f"bounds must name columns by texts {HARMLESS}")
    Bounds.of(model.bounds, d, getattr(model, NAMES, None))
    for name in ("C", "alpha"):
        if np.ndim(getattr(model, name, 0.0)) > 0:
            per_feature(name, getattr(model, name), d)


def _labels(model: Any) -> int:
    """The number of classes."""
    classes = model.classes_
    if not isinstance(classes, np.ndarray) or classes.ndim != 1 or len(classes) < 2:
        raise ValueError("classes_ must be an array of at least two classes")
    labels = classes.tolist()
    finite = all(math.isfinite(label) for label in labels if isinstance(label, float))
    if not finite or len(np.unique(classes)) < len(classes):
        raise ValueError("classes_ must be distinct, and finite if they are numbers")
    if len({type(label) for label in labels}) > 1:
        raise ValueError("classes_ must be of one type")
    if not all(harmless(label) for label in labels if isinstance(label, str)):
        raise ValueError(f"classes_ must be texts {HARMLESS}")
    return len(classes)


def _bounds(model: Any) -> None:
    bounds = model.y_bounds_
    pair = isinstance(bounds, tuple) and len(bounds) == 2 and all(isinstance(value, float) for value in bounds)
    if not pair or not -math.inf < bounds[0] <= bounds[1] < math.inf:
        raise ValueError("y_bounds_ must be a pair (low, high) of finite numbers")


def _classifier(model: Any) -> Sizes:
    model._check_parameters()
    d, classes = _width(model), _labels(model)
    _declared(model, d)
    return {"d": d, "rows": 1 if classes == 2 else classes} | _iterates(model)


def _regressor(model: Any) -> Sizes:
    model._check_parameters()
    d = _width(model)
    _bounds(model)
    _declared(model, d)
    return {"d": d} | _iterates(model)


def _pca(model: Any) -> Sizes:
    model._check_parameters()
    return {"d": _width(model), "k": _count(model.n_components_, "n_components_", least=1)}


def _scaler(model: Any) -> Sizes:
    Budget(model.epsilon, 0.5 if model.delta is None else model.delta, model.adjacency)
    if model.row_norm is not None:
        declared_size("row_norm", model.row_norm)
    return {"d": _width(model)}


def _encoder(model: Any) -> Sizes:
    check_encoder(model)
    return {"d": _width(model)}


def _pipeline(model: Any) -> Sizes:
    check_pipeline(model)
    return {}


def _clipper(model: Any) -> Sizes:
    declared_size("norm", model.norm)
    return {"d": _width(model)}


def _federated(model: Any) -> Sizes:
    names = ("coefs_", "features_", "entry_bounds_", "row_norms_", "uplink_bytes_")
    parties = list(model.coefs_) if isinstance(model.coefs_, dict) else []
    if not parties or not all(isinstance(getattr(model, name), dict) for name in names):
        raise ValueError(f"{', '.join(names)} must name the parties")
    if not all(set(getattr(model, name)) == set(parties) for name in names):
        raise ValueError(f"{', '.join(names)} must be about the same parties")
    for party, coef in model.coefs_.items():
        _party(model, party, coef)
    d = sum(map(len, model.coefs_.values()))
    if _count(model.n_features_in_, "n_features_in_") != d:
        raise ValueError("n_features_in_ must be the number of the parties' columns together")
    if hasattr(model, "classes_"):
        if _labels(model) != 2:
            raise ValueError("a federated model has two classes")
    else:
        _bounds(model)
    _count(model.n_rounds_, "n_rounds_")
    if not isinstance(model.verbose, bool):
        _count(model.verbose, "verbose")
    study_of(model)
    return {"d": d, "rows": 1} if hasattr(model, "classes_") else {"d": d}


def _party(model: Any, party: str, coef: Any) -> None:
    columns = model.features_[party]
    if not isinstance(coef, np.ndarray) or coef.dtype != np.float64 or coef.ndim != 1 or not np.isfinite(coef).all():
        raise ValueError(f"coefs_ of {party!r} must be an array of finite numbers")
    whole = isinstance(columns, np.ndarray) and columns.dtype.kind == "i" and columns.ndim == 1
    if not whole or np.any((columns < 0) | (columns >= len(coef))):
        raise ValueError(f"features_ of {party!r} must hold numbers of its columns")
    for bound in (model.entry_bounds_[party], model.row_norms_[party]):
        if not isinstance(bound, float) or not bound >= 0.0:
            raise ValueError(f"entry_bounds_ and row_norms_ of {party!r} must be numbers of at least 0")
    _count(model.uplink_bytes_[party], "uplink_bytes_")


def _table_model(model: TableModel) -> Sizes:
    columns = model.columns
    if not isinstance(columns, tuple) or not columns or not all(isinstance(column, Column) for column in columns):
        raise ValueError("columns must be a tuple of columns")
    if len({column.name for column in columns}) < len(columns):
        raise ValueError("columns must have different names")
    by_itself = isinstance(model.model, PrivatePipeline)  # it encodes the columns
    width = len(columns) if by_itself else len(feature_names(columns))
    if not hasattr(model.model, "predict") or model.model.n_features_in_ != width:
        raise ValueError("columns must give as many features as the model has")
    if not isinstance(model.target, str) or not harmless(model.target):
        raise ValueError(f"target must be the name of a column, {HARMLESS}")
    remarks = model.not_covered
    if not isinstance(remarks, tuple) or not all(_is_remark(remark) for remark in remarks):
        raise ValueError(f"not_covered must be a tuple of pairs of texts, {HARMLESS}")
    return {}


def _is_remark(remark: Any) -> bool:
    return (
        isinstance(remark, tuple)
        and len(remark) == 2
        and all(isinstance(text, str) and harmless(text) for text in remark)
    )


_LINEAR = ("coef_", "coef_noise_", "intercept_", "clip_low_", "clip_high_", "plan_", "n_features_in_")
_TOLD = (NAMES, "coef_path_", "intercept_path_")
_PCA = (
    *("components_", "mean_", "explained_variance_", "explained_variance_ratio_", "singular_values_"),
    *("noise_variance_", "noise_floor_", "reliability_", "radius_", "n_components_", "plan_", "n_features_in_"),
)
_FEDERATED = (
    *("coef_", "coefs_", "intercept_", "features_", "entry_bounds_", "row_norms_", "plan_", "n_features_in_"),
    *("n_rounds_", "uplink_bytes_"),
)

CLASSES: dict[str, Entry] = {
    entry.kind.__name__: entry
    for entry in (
        *(Entry(kind, (*_LINEAR, "classes_"), _classifier, optional=_TOLD) for kind in (LogisticRegression, LinearSVC)),
        *(
            Entry(kind, (*_LINEAR, "y_bounds_"), _regressor, optional=_TOLD)
            for kind in (LinearRegression, Ridge, Lasso, ElasticNet)
        ),
        Entry(PCA, _PCA, _pca),
        Entry(
            PrivateScaler,
            ("mean_", "scale_", "clip_low_", "clip_high_", "n_features_in_"),
            _scaler,
            optional=(NAMES, "plan_"),
        ),
        Entry(PrivateEncoder, ("columns_", "n_features_in_"), _encoder, optional=(NAMES, "plan_")),
        Entry(PrivatePipeline, ("plan_",), _pipeline, optional=(), has_steps=True),
        Entry(RowClipper, ("n_features_in_",), _clipper, guaranteed=False),
        Entry(FederatedLasso, (*_FEDERATED, "y_bounds_"), _federated),
        Entry(FederatedLogisticRegression, (*_FEDERATED, "classes_"), _federated),
        Entry(FederatedLinearSVC, (*_FEDERATED, "classes_"), _federated),
        Entry(TableModel, (), _table_model, parts=("model",), guaranteed=False),
    )
}
"""By the name that a file has for each."""
