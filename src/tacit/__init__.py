"""Linear models and PCA on data about people, under differential privacy you can check.

The rooms are loaded when they are first used, so that `import tacit` stays cheap.
"""

from importlib import import_module
from types import ModuleType

__version__ = "0.1.0"

_ROOMS = ("privacy",)

__all__ = ["__version__", *_ROOMS]


def __getattr__(name: str) -> ModuleType:
    if name in _ROOMS:
        return import_module(f"tacit.{name}")
    raise AttributeError(f"module 'tacit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
