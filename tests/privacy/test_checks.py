"""Numbers of every kind are taken or refused in plain words; none is changed on the way, and none crashes."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from tacit.privacy import Budget, NoiseSource, checks

TAKEN = [(1, 1.0), (0.5, 0.5), (Decimal("0.5"), 0.5), (Fraction(1, 2), 0.5), (np.float32(0.5), 0.5), (np.int8(1), 1.0)]
TAKEN += [(np.array(0.5), 0.5), (math.inf, math.inf), (np.float64("inf"), math.inf), (Decimal("Infinity"), math.inf)]
BEYOND = [10**400, -(10**400), 10**5000, Fraction(10**400), Decimal("1e999"), Decimal("-1e999")]
NAN = [math.nan, np.float32("nan"), Decimal("NaN")]
NO_NUMBERS = ["1", b"1", None, True, np.bool_(True), 1j, np.complex128(1), [1], np.array([1.0]), np.array("1")]
NO_NUMBERS += [Decimal("sNaN"), np.timedelta64(1), np.datetime64("2020"), object()]


@pytest.mark.parametrize(("value", "number"), TAKEN)
def test_numbers_are_taken_as_they_are(value, number):
    assert checks.real("epsilon", value) == number
    assert type(checks.real("epsilon", value)) is float


@pytest.mark.parametrize("value", BEYOND, ids=range(len(BEYOND)))
def test_a_finite_number_beyond_float_is_refused_and_never_taken_for_infinity(value):
    with pytest.raises(ValueError, match="epsilon must be within what float64 holds") as refusal:
        Budget(value, 1e-6)
    assert len(str(refusal.value)) < 200


@pytest.mark.skipif(np.finfo(np.longdouble).max <= np.finfo(float).max, reason="long doubles are doubles here")
def test_a_long_double_beyond_float_is_refused():
    with pytest.raises(ValueError, match="epsilon must be within what float64 holds"):
        checks.real("epsilon", np.longdouble("1e4000"))


@pytest.mark.parametrize("value", NAN)
def test_nan_is_refused(value):
    with pytest.raises(ValueError, match="epsilon must be a number, got NaN"):
        checks.real("epsilon", value)


@pytest.mark.parametrize("value", NO_NUMBERS, ids=lambda value: type(value).__name__)
def test_what_is_no_number_is_refused(value):
    with pytest.raises(TypeError, match=r"^epsilon must be a real number, got"):
        checks.real("epsilon", value)
    with pytest.raises(TypeError, match=r"^n_iter must be an integer, got"):
        checks.count("n_iter", value)


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3), np.array(3)])
def test_whole_numbers_are_counts(value):
    assert checks.count("n_iter", value) == 3


@pytest.mark.parametrize("value", [3.0, Decimal(3), Fraction(3), np.float64(3), np.array(3.0)])
def test_other_numbers_are_no_counts(value):
    with pytest.raises(TypeError, match="n_iter must be an integer"):
        checks.count("n_iter", value)


@pytest.mark.parametrize("value", [2**63, 10**400, 10**5000], ids=["64 bits", "400 digits", "5,000 digits"])
def test_counts_beyond_64_bits_are_refused(value):
    with pytest.raises(ValueError, match="count must be at most 9,223,372,036,854,775,807, got"):
        checks.count("count", value)


def test_a_count_too_long_to_print_is_refused_when_it_is_too_small():
    with pytest.raises(ValueError, match="count must be at least 1, got an integer of more than 4,000 digits"):
        checks.count("count", -(10**5000))


def test_a_seed_may_be_of_any_length():
    assert NoiseSource(10**400).seeded


@pytest.mark.parametrize("epsilon", [1e-300, 1e308])
def test_budgets_at_the_ends_of_float_have_a_mu(epsilon):
    assert 0 < Budget(epsilon, 1e-6).mu < math.inf


class Failing:
    def __float__(self):
        raise KeyError("boo")

    def __index__(self):
        raise KeyError("boo")


class Silent(Failing):
    def __repr__(self):
        raise RuntimeError("no")


class Steering(Failing):
    def __repr__(self):
        return "\x1b[31m" * 100


@pytest.mark.parametrize("kind", [Failing, Silent, Steering])
@pytest.mark.parametrize(("check", "told"), [(checks.real, "a real number"), (checks.count, "an integer")])
def test_objects_whose_own_methods_fail_are_refused_in_plain_words(kind, check, told):
    with pytest.raises(TypeError, match=f"^epsilon must be {told}, got") as refusal:
        check("epsilon", kind())
    assert str(refusal.value).isprintable()
    assert len(str(refusal.value)) < 200


@pytest.mark.parametrize("value", ["", "a\nb", "\x1b[2K", "\u202e", "x" * 501, None, 3])
def test_a_text_that_is_shown_must_be_printable(value):
    with pytest.raises(ValueError, match="solver must be a printable text of 1 to 500 characters, got") as refusal:
        checks.printable("solver", value)
    assert str(refusal.value).isprintable()
