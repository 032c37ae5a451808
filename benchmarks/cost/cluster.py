"""A fit on two workers of a Dask cluster against threads, on one machine, as a ratio of one run.

    python -m benchmarks.cost.cluster [--rows 10000000] [--workers 2] [--partitions 20] [--rounds 3] [--out FOLDER]

Both have the rows in memory: workers as a persisted Dask array, this process as a NumPy array. Each figure is the least
over the rounds, in which both take turns. Before that a fit with a seed has to find the same coefficients in both.
"""

import time
import warnings
from typing import Any

import numpy as np

from benchmarks import cost
from benchmarks.cost.fits import least, row
from tacit import LogisticRegression

INTRO = """\
# A Dask cluster on one machine

`python -m benchmarks.cost.cluster`, Python {python}, NumPy {numpy}; the least of runs that take turns, epsilon = 1,
nothing declared, 20 normal columns; rows are in memory at both, each partition in one piece of it. Both find the same
coefficients for the same seed. Seconds of the processor are those of the client, the scheduler and all workers."""
OPTIONS = {"rows": 10_000_000, "workers": 2, "partitions": 20, "rounds": 3}
_COLUMNS = 20


def piece(number: int, count: int) -> Any:
    """Some rows, and their classes as the last column."""
    rng = np.random.default_rng([7, number])
    rows = rng.standard_normal((count, _COLUMNS + 1))
    rows[:, -1] = rows[:, :3].sum(axis=1) + rng.logistic(size=count) > 0.0
    return rows


def used(client: Any) -> float:
    """Seconds of the processor so far, of this process and of the workers."""
    return time.process_time() + sum(client.run(time.process_time).values())


def rows(arguments: Any) -> cost.Rows:
    """The one ratio, of a clock and of the processor."""
    import dask
    import dask.array as da
    from distributed import Client, LocalCluster, wait

    sizes = [len(some) for some in np.array_split(np.empty(arguments.rows), arguments.partitions)]
    make = dask.delayed(piece)
    pieces = [da.from_delayed(make(k, size), (size, _COLUMNS + 1), float) for k, size in enumerate(sizes)]
    whole = da.concatenate(pieces)
    lazy = [some.map_blocks(np.ascontiguousarray) for some in (whole[:, :-1], whole[:, -1])]
    with (
        LocalCluster(n_workers=arguments.workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")  # of seeds
        X, y = client.persist(lazy)
        wait([X, y])
        held = np.concatenate([piece(k, size) for k, size in enumerate(sizes)])
        table, labels = np.ascontiguousarray(held[:, :-1]), held[:, -1]
        del held
        one, other = (LogisticRegression(random_state=0).fit(*given) for given in ((X, y), (table, labels)))
        if not np.array_equal(one.coef_, other.coef_):
            raise SystemExit("the cluster found other coefficients than threads")
        ours = LogisticRegression(epsilon=1.0)
        size = f"{arguments.rows:,} x {_COLUMNS}"
        what = f"logistic, {size}, Dask with {arguments.workers} workers and {arguments.partitions} partitions"
        for told, clock in (("", time.perf_counter), (", processor", lambda: used(client))):
            found = least(
                arguments.rounds, clock, cluster=lambda: ours.fit(X, y), threads=lambda: ours.fit(table, labels)
            )
            yield row(what + told, found["cluster"], "threads", found["threads"])


def main(argv: list[str] | None = None) -> None:
    """Measure, print, and write the page."""
    cost.main(__doc__, "cluster", INTRO, rows, OPTIONS, argv)


if __name__ == "__main__":
    main()
