"""The data of the papers: loaders for their public sets, and a generator for each paper's synthetic one.

catalogue   what each set is, where it comes from, and what to take care of
loaders     `load`: a local folder, then scikit-learn, then OpenML
local       reading the files of a local folder
remote      scikit-learn's loaders and OpenML, turned into numbers
text        word counts as hashed features that depend on no other row
synthetic   `make_*`, one for each paper

This room stands alone: it imports nothing of the library, and nothing of the library imports it. Its random numbers
make data and protect nobody.
"""

from tacit.datasets.catalogue import PAPERS, Dataset, describe, names
from tacit.datasets.loaders import load
from tacit.datasets.synthetic import (
    make_dp_cd,
    make_dp_pca,
    make_dp_scd,
    make_featurewise_frank_wolfe,
    make_sparse_frank_wolfe,
)

__all__ = [
    "PAPERS",
    "Dataset",
    "describe",
    "load",
    "make_dp_cd",
    "make_dp_pca",
    "make_dp_scd",
    "make_featurewise_frank_wolfe",
    "make_sparse_frank_wolfe",
    "names",
]
