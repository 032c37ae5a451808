"""No noise from anywhere else: the library never touches a generator that is not cryptographic.

The room of datasets is let off: it makes synthetic data, holds no private rows, and no other room may import it.
"""

import ast
from pathlib import Path

import pytest

import tacit

SOURCE = Path(tacit.__file__).parent
FORBIDDEN_MODULES = {"random", "numpy.random"}
FORBIDDEN_NAMES = {"RandomState", "default_rng", "check_random_state", "rvs"}


def offences(text):
    """Lines that import or name a generator of random numbers."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            if any(alias.name in FORBIDDEN_MODULES for alias in node.names):
                yield node.lineno
        elif isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{alias.name}" for alias in node.names} | {alias.name for alias in node.names}
            if node.module in FORBIDDEN_MODULES or names & (FORBIDDEN_MODULES | FORBIDDEN_NAMES):
                yield node.lineno
        elif isinstance(node, ast.Attribute):
            of_numpy = isinstance(node.value, ast.Name) and node.value.id in {"np", "numpy"}
            if (node.attr == "random" and of_numpy) or node.attr in FORBIDDEN_NAMES:
                yield node.lineno


def test_no_generator_but_the_noise_source():
    files = [path for path in sorted(SOURCE.rglob("*.py")) if SOURCE / "datasets" not in path.parents]
    assert len(files) > 10
    found = {str(path): lines for path in files if (lines := list(offences(path.read_text(encoding="utf-8"))))}
    assert found == {}


def test_os_randomness_is_read_in_one_place():
    users = [path.relative_to(SOURCE) for path in sorted(SOURCE.rglob("*.py")) if "urandom" in path.read_text("utf-8")]
    assert users == [Path("privacy/noise/source.py")]


@pytest.mark.parametrize(
    "text",
    [
        "import random",
        "import numpy.random",
        "import numpy.random as r",
        "from numpy import random",
        "from numpy.random import default_rng",
        "import numpy as np\nx = np.random.normal()",
        "import numpy\nx = numpy.random.default_rng(0)",
        "from sklearn.utils import check_random_state",
        "x = scipy.stats.norm.rvs(3)",
    ],
)
def test_the_search_finds_what_it_looks_for(text):
    assert list(offences(text))


def test_the_search_lets_words_pass():
    assert not list(offences('"""np.random is not used."""\nrandom_state = 3\nself.random = 1'))
