"""Words that the docstrings of several estimators share, indented as they stand there."""

BUDGET = """epsilon : float, default=1.0
        Privacy budget; `float("inf")` is the non-private limit.
    delta : float, default=None
        None: `n_rows ** -1.5`.
    adjacency : {"add-remove", "replace-one"}, default="add-remove"
        What one person may change: their row's presence, or its content."""

ROW_NORM = """row_norm : float, default=None
        A public bound on the l2 norm of a row. Rows are clipped to it for finding scales. None: found privately."""

Y_BOUNDS = """y_bounds : pair of float, default=None
        Public bounds on the target, to which it is clipped. None: found privately."""

CLASSES = """classes : array-like, default=None
        The class labels. None learns them from y, which tells whether anyone has a class; declare them where that
        matters."""

OPTIONS = """fit_intercept : bool, default=True
        False: no intercept and no centring.
    coef_bounds : pair (low, high), default=None
        Bounds on the coefficients, in their own units. Each side is a number, an array with one number for each feature
        (infinity where there is no bound), or None. `(0, None)` asks for non-negative coefficients.
    n_iter : int, default=None
        Steps of the gradient, greedy and frank-wolfe solvers: at most 100,000, of frank-wolfe 1,000,000. None: a rule
        in the numbers of rows and columns and the budget.
    n_passes : float, default=None
        Passes over the rows of the sgd and dual solvers, or over the columns of the coordinate solver: at most 100,000,
        in at most ten million steps. None: a rule as above.
    batch_size : int, default=None
        Expected number of rows in a step of the sgd and dual solvers. None: a rule as above.
    order : {"permuted", "cyclic", "random"}, default="permuted"
        How the coordinate solver goes through the columns: each pass in a new random order, every pass in the order of
        the table, or one random column after another.
    clipping : {"row", "coordinate"}, default="row"
        What the coordinate solver bounds: what a row adds to all columns of a pass together, or, as in the paper on
        DP-CD, what it adds to each column. Random order needs "coordinate".
    clip : float, default=None
        What the coordinate and greedy solvers clip derivatives to, the dual solver updates, and the frank-wolfe solver
        residuals of a squared loss. None: a rule as above; frank-wolfe bounds the target instead.
    step : float, default=None
        Length of the steps of the coordinate and greedy solvers, where 1 is the inverse of a column's smoothness; of
        the frank-wolfe solver, the part of the way to a vertex. None: a rule as above.
    averaging : {"last", "tail", "periodic"} or int, default=None
        What the coordinate solver returns: the last iterate, the mean of the last ones, or the paper's, which starts
        again from the mean of each outer loop; an integer is "periodic" with that many loops. None: a rule as above.
    smoothness : "private" or array of shape (n_features,), default="private"
        The mean square of each column of the bounded data (near 1 if the data is dense), which sets the steps of the
        coordinate and greedy solvers. "private" releases it inside the budget; an array of positive numbers is taken as
        public.
    variant : {"secret", "published", "sequential", "primal"}, default="secret"
        Which form of the dual solver; all but the first are for comparison with the paper on DP-SCD.
    inner : {"exact", "newton"}, default="exact"
        How the dual solver finds a row's step for the logistic loss: exactly, or by the paper's single Newton step.
    l1_radius : float, default=None
        Radius of the l1 ball that the frank-wolfe solver keeps the coefficients in, on the bounded data; it takes the
        place of the penalty. None: a rule as above.
    entry_bound : float, default=None
        What the frank-wolfe solver clips the entries of X to, in `fit` and in `predict`. None: one and a half private
        scales to each side of a private centre if X is dense; a tenth of `row_norm`, or of a private quantile of row
        norms, if it is sparse.
    sampler : {"bucket", "two-level", "gumbel"}, default="bucket"
        How the frank-wolfe solver draws a vertex. All three have the same law; the cost of the first does not grow with
        the number of columns."""

RANDOM = """random_state : int, default=None
        None draws fresh cryptographic noise. An integer makes the fit reproducible, and the noise known to those who
        know the integer.
    verbose : int, default=0
        1 prints progress, which tells nothing of the data."""

CLIP = """clip_low_, clip_high_ : ndarray of shape (n_features,)
        What each column is clipped to, in `fit` and in `predict`; infinite for sparse data."""

GUARANTEE = """plan_ : Promise
        Every release of the fit with its part of the budget and its noise, as fixed before the data was read.
    guarantee_ : Guarantee
        What the fit gave away.
    n_features_in_, feature_names_in_
        As in scikit-learn."""

MECHANISM = """Unit: one row. Neighbours: `adjacency`. Mechanism: Gaussian noise, accounted exactly (for sparse
    data without `row_norm` one private selection as well, accounted by Renyi DP); "sgd", "objective" and "greedy" as
    their pages say. Released: scales and what the solver's plan lists, of which all attributes are functions."""

REGRESSOR_ATTRIBUTES = f"""coef_ : ndarray of shape (n_features,)
        In the user's units, valid inside the clip.
    intercept_ : float
    {CLIP}
    y_bounds_ : tuple of float
        What the target was clipped to.
    coef_noise_ : ndarray of shape (n_features,)
        The standard deviation that the noise alone gives each coefficient, to first order.
    {GUARANTEE}

    Notes
    -----
    Privacy
    ~~~~~~~
    {MECHANISM}
    Assumed: the number of rows and the columns are public, and no transformer before this one was fitted on the
    data."""

CLASSIFIER_ATTRIBUTES = f"""coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        In the user's units, valid inside the clip.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray of shape (n_classes,)
    {CLIP}
    coef_noise_ : ndarray of the shape of `coef_`
        The standard deviation that the noise alone gives each coefficient, to first order.
    {GUARANTEE}

    Notes
    -----
    Privacy
    ~~~~~~~
    {MECHANISM}
    Assumed: the number of rows, the columns and (unless declared) the classes are public, and no transformer before
    this one was fitted on the data."""
