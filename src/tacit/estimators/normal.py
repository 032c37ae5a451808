"""The normal law that a fitted PCA stands for: its covariance, and how likely rows are under it."""

from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils.validation import check_is_fitted

from tacit._types import Floats
from tacit.blocks.partitions import lazily
from tacit.blocks.reading import ROWS
from tacit.blocks.table import is_sparse
from tacit.blocks.validate import refuse_lazy, validated


class NormalModel:
    """What scikit-learn's PCA says of its covariance, from released numbers; likelihoods see the rows they are of."""

    components_: Floats
    mean_: Floats
    explained_variance_: Floats
    noise_variance_: float
    n_features_in_: int

    def get_covariance(self) -> Floats:
        """The covariance of the model, of shape (n_features, n_features): a function of what was released.

        As in scikit-learn it has the explained variance along each component, where that is known, and
        `noise_variance_` along all other directions.
        """
        check_is_fitted(self)
        along, across = self._variances()
        d = int(self.n_features_in_)
        return np.asarray((self.components_.T * (along - across)) @ self.components_ + across * np.eye(d))

    def get_precision(self) -> Floats:
        """The inverse of the covariance of the model."""
        check_is_fitted(self)
        along, across = self._variances()
        d = int(self.n_features_in_)
        return np.asarray((self.components_.T * (1.0 / along - 1.0 / across)) @ self.components_ + np.eye(d) / across)

    @lazily
    def score_samples(self, X: Any) -> Floats:
        """The log-likelihood of each row under a normal law with this mean and covariance; as private as X."""
        X = self._filled(X)
        along, across = self._variances()
        inside = np.square(np.asarray(X @ self.components_.T) - self.mean_ @ self.components_.T)
        if is_sparse(X):
            lengths = np.asarray(X.multiply(X).sum(axis=1)).ravel() - 2.0 * (X @ self.mean_) + self.mean_ @ self.mean_
        else:
            lengths = np.square(X - self.mean_).sum(axis=1)
        outside = np.maximum(lengths - inside.sum(axis=1), 0.0)
        d = int(self.n_features_in_)
        determinant = np.log(along).sum() + (d - len(along)) * np.log(across)
        distance = inside @ (1.0 / along) + outside / across
        return np.asarray(-0.5 * (distance + determinant + d * np.log(2.0 * np.pi)))

    def score(self, X: Any, y: Any = None) -> float:  # noqa: ARG002
        """The mean log-likelihood of the rows. Of data that is not private: the score itself is not."""
        refuse_lazy(self, X)
        return float(np.mean(self.score_samples(X)))

    def _filled(self, X: Any) -> Any:
        """X as an array or CSR, with the mean in place of what is missing."""
        check_is_fitted(self)
        X = validated(self, X, **ROWS, reset=False)
        if is_sparse(X):
            data = np.where(np.isnan(X.data), self.mean_[X.indices], X.data)
            return csr_array((data, X.indices, X.indptr), shape=X.shape)
        return np.where(np.isnan(X), self.mean_, X)

    def _variances(self) -> tuple[Floats, float]:
        """Of the model along each component, and along all other directions; none is zero, so that it has a density."""
        known = np.nan_to_num(self.explained_variance_, nan=0.0)
        across = float(self.noise_variance_)
        least = (max(float(known.max(initial=0.0)), across) or 1.0) * float(np.finfo(np.float64).eps)
        along = np.maximum(known, max(across, least))
        # Where the components are all directions that there are, any number stands for the others.
        return along, max(across, least) if len(along) < self.n_features_in_ else float(along.min())
