"""Texts that a file may hold: those that may be shown."""

from tacit.privacy.texts import HARMLESS, harmless

__all__ = ["HARMLESS", "harmless"]
