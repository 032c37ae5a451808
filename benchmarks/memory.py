"""The peak memory of one fit on dense data, over the size of the data.

    python benchmarks/memory.py [--quick] [--estimator Lasso] [--solver coordinate] [--rows 1000000] [--columns 100]
        [--passes 20] [--order C] [--out benchmarks/results/memory.md]

The fit runs in a process of its own. What counts is the largest resident size of that process, less what it was after a
fit of 200 rows: the interpreter, imports and compiled code are left out, the data itself is not. The same small fit in
another process comes first, so that kernels are read from the disk and the memory of compiling them hides nothing.
"""

import argparse
import json
import platform
import re
import resource
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np

QUICK = {"rows": 200_000, "columns": 50}
_SMALL = 200


def fit(n: int, arguments: argparse.Namespace) -> tuple[int, int]:
    """Fit n rows; the size of the data and the peak of the process so far, in bytes."""
    import tacit

    rng = np.random.default_rng(0)
    X = np.empty((n, arguments.columns), order=arguments.order)
    for rows in np.array_split(X, max(1, n // 10_000)):  # made in place, a few at a time
        rows[:] = rng.standard_normal(rows.shape)
    y = X[:, 0] + rng.standard_normal(n)
    model = getattr(tacit, arguments.estimator)(solver=arguments.solver, n_passes=arguments.passes or None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few rows
        model.fit(X, y > 0 if hasattr(model, "predict_proba") else y)
    return X.nbytes, peak()


def peak() -> int:
    """The largest resident size of this process so far, in bytes.

    On Linux `ru_maxrss` starts from the size of the process that started this one, so the kernel's own mark is read.
    """
    status = Path("/proc/self/status")
    if status.exists():
        return int(re.search(r"VmHWM:\s+(\d+) kB", status.read_text())[1]) * 1024  # type: ignore[index]
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def fresh(argv: list[str], rows: int, columns: int) -> list[int]:
    """The numbers that a process of its own prints: the size of its data, and its peak less that of a small fit."""
    command = [sys.executable, __file__, *argv, "--inside", "--rows", str(rows), "--columns", str(columns)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"the fit failed:\n{done.stderr}")
    return [int(number) for number in json.loads(done.stdout)]


def page(ratio: float, arguments: argparse.Namespace) -> str:
    """The table."""
    passes = f", {arguments.passes:g} passes" if arguments.passes else ""
    size = f"{arguments.rows:,} x {arguments.columns} float64, order {arguments.order}"
    return "\n".join(
        [
            "# The memory of a fit",
            "",
            f"`python benchmarks/memory.py`, Python {platform.python_version()}. Peak resident size, the data in it,",
            "less that of a small fit in the same process, over the size of the data.",
            "",
            "| fit | data | peak |",
            "|---|---|---|",
            f"| {arguments.estimator}, solver {arguments.solver}{passes} | {size} | {ratio:.2f}x the data |",
        ]
    )


def parsed(argv: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--estimator", default="Lasso", help="a name in tacit (default: %(default)s)")
    parser.add_argument("--solver", default="coordinate", help="default: %(default)s")
    parser.add_argument("--rows", type=int, default=1_000_000, help="default: %(default)s")
    parser.add_argument("--columns", type=int, default=100, help="default: %(default)s")
    parser.add_argument("--passes", type=float, default=20.0, help="0 leaves it to the solver (default: %(default)s)")
    parser.add_argument("--order", default="C", choices=["C", "F"], help="of the data's storage (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="200,000 x 50")
    parser.add_argument("--out", type=Path, help="also write the table to this file")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.quick and not arguments.inside:
        arguments.rows, arguments.columns = QUICK["rows"], QUICK["columns"]
    return arguments


def main(argv: list[str] | None = None) -> None:
    """Measure, print, and write the table."""
    argv = sys.argv[1:] if argv is None else argv
    arguments = parsed(argv)
    if arguments.inside:
        _, before = fit(_SMALL, arguments)
        size, after = fit(arguments.rows, arguments)
        print(json.dumps([size, after - before]))
        return
    fresh(argv, _SMALL, arguments.columns)
    size, used = fresh(argv, arguments.rows, arguments.columns)
    text = page(used / size, arguments)
    print(text)
    if arguments.out:
        arguments.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
