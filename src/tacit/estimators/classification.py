"""What classifiers share: labels as numbers on the way in, margins as labels on the way out."""

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import ClassifierMixin
from sklearn.pipeline import Pipeline
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from tacit._types import Floats
from tacit.estimators.base import PrivateLinearModel, dense
from tacit.preprocessing.validation import inverse_strength
from tacit.problems import Loss


class PrivateClassifier(ClassifierMixin, PrivateLinearModel, ABC):
    """A loss of the margin and the l2 penalty of `C`: one margin a row for two classes, one a class for more."""

    coef_: Any  # an array, or CSR after `sparsify`

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the model, spending the whole budget."""
        X, y = self._validated(X, y)
        self.classes_, numbers = self._encode(y)
        K = len(self.classes_)
        targets = numbers.astype(np.float64)
        fit = self._fit(
            X,
            targets * 2.0 - 1.0 if K == 2 else targets,
            loss=self._loss_of(K),
            outputs=1 if K == 2 else K,
            l2=inverse_strength("C", self.C) / X.shape[0],
        )
        self.coef_, self.intercept_ = fit.coef, fit.intercept
        return self

    @abstractmethod
    def _loss_of(self, classes: int) -> Loss:
        """What is minimised for so many classes."""

    def _check_parameters(self) -> None:
        super()._check_parameters()
        inverse_strength("C", self.C)

    def _encode(self, y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Class labels, sorted, and each row's class as a number."""
        if self.classes is None:
            check_classification_targets(y)
            classes, numbers = np.unique(y, return_inverse=True)
            if len(classes) < 2:
                raise ValueError("y holds one class; a classifier needs at least two, so declare them with `classes`")
            return classes, numbers
        declared = np.asarray(self.classes)
        classes = np.unique(declared)
        if declared.ndim != 1 or len(classes) < 2:
            raise ValueError(f"classes must list at least two classes, got shape {declared.shape}")
        try:
            numbers = np.searchsorted(classes, y)
            named = bool(np.all(classes[np.minimum(numbers, len(classes) - 1)] == y))
        except TypeError:  # labels of several types, which have no order
            named = False
        if not named:
            raise ValueError("y holds a label that `classes` does not name; name every label that can occur")
        return classes, numbers

    def decision_function(self, X: Any) -> Floats:
        """Margins of clipped rows: shape (n,) for two classes, (n, n_classes) for more."""
        margins = self._margins(X)
        return margins[:, 0] if margins.shape[1] == 1 else margins

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row: that of the largest margin."""
        margins = self._margins(X)
        best = (margins[:, 0] > 0).astype(np.int64) if margins.shape[1] == 1 else margins.argmax(axis=1)
        return np.asarray(self.classes_[best])

    def sparsify(self) -> Self:
        """Store `coef_` without its zeros, as CSR; `densify` undoes it. Predictions stay what they are."""
        check_is_fitted(self)
        self.coef_ = csr_array(self.coef_)
        return self

    def densify(self) -> Self:
        """Store `coef_` as an array, as after `fit`."""
        check_is_fitted(self)
        self.coef_ = dense(self.coef_)
        return self

    def _pipeline(self, model: Any) -> Pipeline:
        """The same for a classifier, which also knows its classes."""
        pipeline = super()._pipeline(model)
        model.classes_ = np.copy(self.classes_)
        return pipeline
