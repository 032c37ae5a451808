"""The scikit-learn face of a study: all parties in one process, the same bytes as between organisations."""

import math
import sys
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from tacit._types import Floats
from tacit.estimators.wording import BUDGET, CLASSES, RANDOM, Y_BOUNDS
from tacit.federated.coordinator import Coordinator, Outcome
from tacit.federated.node import Node
from tacit.federated.options import ProtocolOptions, Sketching
from tacit.federated.party import Party, table
from tacit.federated.protocols import columns
from tacit.federated.study import LossName, Member, Study
from tacit.federated.transports.in_process import InProcess
from tacit.privacy.checks import warn_of_seed

_RADIUS = """l1_radius : float
        The l1 norm that all coefficients may have together, in the users' units. It must be declared: a good radius
        depends on the data, and no public rule finds one.
    labels : {"shared", "sketched"}, default="shared"
        "shared": every party holds the labels (in one process, those of the parties that have them are handed to the
        others); they are protected against the coordinator and the world, not against the parties. "sketched": one
        party holds them, and the others see a noisy sketch."""

_PROTOCOL = """protocol : {"marginals", "feature-sharing"}, Marginals or FeatureSharing, default="marginals"
        How the model is trained; an object for the options of a protocol. docs/federated.md says which wins when."""

_OPTIONS = f"""entry_bound : float, default=None
        A public bound that entries are clipped to, in `fit` and in `predict`. None: found privately by each party.
    fit_intercept : bool, default=True
        Whether there is an intercept; it is not in the l1 ball.
    sketch : {{"sparse-sign", "gaussian"}} or Sketching, default="sparse-sign"
        The public matrix that compresses columns; an object for its size and its seed.
    directory : path, default=None
        Where the parties and the coordinator keep their journals. A fit that was interrupted goes on from there, and
        one that was done is given back without releasing anything. None: in memory.
    {RANDOM}"""

_ATTRIBUTES = """coefs_ : dict of ndarray
        The coefficients of each party's columns, by its name.
    n_features_in_ : int
        The columns of all parties together.
    features_ : dict of ndarray
        The columns of each party that are in the model.
    entry_bounds_, row_norms_ : dict of float
        What `predict` clips each party's entries to, and then, in l2 norm, its rows of the columns in `features_`.
        Infinity: no such clip. `fit` clips to the same. If most rows are zero in those columns, it clips rows to two
        thirds of this norm.
    plan_ : Promise
        Every release of every party, with its noise.
    guarantee_ : Guarantee
        What everything that crossed between parties and coordinator gave away.
    n_rounds_ : int
        Exchanges between the coordinator and the parties, the first greeting included.
    uplink_bytes_ : dict of int
        How much each party sent.

    Notes
    -----
    Privacy
    ~~~~~~~
    Unit: one row, at all parties together. Neighbours: `adjacency`. Mechanisms: Gaussian noise and private selection at
    each party, composed over all parties and rounds. Released: what the plan lists; the coordinator sees nothing else
    of the data. Assumed: the number of rows, the number of each party's columns and all parameters are public."""


@dataclass(eq=False, repr=False)
class _FederatedModel(BaseEstimator):
    """What the three estimators share: a study from parameters, a run, and a linear function of clipped blocks."""

    epsilon: float = 1.0
    delta: float | None = None
    adjacency: str = "add-remove"
    _: KW_ONLY
    l1_radius: float | None = None
    labels: str = "shared"
    protocol: str | ProtocolOptions = "marginals"
    entry_bound: float | None = None
    fit_intercept: bool = True
    sketch: str | Sketching = "sparse-sign"
    directory: Any = None
    random_state: int | None = None
    verbose: int = 0

    _loss: ClassVar[LossName]

    def _run(self, parties: Sequence[Party], classes: tuple[Any, Any] | None = None) -> Outcome:
        """Agree, and run."""
        study = self._study(parties, classes)
        if study.random_state is not None:
            warn_of_seed(stacklevel=3)
        folder = None if self.directory is None else Path(self.directory)
        nodes = [
            Node(study, party, folder and folder / "parties" / f"{name}.sqlite", warn=False)
            for party, name in zip(parties, study.names, strict=True)
        ]
        coordinator = Coordinator(study, folder and folder / "coordinator.sqlite", _told if self.verbose else None)
        try:
            return coordinator.run(InProcess(nodes))
        finally:
            coordinator.close()
            for node in nodes:
                node.close()

    def _take(self, outcome: Outcome) -> Self:
        """Keep what a study ended with."""
        model = outcome.model
        self.coefs_ = {name: np.asarray(coef, dtype=np.float64) for name, coef in model.coefs.items()}
        self.features_ = {name: np.asarray(model.facts["features"][name]) for name in self.coefs_}
        unbounded = dict.fromkeys(self.coefs_, math.inf)
        self.entry_bounds_ = unbounded | dict(model.facts.get("entry_bounds", {}))
        self.row_norms_ = unbounded | dict(model.facts.get("row_norms", {}))
        self.n_features_in_ = sum(map(len, self.coefs_.values()))
        self.plan_, self.guarantee_ = outcome.plan, outcome.guarantee
        self.n_rounds_, self.uplink_bytes_ = outcome.n_rounds, outcome.uplink_bytes
        return self

    def _agreed(self, parties: Any) -> tuple[list[Party], Party]:
        """The parties with names and labels as they are to take part, and the one that speaks for the labels."""
        if self.l1_radius is None:
            raise ValueError(
                f"declare l1_radius: {type(self).__name__} keeps the coefficients in an l1 ball, and a good radius"
                " cannot be found without reading the data"
            )
        if not isinstance(parties, list | tuple) or not all(isinstance(party, Party) for party in parties):
            raise TypeError("fit takes a list of Party objects, in the order of the coefficients")
        named = [party.named(f"party-{i}") for i, party in enumerate(parties, 1)]
        holders = [party for party in named if party.y is not None]
        if not holders:
            raise ValueError("no party holds the labels: give y to one of them, as in Party(X, y)")
        holder = holders[-1]
        for party in named:
            if party.n_rows != holder.n_rows:
                raise ValueError(
                    f"parties must hold the same rows: {party.name!r} has {party.n_rows:,}, and"
                    f" {holder.name!r} has {holder.n_rows:,}"
                )
        if self.labels == "shared":
            named = [party if party.y is not None else party.labelled_by(holder) for party in named]
        return named, holder

    def _study(self, parties: Sequence[Party], classes: tuple[Any, Any] | None) -> Study:
        told = self.get_params(deep=False) | {"classes": classes}
        agreed = {known.name: told[known.name] for known in fields(Study) if known.name in told}
        members = tuple(Member(str(party.name), party.n_features, party.y is not None) for party in parties)
        return Study(type(self).__name__, self._loss, members, parties[0].n_rows, **agreed)

    def _margins(self, X: Any) -> Floats:
        """The linear function of clipped rows, from one block per party or from all columns in one table."""
        check_is_fitted(self)
        sizes = [len(coef) for coef in self.coefs_.values()]
        if isinstance(X, list | tuple) and all(len(getattr(block, "shape", ())) == 2 for block in X):
            blocks = [table(block) for block in X]
            if [block.shape[1] for block in blocks] != sizes:
                raise ValueError(f"X must have one block for each party, with {sizes} columns")
        else:
            whole = table(X)
            if whole.shape[1] != self.n_features_in_:
                raise ValueError(f"X has {whole.shape[1]} columns, and the model has {self.n_features_in_}")
            ends = np.cumsum(sizes)
            blocks = [whole[:, end - size : end] for end, size in zip(ends, sizes, strict=True)]
        if len({block.shape[0] for block in blocks}) > 1:
            raise ValueError("the blocks of X must have the same rows")
        total = np.full(blocks[0].shape[0], float(np.ravel(self.intercept_)[0]))
        for block, (name, coef) in zip(blocks, self.coefs_.items(), strict=True):
            clipped, norm = columns.clipped(block, self.entry_bounds_[name]), self.row_norms_[name]
            margins = clipped @ coef
            if math.isfinite(norm):
                margins *= norm / np.maximum(columns.row_norms(clipped[:, self.features_[name]]), norm)
            total += margins
        return total


@dataclass(eq=False, repr=False, kw_only=True)
class _FederatedClassifier(ClassifierMixin, _FederatedModel):
    """Two classes, told apart by the sign of the margin."""

    classes: Any = None

    def fit(self, parties: Sequence[Party]) -> Self:
        """Train between the parties, spending the whole budget."""
        named, holder = self._agreed(parties)
        declared = np.unique(np.asarray(holder.y if self.classes is None else self.classes))
        if len(declared) != 2:
            raise ValueError("federated models tell two classes apart; declare them with `classes`")
        outcome = self._run(named, (declared[0], declared[1]))
        self.classes_ = declared
        return self._take(outcome)

    def _take(self, outcome: Outcome) -> Self:
        super()._take(outcome)
        self.coef_ = np.concatenate(list(self.coefs_.values()))[np.newaxis, :]
        self.intercept_ = np.array([outcome.model.intercept])
        return self

    def decision_function(self, X: Any) -> Floats:
        """The margin of each row; above 0 is the second class."""
        return self._margins(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row."""
        positive = self._margins(X) > 0
        return self.classes_[positive.astype(int)]


@dataclass(eq=False, repr=False, kw_only=True)
class FederatedLasso(RegressorMixin, _FederatedModel):
    __doc__ = f"""Least squares in an l1 ball, between parties that hold different columns of the same rows.

    Parameters
    ----------
    {BUDGET}
    {_RADIUS}
    {_PROTOCOL}
    {Y_BOUNDS}
    {_OPTIONS}

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        All parties' columns, in the order of the parties; in the users' units, valid inside the clip.
    intercept_ : float
    y_bounds_ : tuple of float
        What the target was clipped to.
    {_ATTRIBUTES}

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tacit.federated import FederatedLasso, Party
    >>> X, y = load_diabetes(return_X_y=True)
    >>> parties = [Party(X[:, :4]), Party(X[:, 4:], y)]
    >>> model = FederatedLasso(epsilon=10.0, l1_radius=2000, entry_bound=0.15, y_bounds=(0, 400)).fit(parties)
    >>> model.coef_.shape
    (10,)
    """

    y_bounds: tuple[float, float] | None = None

    _loss = "squared"

    def fit(self, parties: Sequence[Party]) -> Self:
        """Train between the parties, spending the whole budget."""
        named, _ = self._agreed(parties)
        return self._take(self._run(named))

    def _take(self, outcome: Outcome) -> Self:
        super()._take(outcome)
        self.coef_ = np.concatenate(list(self.coefs_.values()))
        self.intercept_ = float(outcome.model.intercept)
        low, high = outcome.model.facts["y_bounds"]
        self.y_bounds_ = (float(low), float(high))
        return self

    def predict(self, X: Any) -> Floats:
        """The linear function of clipped rows; X is one block per party, or one table with all columns."""
        return self._margins(X)


@dataclass(eq=False, repr=False, kw_only=True)
class FederatedLogisticRegression(_FederatedClassifier):
    __doc__ = f"""Logistic regression in an l1 ball, between parties that hold different columns of the same rows.

    Parameters
    ----------
    {BUDGET}
    {_RADIUS}
    {_PROTOCOL}
    {CLASSES}
    {_OPTIONS}

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        All parties' columns, in the order of the parties; in the users' units, valid inside the clip.
    intercept_ : ndarray of shape (1,)
    classes_ : ndarray of shape (2,)
    {_ATTRIBUTES}
    """

    _loss = "logistic"

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class."""
        margins = self._margins(X)
        return np.column_stack([expit(-margins), expit(margins)])


@dataclass(eq=False, repr=False, kw_only=True)
class FederatedLinearSVC(_FederatedClassifier):
    __doc__ = f"""A linear support vector machine in an l1 ball, between parties that hold different columns.

    The loss is squared_hinge, which only the protocol "feature-sharing" serves.

    Parameters
    ----------
    {BUDGET}
    {_RADIUS}
    protocol : {{"feature-sharing"}} or FeatureSharing, default="feature-sharing"
        How the model is trained; an object for its options.
    {CLASSES}
    {_OPTIONS}

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        All parties' columns, in the order of the parties; in the users' units, valid inside the clip.
    intercept_ : ndarray of shape (1,)
    classes_ : ndarray of shape (2,)
    {_ATTRIBUTES}
    """

    protocol: str | ProtocolOptions = "feature-sharing"

    _loss = "squared_hinge"


def _told(number: int, step: str) -> None:
    print(f"tacit: round {number} ({step})", file=sys.stderr)
