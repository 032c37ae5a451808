"""What a notebook shows: scikit-learn's page of an estimator, made without a warning.

scikit-learn reads the docstring with a parser that knows no section called Privacy and warns of it.
"""

import inspect
import subprocess
import sys

import pytest
from sklearn.base import BaseEstimator

import tacit
from tacit import preprocessing

ESTIMATORS = {
    name: kind
    for room in (tacit, preprocessing)
    for name in room.__all__
    if inspect.isclass(kind := getattr(room, name)) and issubclass(kind, BaseEstimator)
}
SHOW = """
import warnings
warnings.simplefilter("error")
import tacit
from tacit import preprocessing
from sklearn.pipeline import make_pipeline
for name in {names}:
    kind = getattr(tacit, name, None) or getattr(preprocessing, name)
    given = {{"RowClipper": [1.0], "PrivatePipeline": [[("model", tacit.Ridge())]]}}
    estimator = kind(*given.get(name, []))
    assert name in estimator._repr_html_()
    assert name in make_pipeline(estimator)._repr_mimebundle_()["text/html"]
print("shown")
"""


def test_every_estimator_is_shown_without_a_warning():
    # In a process of its own: scikit-learn reads each docstring once, so a warning may have come and gone.
    code = SHOW.format(names=sorted(ESTIMATORS))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "shown\n", done.stderr


@pytest.mark.parametrize("kind", ESTIMATORS.values(), ids=ESTIMATORS.keys())
def test_every_estimator_has_a_privacy_section_that_parsers_bear(kind):
    text = inspect.getdoc(kind)
    assert "\nNotes\n-----\nPrivacy\n~~~~~~~\n" in text
    assert "Privacy\n---" not in text
