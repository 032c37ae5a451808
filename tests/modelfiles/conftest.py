import json

import pytest

from .support import made, text_of


@pytest.fixture
def document(tmp_path):
    """The document of a model, as Python has it, to be changed."""
    return lambda name="logistic": json.loads(text_of(made(name), tmp_path))
