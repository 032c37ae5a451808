"""The scikit-learn face of a study: all parties in one process, the same bytes as between organisations."""

import math
import secrets
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
from tacit.estimators.wording import CLASSES, Y_BOUNDS
from tacit.federated.alignment import SECRET_BYTES
from tacit.federated.coordinator import Coordinator, Outcome
from tacit.federated.evaluation import Evaluation
from tacit.federated.margins import margins_of
from tacit.federated.matching import Matcher, match, matched
from tacit.federated.node import Node
from tacit.federated.options import ProtocolOptions, Sketching
from tacit.federated.pairs import PairMatcher, match_pair
from tacit.federated.party import Party
from tacit.federated.paths import PathMixin
from tacit.federated.proposal import SOME, Proposal
from tacit.federated.study import MEMBERSHIPS, LossName, Member, Study
from tacit.federated.transports.in_process import InProcess
from tacit.federated.wording import ATTRIBUTES, CLASSIFIER, SHARING, parameters
from tacit.privacy import checks
from tacit.privacy.checks import warn_of_seed
from tacit.problems import softmax


@dataclass(eq=False, repr=False)
class _FederatedModel(PathMixin, BaseEstimator):
    """What the three estimators share: a study from parameters, a run, and a linear function of clipped blocks."""

    epsilon: float = 1.0
    delta: float | None = None
    adjacency: str = "add-remove"
    _: KW_ONLY
    l1_radius: float | Sequence[float] | None = None
    labels: str = "shared"
    protocol: str | ProtocolOptions = "marginals"
    entry_bound: float | None = None
    fit_intercept: bool = True
    sketch: str | Sketching = "sparse-sign"
    directory: Any = None
    align: str = "same"
    evaluation: Evaluation | None = None
    random_state: int | None = None
    verbose: int = 0

    _loss: ClassVar[LossName]

    def _run(self, named: Sequence[Party], holder: Party, classes: tuple[Any, ...] | None = None) -> Outcome:
        """Agree, and run."""
        study, parties = self._agreed(named, holder, classes)
        if study.masked and self.directory is None:  # in one process there is nobody to hide from
            secret = secrets.token_bytes(SECRET_BYTES)
            parties = [party.sharing(secret) for party in parties]
        if study.random_state is not None:
            warn_of_seed(stacklevel=3)
        folder = self._folder
        nodes = [
            Node(study, party, folder and folder / "parties" / f"{name}.sqlite", warn=False)
            for party, name in zip(parties, study.names, strict=True)
        ]
        coordinator = Coordinator(study, folder and folder / "coordinator.sqlite", _told if self.verbose else None)
        try:
            outcome = coordinator.run(InProcess(nodes))
            coordinator.farewell()
            for node in nodes:
                node.farewell()
            return outcome
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
        self.__dict__.pop("units_", None)  # of an earlier fit
        if "units" in model.facts:
            self.units_ = dict(model.facts["units"])
        self.n_features_in_ = sum(coef.shape[-1] for coef in self.coefs_.values())
        self._moments = model.facts.get("moments")
        self.plan_, self.guarantee_ = outcome.plan, outcome.guarantee
        self.n_rounds_, self.uplink_bytes_ = outcome.n_rounds, outcome.uplink_bytes
        self.left_ = outcome.left
        self.__dict__.pop("evaluation_", None)
        if "evaluation" in model.facts:
            self.evaluation_ = model.facts["evaluation"]
        return self

    @property
    def _folder(self) -> Path | None:
        return None if self.directory is None else Path(self.directory)

    def _named(self, parties: Any) -> tuple[list[Party], Party]:
        """The parties with names, and the one that speaks for the labels."""
        checks.one_of("align", self.align, tuple(MEMBERSHIPS))
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
        return named, holders[-1]

    def _agreed(
        self, named: Sequence[Party], holder: Party, classes: tuple[Any, ...] | None
    ) -> tuple[Study, list[Party]]:
        """The study, and the parties with rows and labels as they are to take part in it."""
        if self.align != "same":
            proposal = Proposal(self._study(named, classes, SOME), self.delta is not None)
            how = (PairMatcher, match_pair) if self.align == "psi" else (Matcher, match)
            parties = matched(proposal, named, self._folder, *how)
            study = proposal.study(parties[0].n_rows)
        else:
            parties, study = self._same_rows(named, holder), self._study(named, classes, holder.n_rows)
        if self.labels == "shared":
            (labelled,) = [party for party in parties if party.name == holder.name]
            parties = [party if party.y is not None else party.labelled_by(labelled) for party in parties]
        return study, parties

    def _same_rows(self, named: Sequence[Party], holder: Party) -> list[Party]:
        for party in named:
            if party.n_rows != holder.n_rows:
                raise ValueError(
                    f"parties must hold the same rows: {party.name!r} has {party.n_rows:,}, and"
                    f" {holder.name!r} has {holder.n_rows:,}. With ids, align='common' takes the people of all"
                )
        return list(named)

    def _study(self, parties: Sequence[Party], classes: tuple[Any, ...] | None, n_rows: int) -> Study:
        told = self.get_params(deep=False) | {"classes": classes}
        told["membership"] = MEMBERSHIPS[self.align]
        agreed = {known.name: told[known.name] for known in fields(Study) if known.name in told}
        shared = self.labels == "shared"
        members = tuple(
            Member(str(party.name), party.n_features, shared or party.y is not None, columns=party.columns)
            for party in parties
        )
        return Study(type(self).__name__, self._loss, members, n_rows, **agreed)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:  # noqa: ARG002
        """The names of the columns of the model, where they go by name: `party: column=value`."""
        check_is_fitted(self)
        if not hasattr(self, "units_"):
            raise ValueError("columns have no names: they were not declared by name")
        return np.array([f"{name}: {own}" for name, units in self.units_.items() for own in units.names], dtype=object)


@dataclass(eq=False, repr=False, kw_only=True)
class _FederatedClassifier(ClassifierMixin, _FederatedModel):
    """Two classes, told apart by the sign of the margin; or more, of which that with the largest margin is named."""

    classes: Any = None

    def fit(self, parties: Sequence[Party]) -> Self:
        """Train between the parties, spending the whole budget."""
        named, holder = self._named(parties)
        declared = np.unique(np.asarray(holder.y if self.classes is None else self.classes))
        if len(declared) < 2:
            raise ValueError("federated models tell two classes or more apart; declare them with `classes`")
        outcome = self._run(named, holder, tuple(declared))
        self.classes_ = declared
        return self._take(outcome)

    def _take(self, outcome: Outcome) -> Self:
        super()._take(outcome)
        self.coef_ = np.atleast_2d(np.concatenate(list(self.coefs_.values()), axis=-1))
        self.intercept_ = np.atleast_1d(np.asarray(outcome.model.intercept, dtype=np.float64))
        return self

    def decision_function(self, X: Any) -> Floats:
        """The margin of each row, above 0 for the second class; of more than two classes, a column for each."""
        return margins_of(self, X)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row."""
        margins = margins_of(self, X)
        return self.classes_[margins.argmax(axis=1) if margins.ndim > 1 else (margins > 0).astype(int)]


@dataclass(eq=False, repr=False, kw_only=True)
class FederatedLasso(RegressorMixin, _FederatedModel):
    __doc__ = f"""Least squares in an l1 ball, between parties that hold different columns of the same rows.

    {parameters(Y_BOUNDS)}

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        All parties' columns, in the order of the parties; in the users' units, valid inside the clip.
    intercept_ : float
    y_bounds_ : tuple of float
        What the target was clipped to.
    {ATTRIBUTES}

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
        return self._take(self._run(*self._named(parties)))

    def _take(self, outcome: Outcome) -> Self:
        super()._take(outcome)
        self.coef_ = np.concatenate(list(self.coefs_.values()))
        self.intercept_ = float(outcome.model.intercept)
        low, high = outcome.model.facts["y_bounds"]
        self.y_bounds_ = (float(low), float(high))
        return self

    def predict(self, X: Any) -> Floats:
        """The linear function of clipped rows; X is one block per party, or one table with all columns."""
        return margins_of(self, X)


@dataclass(eq=False, repr=False, kw_only=True)
class FederatedLogisticRegression(_FederatedClassifier):
    __doc__ = f"""Logistic regression in an l1 ball, between parties that hold different columns of the same rows.

    More than two classes share one joint release; each has an l1 ball of its own. They need an intercept and the
    protocol "marginals", with labels="shared", or with products="masked" and labels="held".

    {parameters(CLASSES)}

    Attributes
    ----------
    {CLASSIFIER}
    """

    _loss = "logistic"

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class."""
        margins = margins_of(self, X)
        return softmax(margins) if margins.ndim > 1 else np.column_stack([expit(-margins), expit(margins)])


@dataclass(eq=False, repr=False, kw_only=True)
class FederatedLinearSVC(_FederatedClassifier):
    __doc__ = f"""A linear support vector machine in an l1 ball, between parties that hold different columns.

    The loss is squared_hinge, which only the protocol "feature-sharing" serves.

    {parameters(CLASSES, SHARING)}

    Attributes
    ----------
    {CLASSIFIER}
    """

    protocol: str | ProtocolOptions = "feature-sharing"

    _loss = "squared_hinge"


def _told(number: int, step: str) -> None:
    print(f"tacit: round {number} ({step})", file=sys.stderr)
