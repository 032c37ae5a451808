"""What a fit with `verbose` tells while it runs."""

import sys


def tell_progress(name: str, made: int, planned: int) -> None:
    """One line for each tenth of the planned releases: counts that were fixed before the data was read."""
    if made * 10 // planned > (made - 1) * 10 // planned:
        print(f"tacit: {made} of {planned} releases ({name})", file=sys.stderr)
