"""What all benchmarks share: results that can be read, and how a page is put together."""

import importlib
from pathlib import Path

import pytest

from benchmarks.frame.command import RESULTS
from benchmarks.frame.page import Page
from benchmarks.frame.records import Record, Results, Store
from benchmarks.frame.tables import counted, spread, table

FOLDERS = ("dp_cd", "dp_scd", "dp_fw", "dp_pca", "federated")


def record(table="speed", model="ours", seed=0, **scores):
    return Record(table, "set", model, 1.0, seed, {name: [value] for name, value in scores.items()}, [2.0], size=(3, 4))


@pytest.mark.parametrize("folder", FOLDERS)
def test_results_in_the_repository_can_be_read_and_are_those_of_the_parts(folder):
    benchmark = importlib.import_module(f"benchmarks.{folder}.__main__").BENCHMARK
    records = list(Store(RESULTS / f"{folder}.jsonl"))
    assert records
    known = {table for name, part in benchmark.parts.items() for table in part.tables or (name,)}
    assert [r.table for r in records if known.isdisjoint((r.table, r.table.split(",")[0]))] == []


def test_records_are_found_by_the_first_of_their_names():
    results = Results([record(x=1.0), record(seed=1, x=2.0), record(model="theirs", y=5.0)])
    assert results.values("x", "speed") == results.values("x", "speed", "set", "ours", 1.0) == [1.0, 2.0]
    assert results.distinct("model", "speed", order=("theirs",)) == ["theirs", "ours"]
    assert (results.most("speed"), results.seconds("speed", "set"), results.epsilons("no such")) == (2, 2.0, [])


@pytest.fixture
def page(tmp_path):
    """A page of a template, of records and of what they are called."""

    def drawn(template, records=(), quick=False, **named):
        path = Path(tmp_path / "page.md")
        path.write_text(template)
        return str(type("Drawn", (Page,), {"template": path, **named})(records, quick=quick))

    return drawn


def test_a_section_is_left_out_with_its_blocks_or_the_table_that_it_needs(page):
    template = "# All\n\n{n:,} rows.\n\n## One\n\n{missing} of\n\n{block}\n\n## Two\n<!-- needs: speed -->\n\ntold\n"
    assert page(template, n=1_000, block="") == "# All\n\n1,000 rows.\n"
    assert page(template, [record()], n=2, block="") == "# All\n\n2 rows.\n\n## Two\n\ntold\n"
    assert page(template, n=2, block="a", missing=lambda _: 3).endswith("## One\n\n3 of\n\na\n")
    assert "quick run" in page(template, quick=True, n=2, block="")


def test_a_section_is_repeated_for_each_item(page):
    items = [{"name": "a", "block": "x"}, {"name": "b", "block": ""}, {"name": "c", "block": "z"}]
    drawn = page("# All\n\n## {name} of {n}\n<!-- each: items -->\n\n{block}\n", n=2, items=items)
    assert drawn == "# All\n\n## a of 2\n\nx\n\n## c of 2\n\nz\n"


def test_tables_leave_out_empty_rows_unless_they_are_whole():
    def cell(row, column):
        return spread([row, row + 2.0], 1) if row == column else "-"

    rows, columns = {"one": 1, "two": 2}, {"first": 1}
    assert table("", rows, columns, cell) == "|  | first |\n|---|---|\n| one | 2.0 ± 1.0 |"
    assert table("", rows, columns, cell, whole=True).endswith("| two | - |")
    assert counted([([1.0], [2.0]), ([3.0], [2.0]), ([], [1.0])], lambda ours, theirs: ours < theirs) == "1 of 2"
