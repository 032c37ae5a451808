"""Whom a plan of a test is about, where nothing depends on it."""

from tacit.privacy import Unit

ROWS = Unit("row", 1_000)
