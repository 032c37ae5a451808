"""Text that others sent, made safe to show."""

import unicodedata

_INSTEAD = "?"
_LONGEST = 300
_TURNING = {"R", "AL", "AN"}  # classes of letters and digits that are written from the right


def shown(text: str, most: int = _LONGEST) -> str:
    """Text from elsewhere, for a terminal or a log: at most so many bytes, and nothing that is not printed.

    Control characters, escapes and line breaks become question marks: a sender could otherwise rewrite what stands
    around its text. So do letters that are written from the right, which change the order of what follows them, and
    marks that go onto the letter before them, unless both are one character: many of them cover other lines.
    """
    composed = unicodedata.normalize("NFC", text[:most])
    plain = "".join(letter if _stays_in_its_place(letter) else _INSTEAD for letter in composed)
    return plain.encode()[:most].decode(errors="ignore")


def _stays_in_its_place(letter: str) -> bool:
    return (
        letter.isprintable()
        and unicodedata.bidirectional(letter) not in _TURNING
        and unicodedata.category(letter)[0] != "M"
    )
