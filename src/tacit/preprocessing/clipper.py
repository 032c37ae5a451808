"""Clipping rows to a declared norm."""

from typing import Any

from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from tacit.blocks.clip import clip_rows
from tacit.blocks.partitions import lazily
from tacit.blocks.validate import validated
from tacit.problems.declared import declared_size


class RowClipper(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Scale rows whose l2 norm is above a public bound down to it.

    A row's result depends on that row alone, so this costs no budget and may stand in front of any private estimator.

    Parameters
    ----------
    norm : float, default=1.0
        The bound.

    Notes
    -----
    Privacy
    ~~~~~~~
    Releases nothing: `fit` learns only the number of columns.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit import RowClipper
    >>> RowClipper(norm=1.0).fit_transform(np.array([[3.0, 4.0], [0.1, 0.0]])).round(6)
    array([[0.6, 0.8],
           [0.1, 0. ]])
    """

    def __init__(self, norm: float = 1.0) -> None:
        self.norm = norm

    def fit(self, X: Any, y: Any = None) -> "RowClipper":  # noqa: ARG002
        """Check the input; nothing is learned."""
        declared_size("norm", self.norm)
        validated(self, X, accept_sparse="csr", dtype="numeric")
        return self

    @lazily
    def transform(self, X: Any) -> Any:
        """Rows of norm at most `norm`."""
        check_is_fitted(self, "n_features_in_")
        return clip_rows(validated(self, X, accept_sparse="csr", dtype="numeric", reset=False), self.norm)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
