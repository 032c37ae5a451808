"""`Cluster`: parts on the workers of a Dask cluster, which are the data holder's own machines.

A part is a task that can be run again: rows are computed and bounded on workers, and stay there. What goes to a worker
is a function, public numbers and the places of sampled rows; what comes back is a sum. Gates, noise and models never go
there. Sums are private: they are taken off the cluster as soon as they are here. Each answer says which worker has the
rows, so that the next pass is a few tasks for each worker, however many parts there are.

A worker that is lost changes nothing: Dask runs its tasks again elsewhere, and sums are exact. Every answer says which
rows it is of, by a fingerprint of each partition. Rows that are others when they are computed again stop the fit. What
fails on a worker is told by its kind alone, since its words may quote a cell.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from dask import delayed

from tacit.blocks.partitions import Partition
from tacit.blocks.reading import AGAIN, AT_ONCE, ChangedRowsError
from tacit.blocks.source import Blocks, Kept
from tacit.blocks.workers import VERSION, Answer, Home, InBlocks, Marks, answers, bounded, computed, read

_ANSWERS = 64  # that are fetched at a time
_TASK = 2**27  # bytes of rows that one task reads, of more than one part: a worker may have put them on its disk


class WorkerError(RuntimeError):
    """Something failed on a worker; its kind is all that is told."""


@dataclass(frozen=True, eq=False, repr=False)
class Remote:
    """What stands here for rows on a worker. `task` computes them; bounded rows are computed from others."""

    task: Any = None


class Cluster:
    """The place of parts on the workers of a client. It is closed when a fit ends."""

    is_here = False

    def __init__(self, client: Any) -> None:
        self._client = client
        self._remotes: dict[int, tuple[Any, Remote]] = {}  # by the part that they stand for
        self._held: dict[Remote, Any] = {}  # futures of rows
        self._sums: set[Any] = set()  # futures of answers that are not here yet
        self._marks: dict[Remote, Marks] = {}  # of the rows that were seen first
        self._homes: dict[Remote, Home] = {}  # where rows were last

    def spooled(self, parts: Sequence[Any]) -> list[Remote]:
        """The parts as tasks: partitions that Dask computes, files that workers read, and what is made of both."""
        return [self._apart(part)[1] if not hasattr(part, "part") else self._made(part) for part in parts]

    def hold(self, function: Callable[[Any, int], Any], parts: Sequence[Any], rows: Sequence[int]) -> list[Any]:
        """In a list of what stands for them."""
        return [function(part, count) for part, count in zip(parts, rows, strict=True)]

    def run(self, function: Callable[[Any], Any], parts: Sequence[Any]) -> Iterator[Any]:
        """Each on the worker that has its rows; many parts of one worker in one task."""
        shells, remotes = zip(*map(self._apart, parts), strict=True)
        held = self._futures(remotes)
        some = [self._tasks(remotes, start) for start in range(0, len(remotes), _ANSWERS)]
        tasks = [places for these in some for places in these]
        given = ([[one[place] for place in places] for places in tasks] for one in (shells, held))
        futures = self._sent(partial(answers, function), *given)
        self._sums.update(futures)
        left = iter(futures)
        try:
            for these in some:
                asked = list(islice(left, len(these)))
                found = zip(these, self._gathered(asked), strict=True)
                told = {place: one for places, told in found for place, one in zip(places, told, strict=True)}
                for place in sorted(told):
                    yield self._checked(remotes[place], told.pop(place))
                self._release(asked)
        finally:
            self._release(futures)

    def _tasks(self, remotes: Sequence[Remote], start: int) -> list[list[int]]:
        """The places of some parts from `start` on, by the task that reads them."""
        alone: list[list[int]] = []
        together: dict[tuple[str, int], list[int]] = {}
        for place in range(start, min(start + _ANSWERS, len(remotes))):
            home = self._homes.get(remotes[place])
            if home is None:
                alone.append([place])
            else:
                together.setdefault((home.address, home.threads), []).append(place)
        for (_, threads), places in together.items():
            size = sum(self._homes[remotes[place]].size for place in places)
            count = min(len(places), max(threads, -(-size // _TASK)))
            alone += [some.tolist() for some in np.array_split(places, count)]
        return alone

    def keep(self, blocks: Blocks, parts: Sequence[Any], rows: Sequence[int]) -> Kept:
        """Bounded where the rows are; short partitions that follow each other are one part. Raw rows are let go of."""
        groups = _groups(rows)
        held = [[self._apart(part) for part in parts[cut]] for cut in groups]
        shells = [[shell for shell, _ in pairs] for pairs in held]
        sources = [[remote for _, remote in pairs] for pairs in held]
        futures = self._sent(partial(bounded, blocks), shells, [self._futures(some) for some in sources])
        kept = [Remote() for _ in groups]
        for one, future, raw in zip(kept, futures, sources, strict=True):
            self._held[one] = future
            if all(remote in self._marks for remote in raw):
                self._marks[one] = tuple(mark for remote in raw for mark in self._marks[remote])
        self._release([self._held.pop(remote) for raw in sources for remote in raw])
        return Kept([InBlocks(one) for one in kept], [sum(rows[cut]) for cut in groups], self.run, is_here=False)

    def close(self) -> None:
        """Take everything off the cluster."""
        self._release([*self._sums, *self._held.values()])
        self._held.clear()

    def _apart(self, part: Any) -> tuple[Any, Remote]:
        """A part without its rows, and what stands for these: a part of a part has them in its field `part`."""
        if isinstance(part, Remote):
            return None, part
        if hasattr(part, "part"):
            inner, remote = self._apart(part.part)
            return replace(part, part=inner), remote
        if id(part) not in self._remotes:
            self._remotes[id(part)] = part, Remote(_task(part))
        return None, self._remotes[id(part)][1]

    def _made(self, part: Any) -> Remote:
        """What holds the rows that are made of others."""
        shell, remote = self._apart(part)
        return Remote(delayed(read, pure=False)(shell, remote.task))

    def _futures(self, remotes: Sequence[Remote]) -> list[Any]:
        """The rows that these stand for, computed where they are not yet."""
        missing = [remote for remote in remotes if remote not in self._held]
        if missing:
            futures = self._quietly(lambda: self._client.compute([remote.task for remote in missing]))
            self._held.update(zip(missing, futures, strict=True))
        return [self._held[remote] for remote in remotes]

    def _sent(self, function: Callable[..., Any], *given: Sequence[Any]) -> Sequence[Any]:
        """Futures of the function for each part."""
        futures: Sequence[Any] = self._quietly(lambda: self._client.map(function, *given, pure=False, key="tacit"))
        return futures

    def _gathered(self, futures: Sequence[Any]) -> Sequence[list[Answer]]:
        found: Sequence[list[Answer]] = self._quietly(lambda: self._client.gather(futures))
        return found

    def _quietly(self, ask: Callable[[], Any]) -> Any:
        """What the cluster says; its errors by their kind alone."""
        try:
            return ask()
        except Exception as error:
            kind = type(error).__name__
        raise WorkerError(f"the Dask cluster could not compute a partition: {kind}")

    def _checked(self, remote: Remote, told: Answer) -> Any:
        """The result, if it is of the same rows as before."""
        if told.version != VERSION:
            raise WorkerError(f"a worker has tacit {told.version}, and this is {VERSION}: install the same")
        if told.failed == ChangedRowsError.__name__:
            raise ChangedRowsError(AGAIN)
        if told.failed is not None:
            raise WorkerError(f"a partition failed on a worker: {told.failed}")
        if self._marks.setdefault(remote, told.marks) != told.marks:
            raise ChangedRowsError(AGAIN)
        if told.home is not None:
            self._homes[remote] = told.home
        return told.result

    def _release(self, futures: Sequence[Any]) -> None:
        for future in futures:
            future.release()
        self._sums.difference_update(futures)


def _task(part: Any) -> Any:
    """What computes the rows of a part, and holds them."""
    if isinstance(part, Partition):
        return delayed(computed, pure=False)(part.X, part.y, part.target)
    return delayed(read, pure=False)(part)


def _groups(rows: Sequence[int]) -> list[slice]:
    """Parts that follow each other, so many that they have enough rows for a task."""
    groups, start, count = [], 0, 0
    for place, more in enumerate(rows):
        count += more
        if count >= AT_ONCE or place == len(rows) - 1:
            groups.append(slice(start, place + 1))
            start, count = place + 1, 0
    return groups
