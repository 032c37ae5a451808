"""A tiny run of a benchmark into a folder of the test."""

import re
from types import SimpleNamespace

import pytest

from benchmarks.frame.records import Store


class TinyRun:
    """Runs a benchmark, and tells what it kept, measured and drew."""

    def __init__(self, folder, capsys, monkeypatch):
        self.folder, self._capsys, self._monkeypatch = folder, capsys, monkeypatch
        self.measured = []  # the cases of the last run

    def __call__(self, benchmark, *options):
        benchmark.main(["--out", str(self.folder), *options])
        self.measured = re.findall(r"^(.*): [\d.]+ s$", self._capsys.readouterr().out, re.MULTILINE)
        return list(Store(self.folder / f"{benchmark.name}.jsonl"))

    def page(self, name):
        return (self.folder / f"{name}.md").read_text(encoding="utf8")

    def drawn(self, *names):
        return all((self.folder / f"{name}.png").stat().st_size > 1_000 for name in names)

    def goes_on(self, benchmark, few, again):
        """A run that stopped goes on; asked for again, it repeats nothing else. The records before and after."""
        self._monkeypatch.setattr(benchmark.page, "figures", lambda *_: None)
        before = self(benchmark, *few)
        assert self.measured
        for option in ("--resume", "--render-only"):
            assert self(benchmark, *few, option) == before
            assert self.measured == []
        after = self(benchmark, *again)
        assert sorted(r.key for r in after) == sorted(r.key for r in before)
        return SimpleNamespace(before=before, after=after)


@pytest.fixture
def run(tmp_path, capsys, monkeypatch):
    return TinyRun(tmp_path, capsys, monkeypatch)
