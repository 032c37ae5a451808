"""What each command does, one file each; `tacit.cli` parses the words and calls `run`.

A command raises `ValueError`, `OSError` or `ImportError` for what its user can put right; the command line prints that
as one line. No message quotes a value of the data.
"""

import sys


def say(text: str) -> None:
    """A line of progress."""
    print(f"tacit: {text}", file=sys.stderr, flush=True)
