"""The command line that benchmarks with records share, and what they do with it: measure, then draw the page."""

import argparse
import time
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks.frame import sets
from benchmarks.frame.page import Page
from benchmarks.frame.records import Record, Store

FOLDER = Path(__file__).resolve().parents[1]
RESULTS = FOLDER / "results"
SPLIT = " | "  # in the name of a set: between that of its case and the value of what is varied


class Effort(SimpleNamespace):
    """How much is run. A TOML file says it, and under `quick` what is different there; None is written "all"."""

    @classmethod
    def read(cls, path: Path, quick: bool = False) -> "Effort":
        """Of a file."""
        told = tomllib.loads(path.read_text(encoding="utf8"))
        changed = told.pop("quick")
        found = told | changed if quick else told
        return cls(**{key: None if value == "all" else value for key, value in found.items()})

    def but(self, **changed: Any) -> "Effort":
        """The same with something else."""
        return Effort(**vars(self) | changed)


@dataclass
class Job:
    """One case that is run: a part on a set, of one method if methods are cases of their own."""

    store: Store
    part: str
    name: str
    method: str
    methods: tuple[str, ...]  # those asked for
    effort: Any
    made: Callable[[Record], bool]  # by this case, now or before
    size: tuple[int, ...] = ()  # of the set, for those records that say nothing else
    begun: bool = False
    since: float = field(default_factory=time.perf_counter)  # of the last result

    def keep(
        self,
        model: str,
        epsilon: float | None,
        seed: int,
        scores: Mapping[str, Any],
        seconds: Any = None,
        note: str = "",
        **more: Any,
    ) -> None:
        """Write down a result; the first one replaces all that the case left before.

        Seconds that are not given are those since the last result.
        """
        if not self.begun:
            self.store.drop(self.made)
            self.begun = True
        now = time.perf_counter()
        seconds, self.since = now - self.since if seconds is None else seconds, now
        listed = {name: list(value) if isinstance(value, list | tuple) else [value] for name, value in scores.items()}
        taken = [float(f"{value:.6g}") for value in (seconds if isinstance(seconds, list | tuple) else [seconds])]
        where = {"table": self.part, "set": self.name, "size": tuple(self.size)} | more
        self.store.add(
            Record(model=model, epsilon=epsilon, seed=seed, scores=listed, seconds=taken, note=note, **where)
        )


@dataclass(frozen=True)
class Part:
    """What is run on some sets. They may depend on the effort, or be what it has under a name."""

    run: Callable[[Job], None]
    sets: str | Iterable[str] | Callable[[Any], Iterable[str]]
    tables: tuple[str, ...] = ()  # that it writes, if not one of its own name; or the words before their comma
    methods: tuple[str, ...] = ("",)  # if each is a case
    by_default: bool = True
    file: str = ""  # what is added to the name of its file of records

    def names(self, effort: Any) -> Iterable[str]:
        """The sets."""
        if isinstance(self.sets, str):
            return getattr(effort, self.sets)
        return self.sets(effort) if callable(self.sets) else self.sets


@dataclass
class Benchmark:
    """Parts to measure, with how much effort, and the page that is drawn from their records."""

    name: str
    about: str
    parts: dict[str, Part]
    page: type[Page]
    efforts: Path
    methods: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.full, self.quick = Effort.read(self.efforts), Effort.read(self.efforts, quick=True)

    def main(self, argv: list[str] | None = None) -> None:
        """Measure in one thread, say what was skipped, and draw the page from all that is on record."""
        arguments = self.arguments(argv)
        effort = self.quick if arguments.quick else self.full
        files = dict.fromkeys(part.file for part in self.parts.values())
        stores = {file: Store(arguments.out / f"{self.name}{file}.jsonl") for file in files}
        if not arguments.render_only:
            with threadpool_limits(1):
                self.run(stores, arguments, effort)
        records = [record for store in stores.values() for record in store]
        self.page(records, effort, arguments.quick).write(arguments.out, self.name)
        print(f"wrote {arguments.out / f'{self.name}.md'}")

    def arguments(self, argv: list[str] | None) -> argparse.Namespace:
        """Of the command line; quick runs write elsewhere unless told where."""
        parser = argparse.ArgumentParser(description=self.about.partition("\n")[0])
        parser.add_argument("--data", type=Path, help="folder with the sets (default: TACIT_DATA)")
        parser.add_argument("--out", type=Path, help="folder of the results (default: benchmarks/results)")
        unasked = [name for name, part in self.parts.items() if part.by_default]
        parser.add_argument("--parts", nargs="+", default=unasked, choices=list(self.parts))
        parser.add_argument("--resume", action="store_true", help="keep what is measured already, and go on")
        parser.add_argument("--render-only", action="store_true", help="measure nothing, draw the page and plots again")
        parser.add_argument("--quick", action="store_true", help="few rows, budgets and seeds, in two minutes")
        parser.add_argument("--sets", nargs="+", metavar="NAME", help="of these parts, only these (default: all)")
        if self.methods:
            parser.add_argument("--methods", nargs="+", choices=self.methods, default=self.methods)
        arguments = parser.parse_args(argv)
        effort = self.quick if arguments.quick else self.full
        known = {name for part in self.parts.values() for name in part.names(effort)}
        if not known.issuperset(arguments.sets or ()):
            parser.error(f"--sets are of {', '.join(sorted(known))}")
        arguments.out = arguments.out or (FOLDER / ".cache/quick" if arguments.quick else RESULTS)
        if arguments.data:
            sets.FOLDER = arguments.data.resolve()
        return arguments

    def run(self, stores: Mapping[str, Store], arguments: argparse.Namespace, effort: Any) -> None:
        """Everything that is asked for."""
        asked = tuple(getattr(arguments, "methods", ()))
        for place, part in ((place, self.parts[place]) for place in arguments.parts):
            for name in part.names(effort):
                for method in part.methods:
                    if (arguments.sets and name not in arguments.sets) or (method and method not in asked):
                        continue
                    job = self.job(stores[part.file], place, name, method, asked, effort)
                    if arguments.resume and any(map(job.made, job.store)):
                        continue
                    start = time.perf_counter()
                    try:
                        part.run(job)
                    except sets.MissingSetError as error:
                        print(f"skipped: {place}, {name} ({error})")
                        break
                    print(f"{place}, {name} {method}: {time.perf_counter() - start:.1f} s", flush=True)

    def job(self, store: Store, place: str, name: str, method: str, asked: tuple[str, ...], effort: Any) -> Job:
        """One case, which knows the records that are its own."""
        tables = set(self.parts[place].tables or (place,))

        def made(record: Record) -> bool:
            if tables.isdisjoint((record.table, record.table.split(",")[0])) or record.set.split(SPLIT)[0] != name:
                return False
            base = record.model.split(", ")[0]
            return record.model == method if method else base not in self.methods or base in asked

        return Job(store, place, name, method, asked, effort, made)
