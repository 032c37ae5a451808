"""The lowest versions that pyproject.toml allows, as a constraints file for pip: `make test-lowest` installs these.

A lower bound that nobody installs is a guess. The dependencies of the package count, and those of the extras that are
named; what these bring along is left to pip.
"""

import argparse
import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
BOUND = re.compile(r"(?P<name>[\w.-]+)(?:\[[^\]]*\])?>=(?P<version>[\w.]+)")


def constraints(project: dict, extras: list[str]) -> list[str]:
    """`name==version` for each requirement with a lower bound, the package's own first, then those of the extras."""
    requirements = list(project["dependencies"])
    for extra in extras:
        requirements += project["optional-dependencies"][extra]
    found = [BOUND.match(requirement) for requirement in requirements]
    without = [text for text, match in zip(requirements, found, strict=True) if match is None]
    if without:
        raise ValueError(f"requirements without a lower bound: {', '.join(without)}")
    return [f"{match['name']}=={match['version']}" for match in found if match]


def main() -> None:
    """Print the constraints, one a line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("extras", nargs="*", help="extras whose requirements count too")
    arguments = parser.parse_args()
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    print("\n".join(constraints(project, arguments.extras)))


if __name__ == "__main__":
    main()
