"""Machine code is kept on disk where that is possible; where it is not, everything works, and a warning says so once.

A file that stands where a folder would have to be made keeps everybody from writing there, root too.
"""

import importlib.util
import itertools
import os
import re
import shutil
import subprocess
import sys
import warnings
from collections import defaultdict
from pathlib import Path

import numba
import pytest

import tacit
from tacit import compilation

PACKAGE = Path(tacit.__file__).parent
SOURCE = """
from tacit.compilation import compiled

@compiled()
def doubled(x):
    return 2.0 * x

@compiled(nogil=True)
def halved(x):
    return x / 2.0
"""


def module_without_cache(folder, monkeypatch):
    """A module of two compiled functions in a folder where nothing can be kept, for a user without a home."""
    (folder / "__pycache__").write_text("")
    (folder / "unkept.py").write_text(SOURCE)
    for name in ("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, os.devnull)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr(compilation, "_told", False)
    spec = importlib.util.spec_from_file_location("unkept", folder / "unkept.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_without_a_cache_functions_work_and_one_warning_names_the_variable(tmp_path, monkeypatch):
    with pytest.warns(compilation.NoCacheWarning, match="NUMBA_CACHE_DIR") as told:
        module = module_without_cache(tmp_path, monkeypatch)
    assert len(told) == 1
    assert module.doubled(2.0) == 4.0
    assert module.halved(0.0) == 0.0


def test_with_a_named_folder_functions_are_kept_there_and_nothing_is_said(tmp_path, monkeypatch):
    with pytest.warns(compilation.NoCacheWarning):
        module = module_without_cache(tmp_path, monkeypatch)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "kept"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compilation.compiled()(module.doubled.py_func)(2.0) == 4.0
    assert list((tmp_path / "kept").rglob("*.nbi"))


def test_other_errors_of_the_compiler_are_not_hidden(monkeypatch):
    def failing(**_):
        raise RuntimeError("something else")

    monkeypatch.setattr(numba, "njit", failing)
    with pytest.raises(RuntimeError, match="something else"):
        compilation.compiled()(lambda x: x)


def test_there_is_one_place_where_functions_are_compiled():
    calls = re.compile(r"\bn?jit\b(?!_)")
    assert [path.name for path in PACKAGE.rglob("*.py") if calls.search(path.read_text())] == ["compilation.py"]


@pytest.mark.slow
def test_a_first_fit_works_where_nothing_can_be_written(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "tacit", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [tmp_path / "tacit", *(path for path in (tmp_path / "tacit").rglob("*") if path.is_dir())]:
        (folder / "__pycache__").write_text("")
    fit = (
        "import numpy as np, tacit; X = np.random.default_rng(0).normal(size=(200, 3));"
        "print(tacit.__file__, tacit.LogisticRegression(classes=[0, 1]).fit(X, X[:, 0] > 0).coef_.shape)"
    )
    nowhere = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA"), os.devnull)
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment |= nowhere | {"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", fit], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(tmp_path))
    assert done.stdout.endswith("(1, 3)\n")
    assert done.stderr.count("NoCacheWarning") == 1


FORMS = """
from tacit.compilation import compiled

def form(capped):
    @compiled()
    def bounded(x):
        return min(x, 1.0) if capped else x
    return bounded
"""


def test_a_file_that_holds_another_form_is_not_run(tmp_path, monkeypatch):
    """As two processes leave it that give two forms the same number: the place of the one has the code of the other."""
    (tmp_path / "forms.py").write_text(FORMS)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "kept"))
    spec = importlib.util.spec_from_file_location("forms", tmp_path / "forms.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "forms", module)
    spec.loader.exec_module(module)

    def form(capped):
        monkeypatch.setattr(compilation, "_made", defaultdict(itertools.count))  # both are the first of their process
        return module.form(capped)

    assert form(capped=False)(5.0) == 5.0
    assert form(capped=True)(5.0) == 1.0
    free, capped = sorted((tmp_path / "kept").rglob("*.nbc"))
    one, other = free.read_bytes(), capped.read_bytes()
    again = form(capped=True)
    assert again(5.0) == 1.0
    assert sum(again.stats.cache_hits.values()) == 1
    free.write_bytes(other)
    capped.write_bytes(one)
    for capped in (True, False):
        again = form(capped=capped)
        assert again(5.0) == (1.0 if capped else 5.0)
        assert not again.stats.cache_hits


CLOSURES = """
import sys
import numpy as np
from tacit.compilation import compiled

kernel = compiled()

def of(form):
    @kernel
    def inner(values):  # long enough for it to be called, and not written into whoever calls it
        total = 0.0
        for i in range(len(values)):
            if values[i] > 0.5:
                for j in range(i):
                    total += values[j] * form
                    if total > 1e9:
                        return -1.0
            else:
                total -= form * values[i]
        for i in range(len(values)):
            total += form * values[i] ** 3
            if total < -1e9:
                total = 0.0
        return total

    return inner

first, second = of(1.0), of(2.0)

@kernel
def first_twice(values):
    return first(values) + 0.5 * first(values[1:])

@kernel
def second_twice(values):
    return second(values) + 0.5 * second(values[1:])

for name in sys.argv[1:]:
    print(globals()[name](np.linspace(0.0, 1.0, 50)))
"""


def test_kept_code_calls_the_closure_that_it_was_compiled_with(tmp_path):
    """Also in a process that compiles another closure of the same function before, which numba gives the same number.

    Sums that clip and sums that do not are such closures.
    """
    (tmp_path / "closures.py").write_text(CLOSURES)

    def told(*names):
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "kept")}
        command = [sys.executable, str(tmp_path / "closures.py"), *names]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()

    (first,) = told("first_twice")
    second, again = told("second_twice", "first_twice")
    assert again == first
    assert float(second) == pytest.approx(2.0 * float(first))
