"""docs/command-line.md: every command parses, and all that do not take long run, in the order of the page."""

import doctest
import re
import shlex
import warnings
from pathlib import Path

import pytest

from tacit.cli import parser

from .support import tacit

PAGE = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```(?:\n\n?```output\n(.*?)^```)?", re.DOTALL | re.MULTILINE)
BLOCKS = [match.groups() for match in BLOCK.finditer(PAGE)]
SLOW = ("audit", "demo")


def commands(text):
    """The words of each `tacit` line; a backslash continues a line."""
    lines = [shlex.split(line) for line in text.replace("\\\n", " ").splitlines()]
    return [words[1:] for words in lines if words[0] == "tacit"]


def test_every_command_of_the_page_parses():
    shown = [words for kind, text, _ in BLOCKS if kind == "sh" for words in commands(text)]
    assert {words[0] for words in shown} == {"fit", "predict", "calibrate", "audit", "demo"}
    for words in shown:
        assert parser().parse_args(words).command == words[0]


def test_every_flag_is_on_the_page():
    for command in ("fit", "predict", "calibrate", "audit", "demo"):
        defaults = {"fit": ["d", "--epsilon", "1", "--out", "m"], "predict": ["m", "d"]}.get(command, [])
        flags = parser().parse_args([command, *defaults]).parser.format_usage()
        missing = [flag for flag in re.findall(r"--[a-zA-Z-]+", flags) if f"{flag}" not in PAGE]
        assert missing in ([], ["--sparse"]), command  # a line of its help says it all


def test_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    for kind, text, output in BLOCKS:
        if kind in ("python", "py"):
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message=".*budget is too small", category=UserWarning)
                exec(compile(text, "command-line.md", "exec"), names)
        elif kind == "toml":
            (tmp_path / "schema.toml").write_text(text)
        elif kind == "sh":
            for words in commands(text):
                if words[0] in SLOW:
                    continue
                if "guarantee.json" in words and not (tmp_path / "guarantee.json").exists():
                    (tmp_path / "guarantee.json").write_text(names["model"].guarantee_.to_json())
                capsys.readouterr()
                code, out, err = tacit(capsys, *words)
                assert code == 0, (words, err)
                if output is not None:
                    assert doctest.OutputChecker().check_output(output, out, doctest.ELLIPSIS), (output, out)
    written = {path.name for path in tmp_path.iterdir()}
    assert {"model.json", "report.html", "schooling.json", "plain.joblib", "predictions.csv", "cancer.html"} <= written
    assert len((tmp_path / "predictions.csv").read_text().splitlines()) == 5_001


def test_the_picture_is_there_and_small():
    picture = Path(__file__).parents[2] / "docs" / "images" / "report.png"
    assert picture.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert picture.stat().st_size < 300_000


@pytest.mark.parametrize("text", ['tacit fit "a b" \\\n  --x y\nls', "tacit fit 'a b' --x y"])
def test_lines_are_read_as_a_shell_reads_them(text):
    assert commands(text) == [["fit", "a b", "--x", "y"]]
