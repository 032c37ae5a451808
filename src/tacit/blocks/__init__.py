"""Tables as rows of bounded size.

table       `Table`: arrays, CSR matrices and streams as blocks of rows, read again for every pass
centred     `CentredRows`: the rows of a PCA, their sums, and how far one row moves each of them
bounded     `Bounded`, the rows that an algorithm is handed, and `Scaling`, the units they are in
passes      `Passes`: sums over bounded rows
weighted    `WeightedPasses`: the same, where classes have weights
moves       `Moves`: how far one row moves a sum
clip        rows clipped to a norm, each by itself
validate    scikit-learn's validation, with messages that do not quote the data
"""

from tacit.blocks.bounded import Bounded, Scaling
from tacit.blocks.centred import Centre, CentredRows
from tacit.blocks.clip import SHRINK, clip_rows, row_norm
from tacit.blocks.moves import Moves
from tacit.blocks.passes import Passes
from tacit.blocks.table import Table
from tacit.blocks.weighted import WeightedPasses

__all__ = [
    "SHRINK",
    "Bounded",
    "Centre",
    "CentredRows",
    "Moves",
    "Passes",
    "Scaling",
    "Table",
    "WeightedPasses",
    "clip_rows",
    "row_norm",
]
