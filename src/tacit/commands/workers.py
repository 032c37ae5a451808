"""`--workers`: the rows of a file on the workers of a Dask cluster, which read it themselves."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tacit.blocks.here import ThisMachine


@contextmanager
def where(workers: str | None) -> Iterator[Any]:
    """The place of the rows: this machine, or the cluster whose scheduler has this address."""
    if workers is None:
        yield ThisMachine()
        return
    try:
        from distributed import Client
    except ImportError:
        raise ImportError("--workers needs Dask: pip install 'tacit[dask]'") from None
    from tacit.blocks.cluster import Cluster, WorkerError

    try:
        with Client(workers, set_as_default=False) as client:
            yield Cluster(client)
    except WorkerError as error:
        spent = "; ".join(getattr(error, "__notes__", ["nothing was spent"]))
        raise ValueError(
            f"{error}; {spent}. Workers must see the file under the same absolute path, and have this version of tacit"
        ) from None
