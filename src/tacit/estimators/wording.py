"""Words that the docstrings of several estimators share, indented as they stand there."""

from typing import NamedTuple

BUDGET = """epsilon : float, default=1.0
        Privacy budget; `float("inf")` is the non-private limit.
    delta : float, default=None
        None: `n_rows ** -1.5`.
    adjacency : {"add-remove", "replace-one"}, default="add-remove"
        What one person may change: their row's presence, or its content."""

PARAMETERS = f"""Nothing needs to be declared or tuned: units are found privately, inside the same budget.

    Parameters
    ----------
    {BUDGET}"""

TRUST = """trust_dtypes : bool, default=False
        Whether a column of truth values lies between 0 and 1 by its type. Say True only where the type was declared, in
        a schema or a database: readers of csv files infer it from the rows."""

ROW_NORM = f"""bounds : pair, sequence of pairs or dict, default=None
        What columns lie between, as public knowledge: one pair (low, high) for all columns, one for each (None where
        nothing is known), or pairs by the names or numbers of some columns, as in `{{"age": (17, 90)}}`. Declared
        columns cost no budget, so the others get more of it; values beyond the bounds are clipped, those inside never.
        Bounds of sparse rows must hold 0. None: found privately.
    {TRUST}
    row_norm : float, default=None
        A public bound on the l2 norm of a row. Rows are clipped to it for finding scales. None: found privately."""

Y_BOUNDS = """y_bounds : pair of float, default=None
        Public bounds on the target, to which it is clipped. None: found privately."""

CLASSES = """class_weight : dict or "balanced", default=None
        What a row of each class weighs next to others. A dict is public, and a class that it does not name weighs 1.
        "balanced" releases the class counts inside the same budget, and gives classes the same weight together, with
        factors from 0.1 to 10. Noise grows with the largest weight. The solvers are "gradient" and "sgd".
    classes : array-like, default=None
        The class labels. None learns them from y, which tells whether anyone has a class; declare them where that
        matters."""

MODEL = """fit_intercept : bool, default=True
        False: no intercept and no centring.
    coef_bounds : pair (low, high), default=None
        Bounds on the coefficients, in their own units. Each side is a number, an array with one number for each feature
        (infinity where there is no bound), or None. `(0, None)` asks for non-negative coefficients."""

RADIUS = """l1_radius : float, default=None
        Radius of the l1 ball that the frank-wolfe solver keeps the coefficients in, on the bounded data; it takes the
        place of the penalty. None: a rule in the numbers of rows and columns and the budget."""

RANDOM = """random_state : int, default=None
        None draws fresh cryptographic noise. An integer makes the fit reproducible, and the noise known to those who
        know the integer.
    verbose : int, default=0
        1 prints progress, which tells nothing of the data."""

GUARANTEE = """plan_ : Promise
        Every release of the fit with its part of the budget and its noise, as fixed before the data was read.
    guarantee_ : Guarantee
        What the fit gave away.
    n_features_in_, feature_names_in_
        As in scikit-learn."""


class Family(NamedTuple):
    """Words about the labels, in which the docstrings of regressors and of classifiers differ."""

    parameter: str
    coef: str
    intercept: str
    attribute: str
    public: str
    data: str
    outcome: str

    def docs(self, solvers: str, model: str) -> str:
        """What follows a model's own parameters: those of all models, attributes, privacy and an example."""
        return f"""{ROW_NORM}
    {self.parameter}
    solver : str or solver object, default="auto"
        The algorithm: a name, or an object of `tacit.solvers` with its options, such as `Coordinate(n_passes=5)`. The
        names are "auto", {solvers}
        docs/choosing-a-solver.md compares them.
    {MODEL}
    {RANDOM}

    Attributes
    ----------
    coef_ : {self.coef}
        In the user's units, valid inside the clip.
    intercept_ : {self.intercept}
    n_nonzero_coefs_ : int
        How many entries of `coef_` are not zero: few after "frank-wolfe" or "greedy".
    clip_low_, clip_high_ : ndarray of shape (n_features,)
        What each column is clipped to, in `fit` and in `predict`; infinite for sparse data.
    fill_ : ndarray of shape (n_features,)
        What a missing value (NaN) counts as: the centre of its column, as released; zero for sparse data.
    {self.attribute}
    coef_noise_ : ndarray of the shape of `coef_`
        The standard deviation that the noise alone gives each coefficient, to first order. Of a classifier by
        "gradient" that of the mean iterate, of which it keeps no more noise than that.
    {GUARANTEE}

    Notes
    -----
    Privacy
    ~~~~~~~
    Unit: one row. Neighbours: `adjacency`. Mechanism: Gaussian noise, accounted exactly (for sparse data without
    `row_norm` one private selection as well, accounted by Renyi DP); "sgd", "objective" and "greedy" as their pages
    say. Released: scales and what the solver's plan lists, of which all attributes are functions.
    Assumed: the number of rows{self.public} are public, and no transformer before
    this one was fitted on the data.

    Examples
    --------
    >>> from sklearn.datasets import {self.data}
    >>> from tacit import {model.partition("(")[0]}
    >>> X, y = {self.data}(return_X_y=True)
    >>> model = {model}.fit(X, y)
    {self.outcome}
    """


REGRESSION = Family(
    parameter=Y_BOUNDS,
    coef="ndarray of shape (n_features,)",
    intercept="float",
    attribute="""y_bounds_ : tuple of float
        What the target was clipped to.""",
    public=" and the columns",
    data="load_diabetes",
    outcome=""">>> model.coef_.shape
    (10,)""",
)

CLASSIFICATION = Family(
    parameter=CLASSES,
    coef="ndarray of shape (1, n_features) or (n_classes, n_features)",
    intercept="ndarray of shape (1,) or (n_classes,)",
    attribute="classes_ : ndarray of shape (n_classes,)",
    public=", the columns and (unless declared) the classes",
    data="load_breast_cancer",
    outcome=""">>> model.score(X, y) > 0.8
    True""",
)
