"""Tables as rows of bounded size.

bounded     `Bounded`, the rows that an algorithm is handed, and `Scaling`, the units they are in
clip        rows clipped to a norm, each by itself
validate    scikit-learn's validation, with messages that do not quote the data
"""

from tacit.blocks.bounded import Bounded, Scaling
from tacit.blocks.clip import clip_rows, row_norm

__all__ = ["Bounded", "Scaling", "clip_rows", "row_norm"]
