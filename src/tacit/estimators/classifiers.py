"""Private classifiers: labels as numbers on the way in, margins as labels on the way out."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression as PlainLogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import LabelBinarizer
from sklearn.svm import LinearSVC as PlainLinearSVC
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from tacit._types import Floats
from tacit.blocks.partitions import lazily
from tacit.blocks.reading import Targets
from tacit.estimators.base import PrivateLinearModel, dense
from tacit.estimators.blockwise import FitsBlocks, Scored
from tacit.estimators.fit import Fitted
from tacit.estimators.wording import CLASSIFICATION, PARAMETERS, RADIUS
from tacit.privacy import checks
from tacit.problems import HINGE, LOGISTIC, MULTINOMIAL, SQUARED_HINGE, Loss, sigmoid, softmax
from tacit.problems.declared import class_weights, inverse_strength
from tacit.problems.task import LinearTask

_MANY_ROWS, _FEW_LABELS = 10_000, 1_000
_LOSSES = {loss.name: loss for loss in (SQUARED_HINGE, HINGE)}

_LOGISTIC_SOLVERS = """"coordinate", "dual", "frank-wolfe", "gradient", "objective", "one-shot", "sgd" and
        "text". More than two classes are served jointly by "gradient" and "sgd", and by "dual" as one against the rest
        in one release; "text" and "one-shot" are for sparse rows of many columns; "dual" and "sgd" serve only
        add-remove."""

_SVC_SOLVERS = """"coordinate", "dual", "frank-wolfe" and "sgd". The hinge is served by "dual" and "sgd",
        which serve only add-remove; more than two classes, one against the rest, by "dual"."""


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels as numbers: -1 and 1 for two classes, 0, 1, 2 and so on for more."""

    classes: NDArray[Any]

    def __call__(self, y: NDArray[Any]) -> Floats:
        """Of every row; refuses a label that is none of the classes."""
        numbers: Any = 0
        try:
            if len(self.classes) == 2:
                upper = y == self.classes[1]
                named, numbers = bool(np.all(upper | (y == self.classes[0]))), np.where(upper, 1.0, -1.0)
            else:
                numbers = np.searchsorted(self.classes, y)
                named = bool(np.all(self.classes[np.minimum(numbers, len(self.classes) - 1)] == y))
        except (TypeError, ValueError):  # labels of several types, which have no order, or which are tables
            named = False
        if not named:
            raise ValueError("y holds a label that `classes` does not name; name every label that can occur")
        return np.asarray(numbers, dtype=np.float64)


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateClassifier(Scored, ClassifierMixin, FitsBlocks, PrivateLinearModel, ABC):
    """A loss of the margin and the penalty of `C`: one margin a row for two classes, one a class for more."""

    _serves_ball: ClassVar[bool] = True

    C: Any = 1.0
    l1_radius: float | None = None
    classes: Any = None
    class_weight: Any = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        class_weights(self.class_weight)

    _reads: ClassVar[Targets] = "labels"

    def _asked(self, X: Any, y: Any) -> tuple[LinearTask, Floats]:
        """The public facts of a fit, and labels as numbers; of X only the shape and the storage are read."""
        self.classes_ = self._classes_of(y)
        K = len(self.classes_)
        targets = Labels(self.classes_)(y)
        task = self._task(X, self._loss_of(K), outputs=1 if K == 2 else K, **self._strengths(*X.shape))
        return replace(task, class_weight=class_weights(self.class_weight, self.classes_)), targets

    def _learned(self, task: LinearTask, fitted: Fitted) -> Self:
        """Keep the model that was found."""
        model = self._keep(task, fitted)
        self.coef_: Any = model.coef  # CSR after `sparsify`
        self.intercept_ = model.intercept
        return self

    def _strengths(self, n: int, d: int) -> dict[str, Any]:
        """Those of the penalties, next to the mean loss of n rows."""
        return {"l2": inverse_strength("C", self.C, d) / n}

    @abstractmethod
    def _loss_of(self, classes: int) -> Loss:
        """What is minimised for so many classes."""

    @property
    def _some_loss(self) -> Loss:
        return self._loss_of(2)

    def _encoder(self) -> "Labels":
        return Labels(self.classes_)

    def _classes_of(self, y: NDArray[Any]) -> NDArray[Any]:
        """Class labels, sorted: those that are declared, or those of y."""
        if self.classes is None:
            classes = _found_classes(y)
            if len(classes) < 2:
                raise ValueError("y holds one class; a classifier needs at least two, so declare them with `classes`")
            return classes
        declared = np.asarray(self.classes)
        classes = np.unique(declared)
        if declared.ndim != 1 or len(classes) < 2:
            raise ValueError(f"classes must list at least two classes, got shape {declared.shape}")
        return classes

    @lazily
    def decision_function(self, X: Any) -> Floats:
        """Margins of clipped rows: shape (n,) for two classes, (n, n_classes) for more."""
        margins = self._margins(X)
        return margins[:, 0] if margins.shape[1] == 1 else margins

    @lazily
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


@dataclass(eq=False, repr=False, kw_only=True)
class LogisticRegression(PrivateClassifier):
    __doc__ = f"""Logistic regression under (epsilon, delta)-differential privacy.

    {PARAMETERS}
    C : float or array of shape (n_features,), default=1.0
        Inverse strength of the penalty, as in scikit-learn: one for all coefficients, or one for each. The solver may
        regularise more where the noise demands it, and on text counts a tenth of the penalty, as few noisy steps hold
        the weights already.
    l1_ratio : float, default=0.0
        The part of the l1 penalty, from 0 (only l2) to 1 (only l1). Above 0 the solvers are "coordinate" and "sgd".
    {RADIUS}
    {CLASSIFICATION.docs(_LOGISTIC_SOLVERS, "LogisticRegression(epsilon=3.0)")}"""

    _plain = PlainLogisticRegression

    l1_ratio: float = 0.0

    def _strengths(self, n: int, d: int) -> dict[str, Any]:
        strength, ratio = inverse_strength("C", self.C, d) / n, float(self.l1_ratio)
        return {"l2": (1.0 - ratio) * strength, "l1": ratio * strength}

    def _loss_of(self, classes: int) -> Loss:
        return LOGISTIC if classes == 2 or self._solver_name == "dual" else MULTINOMIAL

    @property
    def _is_one_vs_rest(self) -> bool:
        """Whether each of several classes has a model of its own."""
        return len(self.classes_) > 2 and self.guarantee_.solver == "dual"

    @lazily
    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the classes, in the order of `classes_`."""
        margins = self._margins(X)
        if self._is_one_vs_rest:
            each = sigmoid(margins)
            return each / np.maximum(each.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        if margins.shape[1] > 1:
            return softmax(margins)
        positive = sigmoid(margins[:, 0])
        return np.column_stack([1.0 - positive, positive])

    @lazily
    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithms of the probabilities."""
        return np.log(self.predict_proba(X))

    def _pipeline(self, model: Any) -> Pipeline:
        """The same, with a model for each class where classes were fitted one by one."""
        model.n_iter_ = np.array([0], dtype=np.int32)
        pipeline = super()._pipeline(model)
        if self._is_one_vs_rest:
            pipeline.steps[-1] = ("onevsrestclassifier", _one_vs_rest(model))
        return pipeline


def _found_classes(y: NDArray[Any]) -> NDArray[Any]:
    """Class labels, sorted; of many small whole numbers without sorting them."""
    if y.ndim == 1 and y.dtype.kind == "i" and len(y) >= _MANY_ROWS:
        low, high = int(y.min()), int(y.max())
        if high - low < _FEW_LABELS:
            held = np.bincount(y.astype(np.int64) - low) > 0
            return (np.flatnonzero(held) + low).astype(y.dtype)
    check_classification_targets(y)
    return np.unique(y)


def _one_vs_rest(model: PlainLogisticRegression) -> OneVsRestClassifier:
    """The rows of a fitted model as models of each class against the rest."""
    outer = OneVsRestClassifier(clone(model))
    outer.estimators_ = []
    for coef, intercept in zip(model.coef_, model.intercept_, strict=True):
        one = clone(model)
        one.coef_, one.intercept_, one.classes_ = coef[None, :].copy(), np.array([intercept]), np.array([0, 1])
        one.n_features_in_, one.n_iter_ = model.n_features_in_, model.n_iter_
        outer.estimators_.append(one)
    outer.label_binarizer_ = LabelBinarizer(sparse_output=True).fit(model.classes_)
    outer.n_features_in_ = model.n_features_in_
    if not hasattr(outer, "classes_"):  # in some versions that is an attribute, in others a property
        outer.classes_ = np.copy(model.classes_)
    return outer


@dataclass(eq=False, repr=False, kw_only=True)
class LinearSVC(PrivateClassifier):
    __doc__ = f"""Linear support vector classification under (epsilon, delta)-differential privacy.

    There are no probabilities, as in scikit-learn; `LogisticRegression` has them.

    {PARAMETERS}
    C : float or array of shape (n_features,), default=1.0
        Inverse strength of the l2 penalty, as in scikit-learn, but the intercept is not penalised: one for all
        coefficients, or one for each. The solver may regularise more where the noise demands it.
    loss : {{"squared_hinge", "hinge"}}, default="squared_hinge"
        max(0, 1 - margin) squared, or as it is.
    {RADIUS}
    {CLASSIFICATION.docs(_SVC_SOLVERS, "LinearSVC(epsilon=3.0)")}"""

    _plain = PlainLinearSVC

    loss: str = "squared_hinge"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.one_of("loss", self.loss, tuple(_LOSSES))

    def _loss_of(self, classes: int) -> Loss:  # noqa: ARG002
        return _LOSSES[self.loss]

    def _pipeline(self, model: Any) -> Pipeline:
        model.n_iter_ = 0
        return super()._pipeline(model)
