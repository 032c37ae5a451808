"""Encoders and pipelines in a file: how their parts must fit together."""

from dataclasses import replace
from typing import Any

from tacit.estimators.stages import PRIVATE
from tacit.estimators.stateless import is_skipped
from tacit.modelfiles.rowsteps import ONE_TO_ONE, ONLY_STEPS
from tacit.preprocessing import PrivateEncoder, RowClipper
from tacit.preprocessing.coding import Coded, by_place, categories_of, listed
from tacit.privacy import Budget, checks
from tacit.privacy.texts import HARMLESS, harmless

STEPS: frozenset[str] = frozenset(kind.__name__ for kind in (*PRIVATE, RowClipper)) | ONLY_STEPS
"""What a file may hold as a step."""

_OWNED = ("epsilon", "delta", "adjacency", "random_state")


def check_encoder(model: PrivateEncoder) -> None:
    """Refuse an encoder whose columns are none, or are not those that it says."""
    Budget(model.epsilon, 0.5 if model.delta is None else model.delta, model.adjacency)  # type: ignore[arg-type]
    most = checks.count("max_categories", model.max_categories)
    columns = model.columns_
    if not isinstance(columns, tuple) or not all(isinstance(column, Coded) for column in columns):
        raise ValueError("columns_ must be a tuple of columns")
    if len({column.name for column in columns}) < len(columns) or len(columns) != model.n_features_in_:
        raise ValueError("columns_ must be as many as n_features_in_, with different names")
    for column in columns:
        _check_column(column, most)
    _check_origin(model, columns)
    model.categories_ = {column.name: column.categories for column in columns if column.categories is not None}


def _check_column(column: Coded, most: int) -> None:
    values = column.categories
    texts = isinstance(values, tuple) and all(isinstance(value, str) and harmless(value) for value in values)
    if not isinstance(column.name, str) or not harmless(column.name) or not (values is None or texts):
        raise ValueError(f"columns_ must have names and categories that are texts {HARMLESS}")
    if values is not None and len(set(values)) < len(values):
        raise ValueError("columns_ must have each category once")
    told = (column.is_text, column.indicator, column.parsed, column.spare, column.found, column.typed)
    flags = all(isinstance(flag, bool) for flag in told)
    if not flags or (values is None and column.is_text) or isinstance(column.empty, bool):
        raise ValueError("columns_ must say of each whether it is text, and has an indicator")
    if not isinstance(column.empty, int) or not 0 <= column.empty <= most:
        raise ValueError("columns_ must have at most max_categories empty columns each")
    if (column.found and len(values or ()) + column.empty > most) or (column.spare and not column.parsed):
        raise ValueError("columns_ must have no more columns than were planned: max_categories that are found")
    if column.empty and not (column.found or column.parsed):
        raise ValueError("columns_ must have empty columns only where categories were to be found")


def _check_origin(model: PrivateEncoder, columns: tuple[Coded, ...]) -> None:
    """Refuse categories of which the file does not say where they come from, or which a guarantee had to cover.

    They are declared by the user, declared by the type of their column, or found under a guarantee that has a part of
    delta for it: one of the three, and the file says which.
    """
    names = tuple(column.name for column in columns)
    declared = by_place("categories", model.categories, names)
    voted = by_place("parse", listed("parse", model.parse), names)
    for place, column in enumerate(columns):
        told = declared.get(place)
        if place in declared and column.categories != categories_of(column.name, told, is_text=column.is_text):
            raise ValueError("columns_ must have the categories that are declared")
        if column.parsed != (place in voted) or (column.parsed and column.is_text and not column.found):
            raise ValueError("columns_ must say of the columns to parse, and of no others, that a vote decided on them")
        if (column.found or column.typed) and not column.is_text:
            raise ValueError("columns_ must have categories that are found, or of a type, in columns of text only")
        if (place in declared) + column.typed + column.found != (column.categories is not None):
            raise ValueError(
                "columns_ must say of the categories of each column, and of no others, that they are declared, that a"
                " type declares them, or that they were found"
            )
    covered = model.guarantee_ is not None and model.guarantee_.d0 > 0.0 and hasattr(model, "plan_")
    if covered != any(column.found or column.parsed for column in columns):
        raise ValueError(
            "where categories were found, and only there, there must be a plan, and a guarantee with a part of delta"
        )


def check_pipeline(model: Any) -> None:
    """Refuse a pipeline whose steps do not fit together, or state another guarantee than it does."""
    model._check_parameters()
    width = None
    for name, step in model.steps_:
        if not harmless(name):
            raise ValueError(f"the names of steps must be texts {HARMLESS}")
        if is_skipped(step):
            continue
        if width is not None and step.n_features_in_ != width:
            raise ValueError(f"step {name!r} must have as many columns as the step before it gives")
        width = len(step.get_feature_names_out()) if hasattr(step, "get_feature_names_out") else None
        stated = getattr(step, "guarantee_", None)
        if type(step) in PRIVATE and stated is None:
            raise ValueError(f"step {name!r} must state the guarantee of the pipeline, and states none")
        if stated is not None and replace(stated, solver=model.guarantee_.solver) != model.guarantee_:
            raise ValueError(f"step {name!r} must state the guarantee of the pipeline")


def given(parts: dict[str, Any]) -> list[tuple[str, Any]]:
    """The steps as they may have been given, from fitted ones: without the terms that a pipeline sets."""
    steps: list[tuple[str, Any]] = []
    names: list[str | None] | None = None
    for name, fitted in parts.items():
        if is_skipped(fitted):
            steps.append((name, fitted))
            continue
        params = {key: value for key, value in fitted.get_params(deep=False).items() if key not in _OWNED}
        if names is not None and isinstance(params.get("bounds"), dict):
            named = {names[k]: pair for k, pair in params["bounds"].items() if isinstance(k, int) and k < len(names)}
            params["bounds"] = {key: pair for key, pair in named.items() if key is not None} or None
        elif params.get("bounds") is not None and any(type(step) in PRIVATE for _, step in steps):
            params["bounds"] = None  # of what a scaler gives
        names = names if isinstance(fitted, (RowClipper, *ONE_TO_ONE)) else None
        if isinstance(fitted, PrivateEncoder):
            sources = fitted._sources().values()
            names = [None if s.value is not None or s.missing or s.empty else s.column for s in sources]
        steps.append((name, type(fitted)(**params)))
    return steps
