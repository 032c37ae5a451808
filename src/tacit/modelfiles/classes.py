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
from sklearn.feature_extraction.text import HashingVectorizer

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
from tacit.modelfiles import sizes
from tacit.modelfiles.rowsteps import ENCODERS, ONE_TO_ONE, Passthrough
from tacit.modelfiles.sizes import NAMES, Sizes
from tacit.modelfiles.table import TableModel
from tacit.modelfiles.values import parameters_of
from tacit.preprocessing import PrivateEncoder, PrivateScaler, RowClipper

WITHHELD = frozenset({"random_state", "directory"})
"""Parameters that are never written: the noise could be subtracted with the first, or with what lies in the second."""

NUMBERS = {
    **{"coef_": "rows d", "coef_noise_": "rows d", "intercept_": "rows", "mean_": "d", "scale_": "d"},
    **{
        "clip_low_": "d",
        "clip_high_": "d",
        "fill_": "d",
        "components_": "k d",
        "reliability_": "k",
        "explained_variance_": "k",
    },
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
        sides = self.sizes(model)
        for name in (*self.attributes, *self.optional):
            if name in NUMBERS and hasattr(model, name):
                shape = tuple(sides[side] for side in NUMBERS[name].split() if side in sides)
                sparse = self.sizes is sizes.classifier and name == "coef_"
                _check_numbers(name, getattr(model, name), shape, sparse=sparse)
        if "clip_low_" in self.attributes and np.any(model.clip_low_ > model.clip_high_):
            raise ValueError("clip_low_ must be at most clip_high_")
        if "scale_" in self.attributes and np.any(model.scale_ <= 0.0):
            raise ValueError("scale_ must be above 0")
        if "coefs_" in self.attributes and not np.array_equal(
            np.ravel(model.coef_), np.ravel(np.concatenate([*model.coefs_.values()], axis=-1))
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


_LINEAR = ("coef_", "coef_noise_", "intercept_", "clip_low_", "clip_high_", "plan_", "n_features_in_")
_TOLD = (NAMES, "coef_path_", "intercept_path_", "fill_")  # the last is not in older files
_PCA = (
    *("components_", "mean_", "explained_variance_", "explained_variance_ratio_", "singular_values_"),
    *("noise_variance_", "noise_floor_", "reliability_", "radius_", "n_components_", "plan_", "n_features_in_"),
)
_FEDERATED = (
    *("coef_", "coefs_", "intercept_", "features_", "entry_bounds_", "row_norms_", "plan_", "n_features_in_"),
    *("n_rounds_", "uplink_bytes_"),
)
_MAYBE = (NAMES, "units_", "left_", "evaluation_")

CLASSES: dict[str, Entry] = {
    entry.kind.__name__: entry
    for entry in (
        *(
            Entry(kind, (*_LINEAR, "classes_"), sizes.classifier, optional=_TOLD)
            for kind in (LogisticRegression, LinearSVC)
        ),
        *(
            Entry(kind, (*_LINEAR, "y_bounds_"), sizes.regressor, optional=_TOLD)
            for kind in (LinearRegression, Ridge, Lasso, ElasticNet)
        ),
        Entry(PCA, _PCA, sizes.pca),
        Entry(
            PrivateScaler,
            ("mean_", "scale_", "clip_low_", "clip_high_", "n_features_in_"),
            sizes.scaler,
            optional=(NAMES, "plan_"),
        ),
        Entry(PrivateEncoder, ("columns_", "n_features_in_"), sizes.encoder, optional=(NAMES, "plan_")),
        Entry(PrivatePipeline, ("plan_",), sizes.pipeline, optional=(), has_steps=True),
        Entry(RowClipper, ("n_features_in_",), sizes.clipper, guaranteed=False),
        *(Entry(kind, ("n_features_in_",), sizes.row_step, guaranteed=False) for kind in ONE_TO_ONE),
        *(Entry(kind, ("n_features_in_", "categories_"), sizes.row_step, guaranteed=False) for kind in ENCODERS),
        Entry(HashingVectorizer, (), sizes.row_step, guaranteed=False, optional=()),
        Entry(Passthrough, (), lambda _: {}, guaranteed=False, optional=()),
        Entry(FederatedLasso, (*_FEDERATED, "y_bounds_"), sizes.federated, optional=_MAYBE),
        Entry(FederatedLogisticRegression, (*_FEDERATED, "classes_"), sizes.federated, optional=_MAYBE),
        Entry(FederatedLinearSVC, (*_FEDERATED, "classes_"), sizes.federated, optional=_MAYBE),
        Entry(TableModel, (), sizes.table_model, parts=("model",), guaranteed=False),
    )
}
"""By the name that a file has for each."""
