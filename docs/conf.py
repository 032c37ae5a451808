"""How `make docs` builds the site: from the repository's own Markdown, and from docstrings for the API."""

import inspect
import re
from itertools import groupby
from typing import Any

import tacit

project = "Tacit"
release = version = tacit.__version__

# The repository is the source folder, so that a link between two pages means the same on the site and on a code host.
root_doc = "docs/index"
include_patterns = ["docs/**.md", "benchmarks/results/*.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"]
exclude_patterns = ["**/.*", "build", "dist", "demo", "src", "tests", "benchmarks/dense/peers"]  # not even looked into

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 3
highlight_language = "none"
default_role = "code"
smartquotes = False

# Signatures hold names and defaults; what a parameter is, its docstring says.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_param = False
napoleon_use_rtype = False
napoleon_custom_sections = ["Privacy", ("Attributes", "params_style")]
python_maximum_signature_line_length = 100
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = f"Tacit {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["_extra"]  # the way from the site's top to docs/index.html
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False

_MARKUP = re.compile(r"(`[^`]*`)|(\||(?<=\w)_(?!\w))")


def privacy_section(_app: Any, _what: str, _name: str, _obj: Any, _options: Any, lines: list[str]) -> None:
    """The Privacy part of an estimator's Notes, where scikit-learn's parser of docstrings bears it, as a section."""
    for place in range(len(lines) - 3):
        if lines[place : place + 4] == ["Notes", "-----", "Privacy", "~~~~~~~"]:
            lines[place : place + 4] = ["Privacy", "-------"]
            return


def plain_text(_app: Any, what: str, _name: str, obj: Any, _options: Any, lines: list[str]) -> None:
    """Docstrings are plain text with backticks: |x| is a norm and coef_ a name, and aligned columns stay aligned."""
    if what == "property":  # napoleon takes what stands before a colon for a type
        lines[:] = inspect.getdoc(obj).splitlines()
    out: list[str] = []
    for blank, group in groupby(lines, key=lambda line: not line.strip()):
        paragraph = list(group)
        if blank or paragraph[0].lstrip().startswith(">>>"):
            out += paragraph
        elif len(paragraph) > 1 and all(re.search(r"\S {2,}\S", line) for line in paragraph):
            out += ["::", "", *(f"    {line}" for line in paragraph)]
        else:
            out += [_MARKUP.sub(lambda m: m[1] or f"\\{m[2]}", line) for line in paragraph]
    lines[:] = out


def left_out(app: Any, what: str, name: str, obj: Any, _skip: bool, _options: Any) -> bool | None:
    """What scikit-learn documents; and what has its place on the page of `tacit` and need not be on its room's too."""
    elsewhere = what == "module" and app.env.docname != "docs/api/tacit" and name in tacit.__all__
    theirs = str(getattr(obj, "__module__", None)).startswith("sklearn.")
    return True if theirs or (elsewhere and getattr(tacit, name) is obj) else None


def setup(app: Any) -> None:
    """Connect the functions above; napoleon's listener has priority 500."""
    app.connect("autodoc-process-docstring", privacy_section, priority=400)
    app.connect("autodoc-process-docstring", plain_text, priority=600)
    app.connect("autodoc-skip-member", left_out)
