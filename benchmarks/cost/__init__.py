"""What the library costs: noise, a pass, the first fit, memory. Each file writes a table of what, ours and against."""

import argparse
import platform
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.frame.command import RESULTS
from benchmarks.frame.tables import lines

Rows = Iterable[Sequence[str]]


def main(
    about: str,
    name: str,
    intro: str,
    rows: Callable[[Any], Rows],
    options: dict[str, Any],
    argv: list[str] | None = None,
    head: Sequence[str] = ("what", "ours", "against"),
) -> None:
    """Measure with the options of the command line, and write the page of that name."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the page (default: benchmarks/results)")
    for option, default in options.items():
        parser.add_argument(f"--{option}", type=type(default), default=default, help="default: %(default)s")
    arguments = parser.parse_args(argv)
    told = intro.format(python=platform.python_version(), numpy=np.__version__)
    text = f"{told}\n\n{lines(head, rows(arguments))}\n"
    print(text, end="")
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / f"{name}.md").write_text(text, encoding="utf8")
