"""Text that others sent, made safe to show."""

_INSTEAD = "?"
_LONGEST = 300


def shown(text: str, most: int = _LONGEST) -> str:
    """Text from elsewhere, for a terminal or a log: at most so many bytes, and nothing that is not printed.

    Control characters, escapes, line breaks and marks that turn the direction of writing become question marks: a
    sender could otherwise rewrite what stands around its text.
    """
    plain = "".join(letter if letter.isprintable() else _INSTEAD for letter in text[:most])
    return plain.encode()[:most].decode(errors="ignore")
