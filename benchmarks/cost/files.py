"""Fits of files and of mapped arrays, against the same rows in memory: seconds a million rows, and memory.

    python -m benchmarks.cost.files [--rows 200000] [--columns 20] [--map 200000] [--folder FOLDER] [--out FOLDER]

Rows are made a file at a time, so that the set may be larger than memory: `--rows 62000000` of 20 columns are 10 GB of
numbers. Each fit runs in a process of its own. Memory is what the process has of its own (`RssAnon` of Linux, sampled),
less what it had before the fit: pages of files that the system keeps are not the fit's.

The cost model is checked here as well. `rates` measures single operations on a small sample, `predicted` puts them
together as a fit does, and the page shows both beside what whole fits took.
"""

import json
import math
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np

from benchmarks import cost
from benchmarks.cost.rates import predicted, rates
from benchmarks.frame.timing import fresh

INTRO = """\
# Fits of files

`python -m benchmarks.cost.files`, Python {python}, NumPy {numpy}; logistic regression at epsilon = 1 with nothing
declared, each fit in a process of its own. Memory is anonymous memory at its peak, less that before the fit. What is
*predicted* are seconds of the processor, from the rates of single operations; the cost model is in
docs/larger-than-memory.md. Of files *processor* is the ratio of these seconds to those of the fit in memory."""
OPTIONS = {"rows": 200_000, "columns": 20, "map": 200_000, "folder": ""}
FILE_ROWS = 500_000
IN_MEMORY = 10**7  # rows at most of the fit in memory that a larger set is compared with
ON_PAPER = (10**8, 10**9)


def some(start: int, count: int, d: int) -> tuple[Any, Any]:
    """Rows from `start` on, which are the same however they are cut into files of `FILE_ROWS`."""
    rng = np.random.default_rng(start)
    scales = np.linspace(1.0, 50.0, d)
    X = rng.standard_normal((count, d)) * scales + np.arange(d)
    margin = (X / scales) @ np.where(np.arange(d) % 2, 0.4, -0.3)
    return X, (margin + rng.logistic(size=count) > np.mean(margin)).astype(np.int64)


def make(folder: Path, n: int, d: int) -> str:
    """Write n rows as Parquet files, in row groups of 65,536 rows; what to call them in `fit_blocks`."""
    import pyarrow as pa
    from pyarrow import parquet

    folder.mkdir(parents=True, exist_ok=True)
    for start in range(0, n, FILE_ROWS):
        X, y = some(start, min(FILE_ROWS, n - start), d)
        columns = {f"x{k:03}": X[:, k] for k in range(d)} | {"readmitted": y}
        parquet.write_table(pa.table(columns), folder / f"part-{start // FILE_ROWS:05}.parquet", row_group_size=65_536)
    return str(folder / "*.parquet")


def make_map(path: Path, n: int, d: int) -> None:
    """Write n rows as an array of single precision, a few at a time."""
    rows = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, d))
    for start in range(0, n, FILE_ROWS):
        rows[start : start + FILE_ROWS] = some(start, min(FILE_ROWS, n - start), d)[0]
    rows.flush()


def anonymous() -> int:
    """Bytes of memory that are this process's own; 0 where the system does not tell."""
    try:
        text = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in text.splitlines() if line.startswith("RssAnon")), 0)


class Peak:
    """The most memory of its own that the process has while this is open, less what it had before."""

    def __enter__(self) -> "Peak":
        self._before = self._most = anonymous()
        self._done = Event()
        self._thread = Thread(target=self._sample, daemon=True)
        self._thread.start()
        return self

    def _sample(self) -> None:
        while not self._done.wait(0.005):
            self._most = max(self._most, anonymous())

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    @property
    def bytes(self) -> int:
        """Of them."""
        return max(self._most - self._before, 0)


def fit(given: dict[str, Any]) -> dict[str, float]:
    """One fit in this process: its seconds and its memory."""
    from tacit import LogisticRegression
    from tacit.blocks.reading import opened

    n, d, kind = given["rows"], given["columns"], given["kind"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        LogisticRegression().fit(*some(0, 2_000, d))  # what is compiled and imported once is not counted
        model = LogisticRegression(epsilon=1.0, classes=[0, 1], random_state=0)
        if kind == "parquet":
            next(opened(given["where"], "readmitted").parts[0].tables())  # imports what reads files
            action = lambda: model.fit_blocks(given["where"], target="readmitted")  # noqa: E731
        else:
            pieces = [some(start, min(FILE_ROWS, n - start), d) for start in range(0, n, FILE_ROWS)]
            y = np.concatenate([labels for _, labels in pieces])
            X = np.concatenate([rows for rows, _ in pieces]) if kind == "memory" else np.load(given["where"], "r")
            del pieces
            action = lambda: model.fit(X, y)  # noqa: E731
        with Peak() as peak:
            start, used = time.perf_counter(), time.process_time()
            action()
            seconds, used = time.perf_counter() - start, time.process_time() - used
    steps = sum(release.count for release in model.plan_.plan.releases if release.name == "gradients")
    return {
        "seconds": seconds,
        "used": used,
        "bytes": peak.bytes,
        "steps": steps,
        "coef": float(np.abs(model.coef_).sum()),
    }


def apart(**given: Any) -> dict[str, float]:
    """The same in a process of its own."""
    return json.loads(fresh("-m", "benchmarks.cost.files", "--inside", json.dumps(given)))


def rows(arguments: Any) -> cost.Rows:
    """Files, an array in memory, a mapped one; then the model of it."""
    n, d = arguments.rows, arguments.columns
    with tempfile.TemporaryDirectory(dir=arguments.folder or None) as folder:
        known = rates(some, make, Path(folder) / "sample", d)
        measured = []
        for count in sorted({max(n // 4, 2), n}):
            fewer = min(count, IN_MEMORY)
            held = apart(kind="memory", rows=fewer, columns=d)
            unit, used = (held[name] / fewer for name in ("seconds", "used"))
            yield f"in memory, {fewer:,} x {d}", f"{unit * 1e6:.3g} s a million rows", "-"
            where = make(Path(folder) / f"rows-{count}", count, d)
            found = apart(kind="parquet", rows=count, columns=d, where=where)
            measured.append((count, found))
            took = found["seconds"] / count
            told = f"{took * 1e6:.3g} s a million rows, {found['bytes'] / 2**20:.0f} MiB"
            against = f"{took / unit:.3g}x of in memory; processor {found['used'] / count / used:.3g}x"
            yield f"Parquet, {count:,} x {d}", told, against
        make_map(Path(folder) / "rows.npy", arguments.map, d)
        mapped = apart(kind="map", rows=arguments.map, columns=d, where=str(Path(folder) / "rows.npy"))
        size = 4 * arguments.map * d
        told = f"{mapped['bytes'] / 2**20:.0f} MiB"
        yield f"mapped float32, {arguments.map:,} x {d}", told, f"{mapped['bytes'] / size:.3g}x of the data"
    steps, cores = int(measured[-1][1]["steps"]), len(os.sched_getaffinity(0))
    for count, found in measured:
        told = predicted(known, count, d, steps)
        against = f"measured {found['used']:.3g} s, {found['used'] / told:.2f}x"
        yield f"predicted, {count:,} x {d}, processor", f"{told:.3g} s", against
    for count in ON_PAPER:
        hours = predicted(known, count, d, steps) / cores / 3_600
        disk = (8 + 4) * count * d + 16 * count
        yield (
            f"on paper, {count:.0e} x {d}",
            f"{hours:.2g} h, {cores} cores",
            f"{math.ceil(disk / 2**30):,} GiB of scratch",
        )


def main(argv: list[str] | None = None) -> None:
    """Measure, print, and write the page."""
    cost.main(__doc__, "files", INTRO, rows, OPTIONS, argv, ("what", "ours", "against"))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        print(json.dumps(fit(json.loads(sys.argv[2]))))
    else:
        main()
