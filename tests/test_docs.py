"""The documentation is complete, true, and runs."""

import contextlib
import doctest
import inspect
import io
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import sklearn
from sklearn import linear_model, svm

import tacit

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```(?:\n\n?```output\n(.*?)^```)?", re.DOTALL | re.MULTILINE)
WITH_CODE = [page for page in PAGES if BLOCK.search(page.read_text())]
MIGRATION = (ROOT / "docs" / "scikit-learn.md").read_text()
NAMES = ("LogisticRegression", "LinearSVC", "LinearRegression", "Ridge", "Lasso", "ElasticNet")
PARTS = ("Parameters", "Attributes", "Methods")

named = pytest.mark.parametrize("name", NAMES)
of_1_9 = pytest.mark.skipif(
    not sklearn.__version__.startswith("1.9."), reason="the tables are those of scikit-learn 1.9"
)


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.name)
def test_examples_run(page, tmp_path, monkeypatch):
    """The blocks of a page in their order and one namespace; they print what an output block after them says."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    text, names = page.read_text(), {"__name__": "example"}
    with warnings.catch_warnings():
        # An example may be too small for its budget, and says so; everything else is an error.
        warnings.filterwarnings("ignore", message=".*budget is too small", category=UserWarning)
        for block in BLOCK.finditer(text):
            above = "\n" * text.count("\n", 0, block.start(1))  # so that an error names the line of the page
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(above + block[1], page.name, "exec"), names)
            if block[2] is not None:
                expected, got = block[2], printed.getvalue()
                assert doctest.OutputChecker().check_output(expected, got, doctest.ELLIPSIS), (expected, got)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        assert target.startswith("http") or (page.parent / target).exists(), target


def counterpart(name):
    return getattr(svm if name == "LinearSVC" else linear_model, name)


def rows(section, part):
    """The rows of a table: {name: (second column, third column)}."""
    chapter = re.search(rf"^## {section}$(.*?)(?=^## |\Z)", MIGRATION, re.DOTALL | re.MULTILINE).group(1)
    table = re.search(rf"^### {part}$(.*?)(?=^### |\Z)", chapter, re.DOTALL | re.MULTILINE).group(1)
    found = re.findall(r"^\| `(\w+)` \| ([^|]+) \| ?([^|]*) ?\|$", table, re.MULTILINE)
    assert len(found) == len({name for name, _, _ in found}) == table.count("\n| `")
    return {name: (second.strip(), third.strip()) for name, second, third in found}


def public_methods(estimator):
    return {name for name in dir(estimator) if not name.startswith("_") and callable(getattr(estimator, name))}


def fitted(estimator):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = pandas.DataFrame(rng.normal(size=(500, 2)), columns=["a", "b"])
    return estimator.fit(X, (X["a"] > 0).astype(int))


def has(name, part):
    """What Tacit's estimator has of this kind."""
    estimator = getattr(tacit, name)
    if part == "Parameters":
        return set(inspect.signature(estimator).parameters)
    if part == "Methods":
        return public_methods(estimator)
    properties = {key for key in dir(estimator) if isinstance(getattr(estimator, key), property)}
    return {key for key in properties | set(vars(fitted(estimator(epsilon=10.0)))) if re.fullmatch(r"[a-z]\w*_", key)}


@of_1_9
@named
def test_every_parameter_of_the_counterpart_is_listed(name):
    assert set(rows(name, "Parameters")) == set(inspect.signature(counterpart(name)).parameters)


@of_1_9
@named
def test_every_method_of_the_counterpart_is_listed(name):
    assert set(rows(name, "Methods")) == public_methods(counterpart(name))


@of_1_9
@named
def test_every_attribute_of_the_counterpart_is_listed(name):
    text = inspect.getdoc(counterpart(name))
    text = text[text.index("Attributes\n-") : text.index("See Also\n-")]
    assert set(rows(name, "Attributes")) == set(re.findall(r"^(\w+_) :", text, re.MULTILINE))
    attributes = vars(fitted(counterpart(name)()))
    assert {key for key in attributes if re.fullmatch(r"[a-z]\w*_", key)} <= set(rows(name, "Attributes"))


@named
@pytest.mark.parametrize("part", PARTS)
def test_what_the_tables_say_is_so(name, part):
    ours = has(name, part)
    for key, (status, note) in rows(name, part).items():
        assert status in {"supported", "different", "refused"}, key
        assert (status != "refused") == (key in ours), key
        assert note or status == "supported", f"{key} needs a reason"


@pytest.mark.parametrize("part", PARTS)
def test_what_only_tacit_has_is_listed(part):
    listed = rows("Only in Tacit", part)
    for name in NAMES:
        extra = has(name, part) - set(rows(name, part))
        assert extra == {key for key, (of, _) in listed.items() if of == "all" or name in of.split(", ")}


@named
def test_refused_parameters_raise(name):
    for key, (status, _) in rows(name, "Parameters").items():
        if status == "refused":
            with pytest.raises(TypeError, match=key):
                getattr(tacit, name)(**{key: None})


def cells_of(page):
    """The rows of a page's tables of scores, by section, data and solver; the first row of some data names it."""
    section = data = None
    for block in re.split(r"^## ", page.read_text(), flags=re.MULTILINE):
        section, *lines = block.splitlines() or [""]
        head = None
        for line in lines:
            cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else None
            if head is None or cells is None:
                head = cells
            elif cells[0][:3] != "---" and head[0] == "data" and "epsilon 0.1" in head:
                row = dict(zip(head, cells, strict=True))
                data = row["data"].partition(" (")[0] or data
                solver = row.get("model") or row.get("solver") or "auto"
                named = re.sub(r"^auto \((.*)\)$", r"\1", re.sub(r"[*`]|ours, ", "", solver))
                yield (section.partition(",")[0], data, named), row


def scores():
    """What the page of results says, with the default solver also by the name of "auto"."""
    found = {}
    for (section, data, solver), row in cells_of(ROOT / "benchmarks" / "results" / "dense.md"):
        first = "auto" if "auto" in row["model"] else solver
        found[section, data, first] = found[section, data, solver] = row
    return found


@pytest.mark.parametrize(
    ("page", "section", "least"),
    [("README.md", "What it costs", 9), ("docs/choosing-a-solver.md", "The measurements", 60)],
)
def test_scores_on_a_page_are_those_of_the_results(page, section, least):
    known, compared = scores(), 0
    for (where, data, solver), row in cells_of(ROOT / page):
        if where != section:
            continue
        part = "Public bounds" if "model" in row else "Nothing declared"
        expected = known[part, data, solver]
        told = {name: cell for name, cell in row.items() if name.startswith("epsilon")}
        assert told == {name: expected[name] for name in told}, (data, solver)
        compared += 1
    assert compared >= least


def test_the_readme_says_where_peers_are_ahead():
    text, known, ahead, cells = (ROOT / "README.md").read_text(), scores(), 0, 0
    for data in ("breast_cancer", "digits_even_odd", "elec2", "adult"):
        for epsilon in ("0.1", "1", "10"):
            ours, *peers = (
                known["Public bounds", data, model][f"epsilon {epsilon}"][:5]
                for model in ("auto", "diffprivlib, pure epsilon", "opacus, tuned DP-SGD")
            )
            cells += 1
            ahead += ours >= max(peers)
            told = rf"on\s+{data} at {epsilon} \({ours} against {max(peers)}\)"
            assert (re.search(told, text) is not None) == (ours < max(peers)), (data, epsilon)
    assert f"peer in {ahead} of {cells} cells" in text
