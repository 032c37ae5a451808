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


def test_nothing_reorders_or_overprints_what_stands_around_it():
    whole = "".join(
        map(chr, [*range(0x3400), *range(0xA000, 0xAC00), *range(0xD800, 0x12000), *range(0x1D000, 0x1F000)])
    )
    letters = {letter for start in range(0, len(whole), 300) for letter in shown(whole[start : start + 300], 1200)}
    turning = {"R", "AL", "AN", "LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    assert {unicodedata.bidirectional(letter) for letter in letters}.isdisjoint(turning)
    assert not any(unicodedata.combining(letter) for letter in letters)
    assert shown("ok \u05d0\u0627\u0661 \u202e x\u0301\u0301") == "ok ??? ? x??"
    assert shown("e\u0301 日本 Ωμέγα") == "é 日本 Ωμέγα"


def test_what_is_shown_is_short_and_whole():
    assert shown("party 'a' refused", 255) == "party 'a' refused"
    assert len(shown("x" * 10**6)) == 300
    assert shown("ä" * 200, 255) == "ä" * 127  # no half letters
