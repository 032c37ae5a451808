"""A study and its model: the fitted estimator of a study that is done, and a study that an estimator can come from."""

from dataclasses import fields
from typing import Any

import numpy as np
from sklearn.base import clone

from tacit.federated.coordinator import Outcome
from tacit.federated.estimators import FederatedLasso, FederatedLinearSVC, FederatedLogisticRegression
from tacit.federated.study import MEMBERSHIPS, LossName, Member, Study
from tacit.privacy import checks

Estimator = FederatedLasso | FederatedLogisticRegression | FederatedLinearSVC

_ESTIMATORS: dict[LossName, type[Estimator]] = {
    "squared": FederatedLasso,
    "logistic": FederatedLogisticRegression,
    "squared_hinge": FederatedLinearSVC,
}


def fitted_model(outcome: Outcome, study: Study) -> Estimator:
    """The estimator that predicts as a study ended; `tacit.save` writes it.

    Parameters
    ----------
    outcome : Outcome
        What `Coordinator.run` returned.
    study : Study
        What was agreed.

    Returns
    -------
    FederatedLasso, FederatedLogisticRegression or FederatedLinearSVC
        By the study's loss, with its parameters, attributes and guarantee; the name of the study is not kept.
    """
    kind = _ESTIMATORS[study.loss]
    agreed = {field.name: getattr(study, field.name) for field in fields(study)}
    agreed["align"] = next(align for align, kind in MEMBERSHIPS.items() if kind == study.membership)
    agreed |= {
        name: clone(agreed[name]) for name in ("protocol", "sketch", "evaluation") if agreed[name]
    }  # which may be set to something else again
    model = kind(**{name: agreed[name] for name in kind().get_params(deep=False) if name in agreed})
    if study.classes is not None:
        model.classes_ = np.array(study.classes)  # type: ignore[union-attr]
    return model._take(outcome)


def study_of(model: Estimator) -> Study:
    """A study that a fitted model can come from; parameters that no study can have raise."""
    told: dict[str, Any] = {
        field.name: getattr(model, field.name) for field in fields(Study) if field.name in model.get_params(deep=False)
    }
    told["membership"] = MEMBERSHIPS[checks.one_of("align", model.align, tuple(MEMBERSHIPS))]
    if hasattr(model, "classes_"):
        told["classes"] = tuple(model.classes_)
    units = getattr(model, "units_", {})
    columns = {name: units[name].columns if units else () for name in model.coefs_}
    members = tuple(
        Member(name, coef.shape[-1], model.labels == "shared" or place == 0, columns=columns[name])
        for place, (name, coef) in enumerate(model.coefs_.items())
    )
    return Study(name=type(model).__name__, loss=model._loss, members=members, n_rows=model.guarantee_.n_rows, **told)
