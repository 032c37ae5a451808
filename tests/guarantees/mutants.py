"""The table of mutants in docs/guarantees.md: `python -m tests.guarantees.mutants` writes it, a test compares it.

A mutant is one release whose sensitivity is divided by sqrt(2). They are made from the plan of everything that is
listed in `everything`; `test_distances` catches each of them by the name of its release. Thresholded counts also give
away what they name, so they have mutants of their own in `test_thresholded`.
"""

from collections import defaultdict
from pathlib import Path

from .everything import EVERYTHING, Entry
from .test_thresholded import Lower, Quiet, Trusting, Twice

OF_COUNTS = {Quiet: "audit", Trusting: "audit", Lower: "exact tail", Twice: "distance"}
"""Mutants of thresholded counts, and what catches each."""

PAGE = Path(__file__).parents[2] / "docs" / "guarantees.md"
START, END = "<!-- mutants: written by tests/guarantees/mutants.py -->", "<!-- end of mutants -->"


def table() -> str:
    """A line for everything that releases something: its releases, how many mutants there are, and what catches them.

    "distance": a row moves the release further than the mutant states. "formula": no row does, by design, and the
    stated sensitivity is held to its argument.
    """
    groups: dict[str, list[Entry]] = defaultdict(list)
    for entry in EVERYTHING:
        groups[entry.group].append(entry)
    lines = ["| what runs | releases | mutants | caught by |", "|---|---|---|---|"]
    total = 0
    for group, entries in groups.items():
        ways = defaultdict(set)
        for entry in entries:
            for name in entry.releases:
                ways["formula" if name in entry.by_formula else "distance"].add(name)
        names = sorted(set.union(*ways.values()))
        count = sum(len(entry.releases) for entry in entries)
        total += count
        by = "distance" if set(ways) == {"distance"} else f"distance; {', '.join(sorted(ways['formula']))}: formula"
        lines.append(f"| {group} | {', '.join(names)} | {count} | {by} |")
    for mutant, by in OF_COUNTS.items():
        lines.append(f"| thresholded counts | {mutant.__doc__.partition(':')[0].rstrip('.').lower()} | 1 | {by} |")
    return "\n".join([*lines, f"| all | | {total + len(OF_COUNTS)} | |"])


def written(page: str) -> str:
    """The page with the table as it is now."""
    before, rest = page.split(START)
    _, after = rest.split(END)
    return f"{before}{START}\n\n{table()}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf8")), encoding="utf8")
