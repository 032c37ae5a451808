import pytest

from .support import people


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working folder, with a table of people in it."""
    monkeypatch.chdir(tmp_path)
    people().to_csv("people.csv", index=False)
    return tmp_path
