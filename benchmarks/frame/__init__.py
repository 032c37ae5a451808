"""What all benchmarks share: the command line, records, tables, plots, pages, data and clocks."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
