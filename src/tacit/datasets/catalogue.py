"""What each set is: its task and shape, where it comes from, which paper uses it, and what to take care of.

The facts are in `catalogue.toml`.
"""

import tomllib
from dataclasses import dataclass
from importlib import resources
from types import MappingProxyType
from typing import Any, Literal

Task = Literal["binary", "multi-class", "regression"]


@dataclass(frozen=True)
class Classes:
    """What the classes of a set are called, what its source writes for them, and what `load` makes of it."""

    names: tuple[str, ...]
    labels: tuple[str, ...]
    codes: tuple[int, ...]


@dataclass(frozen=True)
class Dataset:
    """What the catalogue says of one set.

    Parameters
    ----------
    name, title : str
        What `load` calls it, and what it is.
    task : {"binary", "multi-class", "regression"}
    shape : (int, int)
        Rows and columns. For text, the columns are those of the counts.
    papers : tuple of str
        Keys of `PAPERS`; empty for sets that no paper uses.
    sparse : bool
        Whether it comes as CSR or dense.
    features : tuple of str
        The forms its columns can take; the first is the default.
    left_out : tuple of str
        Patterns of columns that the form of a paper is without.
    classes : Classes or None
        What there is to tell apart; None for a regression.
    openml : int or None
        The id on OpenML.
    scikit_learn : str or None
        The function of `sklearn.datasets` that has it.
    libsvm : tuple of str
        Its files on the LIBSVM site, which can be put into the local folder as they are; a second one is a test set.
    nominal : {"numbers", "one-hot"}
        What becomes of columns of categories that come from OpenML.
    unknown : tuple of str
        Columns of categories in which missing values get a category of their own.
    cautions : tuple of str
        What to take care of.
    """

    name: str
    title: str
    task: Task
    shape: tuple[int, int]
    papers: tuple[str, ...] = ()
    sparse: bool = False
    features: tuple[str, ...] = ("standard",)
    left_out: tuple[str, ...] = ()
    classes: Classes | None = None
    openml: int | None = None
    scikit_learn: str | None = None
    libsvm: tuple[str, ...] = ()
    nominal: Literal["numbers", "one-hot"] = "numbers"
    unknown: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()

    @property
    def bundled(self) -> bool:
        """Whether it is installed with scikit-learn, so that nothing is downloaded."""
        return self.scikit_learn is not None and self.scikit_learn.startswith("load_")

    @property
    def downloadable(self) -> bool:
        """Whether scikit-learn or OpenML has it."""
        return self.scikit_learn is not None or self.openml is not None

    @property
    def text(self) -> bool:
        """Whether it is word counts, to be turned into features."""
        return "hashed" in self.features

    @property
    def sources(self) -> str:
        """Where it comes from when there is no local file."""
        if self.scikit_learn is not None:
            return f"scikit-learn ({self.scikit_learn})"
        return "local folder only" if self.openml is None else f"OpenML ({self.openml})"


def _dataset(name: str, told: dict[str, Any]) -> Dataset:
    """A set from its table; classes without labels are called by their names, and without codes numbered from 0."""
    if "classes" in told:
        classes = told.pop("classes")
        codes = classes.get("codes", range(len(classes["names"])))
        told["classes"] = Classes(tuple(classes["names"]), tuple(classes.get("labels", classes["names"])), tuple(codes))
    fields: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in told.items()}
    return Dataset(name, **fields)


_TABLES = tomllib.loads((resources.files(__package__) / "catalogue.toml").read_text(encoding="utf8"))
PAPERS = MappingProxyType(_TABLES["papers"])
_BY_NAME = MappingProxyType({name: _dataset(name, told) for name, told in sorted(_TABLES["sets"].items())})


def names(*, paper: str | None = None) -> list[str]:
    """The sets that `load` knows, in alphabetical order.

    Parameters
    ----------
    paper : str or None
        Only the sets of this paper, one of the keys of `PAPERS`.

    Examples
    --------
    >>> from tacit.datasets import names
    >>> names(paper="dp-cd")
    ['california_housing', 'elec2']
    """
    if paper is not None and paper not in PAPERS:
        raise ValueError(f"paper must be one of {', '.join(map(repr, PAPERS))}, got {paper!r}")
    return [name for name, dataset in _BY_NAME.items() if paper is None or paper in dataset.papers]


def describe(name: str) -> Dataset:
    """What the catalogue says of a set.

    Examples
    --------
    >>> from tacit.datasets import describe
    >>> describe("elec2").shape
    (45312, 8)
    """
    if not isinstance(name, str) or name not in _BY_NAME:
        raise ValueError(f"name must be one of {', '.join(map(repr, _BY_NAME))}, got {name!r}")
    return _BY_NAME[name]
