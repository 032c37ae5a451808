"""`PrivatePipeline`: several private steps with one budget, one plan, one gate and one guarantee."""

import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Self

from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from tacit.blocks.partitions import lazily, opened_lazily
from tacit.blocks.validate import is_lazy, refuse_lazy
from tacit.estimators.blocksteps import BlockSteps
from tacit.estimators.fit import tell
from tacit.estimators.joint import Terms, check_terms, planned_jointly, run_jointly
from tacit.estimators.rowstage import RowStage
from tacit.estimators.stages import MODELS, PRIVATE
from tacit.estimators.stateless import Stateless, check, check_after, is_skipped
from tacit.preprocessing import RowClipper
from tacit.privacy import Budget, Gate, checks


def _final_has(name: str) -> Callable[[Any], bool]:
    """Whether the last step has a method."""

    def check(pipeline: "PrivatePipeline") -> bool:
        return hasattr(pipeline._last, name)

    return check


class PrivatePipeline(BlockSteps):
    """Steps that lead to a private model, with one budget for all of them.

    It looks like scikit-learn's `Pipeline`, but the private steps share one budget by a written rule, are calibrated
    together, and have one guarantee. Everything about it is fixed before the first of them releases anything.

    Parameters
    ----------
    steps : list of (str, step)
        Names and steps. Private ones are `PrivateEncoder`, `PrivateScaler`, `PCA` and Tacit's linear models, of which
        one may come last. Before and between them may stand steps that treat each row by itself: `Normalizer`,
        `Binarizer`, `RowClipper`, `FunctionTransformer` around a NumPy function, and "passthrough". Before all of them
        may stand `HashingVectorizer`, `OneHotEncoder` and `OrdinalEncoder` with declared categories, and
        `ColumnTransformer` and `Pipeline` of these. Any other step is refused: it may learn from the rows without
        noise.
    epsilon : float, default=1.0
        Privacy budget of all steps together. A step's own epsilon, delta, adjacency and random_state are left at their
        defaults: others are refused, as they would not be used.
    delta : float, default=None
        None: `n_rows ** -1.5`.
    adjacency : {"add-remove", "replace-one"}, default="add-remove"
        What one person may change.
    shares : dict, default=None
        Parts of the budget (of mu^2) of private steps, by their names, for all but the last, which has what is left. By
        default a `PrivateEncoder` has 0.1 where it has categories to find, a `PrivateScaler` 0.2 and a `PCA` 0.3.
    random_state : int, default=None
        As in the estimators: None for data about real people.
    verbose : int, default=0
        Above 0: say how far the plan has come.

    Attributes
    ----------
    steps_ : list of (str, step)
        The steps as fitted. Each has the whole guarantee, under the name of its own solver.
    plan_ : Promise
        Every release of all steps, as `step/release`, with its noise.
    guarantee_ : Guarantee
        What all of it gave away.

    Notes
    -----
    Privacy
    ~~~~~~~
    Unit: one row. Neighbours: `adjacency`. Released: what the steps release, each named in `plan_`. Steps, shares,
    noise and solver follow from public numbers: of rows, and of the most columns that there can be. These are the
    columns that pass, declared categories, and `max_categories` for each column whose categories are found. The table
    that comes out may have fewer columns. Then clips and scales follow them, where the solver can ("gradient" does).
    Else columns of zeros stand for what was not found. Assumed: the number of rows, and the names and types of columns,
    are public.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from tacit import LogisticRegression, PrivateEncoder, make_private_pipeline
    >>> rng = np.random.default_rng(0)
    >>> job, age = rng.choice(["clerk", "nurse"], 5000), rng.uniform(20, 60, 5000)
    >>> frame, y = pd.DataFrame({"job": job, "age": age}), (job == "nurse") ^ (rng.random(5000) < 0.1)
    >>> model = make_private_pipeline(PrivateEncoder(), LogisticRegression(bounds={"age": (18, 70)}), epsilon=1.0)
    >>> model.fit(frame, y).score(frame, y) > 0.85
    True
    >>> print(model.guarantee_)
    (1.0, 2.9e-06)-DP, add-remove one row of 5,000; encoder, gradient solver, 20 Gaussian releases
    """

    def __init__(
        self,
        steps: Any,
        epsilon: float = 1.0,
        delta: float | None = None,
        adjacency: str = "add-remove",
        *,
        shares: Mapping[str, float] | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.steps = steps
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency
        self.shares = shares
        self.random_state = random_state
        self.verbose = verbose

    # --- fit ---------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit all steps, spending the whole budget."""
        self._check_parameters()
        if is_lazy(X) or is_lazy(y):
            with opened_lazily(X, y) as reading:
                return self._fit_reading(reading)
        table, before = X, self._before()
        for step in before:
            table = step.fit_transform(table)
        return self._fit_table(table, y, before)

    def _fit_table(self, table: Any, y: Any, before: list[Stateless]) -> Self:
        """Fit the steps from the first private one on."""
        steps = [(name, step) for name, step in self.steps if not is_skipped(step)][len(before) :]
        terms = Terms(self.epsilon, self.delta, self.adjacency, dict(self.shares or {}))
        stages, promise = planned_jointly(steps, table, y, terms)
        with Gate.open(promise, seed=self.random_state, progress=tell if self.verbose else None, stacklevel=4) as gate:
            run_jointly(stages, table, gate)
        for stage in stages:
            stage.keep(promise, gate.guarantee)
        fitted = {one.name: one.step for one in before} | {stage.name: stage.step for stage in stages}
        self.steps_ = [(name, fitted.get(name, "passthrough")) for name, _ in self.steps]
        between = [stage.rows for stage in stages if isinstance(stage, RowStage)]
        self._stateless = {step.name: step for step in (*before, *between)}
        self.plan_, self.guarantee_ = promise, gate.guarantee
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit all steps, and transform the same rows: what comes out is as private as they are."""
        return self.fit(X, y).transform(X)

    def _check_parameters(self) -> None:
        """Everything that can be refused without data."""
        Budget(self.epsilon, 0.5 if self.delta is None else self.delta, self.adjacency)  # type: ignore[arg-type]
        if self.random_state is not None:
            checks.whole_seed(self.random_state)
        if not isinstance(self.verbose, bool):
            checks.count("verbose", self.verbose, least=0)
        names = [name for name, _ in self.steps]
        twice = [name for name, count in Counter(names).items() if count > 1]
        bad = [name for name in names if not isinstance(name, str) or not name or "__" in name or "/" in name]
        if twice or bad or set(names) & set(self._get_param_names()):
            raise ValueError(
                "steps must have different names, without __ and /, that are no parameters of the pipeline"
            )
        private = [(name, step) for name, step in self.steps if type(step) in PRIVATE]
        if not private:
            raise ValueError("a private pipeline needs a private step, such as tacit.LogisticRegression")
        self._check_order()
        for name, step in private:
            check_terms(name, step)
        known = [name for name, _ in private[:-1]]
        for name in self.shares or ():
            if name not in known:
                raise ValueError(f"shares names {name!r}; it is for private steps but the last: {', '.join(known)}")

    def _check_order(self) -> None:
        """A model comes last; of steps that are not private some come before all that are."""
        began = False
        for place, (name, step) in enumerate(self.steps):
            if type(step) in PRIVATE:
                began = True
                if type(step) in MODELS and place < len(self.steps) - 1:
                    raise ValueError(f"step {name!r}, {type(step).__name__}, predicts, so it must be the last one")
            elif not is_skipped(step):
                (check_after if began else check)(name, step)

    # --- what the last step can do -----------------------------------------------------------------------------------

    def _transformed(self, X: Any) -> Any:
        """The table that reaches the last step."""
        check_is_fitted(self)
        for name, step in self.steps_[:-1]:
            X = self._through(name, step, X)
        return X

    def _through(self, name: str, step: Any, X: Any) -> Any:
        if is_skipped(step):
            return X
        if name in self._stateless:
            return self._stateless[name].transform(X)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            out = step.transform(X)
        return out.to_numpy() if hasattr(out, "to_numpy") else out

    @available_if(_final_has("predict"))
    @lazily
    def predict(self, X: Any) -> NDArray[Any]:
        """Predictions of the last step."""
        return self._last.predict(self._transformed(X))

    @available_if(_final_has("predict_proba"))
    @lazily
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Probabilities of the classes, in the order of `classes_`."""
        return self._last.predict_proba(self._transformed(X))

    @available_if(_final_has("predict_log_proba"))
    @lazily
    def predict_log_proba(self, X: Any) -> NDArray[Any]:
        """Logarithms of the probabilities."""
        return self._last.predict_log_proba(self._transformed(X))

    @available_if(_final_has("decision_function"))
    @lazily
    def decision_function(self, X: Any) -> NDArray[Any]:
        """Margins of the last step."""
        return self._last.decision_function(self._transformed(X))

    @available_if(_final_has("transform"))
    @lazily
    def transform(self, X: Any) -> Any:
        """What the last step makes of the rows."""
        last, name = self._transformed(X), self.steps_[-1][0]
        if name in self._stateless:
            return Stateless.transform(self._stateless[name], last)
        return last if is_skipped(self._last) else self._last.transform(last)

    @available_if(_final_has("score"))
    def score(self, X: Any, y: Any = None) -> float:
        """The score of the last step: a release, if the rows are private."""
        refuse_lazy(self, X, y)
        return self._last.score(self._transformed(X), y)

    @property
    def classes_(self) -> NDArray[Any]:
        """Of a classifier."""
        return self._last.classes_

    def to_sklearn(self) -> Pipeline:
        """A scikit-learn pipeline that does the same without tacit, where every step can."""
        check_is_fitted(self)
        steps: list[tuple[str, Any]] = []
        for name, step in self.steps_:
            if is_skipped(step) or (name in self._stateless and type(step) is not RowClipper):
                steps.append((name, step))
                continue
            if not hasattr(step, "to_sklearn"):
                raise TypeError(f"step {name!r}, {type(step).__name__}, has no counterpart in scikit-learn")
            plain = step.to_sklearn()
            inner = plain.steps if isinstance(plain, Pipeline) else [("", plain)]
            steps += [(f"{name}-{part}" if part else name, each) for part, each in inner]
        return Pipeline(steps)


def make_private_pipeline(
    *steps: Any,
    epsilon: float = 1.0,
    delta: float | None = None,
    adjacency: str = "add-remove",
    shares: Mapping[str, float] | None = None,
    random_state: int | None = None,
    verbose: int = 0,
) -> PrivatePipeline:
    """A `PrivatePipeline` whose steps are named after their classes, in lower case.

    Examples
    --------
    >>> from tacit import LogisticRegression, PrivateEncoder, make_private_pipeline
    >>> [name for name, _ in make_private_pipeline(PrivateEncoder(), LogisticRegression()).steps]
    ['privateencoder', 'logisticregression']
    """
    names = [step if isinstance(step, str) else type(step).__name__.lower() for step in steps]
    counts, seen, named = Counter(names), Counter[str](), []
    for name, step in zip(names, steps, strict=True):
        seen[name] += 1
        named.append((f"{name}-{seen[name]}" if counts[name] > 1 else name, step))
    return PrivatePipeline(named, epsilon, delta, adjacency, shares=shares, random_state=random_state, verbose=verbose)
