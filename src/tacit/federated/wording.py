"""Words that the docstrings of the federated estimators share, indented as they stand there."""

from tacit.estimators.wording import BUDGET, RANDOM

_AGREED = f"""{BUDGET}
    l1_radius : float or list of float
        The l1 norm that all coefficients may have together, of more than two classes those of each; in the users'
        units, or where columns go by name, of columns that are scaled to a size of about 1. It must be declared: a
        good radius depends on the data, and no public rule finds one. Of several, an `evaluation` chooses.
    labels : {{"shared", "sketched", "held"}}, default="shared"
        "shared": every party holds the labels (in one process, those of the parties that have them are handed to the
        others); they are protected against the coordinator and the world, not against the parties. "sketched": one
        party holds them, and the others see a noisy sketch. "held": one party holds them, and the others see the model
        alone; for `Marginals(products="masked")`."""

_PROTOCOL = """protocol : {"marginals", "feature-sharing"}, Marginals or FeatureSharing, default="marginals"
        How the model is trained; an object for the options of a protocol. docs/federated.md says which wins when."""

SHARING = """protocol : {"feature-sharing"} or FeatureSharing, default="feature-sharing"
        How the model is trained; an object for its options."""

_OPTIONS = f"""entry_bound : float, default=None
        A public bound that entries are clipped to, in `fit` and in `predict`. None: found privately by each party.
    fit_intercept : bool, default=True
        Whether there is an intercept; it is not in the l1 ball.
    sketch : {{"sparse-sign", "gaussian"}} or Sketching, default="sparse-sign"
        The public matrix that compresses columns; an object for its size and its seed.
    align : {{"same", "common", "psi"}}, default="same"
        "same": all parties hold the same rows. "common": the people whom all parties have, by their ids, which each
        party must have with the secret; the parties get to know who they are, and that is not covered by the guarantee.
        "psi": the same of two parties, by a private set intersection (`pip install 'tacit[psi]'`).
    evaluation : Evaluation, default=None
        A share of the people that is held out, to judge models on and to choose between l1 radii; they cost people, and
        no budget. Of the protocol "marginals": for the squared loss, and for the logistic loss with masked products.
    directory : path, default=None
        Where the parties and the coordinator keep their journals. A fit that was interrupted goes on from there, and
        one that was done is given back without releasing anything. None: in memory.
    {RANDOM}"""


def parameters(own: str, protocol: str = _PROTOCOL) -> str:
    """The section of parameters; `own` are those of one kind of model."""
    return f"""Parameters
    ----------
    {_AGREED}
    {protocol}
    {own}
    {_OPTIONS}"""


ATTRIBUTES = """coefs_ : dict of ndarray
        The coefficients of each party's columns, by its name; of more than two classes, a row for each.
    n_features_in_ : int
        The columns of all parties together.
    features_ : dict of ndarray
        The columns of each party that are in the model.
    entry_bounds_, row_norms_ : dict of float
        What `predict` clips each party's entries to, and then, in l2 norm, its rows of the columns in `features_`.
        Infinity: no such clip. `fit` clips to the same. If most rows are zero in those columns, it clips rows to two
        thirds of this norm.
    units_ : dict of Units
        What each party's columns are brought to, where they go by name (`Party(columns=...)`): `predict` takes data
        frames then. `coef_` is in the users' units all the same.
    plan_ : Promise
        Every release of every party, with its noise.
    guarantee_ : Guarantee
        What everything that crossed between parties and coordinator gave away.
    n_rounds_ : int
        Exchanges between the coordinator and the parties, the first greeting included.
    uplink_bytes_ : dict of int
        How much each party sent.
    left_ : tuple of str
        The parties that were not required, and left: the model has no columns of theirs.
    evaluation_ : HeldOut
        What was released of the models on the people who were held out, if there are any.

    Notes
    -----
    Privacy
    ~~~~~~~
    Unit: one row, at all parties together. Neighbours: `adjacency`. Mechanisms: Gaussian noise and private selection at
    each party, composed over all parties and rounds. Released: what the plan lists; the coordinator sees nothing else
    of the data. Assumed: the number of rows, the number of each party's columns and all parameters are public."""

CLASSIFIER = f"""coef_ : ndarray of shape (1, n_features), or (n_classes, n_features) for more than two classes
        All parties' columns, in the order of the parties; in the users' units, valid inside the clip.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray of shape (n_classes,)
    {ATTRIBUTES}"""
