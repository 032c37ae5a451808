"""Private logistic regression."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.linear_model import LogisticRegression as PlainLogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.utils.multiclass import check_classification_targets

from tacit.estimators.base import PrivateLinearModel
from tacit.estimators.wording import BUDGET, CLIP, GUARANTEE, MECHANISM, OPTIONS, RANDOM, ROW_NORM
from tacit.preprocessing.validation import inverse_strength
from tacit.problems import LogisticLoss, MultinomialLoss

Floats = NDArray[np.float64]


class LogisticRegression(ClassifierMixin, PrivateLinearModel):
    __doc__ = f"""Logistic regression under (epsilon, delta)-differential privacy.

    Nothing needs to be declared or tuned: units are found privately, inside the same budget.

    Parameters
    ----------
    {BUDGET}
    C : float, default=1.0
        Inverse strength of the l2 penalty, as in scikit-learn. The solver may regularise more where the noise demands
        it.
    {ROW_NORM}
    solver : {{"auto", "coordinate", "gradient", "objective", "sgd"}}, default="auto"
        The algorithm. More than two classes are served by "gradient" and "sgd"; "sgd" serves only add-remove.
        docs/choosing-a-solver.md compares them.
    {OPTIONS}
    classes : array-like, default=None
        The class labels. None learns them from y, which tells whether anyone has a class; declare them where that
        matters.
    {RANDOM}

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        In the user's units, valid inside the clip.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray of shape (n_classes,)
    {CLIP}
    coef_noise_ : ndarray of the shape of `coef_`
        The standard deviation that the noise alone gives each coefficient, to first order.
    {GUARANTEE}

    Privacy
    -------
    {MECHANISM}
    Assumed: the number of rows, the columns and (unless declared) the classes are public, and no transformer before
    this one was fitted on the data.

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
        self.classes = classes
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> "LogisticRegression":
        """Fit the model, spending the whole budget."""
        X, y = self._validated(X, y)
        self.classes_, numbers = self._encode(y)
        K = len(self.classes_)
        targets = numbers.astype(np.float64) * 2.0 - 1.0 if K == 2 else numbers.astype(np.float64)
        fit = self._fit(
            X,
            targets,
            loss="logistic" if K == 2 else "multinomial",
            outputs=1 if K == 2 else K,
            l2=inverse_strength("C", self.C) / X.shape[0],
        )
        self.coef_, self.intercept_ = fit.coef, fit.intercept
        return self

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

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the classes, in the order of `classes_`."""
        margins = self._margins(X)
        if margins.shape[1] > 1:
            return MultinomialLoss(margins.shape[1]).probability(margins)
        positive = LogisticLoss().probability(margins[:, 0])
        return np.column_stack([1.0 - positive, positive])

    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithms of the probabilities."""
        return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row."""
        margins = self._margins(X)
        best = (margins[:, 0] > 0).astype(np.int64) if margins.shape[1] == 1 else margins.argmax(axis=1)
        return np.asarray(self.classes_[best])

    def to_sklearn(self) -> Pipeline:
        """An exact scikit-learn pipeline, clip then model, that predicts without tacit."""
        margins_of = PlainLogisticRegression(C=self.C, fit_intercept=self.fit_intercept)
        pipeline = self._pipeline(margins_of)
        margins_of.classes_ = np.copy(self.classes_)
        margins_of.n_iter_ = np.array([0], dtype=np.int32)
        return pipeline
