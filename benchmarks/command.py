"""The command line that benchmarks with records share, and what they do with it: measure, then draw the page."""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from threadpoolctl import threadpool_limits

import sets
from records import Store

HERE = Path(__file__).resolve().parent


def parser(
    about: str, parts: Sequence[str], quick: str, default: Sequence[str] | None = None
) -> argparse.ArgumentParser:
    """Of a benchmark's own description, which starts with what it is about; `quick` says what is left out."""
    made = argparse.ArgumentParser(description=(about or "").partition("\n")[0])
    made.add_argument("--data", type=Path, help="folder with the sets and their load.py (default: TACIT_DATA)")
    made.add_argument("--out", type=Path, help="folder of the results (default: benchmarks/results)")
    made.add_argument("--parts", nargs="+", default=list(default or parts), choices=list(parts))
    made.add_argument("--resume", action="store_true", help="keep what is measured already, and go on")
    made.add_argument("--render-only", action="store_true", help="measure nothing, draw the page and plots again")
    made.add_argument("--quick", action="store_true", help=f"{quick}, in two minutes")
    return made


def parsed(made: argparse.ArgumentParser, argv: list[str] | None) -> argparse.Namespace:
    """The arguments; quick runs write elsewhere unless told where."""
    arguments = made.parse_args(argv)
    arguments.out = arguments.out or HERE / (".cache/quick" if arguments.quick else "results")
    if arguments.data:
        sets.FOLDER = arguments.data.resolve()
    return arguments


def carry_out(
    name: str, arguments: argparse.Namespace, run: Callable[[Store], list[str]], draw: Callable[[Store], None]
) -> None:
    """Measure in one thread, say what was skipped, and draw the page from all that is on record."""
    store = Store(arguments.out / f"{name}.jsonl")
    if not arguments.render_only:
        with threadpool_limits(1):
            skipped = run(store)
        for line in skipped:
            print(line)
    draw(store)
    print(f"wrote {arguments.out / f'{name}.md'}")
