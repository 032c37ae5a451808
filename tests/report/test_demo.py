import math
import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest

from tacit.report import demo


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """One short run of the whole demo, into a folder that does not exist yet."""
    folder = tmp_path_factory.mktemp("report") / "new" / "demo"
    return folder, demo.run(folder, epsilons=(1.0,), repeats=1)


class Page(HTMLParser):
    """Collects tags and addresses, and checks that tags are closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.addresses = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.addresses += [value for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_writes_a_plot_and_a_page(written):
    folder, results = written
    assert sorted(path.name for path in folder.iterdir()) == ["accuracy.png", "index.html"]
    assert (folder / "accuracy.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert [result.example for result in results] == list(demo.EXAMPLES)


def test_results_are_scores_with_their_guarantees(written):
    for result in written[1]:
        assert len(result.scores) == len(result.guarantees) == 1
        assert math.isfinite(result.scores[0])
        assert result.plain > 0.3
        [guarantee] = result.guarantees
        assert guarantee.epsilon == 1.0
        assert guarantee.recompute() <= 1.0
        assert guarantee.n_rows == result.rows
        assert not guarantee.seeded


def test_page_stands_by_itself_and_names_no_place_on_the_disk(written):
    folder, results = written
    text = (folder / "index.html").read_text(encoding="utf8")
    page = Page(text)
    assert page.addresses == ["accuracy.png"]
    assert str(folder) not in text
    assert not re.search(r"/(tmp|home|work|root)\b|file:", text)
    assert page.tags.count("table") == len(results)
    for result in results:
        assert f"{result.scores[0]:.3f}" in text


def test_text_shows_each_budget(written):
    for result in written[1]:
        text = demo._text(result, (1.0,))
        assert "not private" in text
        assert "epsilon = 1 " in text
        assert str(result.guarantees[0]) in text


def test_page_escapes_what_it_shows(written):
    result = written[1][0]
    example = demo.Example("<b>a & b</b>", "<i>score</i>", None, None, None)
    shown = demo.Result(example, result.rows, result.plain, result.scores, result.guarantees)
    text = demo._page([shown], (1.0,), "<u>.png")
    assert "<u>" not in text
    assert "<b>" not in text
    assert "<i>" not in text
    assert "&lt;b&gt;a &amp; b&lt;/b&gt;" in text
    assert "&lt;i&gt;score&lt;/i&gt;" in text
    Page(text)


BARE = """
import importlib.abc, sys

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"matplotlib", "pandas", "pyarrow", "polars"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from tacit.report import demo
demo.EXAMPLES = demo.EXAMPLES[2:]  # one is enough
from tacit.cli import main
sys.exit(main(["demo", "--epsilon", "1", "--repeats", "1", "--out", sys.argv[1]]))
"""


def test_without_extras_the_demo_ends_well_and_names_what_one_would_add(tmp_path):
    done = subprocess.run([sys.executable, "-c", BARE, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip().endswith("a plot of these scores, too: pip install 'tacit[report]'.")
    assert [path.name for path in tmp_path.iterdir()] == ["index.html"]
    page = Page((tmp_path / "index.html").read_text(encoding="utf8"))
    assert page.addresses == []
    assert page.tags.count("table") == 1


def test_plot_of_no_finite_budget_and_of_a_score_below_zero(written, tmp_path):
    result = written[1][0]
    shown = demo.Result(result.example, result.rows, 0.5, (-2.0,), result.guarantees)
    demo._plot([shown], (1.0,), tmp_path / "low.png")
    demo._plot([shown], (math.inf,), tmp_path / "none.png")
    assert {path.name for path in tmp_path.iterdir()} == {"low.png", "none.png"}


def test_measures_the_mean_over_repeats_on_held_out_rows():
    seen = []

    class Model:
        guarantee_ = None

        def fit(self, X, y):
            assert len(X) == len(y) == 75
            return self

        def score(self, X, y):
            assert len(X) == len(y) == 25
            seen.append(len(seen) * 0.5)
            return seen[-1]

    def load(return_X_y):
        assert return_X_y
        return np.arange(200.0).reshape(100, 2), np.arange(100)

    example = demo.Example("name", "score", load, lambda _: Model(), Model)
    result = demo._measure(example, (1.0, 2.0), repeats=2)
    assert result.rows == 75
    assert result.plain == 0.0
    assert result.scores == (0.75, 1.75)
