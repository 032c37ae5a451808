"""`tacit predict`: a fitted model and a table in, predictions out.

Predictions on rows that took no part in the fit are functions of the model and of those rows: they cost no budget.
"""

import pickle
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sklearn.pipeline import Pipeline

from tacit.commands import tables
from tacit.estimators import PrivatePipeline
from tacit.federated.models import Estimator
from tacit.modelfiles import Column, TableModel, load


def run(arguments: Namespace) -> int:
    """Predict, and write one line for each row."""
    model, columns = _model(arguments.model, arguments.trust_pickle)
    if arguments.proba and not hasattr(model, "predict_proba"):
        raise ValueError("--proba needs a classifier with probabilities (--model logistic), and this model has none")
    inner = getattr(model, "model", model)
    if isinstance(inner, PrivatePipeline):
        rows = tables.read_undeclared(arguments.data, inner[0].columns_, arguments.separator)
    elif isinstance(model, Estimator):
        rows = _by_name(arguments, model) if hasattr(model, "units_") else _all_columns(arguments, model.n_features_in_)
    else:
        rows = tables.read_features(arguments.data, columns, arguments.separator)
    out = _probabilities(model, rows) if arguments.proba else {"prediction": model.predict(rows)}
    if taken := [name for name in arguments.keep if name in out]:
        raise ValueError(f"--keep {taken[0]}: a column of predictions has this name; rename the one of the table")
    kept = {name: tables.read_column(arguments.data, name, arguments.separator) for name in arguments.keep}
    frame = tables.pandas().DataFrame(kept | out)
    if arguments.out is None:
        frame.to_csv(sys.stdout, index=False)
    else:
        tables.write(frame, arguments.out)
    return 0


def _model(path: Path, trust_pickle: bool) -> tuple[Any, Sequence[Column]]:
    """A model, and the columns that it reads of a table."""
    if not _is_json(path):
        if not trust_pickle:
            raise ValueError(
                f"{path} is not JSON. If it is a pickle (joblib), reading it runs code that is in it: where you trust"
                " whom it is from, say --trust-pickle"
            )
        return _unpickled(path)
    model = load(path)
    if isinstance(model, TableModel):
        return model, model.columns
    if not hasattr(model, "predict"):
        raise ValueError(f"{path} holds a {type(model).__name__}, which predicts nothing")
    if isinstance(model, Estimator):
        return model, ()
    if not hasattr(model, "feature_names_in_"):
        raise ValueError(
            f"{path} holds a {type(model).__name__} that knows no names of columns, so it cannot read a table: fit it"
            " on a DataFrame, or predict in Python"
        )
    return model, [Column(name) for name in model.feature_names_in_]


def _by_name(arguments: Namespace, model: Any) -> Any:
    """The columns of all parties, where the study named them."""
    declared = [column for units in model.units_.values() for column in units.columns]
    names = [column.name for column in declared]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"parties have columns of one name, which one table cannot have: {', '.join(twice)}")
    columns = [Column(column.name, ("",) if column.is_text else None) for column in declared]
    return tables.read_features(arguments.data, columns, arguments.separator)


def _all_columns(arguments: Namespace, wanted: int) -> Any:
    """The columns of all parties, which a federated model knows by their places alone."""
    present = tables.header(arguments.data, arguments.separator)
    names = [name for name in present if name not in arguments.keep]
    if len(names) != wanted:
        raise ValueError(
            f"a federated model knows columns by their places: {arguments.data} must have its {wanted} columns, party"
            f" by party, and none besides but those to --keep; it has {len(names)}"
        )
    return tables.read_features(arguments.data, [Column(name) for name in names], arguments.separator).to_numpy()


def _is_json(path: Path) -> bool:
    """Whether it starts as the JSON of a model does."""
    with path.open("rb") as file:
        return file.read(64).lstrip()[:1] == b"{"


def _unpickled(path: Path) -> tuple[Any, Sequence[Column]]:
    """A pipeline that `tacit fit --sklearn` wrote; this runs code from the file."""
    import joblib

    try:
        model = joblib.load(path)
    except (pickle.UnpicklingError, EOFError, ValueError, KeyError, IndexError, AttributeError, ImportError) as error:
        raise ValueError(f"{path} cannot be loaded as a model: {error}") from None
    if not isinstance(model, Pipeline) or not hasattr(model, "tacit_"):
        raise ValueError(f"{path} is not a model that `tacit fit` wrote")
    return model, [Column(**values) for values in model.tacit_["columns"]]


def _probabilities(model: Any, rows: Any) -> dict[str, Any]:
    values = model.predict_proba(rows)
    return {f"probability {label}": values[:, place] for place, label in enumerate(model.classes_)}
