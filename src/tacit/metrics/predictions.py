"""What a fitted model says of private rows, each row predicted by itself.

Privacy
-------
What a row adds to a score may depend on that row and the model alone. In one call for all rows, BLAS may round a row
differently when another row is missing, and several rows on a boundary may then change sides. Tacit's own models round
each row alone (`predicts_rows_alone`), and are called once. Other models are called once for each row.
"""

from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.exceptions import NotFittedError

from tacit.blocks.validate import refuse_lazy, without_data


class Predictions:
    """The predictions of a model on rows, computed when they are first asked for."""

    def __init__(self, model: Any, X: Any) -> None:
        self.model = model
        self._rows = X
        self._known: dict[str, Any] = {}

    @property
    def classes(self) -> Any:
        """The model's class labels, which are public, in the order of its columns."""
        if not hasattr(self.model, "classes_"):
            raise ValueError(f"the model must be a fitted classifier with classes_, got {type(self.model).__name__}")
        return self.model.classes_

    def by(self, method: str) -> Any:
        """What a method of the model (`predict`, `predict_proba`, `decision_function`) says of the rows."""
        if not hasattr(self.model, method):
            raise ValueError(f"the model must have {method}, got {type(self.model).__name__}")
        if method not in self._known:
            self._known[method] = self._predicted(method)
        return self._known[method]

    def _predicted(self, method: str) -> Any:
        """Predict, and show the errors of a model without the data they quote."""
        predict, X = getattr(self.model, method), self._rows
        refuse_lazy("an evaluation", X)
        try:
            together = np.asarray(predict(X))
            if getattr(self.model, "predicts_rows_alone", False):
                return together
            rows = getattr(X, "iloc", X.tocsr() if hasattr(X, "tocsr") else X)
            with config_context(assume_finite=True):  # the call above checked all rows
                return np.concatenate([np.asarray(predict(rows[i : i + 1])) for i in range(len(together))])
        except NotFittedError:
            raise
        except (TypeError, ValueError, OverflowError) as error:
            message = without_data(str(error))
        # Outside the handler, so that the error that quotes the data is not this one's context.
        raise ValueError(f"the model refused the rows: {message}")
