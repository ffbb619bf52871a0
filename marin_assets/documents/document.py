"""One document: its fields, the page that it belongs to, and the errors of rows that are not documents.

    {"id": "...", "text": "...", "source": "...", "metadata": {...}}

Keys are written in this order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from marin_resources.types.errors import MarinError


class DocumentError(MarinError, ValueError):
    """A file that does not hold the documents or rows that it should: one sentence with file and line."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """A text with its origin."""

    id: str
    text: str
    """Text; HTML where a stage's docstring specifies it."""
    source: str = ""
    """The origin, for example "pydoc"."""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def row(self) -> dict[str, Any]:
        """Return the row that is written to a shard. Equal documents are equal bytes."""
        return {"id": self.id, "text": self.text, "source": self.source, "metadata": dict(self.metadata)}


@dataclass(frozen=True, slots=True)
class BadRow:
    """Takes the place of a line that is not a row, or of a row that is not a document."""

    reason: str
    """The name by which it is counted, for example too_long, invalid_utf8, invalid_json or not_an_object."""
    detail: str
    """A description of the found value, for people."""


def page_of(document: Document) -> str:
    """Return the page that the document is a chunk of, `metadata["page"]`; its own id if it is a whole page."""
    return str(document.metadata.get("page") or document.id)
