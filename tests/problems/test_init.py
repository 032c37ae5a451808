"""The room as a whole: its public names, and the examples in its docstrings."""

import doctest
import importlib
import inspect
import pkgutil

import pytest

from tacit import problems

MODULES = ["tacit.problems", *(f"tacit.problems.{m.name}" for m in pkgutil.iter_modules(problems.__path__))]


@pytest.mark.parametrize("name", problems.__all__)
def test_public_names_are_documented(name):
    assert inspect.getdoc(getattr(problems, name))


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
