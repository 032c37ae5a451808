"""`Member`: a party of a study, as the others know it."""

from dataclasses import dataclass
from typing import Literal, get_args

from tacit.federated.declared import Columns, columns_of, width_of
from tacit.privacy import checks

Receives = Literal["own", "all", "nothing"]

LONGEST_TEXT = 255  # bytes of UTF-8 in a text of a message, such as a name


@dataclass(frozen=True)
class Member:
    """A party as the others know it.

    Parameters
    ----------
    name : str
        Of the party.
    n_features : int, optional
        How many columns it holds. Where `columns` are declared, it follows from them: columns of the model.
    labels : bool
        Whether it holds the labels.
    receives : {"own", "all", "nothing"}
        What it gets of the model when the study is done: its own columns' part, or all of it.
    columns : dict, optional
        Its columns by name, and what each is: `[low, high]` for bounds, a list of texts for categories, "number" for
        one whose scale is found, "text" for one whose categories are, or `{"text": 50}` for at most so many. Without
        it, columns are numbers, taken as they are.
    required : bool
        Whether the study waits for it. If not, and it does not answer in time, the study goes on without its columns,
        and it takes no part in this study any more.
    """

    name: str
    n_features: int = 0
    labels: bool = False
    receives: Receives = "own"
    columns: Columns = ()
    required: bool = True

    def __post_init__(self) -> None:
        check_name("a party", self.name)
        if "/" in self.name:
            raise ValueError(f"a party needs a name without '/', got {self.name!r}")
        object.__setattr__(self, "columns", columns_of(self.columns))
        width = width_of(self.columns)
        if len({column.most for column in self.columns} - {None}) > 1:
            raise ValueError(
                f"columns of {self.name!r} whose categories are found must have one number of them at most"
            )
        object.__setattr__(self, "n_features", checks.count("n_features", self.n_features or width))
        if width and self.n_features != width:
            raise ValueError(f"the columns of {self.name!r} make {width:,} columns of the model: leave out n_features")
        for what in ("labels", "required"):
            if not isinstance(getattr(self, what), bool):
                raise TypeError(f"{what} of a party must be True or False, got {getattr(self, what)!r}")
        checks.one_of("receives", self.receives, get_args(Receives))


def check_name(whose: str, name: object) -> None:
    """Refuse a name that messages do not carry, or that cannot be shown."""
    if not isinstance(name, str) or not name or not name.isprintable():
        raise ValueError(f"{whose} needs a name in letters that can be printed, got {name!r}")
    if (size := len(name.encode())) > LONGEST_TEXT:
        raise ValueError(f"the name of {whose} must have at most {LONGEST_TEXT} bytes as UTF-8, got {size:,}")
