"""Private logistic regression."""

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression as PlainLogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils.validation import check_is_fitted

from tacit._types import Floats
from tacit.estimators.base import dense
from tacit.estimators.classification import PrivateClassifier
from tacit.estimators.wording import BUDGET, CLASSES, CLASSIFIER_ATTRIBUTES, OPTIONS, RANDOM, ROW_NORM
from tacit.problems import LOGISTIC, MULTINOMIAL, Loss, sigmoid, softmax


class LogisticRegression(PrivateClassifier):
    __doc__ = f"""Logistic regression under (epsilon, delta)-differential privacy.

    Nothing needs to be declared or tuned: units are found privately, inside the same budget.

    Parameters
    ----------
    {BUDGET}
    C : float, default=1.0
        Inverse strength of the l2 penalty, as in scikit-learn. The solver may regularise more where the noise demands
        it, and on text counts a tenth of the penalty, as few noisy steps hold the weights already.
    {ROW_NORM}
    solver : str, default="auto"
        One of "auto", "coordinate", "dual", "frank-wolfe", "gradient", "objective", "one-shot" and "sgd".
        The algorithm. More than two classes are served jointly by "gradient" and "sgd", and by "dual" as one against
        the rest in one release; "dual" and "sgd" serve only add-remove. docs/choosing-a-solver.md compares them.
    {OPTIONS}
    {CLASSES}
    {RANDOM}

    Attributes
    ----------
    {CLASSIFIER_ATTRIBUTES}

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from tacit import LogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LogisticRegression(epsilon=3.0).fit(X, y)
    >>> model.score(X, y) > 0.8
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        adjacency: str = "add-remove",
        *,
        C: float = 1.0,
        row_norm: float | None = None,
        solver: str = "auto",
        fit_intercept: bool = True,
        coef_bounds: Any = None,
        n_iter: int | None = None,
        n_passes: float | None = None,
        batch_size: int | None = None,
        order: str = "permuted",
        clipping: str = "row",
        clip: float | None = None,
        step: float | None = None,
        averaging: str | int | None = None,
        smoothness: Any = "private",
        variant: str = "secret",
        inner: str = "exact",
        l1_radius: float | None = None,
        entry_bound: float | None = None,
        sampler: str = "bucket",
        classes: Any = None,
        random_state: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency
        self.C = C
        self.row_norm = row_norm
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.coef_bounds = coef_bounds
        self.n_iter = n_iter
        self.n_passes = n_passes
        self.batch_size = batch_size
        self.order = order
        self.clipping = clipping
        self.clip = clip
        self.step = step
        self.averaging = averaging
        self.smoothness = smoothness
        self.variant = variant
        self.inner = inner
        self.l1_radius = l1_radius
        self.entry_bound = entry_bound
        self.sampler = sampler
        self.classes = classes
        self.random_state = random_state
        self.verbose = verbose

    def _loss_of(self, classes: int) -> Loss:
        return LOGISTIC if classes == 2 or self.solver == "dual" else MULTINOMIAL

    @property
    def _is_one_vs_rest(self) -> bool:
        """Whether each of several classes has a model of its own."""
        return len(self.classes_) > 2 and self.guarantee_.solver == "dual"

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

    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithms of the probabilities."""
        return np.log(self.predict_proba(X))

    def to_sklearn(self) -> Pipeline:
        """An exact scikit-learn pipeline, clip then model, that predicts without tacit."""
        check_is_fitted(self)
        model = PlainLogisticRegression(C=self.C, fit_intercept=self.fit_intercept)
        model.n_iter_ = np.array([0], dtype=np.int32)
        return self._pipeline(_one_vs_rest(model, self) if self._is_one_vs_rest else model)


def _one_vs_rest(model: PlainLogisticRegression, fitted: LogisticRegression) -> OneVsRestClassifier:
    """A fitted model of each class against the rest."""
    outer = OneVsRestClassifier(model)
    outer.estimators_ = []
    for coef, intercept in zip(dense(fitted.coef_), fitted.intercept_, strict=True):
        one = clone(model)
        one.coef_, one.intercept_, one.classes_ = coef[None, :].copy(), np.array([intercept]), np.array([0, 1])
        one.n_features_in_, one.n_iter_ = fitted.n_features_in_, model.n_iter_
        outer.estimators_.append(one)
    outer.label_binarizer_ = LabelBinarizer(sparse_output=True).fit(fitted.classes_)
    return outer
