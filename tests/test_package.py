"""The package as it is installed and imported."""

import doctest
import importlib
import importlib.metadata
import pkgutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import tacit
import tacit.privacy

PRIVACY = "import tacit; tacit.privacy"


def loaded_by(statement, *modules):
    """Which of the modules a fresh interpreter has loaded after the statement."""
    return [module for module in modules if module in all_loaded_by(statement)]


@cache
def all_loaded_by(statement):
    code = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return frozenset(done.stdout.split())


def test_version_matches_the_metadata():
    assert tacit.__version__ == importlib.metadata.version("tacit")


def test_types_are_shipped():
    assert (Path(tacit.__file__).parent / "py.typed").is_file()


def test_importing_tacit_is_cheap():
    assert loaded_by("import tacit", "numpy", "scipy", "numba", "sklearn", "dp_accounting", "tacit.privacy") == []
    assert loaded_by("import tacit; tacit.__version__; dir(tacit)", "numba", "sklearn") == []


def test_the_privacy_core_loads_no_machine_learning():
    assert loaded_by(PRIVACY, "sklearn", "pandas", "polars", "matplotlib") == []


def test_rooms_load_when_they_are_used():
    assert loaded_by(PRIVACY, "tacit.privacy") == ["tacit.privacy"]


def test_every_public_name_exists():
    assert dir(tacit) == sorted(tacit.__all__)
    assert len(set(tacit.__all__)) == len(tacit.__all__)
    for name in tacit.__all__:
        assert getattr(tacit, name) is not None
    assert sorted(tacit.privacy.__all__) == tacit.privacy.__all__
    for name in tacit.privacy.__all__:
        assert getattr(tacit.privacy, name) is not None


def test_unknown_names_raise_attribute_errors():
    with pytest.raises(AttributeError, match="module 'tacit' has no attribute 'nothing'"):
        _ = tacit.nothing
    with pytest.raises(ImportError):
        from tacit import nothing  # noqa: F401
    assert not hasattr(tacit, "os")  # a name of the standard library is not one of ours


PRIVACY_MODULES = sorted(
    module.name for module in pkgutil.walk_packages(tacit.privacy.__path__, prefix="tacit.privacy.")
)


@pytest.mark.parametrize("name", ["tacit.privacy", *PRIVACY_MODULES])
def test_examples_in_docstrings_are_true(name):
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


def test_there_are_examples():
    finder = doctest.DocTestFinder()
    found = [test for name in PRIVACY_MODULES for test in finder.find(importlib.import_module(name)) if test.examples]
    assert len(found) >= 6
