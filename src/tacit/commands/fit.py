"""`tacit fit`: a table in, a private model and a report out."""

import os
import shlex
import sys
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier

import tacit
from tacit.blocks.lazy import Changed
from tacit.blocks.reading import Reading
from tacit.commands import pieces, say, tables
from tacit.commands.schema import Schema, quoted, split
from tacit.commands.workers import where
from tacit.estimators import (
    ElasticNet,
    Lasso,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    PrivatePipeline,
    Ridge,
)
from tacit.modelfiles import Column, TableModel, save
from tacit.modelfiles.files import write_whole
from tacit.modelfiles.table import encoder, feature_names, filled
from tacit.preprocessing import PrivateEncoder
from tacit.report.model import Remark, write

MODELS: dict[str, Any] = {
    "logistic": LogisticRegression,
    "linear-svc": LinearSVC,
    "linear": LinearRegression,
    "ridge": Ridge,
    "lasso": Lasso,
    "elastic-net": ElasticNet,
}
TASKS = {name: "classification" if is_classifier(model()) else "regression" for name, model in MODELS.items()}
_OWNERS = {
    "C": ("logistic", "linear-svc"),
    "loss": ("linear-svc",),
    "alpha": ("ridge", "lasso", "elastic-net"),
    "l1_ratio": ("elastic-net",),
}
Table = tables.Frame | pieces.Pieces
_PICKLES = (".joblib", ".pickle", ".pkl")
_PACKAGE = Path(tacit.__file__).parent


def run(arguments: Namespace) -> int:
    """Read, fit, write the model and the report, and say what was given away."""
    schema = Schema() if arguments.schema is None else Schema.load(arguments.schema)
    schema = schema.with_words(
        arguments.categories,
        arguments.numbers,
        arguments.booleans,
        arguments.drop,
        arguments.fill,
        arguments.classes,
    )
    target = arguments.target or schema.target
    if target is None:
        raise ValueError("--target is missing: name the column to predict")
    out = _place(arguments.out, arguments.sklearn)
    _check_places(arguments.data, out, arguments.report)
    name = _model_name(arguments, schema, target)
    table, y = _table(arguments, schema, target, name)
    if arguments.sklearn:
        _check_export(table)
    with _own_warnings("tacit fit"):
        whole, model, features = _fitted(table, name, y, arguments, schema)
    n, given = whole.guarantee_.n_rows, len(table.columns)
    say(f"{n:,} rows; {given} columns became {len(features)} features; {_reason(name, target)}")
    remarks = list(_remarks(table))
    not_covered = tuple((remark.grade, remark.text) for remark in remarks)
    whole = TableModel(whole, _named(table), target, not_covered)
    if arguments.sklearn:
        _export(whole, table.columns, out)
    else:
        save(whole, out)
    if arguments.report is not None:
        note = _note([] if table.found else table.columns)
        write(arguments.report, model, names=features, target=target, note=note, remarks=remarks)
    print(whole.guarantee_)
    written = [out] if arguments.report is None else [out, arguments.report]
    print(f"Wrote {' and '.join(map(str, written))}.")
    return 0


def _table(arguments: Namespace, schema: Schema, target: str, name: str) -> tuple[Table, Any]:
    """The table and its labels or numbers; a large file in pieces, which have theirs."""
    classes = TASKS[name] == "classification"
    if pieces.are_due(arguments, name):
        return pieces.opened(arguments, schema, target, classes=classes), None
    table = tables.read(arguments.data, schema, target, split(arguments.public_categories or ""), arguments.separator)
    return table, _labels(table.y, schema, target) if classes else _numbers(table.y, target)


def _fit_to(model: Any, table: Table, y: Any, change: Callable[[Any], Any], workers: str | None) -> Any:
    """Fit on the changed table; if it is in pieces, on one after the other, or on the workers of a cluster."""
    if isinstance(table, tables.Frame):
        return model.fit(change(table.frame), y)
    try:
        with where(workers) as place, Reading([Changed(part, change) for part in table.parts], place) as rows:
            return model.fit_blocks(rows)
    finally:
        table.progress.end()


def _fitted(table: Table, name: str, y: Any, arguments: Namespace, schema: Schema) -> tuple[Any, Any, list[str]]:
    """The fitted whole, the model in it, and the names of its features: a pipeline where not all is declared."""
    model = _model(name, arguments, schema)
    if not table.found:
        if arguments.row_norm is None:
            model.set_params(bounds=schema.bounds_of_features(table.columns))
        _fit_to(model, table, y, encoder(table.columns).transform, arguments.workers)
        return model, model, feature_names(table.columns)
    told = {column.name: list(column.categories) for column in table.columns if column.categories is not None}
    texts = [column for column in table.found if not tables.is_number(table.frame[column])]
    first = PrivateEncoder(categories=told, parse=None if tables.is_typed(arguments.data) else texts)
    truths = [column for column in table.found if tables.is_truth(table.frame[column])]
    truths += [column.name for column in table.columns if column.name in schema.truths]
    if truths and arguments.row_norm is None:
        model.set_params(bounds=dict.fromkeys(truths, (0.0, 1.0)))  # as their type says
    terms = {key: getattr(model, key) for key in ("epsilon", "delta", "adjacency", "random_state", "verbose")}
    model.set_params(epsilon=1.0, delta=None, adjacency="add-remove", random_state=None, verbose=0)
    whole = PrivatePipeline([("encoder", first), ("model", model)], **terms)
    _fit_to(whole, table, y, partial(filled, columns=table.columns), arguments.workers)
    return whole, whole[-1], list(whole[:-1].get_feature_names_out())


def _named(table: Table) -> tuple[Column, ...]:
    """How columns are read: as declared, but for the categories, which the encoder of a pipeline has by itself."""
    if not table.found:
        return table.columns
    return tuple(Column(c.name, c.categories if c.fill is not None else None, c.fill) for c in table.columns)


def _place(out: Path | None, sklearn: bool) -> Path:
    """Where the model goes; a name that promises another kind of file is refused."""
    if out is None:
        return Path("model.joblib" if sklearn else "model.json")
    if sklearn and out.suffix not in _PICKLES:
        raise ValueError(
            f"--sklearn writes a pickle, which runs code when it is read: name it so, as in {out.stem}.joblib"
        )
    if not sklearn and out.suffix in _PICKLES:
        raise ValueError(
            f"{out} would be a pickle, and models are written as JSON, which runs nothing when it is read: --out"
            f" {out.with_suffix('.json')}, or --sklearn for a scikit-learn pipeline"
        )
    return out


def _check_places(data: Path, out: Path, report: Path | None) -> None:
    """Refuse what could not be written after the budget is spent, or would overwrite the data."""
    for path in [out] if report is None else [out, report]:
        if path.is_dir() or not os.access(path.resolve().parent, os.W_OK):
            raise ValueError(f"{path} cannot be written: it is a folder, or its folder is not there to write to")
        if path.resolve() == data.resolve():
            raise ValueError(f"{path} is the data itself")
    if report is not None and report.resolve() == out.resolve():
        raise ValueError("--out and --report name the same file")


def _check_export(table: Table) -> None:
    """Refuse what scikit-learn may have no counterpart for, by what is declared and not by what will be found."""
    texts = [column for column in table.found if not tables.is_number(table.frame[column])]
    if texts:
        raise ValueError(
            f"--sklearn needs to know what {quoted(texts)} hold: of what is found privately some has no counterpart in"
            " scikit-learn. Nothing was spent; declare each by --numbers, --categories or --drop, or leave --sklearn"
            " out and call to_sklearn() on what tacit.load reads"
        )


def _model_name(arguments: Namespace, schema: Schema, target: str) -> str:
    """The model: as told, else by what is declared; what nobody declared is not read off the data."""
    task = arguments.task
    if arguments.model is not None:
        if task is not None and TASKS[arguments.model] != task:
            raise ValueError(f"--model {arguments.model} is for {TASKS[arguments.model]}, not for --task {task}")
        task = TASKS[arguments.model]
    bounds = arguments.y_bounds or schema.y_bounds
    if task is None and schema.classes is None and bounds is None:
        said = f"{shlex.join(['tacit', *arguments.words])} --task"
        raise ValueError(
            f"is {target!r} a class or a number? Nothing was spent; say it with one of: {said} classification; or"
            f" {said} regression (--classes, --y-bounds and a schema say it too)"
        )
    elif task is None:
        task = "regression" if schema.classes is None else "classification"
    if task == "regression" and schema.classes is not None:
        raise ValueError("classes are declared, and a regression has none")
    if task == "classification" and bounds is not None:
        raise ValueError("y_bounds are declared, and a classification has none")
    return arguments.model or ("logistic" if task == "classification" else "linear")


def _reason(name: str, target: str) -> str:
    other = "regression" if TASKS[name] == "classification" else "classification"
    return f"{TASKS[name]} of {target!r} (--task {other} for the other)"


def _model(name: str, arguments: Namespace, schema: Schema) -> Any:
    """The estimator; a parameter that it does not have is refused."""
    own: dict[str, Any] = {key: getattr(arguments, key) for key in _OWNERS if getattr(arguments, key) is not None}
    for key in own:
        if name not in _OWNERS[key]:
            flag, owners = key.replace("_", "-"), " or ".join(_OWNERS[key])
            raise ValueError(f"--{flag} belongs to --model {owners}, and the model is {name}")
    if TASKS[name] == "classification":
        own["classes"] = None if schema.classes is None else _whole(schema.classes)
    else:
        own["y_bounds"] = tuple(arguments.y_bounds) if arguments.y_bounds else schema.y_bounds
    return MODELS[name](
        arguments.epsilon,
        arguments.delta,
        arguments.adjacency,
        row_norm=arguments.row_norm,
        solver=arguments.solver,
        fit_intercept=not arguments.no_intercept,
        random_state=arguments.seed,
        verbose=int(arguments.verbose),
        **own,
    )


def _whole(classes: Sequence[str] | Sequence[float]) -> list[Any]:
    """Whole numbers as such, so that predictions look like the labels."""
    return [int(c) if not isinstance(c, str) and float(c).is_integer() else c for c in classes]


def _labels(y: Any, schema: Schema, target: str) -> Any:
    if tables.is_number(y):
        return y.to_numpy()
    if schema.classes is not None and not isinstance(schema.classes[0], str):
        raise ValueError(f"the declared classes are numbers, and the target {target!r} holds something else")
    return y.to_numpy(dtype=str)


def _numbers(y: Any, target: str) -> Any:
    if not tables.is_number(y):
        raise ValueError(f"a regression needs numbers, and the target {target!r} holds something else")
    return y.to_numpy(dtype=np.float64)


def _remarks(table: Table) -> Iterator[Remark]:
    """What the guarantee of the model does not cover and the table added."""
    if table.learned:
        yield Remark(
            "told",
            f"The categories of {quoted(table.learned)} were read off the data, as --public-categories asked: the list"
            " tells whether anyone has a category.",
        )
    yield Remark("public", "What was declared: categories, classes, bounds, constants for missing values.")


def _note(columns: Sequence[Column]) -> str | None:
    coded = [column.name for column in columns if column.categories is not None]
    if not coded:
        return None
    return (
        f"Of {quoted(coded)} only the differences between categories mean something: a number added to all categories"
        " of a column and taken off the intercept changes no prediction. So their distance from zero says nothing."
    )


def _export(whole: TableModel, columns: Sequence[Column], path: Path) -> None:
    """A scikit-learn pipeline as a pickle, with plain values that say what it is."""
    import joblib

    pipeline = whole.to_sklearn()
    pipeline.tacit_ = {
        "version": tacit.__version__,
        "target": whole.target,
        "guarantee": whole.guarantee_.to_dict(),
        "columns": [column.to_dict() for column in columns],
        "not_covered": list(whole.not_covered),
    }
    pickled = BytesIO()
    joblib.dump(pipeline, pickled)
    write_whole(path, pickled.getvalue())


@contextmanager
def _own_warnings(prefix: str) -> Iterator[None]:
    """Warnings of Tacit, which are functions of what was released, as lines; those of others could tell more."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        if Path(warning.filename).is_relative_to(_PACKAGE):
            print(f"{prefix}: warning: {warning.message}", file=sys.stderr)
