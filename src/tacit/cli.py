"""The `tacit` command."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tacit import __version__


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="tacit", description="Differentially private linear models and PCA.")
    parser.add_argument("--version", action="version", version=f"tacit {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser("demo", help="train private models on real data, and show what they cost")
    demo.add_argument("--epsilon", type=float, nargs="+", help="budgets to try (default: 0.1 to 10, and no privacy)")
    demo.add_argument("--repeats", type=int, default=3, help="fits to average for each budget (default: %(default)s)")
    demo.add_argument(
        "--out", type=Path, default=Path("demo"), help="folder for the plot and page (default: %(default)s)"
    )
    arguments = parser.parse_args(argv)
    try:
        _demo(arguments.epsilon, arguments.repeats, arguments.out)
    except ValueError as error:
        parser.error(str(error))
    return 0


def _demo(epsilons: list[float] | None, repeats: int, folder: Path) -> None:
    from tacit.privacy import Budget, checks
    from tacit.report import demo

    checks.count("repeats", repeats)
    for epsilon in epsilons or ():
        Budget(epsilon, 0.5)
    demo.run(folder, demo.EPSILONS if epsilons is None else epsilons, repeats)


if __name__ == "__main__":
    sys.exit(main())
