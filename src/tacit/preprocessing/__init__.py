"""Private scales, categories, means and quantiles: what must be known about data before it can be learned from.

scaler       `PrivateScaler`, a transformer with its own guarantee
encoder      `PrivateEncoder`, text and categories as columns of zeros and ones
clipper      `RowClipper`, which needs no budget: it treats each row by itself
summaries    `private_mean`, `private_quantile`
"""

from tacit.preprocessing.clipper import RowClipper
from tacit.preprocessing.encoder import PrivateEncoder
from tacit.preprocessing.scaler import PrivateScaler
from tacit.preprocessing.summaries import private_mean, private_quantile

__all__ = ["PrivateEncoder", "PrivateScaler", "RowClipper", "private_mean", "private_quantile"]
