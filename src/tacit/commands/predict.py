"""`tacit predict`: a fitted model and a table in, predictions out.

Predictions on rows that took no part in the fit are functions of the model and of those rows: they cost no budget.
"""

import pickle
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from sklearn.pipeline import Pipeline

from tacit.commands import tables
from tacit.commands.schema import Column


def run(arguments: Namespace) -> int:
    """Predict, and write one line for each row."""
    model = load(arguments.model)
    if arguments.proba and not hasattr(model, "predict_proba"):
        raise ValueError("--proba needs a classifier with probabilities (--model logistic), and this model has none")
    columns = [Column(**values) for values in model.tacit_["columns"]]
    rows = tables.read_features(arguments.data, columns, arguments.separator)
    out = _probabilities(model, rows) if arguments.proba else {"prediction": model.predict(rows)}
    frame = tables.pandas().DataFrame(out)
    if arguments.out is None:
        frame.to_csv(sys.stdout, index=False)
    else:
        tables.write(frame, arguments.out)
    return 0


def load(path: Path) -> Any:
    """A pipeline that `tacit fit` wrote. Loading runs code from the file, so it must come from someone trusted."""
    import joblib

    try:
        model = joblib.load(path)
    except (pickle.UnpicklingError, EOFError, ValueError, KeyError, IndexError, AttributeError, ImportError) as error:
        raise ValueError(f"{path} cannot be loaded as a model: {error}") from None
    if not isinstance(model, Pipeline) or not hasattr(model, "tacit_"):
        raise ValueError(f"{path} is not a model that `tacit fit` wrote")
    return model


def _probabilities(model: Any, rows: Any) -> dict[str, Any]:
    values = model.predict_proba(rows)
    return {f"probability {label}": values[:, place] for place, label in enumerate(model.classes_)}
