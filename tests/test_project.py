"""What a project needs beside its code: workflows, versions, citations, decisions. Each is true of the code."""

import re
import tomllib
from pathlib import Path

import pytest

import tacit
from tools.lowest import constraints

ROOT = Path(__file__).parents[1]
MAKEFILE = (ROOT / "Makefile").read_text()
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_call_targets_of_the_makefile_only(path):
    commands = re.findall(r"^ *- run: (?:>-\n +)?(.*)$", path.read_text(), re.MULTILINE)
    assert len(commands) == path.read_text().count("run:") - path.read_text().count("  run:\n") > 0
    for command in commands:
        target = re.fullmatch(r"make ([\w-]+).*", command)
        assert target, command
        assert re.search(rf"^{target[1]}:", MAKEFILE, re.MULTILINE), target[1]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_may_read_only(path):
    assert re.search(r"^permissions:\n  contents: read\n\n", path.read_text(), re.MULTILINE)
    assert path.read_text().count("actions/checkout@") == path.read_text().count("persist-credentials: false")


def test_every_dependency_has_a_lower_bound_that_is_tried():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = constraints(project, ["cli", "report"])
    extras = project["optional-dependencies"]
    assert len(found) == len(project["dependencies"] + extras["cli"] + extras["report"])
    assert f"numpy=={re.search('numpy>=([0-9.]+)', str(project))[1]}" in found
    with pytest.raises(ValueError, match="without a lower bound: anything"):
        constraints({"dependencies": ["numpy>=1.26", "anything"]}, [])


def test_the_citation_is_of_this_version():
    text = (ROOT / "CITATION.cff").read_text()
    assert re.search(r"^version: (.*)$", text, re.MULTILINE)[1] == tacit.__version__
    assert text.count("  - type: ") == 5  # the papers


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.name)
def test_decisions_have_their_four_parts_and_a_line_in_the_index(path):
    text = path.read_text()
    assert re.findall("^## (.*)$", text, re.MULTILINE) == [
        "Context",
        "Decision",
        "Consequences",
        "What would change our mind",
    ]
    assert text.startswith(f"# {int(path.name[:2])}. ")
    title = text.splitlines()[0].split(". ", 1)[1]
    assert f"| {int(path.name[:2])} | [{title}]({path.name}) |" in (path.parent / "index.md").read_text()
    assert len(text.splitlines()) <= 50


def test_there_are_decisions():
    assert [int(path.name[:2]) for path in DECISIONS] == list(range(1, len(DECISIONS) + 1))
    assert len(DECISIONS) >= 10
