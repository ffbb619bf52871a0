"""The interface of a word splitter, and the limits of the words that one remembers."""

from __future__ import annotations

from typing import Protocol

MAX_REMEMBERED = 100_000
"""Entries in a table of remembered chunks (text without whitespace) or words, about 40 MB. A full table is cleared."""
MAX_REMEMBERED_CHARACTERS = 64
"""Length of the longest chunk or word that is remembered."""


class Splitter(Protocol):
    """Splits a text into words and into sentences."""

    def words(self, text: str) -> list[str]:
        """Return the words, with marks as words of their own. None is empty or contains whitespace."""

    def sentences(self, text: str) -> list[str]:
        """Return consecutive pieces of the text, one for each sentence and at least one."""

    def count_sentences(self, text: str) -> int:
        """Return the number of `sentences` without building them."""
