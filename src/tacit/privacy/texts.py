"""Texts that may be shown: of tables and labels, so line breaks and tabs are allowed, and nothing that steers."""

import unicodedata

_LONGEST = 10_000
_LAYOUT = frozenset("\t\n")
_STEERING = frozenset(("Cc", "Cs", "Zl", "Zp"))  # control characters, halves of characters, separators of lines
_TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")

HARMLESS = f"without control characters, of at most {_LONGEST:,} characters"
"""What `harmless` asks for, in the words of a message."""


def harmless(text: str) -> bool:
    """Whether a terminal or a page shows the text as what it is: no escapes, no turned direction, no flood."""
    if text.isprintable():
        return len(text) <= _LONGEST
    others = set(text) - _LAYOUT
    steers = any(one in _TURNING or unicodedata.category(one) in _STEERING for one in others)
    return len(text) <= _LONGEST and not steers
