"""Classes of a study: what their labels may be, who serves how many, and labels as numbers.

Two classes are -1 and 1. More are 0, 1, 2 and so on, and a model has weights for each.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit._types import Floats
from tacit.federated.options import Marginals

_SEVERAL = (
    "more than two classes are served by the loss 'logistic' with an intercept and the protocol 'marginals': with"
    " labels='shared', or with products='masked' and labels='held'"
)


def agreed_classes(study: Any) -> tuple[Any, ...] | None:
    """The classes of a study: at least two different labels, text or numbers, or more where that is served."""
    if (study.classes is not None) == (study.loss == "squared"):
        raise ValueError("a classification needs its classes, two or more, and a regression has none")
    if study.classes is None:
        return None
    classes = tuple(label.item() if hasattr(label, "item") else label for label in study.classes)
    if not all(isinstance(label, str | int | float) for label in classes):
        raise TypeError("classes must be text or numbers")
    if len(classes) < 2 or len(set(classes)) < len(classes):
        raise ValueError("classes must be two different labels, or more of which no two are the same")
    serves = study.loss == "logistic" and isinstance(study.protocol, Marginals) and study.fit_intercept
    if len(classes) > 2 and not (serves and study.labels != "sketched"):
        raise ValueError(_SEVERAL)
    return classes


def as_numbers(y: NDArray[Any], classes: tuple[Any, ...]) -> Floats:
    """Labels as numbers; one that is none of the classes raises, and is not named."""
    found = np.stack([np.broadcast_to(y == label, y.shape) for label in classes])
    if not np.all(found.any(axis=0)):
        raise ValueError("y holds a label that is not one of the study's classes")
    numbers = found.argmax(axis=0).astype(np.float64)
    return 2.0 * numbers - 1.0 if len(classes) == 2 else numbers
