"""Noisy counts."""

import math

import numpy as np
import pytest
from scipy import stats

from tacit.privacy.mechanisms import Histogram, Sensitivity
from tests.privacy.mechanisms.test_additive import ADJACENCIES, ALARM, has_scale, open_gate

EDGES = [-1.0, 0.0, 0.5, 2.0]


def test_counts_agree_with_numpy_inside_the_edges():
    values = np.random.default_rng(0).uniform(-1, 2, size=(1000, 3))
    histogram = Histogram(EDGES, columns=3)
    expected = [np.histogram(column, EDGES)[0] for column in values.T]
    np.testing.assert_array_equal(histogram.counts(values), expected)


def test_every_number_falls_into_one_bin():
    cases = {-np.inf: 0, -1e300: 0, -1.5: 0, -1.0: 0, -1e-300: 0, 0.0: 1, 0.1: 1, 0.5: 2, 2.0: 2, 1e300: 2, np.inf: 2}
    histogram = Histogram(EDGES)
    for value, k in cases.items():
        np.testing.assert_array_equal(histogram.counts([value])[0], np.eye(3)[k])
    np.testing.assert_array_equal(histogram.counts(list(cases))[0], [5, 2, 4])


def test_what_is_not_a_number_is_not_counted():
    np.testing.assert_array_equal(Histogram(EDGES).counts([np.nan, 0.1, np.nan])[0], [0, 1, 0])
    table = np.array([[np.nan, 0.1], [0.1, np.nan]])
    np.testing.assert_array_equal(Histogram(EDGES, 2).counts(table), [[0, 1, 0], [0, 1, 0]])


def test_no_rows():
    histogram = Histogram(EDGES, 2)
    np.testing.assert_array_equal(histogram.counts(np.empty((0, 2))), np.zeros((2, 3)))
    assert open_gate("gaussian").release("r", histogram, np.empty((0, 2))).shape == (2, 3)
    assert open_gate("gaussian").release("r", Histogram(EDGES), []).shape == (3,)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_noise_level(adjacency):
    columns = 8
    histogram = Histogram(np.arange(2001.0), columns)
    values = np.random.default_rng(1).uniform(0, 2000, size=(500, columns))
    noise = open_gate("gaussian", 1.5, adjacency, seed=4).release("r", histogram, values) - histogram.counts(values)
    scale = 1.5 * math.sqrt(columns if adjacency == "add-remove" else 2 * columns)
    assert has_scale(noise, scale)
    assert stats.kstest(noise.ravel() / scale, "norm").pvalue > ALARM
    assert histogram.sensitivity == Sensitivity.one_hot(columns)


def test_shapes():
    values = np.zeros((5, 1))
    assert open_gate("gaussian").release("r", Histogram(EDGES), values).shape == (1, 3)
    assert open_gate("gaussian").release("r", Histogram(EDGES), values[:, 0]).shape == (3,)
    assert open_gate("gaussian").release("r", Histogram([0.0, 1.0]), [0.5, 0.5]).shape == (1,)


def test_the_non_private_limit_is_exact():
    values = np.random.default_rng(2).normal(size=200)
    histogram = Histogram(EDGES)
    np.testing.assert_array_equal(open_gate("gaussian", 0).release("r", histogram, values), histogram.counts(values)[0])


@pytest.mark.parametrize("edges", [[], [1.0], 3.0, [[0.0, 1.0], [2.0, 3.0]]])
def test_too_few_edges(edges):
    with pytest.raises(ValueError, match="a histogram needs at least one bin, so two edges or more"):
        Histogram(edges)


@pytest.mark.parametrize("edges", [[1.0, 0.0], [0.0, 0.0], [0.0, np.nan], [0.0, np.inf], [-np.inf, 0.0]])
def test_edges_must_increase(edges):
    with pytest.raises(ValueError, match="edges must be finite and increasing"):
        Histogram(edges)


@pytest.mark.parametrize(("columns", "error"), [(0, ValueError), (-1, ValueError), (1.0, TypeError), (True, TypeError)])
def test_columns_must_be_a_count(columns, error):
    with pytest.raises(error, match="columns must be"):
        Histogram(EDGES, columns)


def test_tables_of_another_width_are_refused_before_anything_is_spent():
    gate = open_gate("gaussian")
    for values in (np.zeros((4, 3)), np.zeros(4), np.zeros((4, 2, 1)), 0.0):
        with pytest.raises(ValueError, match="expected a table of 2 columns, got shape"):
            gate.release("r", Histogram(EDGES, 2), values)
    assert gate.left("r") == 1


def test_frozen_and_hashable():
    assert Histogram(EDGES) == Histogram(np.array(EDGES))
    assert hash(Histogram(EDGES)) == hash(Histogram(tuple(EDGES)))
    assert Histogram(EDGES) != Histogram(EDGES, 2)
