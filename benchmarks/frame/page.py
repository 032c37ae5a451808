"""Pages from a template and from records; nothing is measured.

A template is Markdown with placeholders as in `str.format`, which are attributes or methods of a `Page`; `most[table]`
is the number of seeds of a table, and `effort.seeds` how many there were to be. A paragraph that is nothing but a
placeholder is a block, and so is a table with rows that are repeated: those that end in `<!-- each: name -->`, for each
dictionary of that list, or for each set, model and epsilon of the records of that table. A section is left out if all
of its blocks are empty. Under its heading may stand `<!-- needs: table -->`, which leaves it out if that table has no
records, or `<!-- each: name -->`, which repeats it.
"""

import platform
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.frame.records import Record, Results
from benchmarks.frame.tables import NONE, spread, verdict

QUICK = """\
**This was a quick run**: fewer rows, budgets and seeds than the text says. Its scores and times say nothing of full
sizes."""


class Page:
    """What the placeholders of a template stand for."""

    template: Path
    python = platform.python_version()
    numpy = np.__version__

    def __init__(self, records: Iterable[Record], effort: Any = None, quick: bool = False) -> None:
        self.results = Results(records)
        self.effort, self.quick = effort, quick
        self.most, self.size = Found(self.results.most), Found(self.results.size)  # by table

    def cell(self, values: Sequence[float]) -> str:
        """How numbers over seeds are written."""
        return spread(values)

    def scores(self, score: str, *where: Any, **at: float) -> "Seeds":
        """One score over the seeds."""
        return Seeds(self.results.values(score, *where, **at), self.cell)

    def seconds(self, *where: Any) -> "Seeds":
        """The median."""
        found = self.results.seconds(*where)
        return Seeds([] if found is None else [found], self.cell)

    def cells(self, *where: Any) -> Iterator[dict[str, Any]]:
        """What is on record of each set, model and epsilon there: scores over the seeds, how many `runs` there were,
        and the rest of the first.
        """
        for key in dict.fromkeys((r.table, r.set, r.model, r.epsilon) for r in self.results.rows(*where)):
            found = self.results.rows(*key)
            scores = {score: self.scores(score, *key) for score in found[0].scores}
            yield vars(found[0]) | scores | {"seconds": self.seconds(*key), "runs": len(found)}

    def reached(self, score: str, wanted: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        """Of numbers to reach, each with `where` it is and the `least` that is asked for: what was found there."""
        for row in wanted:
            found = self.scores(score, *row["where"])
            if found:
                yield {**row, "found": found, "verdict": verdict(found.average >= row["least"])}

    def __getitem__(self, name: str) -> Any:
        if not hasattr(self, name):
            return self.cells(name)
        value = getattr(self, name)
        return value() if callable(value) else value

    def __str__(self) -> str:
        first, *others = self._sections()
        parts = [*self._drawn(first), *([QUICK] if self.quick else [])]
        return "\n\n".join([*parts, *(text for section in others for text in self._drawn(section))]) + "\n"

    def section(self, heading: str) -> str:
        """The one under that heading."""
        return "\n\n".join(self._drawn(next(text for text in self._sections() if text.startswith(heading))))

    def _sections(self) -> list[str]:
        return re.split(r"^(?=#)", self.template.read_text(encoding="utf8"), flags=re.MULTILINE)[1:]

    def _drawn(self, section: str) -> Iterator[str]:
        told = dict(re.findall(r"^<!-- (needs|each): (.*) -->", section, re.MULTILINE))
        if "needs" in told and not self.results.rows(told["needs"]):
            return
        paragraphs = re.sub(r"\n<!-- .* -->", "", section).strip().split("\n\n")
        for item in self[told["each"]] if "each" in told else ({},):
            known = Found(self.__getitem__, item)
            blocks = {text: self._block(text, known) for text in paragraphs if _is_block(text)}
            if any(blocks.values()) or not blocks:
                drawn = (blocks[text] if text in blocks else text.format_map(known) for text in paragraphs)
                yield from (text for text in drawn if text)

    def _block(self, block: str, known: "Found") -> str:
        """A placeholder, or a table with rows to repeat; nothing if there are none."""
        if "<!-- each" not in block:
            return block.format_map(known)
        head, rows = [], []
        for line in block.split("\n"):
            row, _, name = line.removesuffix(" -->").partition(" <!-- each: ")
            if name:
                rows += [row.format_map(Found(known.__getitem__, item)) for item in known[name]]
            else:
                head.append(row.format_map(known))
        return "\n".join([*head, *rows]) if rows else ""

    def figures(self, folder: Path) -> None:
        """Draw the plots."""

    def write(self, folder: Path, name: str) -> None:
        """The page and its plots."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.md").write_text(str(self), encoding="utf8")
        self.figures(folder)

    def write_as(self, folder: Path, name: str, template: str) -> None:
        """Another page, by a template next to the first."""
        self.template = self.template.with_name(template)
        (folder / f"{name}.md").write_text(str(self), encoding="utf8")


def _is_block(paragraph: str) -> bool:
    return "<!-- each" in paragraph or re.fullmatch(r"{[\w \[\]]+}", paragraph) is not None


class Found(dict[str, Any]):
    """What is known, and a way to find the rest."""

    def __init__(self, find: Callable[[str], Any], known: Mapping[str, Any] | None = None) -> None:
        super().__init__(known or {})
        self._find = find

    def __missing__(self, name: str) -> Any:
        return self._find(name)


class Seeds(list[float]):
    """A number for each seed. A placeholder writes it as its page does, and with a format the mean alone."""

    def __init__(self, values: Iterable[float], told: Callable[[Sequence[float]], str] = spread) -> None:
        super().__init__(values)
        self._told = told

    @property
    def average(self) -> float:
        """Not a number if there are none."""
        return float(np.mean(self)) if self else float("nan")

    @property
    def most(self) -> "Seeds":
        """The largest alone."""
        return Seeds([max(self)] if self else [])

    @property
    def ms(self) -> "Seeds":
        """Of seconds."""
        return Seeds([1e3 * value for value in self])

    @property
    def us(self) -> "Seeds":
        """Of seconds."""
        return Seeds([1e6 * value for value in self])

    def __truediv__(self, other: "Seeds") -> "Seeds":
        return Seeds([self.average / other.average] if self and other else [])

    def __format__(self, form: str) -> str:
        return (f"{self.average:{form}}" if self else NONE) if form else self._told(self)
