"""How what a model has released must fit together: the sizes of its arrays, by which all of them are checked.

Each function takes a model that was read, refuses parameters that a fit would refuse and attributes that fit no model
of its class, and gives the lengths of the sides that arrays have.
"""

import math
from typing import Any

import numpy as np

from tacit.bounding.declared import DeclaredScale
from tacit.estimators import PrivatePipeline
from tacit.federated.evaluation import HeldOut
from tacit.federated.models import study_of
from tacit.federated.units import Units
from tacit.modelfiles.pipelines import check_encoder, check_pipeline
from tacit.modelfiles.rowsteps import check_row_step
from tacit.modelfiles.table import Column, TableModel, feature_names
from tacit.privacy import checks
from tacit.privacy.texts import HARMLESS, harmless
from tacit.problems.bounds import Bounds
from tacit.problems.declared import declared_size, per_feature
from tacit.solvers import Coordinate

NAMES = "feature_names_in_"

Sizes = dict[str, int]


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


def classifier(model: Any) -> Sizes:
    """Of a linear model with classes."""
    model._check_parameters()
    d, classes = _width(model), _labels(model)
    _declared(model, d)
    return {"d": d, "rows": 1 if classes == 2 else classes} | _iterates(model)


def regressor(model: Any) -> Sizes:
    """Of a linear model of a number."""
    model._check_parameters()
    d = _width(model)
    _bounds(model)
    _declared(model, d)
    return {"d": d} | _iterates(model)


def pca(model: Any) -> Sizes:
    """Of a PCA."""
    model._check_parameters()
    _declared(model, _width(model))
    return {"d": _width(model), "k": _count(model.n_components_, "n_components_", least=1)}


def scaler(model: Any) -> Sizes:
    """Of a scaler."""
    model._check_parameters()
    d = _width(model)
    _declared(model, d)
    if model.guarantee_ is None:
        _check_costless(model, d)
    return {"d": d}


def _check_costless(model: Any, d: int) -> None:
    """Refuse a scaler without a guarantee whose scales are not those of declared bounds."""
    free = np.full(d, np.inf)
    told = Bounds.of(model.bounds, d, getattr(model, NAMES, None)) or Bounds(-free, free)
    by_type = Bounds(np.where(told.declared, told.low, 0.0), np.where(told.declared, told.high, 1.0))
    known = DeclaredScale.of(2, by_type).known()
    pairs = ((model.mean_, known.centre), (model.scale_, known.scale), (model.clip_low_, by_type.low))
    same = all(np.array_equal(one, other) for one, other in (*pairs, (model.clip_high_, by_type.high)))
    if not same or model.row_norm is not None or not (told.are_whole or model.trust_dtypes):
        raise ValueError("a scaler without a guarantee must have declared bounds for all columns, and their scales")


def encoder(model: Any) -> Sizes:
    """Of an encoder."""
    check_encoder(model)
    return {"d": _width(model)}


def pipeline(model: Any) -> Sizes:
    """Of a pipeline, whose parts have sizes of their own."""
    check_pipeline(model)
    return {}


def clipper(model: Any) -> Sizes:
    """Of a clipper."""
    declared_size("norm", model.norm)
    return {"d": _width(model)}


def row_step(model: Any) -> Sizes:
    """Of a step of scikit-learn, which is made ready here."""
    check_row_step(model)
    return {}


def federated(model: Any) -> Sizes:
    """Of a model between organisations."""
    names = ("coefs_", "features_", "entry_bounds_", "row_norms_", "uplink_bytes_")
    parties = list(model.coefs_) if isinstance(model.coefs_, dict) else []
    if not parties or not all(isinstance(getattr(model, name), dict) for name in names):
        raise ValueError(f"{', '.join(names)} must name the parties")
    left = getattr(model, "left_", ())
    if not isinstance(left, tuple) or not all(isinstance(name, str) for name in left) or set(left) & set(parties):
        raise ValueError("left_ must name the parties that left")
    if not all(
        set(getattr(model, name)) == set(parties) | (set(left) if name == "uplink_bytes_" else set()) for name in names
    ):
        raise ValueError(f"{', '.join(names)} must be about the same parties")
    rows = _rows(model)
    for party, coef in model.coefs_.items():
        _party(model, party, coef, rows)
    if hasattr(model, "units_"):
        _units(model)
    d = sum(coef.shape[-1] for coef in model.coefs_.values())
    if _count(model.n_features_in_, "n_features_in_") != d:
        raise ValueError("n_features_in_ must be the number of the parties' columns together")
    if not hasattr(model, "classes_"):
        _bounds(model)
    _count(model.n_rounds_, "n_rounds_")
    found = getattr(model, "evaluation_", None)
    if (found is None) != (model.evaluation is None) or not isinstance(found, HeldOut | None):
        raise ValueError("evaluation_ must be what a study with an evaluation said of its models")
    if not isinstance(model.verbose, bool):
        _count(model.verbose, "verbose")
    study_of(model)
    return {"d": d, "rows": max((1, *rows))} if hasattr(model, "classes_") else {"d": d}


def _rows(model: Any) -> tuple[int, ...]:
    """How many rows of weights a model of several classes has; none, where weights are one row."""
    classes = _labels(model) if hasattr(model, "classes_") else 2
    return () if classes == 2 else (classes,)


def _party(model: Any, party: str, coef: Any, rows: tuple[int, ...]) -> None:
    columns = model.features_[party]
    numbers = isinstance(coef, np.ndarray) and coef.dtype == np.float64 and bool(np.isfinite(coef).all())
    if not numbers or coef.ndim != 1 + len(rows) or coef.shape[:-1] != rows:
        raise ValueError(f"coefs_ of {party!r} must be an array of finite numbers, with a row for each of more classes")
    whole = isinstance(columns, np.ndarray) and columns.dtype.kind == "i" and columns.ndim == 1
    if not whole or np.any((columns < 0) | (columns >= coef.shape[-1])):
        raise ValueError(f"features_ of {party!r} must hold numbers of its columns")
    for bound in (model.entry_bounds_[party], model.row_norms_[party]):
        if not isinstance(bound, float) or not bound >= 0.0:
            raise ValueError(f"entry_bounds_ and row_norms_ of {party!r} must be numbers of at least 0")
    _count(model.uplink_bytes_[party], "uplink_bytes_")


def _units(model: Any) -> None:
    units = model.units_
    if not isinstance(units, dict) or list(units) != list(model.coefs_):
        raise ValueError("units_ must name the parties")
    for party, coef in model.coefs_.items():
        if not isinstance(units[party], Units) or len(units[party].scale) != coef.shape[-1]:
            raise ValueError(f"units_ of {party!r} must be of its columns")


def table_model(model: TableModel) -> Sizes:
    """Of a model with its columns."""
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
