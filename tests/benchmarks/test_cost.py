"""The benchmarks of cost: what they print is what they write, and a fit is measured in a process of its own."""

import re

import pytest

from benchmarks.cost import cluster, files, first_fit, fits, main, memory, noise, one_pass, rates
from benchmarks.frame.timing import least, medians


@pytest.mark.slow
def test_the_benchmark_of_memory_writes_its_table(tmp_path, capsys):
    memory.main(["--rows", "200000", "--columns", "20", "--passes", "1", "--out", str(tmp_path)])
    page = (tmp_path / "memory.md").read_text()
    assert capsys.readouterr().out == page
    row = page.splitlines()[-1]
    assert row.startswith("| Lasso, solver coordinate, 1 passes | 200,000 x 20 float64, order C | ")
    assert float(re.search(r"([\d.]+)x the data", row).group(1)) > 0.0  # what other libraries hold is theirs
    with pytest.raises(SystemExit, match="the fit failed"):
        memory.apart(passes="many", rows=10, columns=2)


@pytest.mark.parametrize("module", [first_fit, noise])
def test_a_page_has_its_title_its_command_and_its_rows(module, tmp_path, capsys):
    name = module.__name__.rpartition(".")[2]
    rows = [("one", "2 s", "3 s"), ("two", "-", "-")]
    main(module.__doc__, name, module.INTRO, lambda given: rows[: given.few], {"few": 1}, ["--out", str(tmp_path)])
    page = (tmp_path / f"{name}.md").read_text()
    assert capsys.readouterr().out == page
    assert f"`python -m benchmarks.cost.{name}`, Python 3." in page
    assert page.endswith("| what | ours | against |\n|---|---|---|\n| one | 2 s | 3 s |\n")


@pytest.mark.slow
def test_every_kernel_is_timed_against_a_product(tmp_path, capsys):
    one_pass.main(["--rows", "700", "--columns", "3", "--words", "60", "--rounds", "1", "--out", str(tmp_path)])
    page = (tmp_path / "pass.md").read_text()
    assert capsys.readouterr().out == page
    rows = page.split("|---|---|---|\n")[1].splitlines()
    assert [re.match(r"\| (\w+)", row)[1] for row in rows] == [
        *8 * ["gradient"],
        *2 * ["of"],
        "second",
        *2 * ["gradient"],
        "coordinate",
        "dual",
        "Frank",
    ]
    for row in rows:
        assert re.fullmatch(
            r"\| .*, [\d,]+ x [\d,]+ \| [\d.]+ ms \| [\d.e+-]+x of .*X( @ [vV]\))?`.*, [\d.]+ ms \|", row
        )


def test_small_parts_of_the_noise_layer_are_timed(monkeypatch):
    monkeypatch.setattr(noise, "DRAWS", 1 << 10)
    (row,) = noise.selection(3)
    assert "us a pick" in row[1]
    assert len(list(noise.bulk_noise())) == 3


def test_actions_take_turns_after_one_round_that_is_not_counted():
    calls = []
    assert len(medians(2, lambda: calls.append("a"), lambda: calls.append("b"))) == 2
    assert calls == ["a", "b"] * 3
    assert set(least(1, {"x": lambda: None})) == {"x"}


def test_whole_fits_are_set_next_to_those_of_scikit_learn(monkeypatch, tmp_path):
    monkeypatch.setattr(fits, "adult", lambda _: ())
    fits.main(["--rows", "700", "--rounds", "1", "--out", str(tmp_path)])
    told = [line for line in (tmp_path / "fits.md").read_text().splitlines() if "700 x 20" in line]
    assert len(told) == 4
    assert all("x of " in line for line in told)


@pytest.mark.slow
def test_fits_of_files_are_measured_and_predicted(tmp_path, monkeypatch):
    monkeypatch.setattr(rates, "SAMPLE", 4_096)
    files.main(["--rows", "4000", "--columns", "3", "--map", "4000", "--out", str(tmp_path)])
    told = (tmp_path / "files.md").read_text().split("|---|---|---|\n")[1].splitlines()
    assert [re.match(r"\| (\w+)", row)[1] for row in told] == [
        "in",
        "Parquet",
        "in",
        "Parquet",
        "mapped",
        "predicted",
        "predicted",
        "on",
        "on",
    ]


def test_what_is_predicted_is_linear_in_rows_once_nothing_fits_memory():
    known = rates.Rates(*[1e-9] * 7, fixed=0.5)
    one, two = (rates.predicted(known, n, 20, 10) - 0.5 for n in (10**9, 2 * 10**9))
    assert two == pytest.approx(2.0 * one, rel=0.02)
    assert rates.predicted(known, 1, 1, 10) == pytest.approx(0.5)


def test_rows_of_the_set_of_files_are_written_as_they_are_made(tmp_path, monkeypatch):
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(files, "FILE_ROWS", 40)
    files.make(tmp_path, 100, 3)
    assert [parquet.read_table(path).num_rows for path in sorted(tmp_path.glob("*.parquet"))] == [40, 40, 20]
    last = parquet.read_table(tmp_path / "part-00002.parquet")
    assert last.column("x001").to_pylist() == files.some(80, 20, 3)[0][:, 1].tolist()


@pytest.mark.slow
def test_a_cluster_is_set_next_to_threads(tmp_path, capsys):
    cluster.main(["--rows", "4000", "--partitions", "3", "--rounds", "1", "--out", str(tmp_path)])
    page = (tmp_path / "cluster.md").read_text()
    assert page in capsys.readouterr().out
    assert re.search(r"\| logistic, 4,000 x 20, Dask with 2 workers and 3 partitions \| .* s \| .*x of threads", page)
