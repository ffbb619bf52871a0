"""One document, and what stands for what is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


class DocumentError(ValueError):
    """A file that does not hold what it should: one sentence with file and line."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    id: str
    text: str
    """Text, or HTML where a stage says so."""
    source: str = ""
    """Where it came from, for example "pydoc"."""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def row(self) -> dict[str, Any]:
        """The document as it is written."""
        return {"id": self.id, "text": self.text, "source": self.source, "metadata": dict(self.metadata)}


@dataclass(frozen=True, slots=True)
class BadRow:
    """A line that is no row."""

    reason: str
    """too_long, invalid_utf8, invalid_json or not_an_object: a name to count it under."""
    detail: str
    """What was found, for people."""
