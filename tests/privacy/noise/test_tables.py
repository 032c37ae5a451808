"""The shipped table is the one its generator makes, and holds the half-normal's strips."""

import importlib.util
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest

from tacit.privacy.noise import NoiseSource, samplers, tables

from . import reference

GENERATOR = Path(__file__).parents[3] / "tools" / "make_strip_table.py"
CAPACITY = 2**246


@pytest.fixture(scope="module")
def generator():
    spec = importlib.util.spec_from_file_location("make_strip_table", GENERATOR)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def unread():
    """The table as if it had not been read yet, before and after."""
    tables.strips.cache_clear()
    yield
    tables.strips.cache_clear()


def strip_weights():
    """What each strip is drawn with, of 512 * 2^246, from the shipped words."""
    weights = [0] * 512
    for column, (digits, alias) in enumerate(reference.columns_of(tables.strips())):
        threshold = sum(digit << shift for digit, shift in zip(digits, (192, 128, 64, 0), strict=True))
        weights[column] += threshold
        weights[alias] += CAPACITY - threshold
    return weights


def test_generator_makes_the_shipped_table(generator):
    assert generator.table().tobytes() == generator.TARGET.read_bytes()
    assert np.array_equal(generator.table(), tables.strips())


def test_strips_have_the_weights_of_the_half_normal():
    """exp(-(i/32)^2/2) over their sum, to a relative error below 2^-100, and nothing beyond strip 431."""
    weights = strip_weights()
    assert sum(weights) == 512 * CAPACITY
    assert weights[432:] == [0] * 80
    with mpmath.workprec(600):
        exact = [mpmath.exp(-((mpmath.mpf(i) / 32) ** 2) / 2) for i in range(432)]
        total = mpmath.fsum(exact)
        errors = [
            abs(mpmath.mpf(weight) / (512 * mpmath.mpf(CAPACITY)) / (want / total) - 1)
            for weight, want in zip(weights, exact, strict=False)
        ]
    assert max(errors) < mpmath.mpf(2) ** -100


def test_strips_and_acceptance_make_the_normal_law():
    """Weight of a strip times its mean acceptance, over the sum, is the normal probability of the strip."""
    weights = strip_weights()
    with mpmath.workdps(60):
        area = [
            mpmath.mpf(weights[i]) * mpmath.quad(lambda y, i=i: mpmath.exp(-y * (2 * i + y) / 2048), [0, 1])
            for i in range(432)
        ]
        total = mpmath.fsum(area)
        for i in (0, 1, 2, 31, 32, 100, 200, 300, 400, 431):
            want = mpmath.erfc(mpmath.mpf(i) / 32 / mpmath.sqrt(2))
            want -= mpmath.erfc(mpmath.mpf(i + 1) / 32 / mpmath.sqrt(2))
            assert abs(area[i] / total / want - 1) < mpmath.mpf(10) ** -25  # the part beyond 13.5: 2e-41


def test_words_per_draw_are_as_documented():
    """Accepted at once in all but 1.3% of draws: by area, the part of (x, u) below the quick test's line."""
    weights = strip_weights()
    slow = sum(Fraction(w, 512 * CAPACITY) * Fraction(2 * i + 1, 4096) for i, w in enumerate(weights))
    assert 0.012 < float(slow) < 0.0135


def test_table_is_shared_and_cannot_be_written():
    table = tables.strips()
    assert table is tables.strips()
    assert table.shape == (512, 4)
    assert table.dtype == np.uint64
    with pytest.raises(ValueError, match="read-only"):
        table[0, 0] = 0


@pytest.mark.usefixtures("unread")
def test_a_table_that_is_not_the_one_of_the_checksum_is_refused(monkeypatch):
    monkeypatch.setattr(tables, "STRIPS_SHA256", "0" * 64)
    with pytest.raises(RuntimeError, match="damaged"):
        tables.strips()
    with pytest.raises(RuntimeError, match="damaged"):
        samplers.normals(NoiseSource(1), 1)


@pytest.mark.usefixtures("unread")
@pytest.mark.parametrize(
    "damage", [lambda data: bytes([data[0] ^ 1]) + data[1:], lambda data: data[:-1], lambda _: b""]
)
def test_a_damaged_file_is_refused(monkeypatch, tmp_path, damage):
    data = (Path(tables.__file__).parent / "strips.bin").read_bytes()
    (tmp_path / "strips.bin").write_bytes(damage(data))
    monkeypatch.setattr(tables, "files", lambda _: tmp_path)
    with pytest.raises(RuntimeError, match="damaged"):
        tables.strips()
