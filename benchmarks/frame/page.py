"""Pages from a template and from records; nothing is measured.

A template is Markdown with placeholders as in `str.format`, which are attributes or methods of a `Page`; `most[table]`
is the number of seeds of a table, and `effort.seeds` how many there were to be. A paragraph that is nothing but a
placeholder is a block, as tables are. A section is left out if all of its blocks are empty. Under its heading may stand
`<!-- needs: table -->`, which leaves it out if that table has no records, or `<!-- each: name -->`, which repeats it
for each dictionary of that list.
"""

import platform
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.frame.records import Record, Results

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

    def __getitem__(self, name: str) -> Any:
        value = getattr(self, name)
        return value() if callable(value) else value

    def __str__(self) -> str:
        first, *others = re.split(r"^(?=#)", self.template.read_text(encoding="utf8"), flags=re.MULTILINE)[1:]
        parts = [*self._section(first), *([QUICK] if self.quick else [])]
        return "\n\n".join([*parts, *(text for section in others for text in self._section(section))]) + "\n"

    def _section(self, section: str) -> Iterator[str]:
        told = dict(re.findall(r"<!-- (needs|each): (.*) -->", section))
        if "needs" in told and not self.results.rows(told["needs"]):
            return
        paragraphs = re.sub(r"\n<!-- .* -->", "", section).strip().split("\n\n")
        for item in self[told["each"]] if "each" in told else ({},):
            known = Found(self.__getitem__, item)
            blocks = {text: text.format_map(known) for text in paragraphs if re.fullmatch(r"{[\w \[\]]+}", text)}
            if any(blocks.values()) or not blocks:
                drawn = (blocks[text] if text in blocks else text.format_map(known) for text in paragraphs)
                yield from (text for text in drawn if text)

    def figures(self, folder: Path) -> None:
        """Draw the plots."""

    def write(self, folder: Path, name: str) -> None:
        """The page and its plots."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.md").write_text(str(self), encoding="utf8")
        self.figures(folder)


class Found(dict[str, Any]):
    """What is known, and a way to find the rest."""

    def __init__(self, find: Callable[[str], Any], known: Mapping[str, Any] | None = None) -> None:
        super().__init__(known or {})
        self._find = find

    def __missing__(self, name: str) -> Any:
        return self._find(name)
