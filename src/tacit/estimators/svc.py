"""Private linear support vector classification."""

from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.svm import LinearSVC as PlainLinearSVC

from tacit.estimators.classification import PrivateClassifier
from tacit.estimators.wording import BUDGET, CLASSES, CLASSIFIER_ATTRIBUTES, OPTIONS, RANDOM, ROW_NORM
from tacit.privacy import checks
from tacit.problems import HINGE, SQUARED_HINGE, Loss

_LOSSES = {loss.name: loss for loss in (SQUARED_HINGE, HINGE)}


class LinearSVC(PrivateClassifier):
    __doc__ = f"""Linear support vector classification under (epsilon, delta)-differential privacy.

    Nothing needs to be declared or tuned: units are found privately, inside the same budget. There are no
    probabilities, as in scikit-learn; `LogisticRegression` has them.

    Parameters
    ----------
    {BUDGET}
    C : float, default=1.0
        Inverse strength of the l2 penalty, as in scikit-learn, but the intercept is not penalised. The solver may
        regularise more where the noise demands it.
    loss : {{"squared_hinge", "hinge"}}, default="squared_hinge"
        max(0, 1 - margin) squared, or as it is.
    {ROW_NORM}
    solver : {{"auto", "coordinate", "dual", "frank-wolfe", "sgd"}}, default="auto"
        The algorithm. The hinge is served by "dual" and "sgd", which serve only add-remove; more than two classes, one
        against the rest, by "dual". docs/choosing-a-solver.md compares them.
    {OPTIONS}
    {CLASSES}
    {RANDOM}

    Attributes
    ----------
    {CLASSIFIER_ATTRIBUTES}

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from tacit import LinearSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LinearSVC(epsilon=3.0).fit(X, y)
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
        loss: str = "squared_hinge",
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
        self.loss = loss
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

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.one_of("loss", self.loss, tuple(_LOSSES))

    def _loss_of(self, classes: int) -> Loss:  # noqa: ARG002
        return _LOSSES[self.loss]

    def to_sklearn(self) -> Pipeline:
        """An exact scikit-learn pipeline, clip then model, that predicts without tacit."""
        model = PlainLinearSVC(C=self.C, loss=self.loss, fit_intercept=self.fit_intercept)
        model.n_iter_ = 0
        return self._pipeline(model)
