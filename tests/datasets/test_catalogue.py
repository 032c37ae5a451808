import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest
from sklearn import datasets as sklearn_datasets

import tacit
import tacit.datasets
from tacit.datasets import PAPERS, describe, names

PAGE = (Path(__file__).parents[2] / "docs" / "datasets.md").read_text()


def test_the_room_is_public():
    assert tacit.datasets is importlib.import_module("tacit.datasets")
    for name in tacit.datasets.__all__:
        assert getattr(tacit.datasets, name) is not None


def test_names_are_sorted_and_unique():
    assert names() == sorted(set(names()))
    assert all(describe(name).name == name for name in names())


@pytest.mark.parametrize(
    ("paper", "sets"),
    [
        ("dp-cd", {"california_housing", "elec2"}),
        ("dp-scd", {"year_prediction_msd", "msd_subset_year", "phishing", "adult"}),
        ("sparse-frank-wolfe", {"rcv1", "news20", "news20_binary", "url", "webspam", "kdda"}),
        ("featurewise-frank-wolfe", {"colon", "colon_libsvm", "leukemia_golub", "rcv1"}),
        ("dp-pca", {"a9a", "mnist", "cifar10", "real_sim"}),
    ],
)
def test_each_paper_has_its_sets(paper, sets):
    assert set(names(paper=paper)) == sets


@pytest.mark.parametrize("name", names())
def test_records_are_whole(name):
    dataset = describe(name)
    assert dataset.title
    assert set(dataset.papers) <= set(PAPERS)
    assert (dataset.classes is None) == (dataset.task == "regression")
    if dataset.classes is not None:
        sizes = {len(dataset.classes.names), len(dataset.classes.labels), len(dataset.classes.codes)}
        assert sizes == {2} if dataset.task == "binary" else sizes == {10}
    if dataset.scikit_learn is not None:
        assert hasattr(sklearn_datasets, dataset.scikit_learn)
        assert dataset.openml is None, "one source after the local folder"
    if "download" in " ".join(dataset.cautions):
        assert dataset.libsvm
        assert not dataset.downloadable


@pytest.mark.parametrize(("name", "source"), [("elec2", "OpenML (151)"), ("colon", "local folder only")])
def test_sources_in_words(name, source):
    assert describe(name).sources == source


@pytest.mark.parametrize("wrong", ["iris", "", None, 3, ["adult"]])
def test_unknown_names_list_the_known_ones(wrong):
    with pytest.raises(ValueError, match=r"name must be one of 'a9a', 'adult', .*'webspam'.*got") as caught:
        describe(wrong)
    assert str(caught.value).endswith(repr(wrong))


def test_unknown_papers_list_the_known_ones():
    with pytest.raises(ValueError, match=r"paper must be one of 'dp-cd', .* got 'icml'"):
        names(paper="icml")


def test_the_page_lists_every_set_as_the_catalogue_has_it():
    section = re.search(r"^## The sets$(.*?)^## ", PAGE, re.DOTALL | re.MULTILINE).group(1)
    table = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", section, re.MULTILINE))
    assert sorted(table) == names()
    for name, row in table.items():
        dataset = describe(name)
        storage = "CSR" if dataset.sparse else "dense"
        papers = ", ".join(f"`{paper}`" for paper in dataset.papers) or "-"
        rows, columns = dataset.shape
        assert row == f"{dataset.task} | {rows:,} x {columns:,} {storage} | {dataset.sources} | {papers}", name


MODULES = sorted(module.name for module in pkgutil.iter_modules(tacit.datasets.__path__, prefix="tacit.datasets."))


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_are_true(name):
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0
