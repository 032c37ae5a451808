"""A study's model as a file: JSON that a person can read, and an estimator that predicts from it."""

import json
import math
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from tacit.federated.coordinator import Outcome
from tacit.federated.estimators import FederatedLasso, FederatedLinearSVC, FederatedLogisticRegression
from tacit.federated.protocols import protocol_for
from tacit.federated.protocols.base import Solution
from tacit.federated.study import Loss, Study
from tacit.privacy import Guarantee

Model = FederatedLasso | FederatedLogisticRegression | FederatedLinearSVC

_ESTIMATORS: dict[Loss, type[Model]] = {
    "squared": FederatedLasso,
    "logistic": FederatedLogisticRegression,
    "squared-hinge": FederatedLinearSVC,
}
_BOUNDS = ("entry_bounds", "row_norms")
_FORMAT = 1


def save_model(outcome: Outcome, study: Study, path: Path | str) -> None:
    """Write what a study ended with: the whole file or none. All of it was released, or is in the study."""
    facts = outcome.solution.facts
    content: dict[str, Any] = {
        "format": _FORMAT,
        "study": study.to_dict(),
        "coefs": {name: np.asarray(coef).tolist() for name, coef in outcome.solution.coefs.items()},
        "intercept": float(outcome.solution.intercept),
        "features": {name: np.asarray(columns).tolist() for name, columns in facts["features"].items()},
        **{what: {name: float(bound) for name, bound in facts.get(what, {}).items()} for what in _BOUNDS},
        "y_bounds": [float(bound) for bound in facts["y_bounds"]] if study.loss == "squared" else None,
        "guarantee": outcome.guarantee.to_dict(),
        "n_rounds": outcome.n_rounds,
        "uplink_bytes": outcome.uplink_bytes,
    }
    path = Path(path)
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n", encoding="utf8")
    part.replace(path)


def load_model(path: Path | str) -> Model:
    """The fitted estimator that `save_model`, or `tacit federate coordinator`, wrote.

    Parameters
    ----------
    path : path
        Of the file.

    Returns
    -------
    FederatedLasso, FederatedLogisticRegression or FederatedLinearSVC
        By the study's loss, with its parameters, attributes and guarantee; the name of the study is not kept.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf8"))
        if content["format"] != _FORMAT:
            raise ValueError("it is of another format")
        return _fitted(content)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is not the model of a federated study: {error}") from error


def _fitted(content: dict[str, Any]) -> Model:
    study = Study.from_dict(content["study"])
    facts: dict[str, Any] = {what: dict(content[what]) for what in _BOUNDS}
    facts["features"] = {name: np.array(columns, dtype=np.int64) for name, columns in content["features"].items()}
    if content["y_bounds"] is not None:
        facts["y_bounds"] = tuple(content["y_bounds"])
    coefs = {name: np.array(content["coefs"][name], dtype=np.float64) for name in study.names}
    if any(len(coefs[member.name]) != member.n_features for member in study.members):
        raise ValueError("its coefficients are not those of the study's columns")
    if not math.isfinite(content["intercept"]):
        raise ValueError("its intercept is not a number")
    outcome = Outcome(
        Solution(coefs, content["intercept"], facts),
        protocol_for(study).plan().calibrate(study.budget),
        Guarantee.from_dict(content["guarantee"]),
        content["n_rounds"],
        dict(content["uplink_bytes"]),
    )
    kind = _ESTIMATORS[study.loss]
    agreed = {field.name: getattr(study, field.name) for field in fields(study)}
    model = kind(**{name: agreed[name] for name in kind().get_params() if name in agreed})
    if study.classes is not None:
        model.classes_ = np.array(study.classes)  # type: ignore[union-attr]
    return model._take(outcome)
