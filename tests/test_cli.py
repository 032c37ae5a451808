"""The `tacit` command."""

import re
import subprocess
import sys

import pytest

import tacit
from tacit.cli import main


def test_demo_prints_its_guarantees(capsys, tmp_path):
    assert main(["demo", "--epsilon", "1", "--repeats", "1", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "(1.0, " in printed
    assert ")-DP, add-remove one row of " in printed
    assert "Gaussian releases" in printed
    assert list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["demo", "--epsilon", "0"], "epsilon must be above 0, got 0.0"),
        (["demo", "--epsilon", "-1"], "epsilon must be above 0, got -1.0"),
        (["demo", "--epsilon", "nan"], "epsilon must be a number, got NaN"),
        (["demo", "--epsilon", "1", "nan"], "epsilon must be a number, got NaN"),
        (["demo", "--epsilon", "one"], "invalid float value: 'one'"),
        (["demo", "--repeats", "0"], "repeats must be at least 1, got 0"),
        (["demo", "--nothing"], "unrecognized arguments: --nothing"),
        (["nothing"], "invalid choice: 'nothing'"),
        ([], "the following arguments are required: command"),
        (["fit"], "the following arguments are required: data, --epsilon"),
        (["predict", "model.json"], "the following arguments are required: data"),
        (["predict", "model.json", "data.csv"], "No such file or directory: 'model.json'"),
        (["calibrate", "--epsilon", "1", "--mu", "2"], "give exactly one of --epsilon, --mu"),
        (["audit", "--epsilon", "inf"], "epsilon must be finite"),
    ],
)
def test_bad_arguments_exit_with_a_message(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert re.fullmatch(r"tacit( \w+)?: error: [^\n]+\n", printed.err)
    assert printed.out == ""
    assert not list(tmp_path.iterdir())  # refused before anything was written


def test_version(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["--version"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out == f"tacit {tacit.__version__}\n"


def test_help_is_quick_and_names_the_commands(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["--help"])
    assert stopped.value.code == 0
    printed = capsys.readouterr().out
    for command in ("fit", "predict", "calibrate", "audit", "demo"):
        assert f"\n    {command} " in printed


@pytest.mark.parametrize("command", ["fit", "predict", "calibrate", "audit", "demo"])
def test_each_command_has_help(command, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([command, "--help"])
    assert stopped.value.code == 0
    assert f"usage: tacit {command}" in capsys.readouterr().out


def test_parsing_loads_no_room():
    script = "import sys, tacit.cli; tacit.cli.parser(); print([m for m in sys.modules if m.startswith('tacit.')])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "['tacit.cli']\n"


def test_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "tacit.cli", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"tacit {tacit.__version__}\n"
