"""Text that others sent is printed as text, and in a few words."""

import sys
import unicodedata

from tacit.federated.foreign import shown


def test_nothing_that_a_terminal_acts_on_is_shown():
    whole = "".join(map(chr, [*range(0x3100), *range(0xFE00, 0x10000), *range(0xE0000, 0xE0200), sys.maxunicode]))
    letters = {letter for start in range(0, len(whole), 300) for letter in shown(whole[start : start + 300], 1200)}
    assert {unicodedata.category(letter) for letter in letters}.isdisjoint({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
    assert {"a", "é", "あ", " ", "?"} <= letters
    assert shown("\ud800") == "?"


def test_what_is_shown_is_short_and_whole():
    assert shown("party 'a' refused", 255) == "party 'a' refused"
    assert len(shown("x" * 10**6)) == 300
    assert shown("ä" * 200, 255) == "ä" * 127  # no half letters
