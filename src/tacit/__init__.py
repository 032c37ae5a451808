"""Linear models and PCA on data about people, under differential privacy you can check.

The rooms are loaded when they are first used, so that `import tacit` stays cheap.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit import datasets, estimators, federated, metrics, modelfiles, preprocessing, privacy, problems
    from tacit.estimators import (
        PCA,
        ElasticNet,
        Lasso,
        LinearRegression,
        LinearSVC,
        LogisticRegression,
        PrivatePipeline,
        Ridge,
        make_private_pipeline,
    )
    from tacit.modelfiles import load, save
    from tacit.preprocessing import PrivateEncoder, PrivateScaler, RowClipper

__version__ = "0.1.0"

_ROOMS = ("datasets", "estimators", "federated", "metrics", "modelfiles", "preprocessing", "privacy", "problems")
_HOMES = {
    "PCA": "estimators",
    "ElasticNet": "estimators",
    "Lasso": "estimators",
    "LinearRegression": "estimators",
    "LinearSVC": "estimators",
    "LogisticRegression": "estimators",
    "PrivateEncoder": "preprocessing",
    "PrivatePipeline": "estimators",
    "PrivateScaler": "preprocessing",
    "Ridge": "estimators",
    "RowClipper": "preprocessing",
    "load": "modelfiles",
    "make_private_pipeline": "estimators",
    "save": "modelfiles",
}

__all__ = [
    "PCA",
    "ElasticNet",
    "Lasso",
    "LinearRegression",
    "LinearSVC",
    "LogisticRegression",
    "PrivateEncoder",
    "PrivatePipeline",
    "PrivateScaler",
    "Ridge",
    "RowClipper",
    "__version__",
    "datasets",
    "estimators",
    "federated",
    "load",
    "make_private_pipeline",
    "metrics",
    "modelfiles",
    "preprocessing",
    "privacy",
    "problems",
    "save",
]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"tacit.{name}")
    if name in _HOMES:
        return getattr(import_module(f"tacit.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'tacit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
