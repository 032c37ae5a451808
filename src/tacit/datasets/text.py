"""Word counts as features.

Hashed features depend on the row alone: which column a word goes to is a fixed function of the word, and the row is
scaled by its own norm. A tf-idf weight depends on how many other rows have the word, so nothing private can be claimed
of what is learned from it.
"""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import normalize
from sklearn.utils import murmurhash3_32


def featurise(counts: Any, vocabulary: list[str], features: str, n_hashed: int) -> tuple[Any, list[str] | None]:
    """The columns that were asked for, and their names where they have any."""
    if features == "hashed":
        return hashed(counts, vocabulary, n_hashed), None
    if features == "tf-idf":
        return TfidfTransformer(sublinear_tf=True).fit_transform(counts.astype(np.float64)), vocabulary
    return counts, vocabulary


def hashed(counts: Any, vocabulary: list[str], n_hashed: int) -> Any:
    """Log counts, 1 + log(count), summed into `n_hashed` columns by a hash of the word; rows of norm 1 (or 0)."""
    column = np.array([murmurhash3_32(word, positive=True) % n_hashed for word in vocabulary], dtype=np.int64)
    weights = 1.0 + np.log(counts.data.astype(np.float64))
    shape = (counts.shape[0], n_hashed)
    folded = sparse.csr_array((weights, column[counts.indices], counts.indptr.copy()), shape=shape)
    folded.sum_duplicates()
    return normalize(folded)
