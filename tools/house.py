"""The counters of the house: how much there is to read, and how far a reader has to walk.

    python tools/house.py

Lines of Python; functions with more than eight arguments; the parameters of each estimator and solver; pairs of places
that share six or more lines, where the command `duplicates` is installed; and the functions, files and rooms that a
first fit goes through, in the order in which they are first called.
"""

import ast
import inspect
import itertools
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "tacit"
MOST_ARGUMENTS = 8


def lines_of(folder: Path) -> int:
    """Lines of Python below a folder."""
    return sum(len(path.read_text(encoding="utf8").splitlines()) for path in folder.rglob("*.py") if shown(path))


def shown(path: Path) -> bool:
    """Whether a file is the project's own."""
    return not any(part.startswith(".") for part in path.relative_to(ROOT).parts)


def long_signatures(most: int = MOST_ARGUMENTS) -> Iterator[tuple[int, str]]:
    """Functions with more arguments than that, `self` not counted; constructors have a limit of their own."""
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name != "__init__":
                given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                count = len([one for one in given if one.arg not in ("self", "cls")])
                if count > most:
                    yield count, f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"


def constructors() -> dict[str, int]:
    """How many parameters each public class has."""
    import tacit
    from tacit import federated, solvers
    from tacit.solvers import pca

    found = {}
    for room in (tacit, federated, solvers, pca):
        for name in getattr(room, "__all__", vars(room)):
            kind = getattr(room, name)
            if inspect.isclass(kind) and kind.__module__.startswith("tacit.") and not issubclass(kind, Exception):
                found[name] = len(inspect.signature(kind).parameters)
    return found


def pairs(folder: Path) -> str:
    """What `duplicates` says of a folder, in its first line."""
    command = shutil.which("duplicates")
    if command is None:
        return "not counted: no command `duplicates` here"
    told = subprocess.run(
        [command, "--repo", str(folder), "--seconds", "120"], capture_output=True, text=True, check=False
    )
    return told.stdout.splitlines()[0]


def walk_of(run: Callable[[], Any]) -> list[tuple[str, str, int]]:
    """The functions of the package that a run calls, as (file, name, line), in the order of their first calls."""
    seen: dict[tuple[str, str, int], None] = {}

    def note(frame: Any, event: str, argument: Any) -> None:
        del argument
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(SOURCE)):
            seen.setdefault((str(Path(code.co_filename).relative_to(SOURCE)), code.co_name, code.co_firstlineno))

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return list(seen)


def room_changes(walk: list[tuple[str, str, int]]) -> int:
    """How often the next function is in another room."""
    rooms = [Path(file).parts[0] for file, _, _ in walk]
    return sum(one != other for one, other in itertools.pairwise(rooms))


def fits() -> dict[str, Callable[[], Any]]:
    """A fit of each kind, on data that says nothing."""
    from tacit import PCA, Lasso, LogisticRegression

    X = np.random.default_rng(0).normal(size=(200, 4))
    y = X[:, 0] + np.random.default_rng(1).normal(size=200)
    return {
        "logistic": lambda: LogisticRegression(epsilon=1.0).fit(X, y > 0),
        "lasso": lambda: Lasso(epsilon=1.0, alpha=0.1).fit(X, y),
        "pca": lambda: PCA(2, epsilon=1.0).fit(X),
    }


def main() -> None:
    """Print the counters."""
    warnings.simplefilter("ignore")
    for folder in ("src/tacit", "tests", "benchmarks"):
        print(f"lines under {folder}: {lines_of(ROOT / folder):,}")
    long = sorted(long_signatures(), reverse=True)
    print(f"functions with more than {MOST_ARGUMENTS} arguments: {len(long)}")
    for count, where in long:
        print(f"  {count} {where}")
    sizes = sorted(constructors().items(), key=lambda item: -item[1])
    print("constructors: " + ", ".join(f"{name} {size}" for name, size in sizes[:8]))
    print(f"pairs in the tree: {pairs(ROOT)}")
    print(f"pairs in src: {pairs(ROOT / 'src')}")
    for name, run in fits().items():
        run()  # what is loaded once does not count
        walk = walk_of(run)
        files = len({file for file, _, _ in walk})
        print(f"a {name} fit: {len(walk)} functions in {files} files, {room_changes(walk)} changes of room")


if __name__ == "__main__":
    main()
