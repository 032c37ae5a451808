"""Tables as rows of bounded size.

table       `Table`: wide CSR rows, in memory or as a stream, read again for every pass
centred     `CentredRows`: the dense rows of a PCA, their exact sums, and how far one row moves each of them
stored_rows `CentredStored`: the same for rows that are sparse and wide, in float64
bounded     `Bounded`, the rows that an algorithm is handed, and `Scaling`, the units they are in
source      `Source`: rows that are not all in memory, in parts; `Kept`: the same, bounded
here        `ThisMachine`: parts that this process reads, on all cores
scratch     `Scratch`: arrays in memory, or in a file without a name
reading     what users hand over as blocks of rows, opened and checked
partitions  Dask arrays and data frames, in parts for a fit and row by row for a prediction
cluster     `Cluster`: parts on the workers of a Dask client
workers     what runs there
files       Parquet and CSV files, and what pyarrow holds
grid        `GridTable`: dense rows, and sparse tables, on a grid, in parts
sums        `sum_over`: one pass over parts as an exact sum, on all cores
products    exact products by BLAS, and the check that they are
exact       `ExactPasses`: the sums over dense rows that solvers release
passes      `Passes`: the same in float64, for sparse rows
agreement   how well margins agree with targets, as a sum over rows
weighted    `WeightedPasses`: `Passes` where classes have weights; `passes_over` chooses
moves       `Moves`: how far one row moves a sum
clip        rows clipped to a norm, each by itself
validate    scikit-learn's validation, with messages that do not quote the data
"""

from tacit.blocks.bounded import Bounded, Bounder, Scaling, TargetUnits
from tacit.blocks.centred import Centre, CentredRows, DenseRows
from tacit.blocks.clip import SHRINK, clip_rows, row_norm
from tacit.blocks.exact import ExactPasses
from tacit.blocks.grid import GridTable, TableRows
from tacit.blocks.moves import Moves
from tacit.blocks.passes import Passes
from tacit.blocks.source import Kept, Raw, Source
from tacit.blocks.stored_rows import CentredStored, StoredRows
from tacit.blocks.table import Table
from tacit.blocks.weighted import WeightedPasses, gradient_moves, passes_over

__all__ = [
    "SHRINK",
    "Bounded",
    "Bounder",
    "Centre",
    "CentredRows",
    "CentredStored",
    "DenseRows",
    "ExactPasses",
    "GridTable",
    "Kept",
    "Moves",
    "Passes",
    "Raw",
    "Scaling",
    "Source",
    "StoredRows",
    "Table",
    "TableRows",
    "TargetUnits",
    "WeightedPasses",
    "clip_rows",
    "gradient_moves",
    "passes_over",
    "row_norm",
]
