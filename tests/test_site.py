"""The documentation site builds without a warning, and leaves no page and no public name out."""

import doctest
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
import warnings
import zlib
from pathlib import Path

import pytest

import tacit

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
ENGINE = "tacit.federated.transports.flower."  # needs the extra `federated`, which `make test-federated` installs
ELSEWHERE = {"privacy", "problems"}  # their examples run in test_package.py and problems/test_init.py
ROOMS = sorted(room.name for room in pkgutil.iter_modules(tacit.__path__) if room.name not in ELSEWHERE)


def documented(inventory):
    """The full names of all Python objects in a Sphinx inventory: four lines of header, then a compressed list."""
    text = zlib.decompress(inventory.read_bytes().split(b"\n", 4)[4]).decode()
    return {line.split(" ", 1)[0] for line in text.splitlines() if " py:" in line}


def public_names():
    """Full names of what the library offers; what `tacit` itself exports is named there and not in its room."""
    names = {f"tacit.{name}" for name in tacit.__all__ if not name.startswith("__")}
    rooms = [name for name in tacit.__all__ if inspect.ismodule(getattr(tacit, name))]
    for room in (*rooms, "solvers", "utils", "privacy.mechanisms", "privacy.audit"):
        module = importlib.import_module(f"tacit.{room}")
        own = [n for n, v in vars(module).items() if n[0] != "_" and getattr(v, "__module__", "") == module.__name__]
        for name in getattr(module, "__all__", own):
            top = getattr(tacit, name, None) is getattr(module, name)
            names.add(f"tacit.{name}" if top else f"tacit.{room}.{name}")
    return names


@pytest.mark.slow
def test_the_site_is_whole(tmp_path):
    pytest.importorskip("sphinx", reason="the site needs the extra docs")
    command = [sys.executable, "-m", "sphinx", "-q", "-n", "-W", "-c", ROOT / "docs", "-d", tmp_path / "trees"]
    done = subprocess.run([*command, ROOT, tmp_path / "site"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

    built = {path.relative_to(tmp_path / "site") for path in (tmp_path / "site").rglob("*.html")}
    assert {page.relative_to(ROOT).with_suffix(".html") for page in PAGES} <= built
    assert Path("index.html") in built
    assert not [page for page in PAGES if "orphan:" in page.read_text()]  # Sphinx warns of the others

    assert public_names() - documented(tmp_path / "site" / "objects.inv") == set()

    for path in built:  # they open without a network
        text = (tmp_path / "site" / path).read_text()
        assert not re.search(r"<(script|link|img)\b[^>]*\b(src|href)=\"(https?:)?//", text), path


@pytest.mark.parametrize("room", ROOMS)
def test_examples_in_docstrings_are_true(room):
    module = importlib.import_module(f"tacit.{room}")
    inside = pkgutil.walk_packages(getattr(module, "__path__", ()), prefix=f"tacit.{room}.")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*budget is too small", category=UserWarning)
        for name in (module.__name__, *(found.name for found in inside if not found.name.startswith(ENGINE))):
            assert doctest.testmod(importlib.import_module(name)).failed == 0, name
