"""Positions: a pseudo-random order of documents by a hash of a name. Splits and samples use no other chance.

A position depends on the name and the salt alone, not on shards, machines or other documents.
"""

from __future__ import annotations

import hashlib

from marin_assets.documents.document import Document, page_of
from marin_resources.types.errors import MarinError

POSITIONS = 2**64
ID = "id"
PAGE = "page"


class SampleError(MarinError, ValueError):
    """A sample or split that cannot be computed from its config: one sentence."""


def position(name: str, salt: str = "") -> int:
    """Return an evenly distributed number from 0 to 2**64 - 1. `split_of` uses it without a salt."""
    return int.from_bytes(hashlib.sha256(f"{salt}{name}".encode()).digest()[:8], "big")


def key_of(document: Document, key: str) -> str:
    """Return the name that is hashed. `key` is "id", "page" (see `page_of`), or a key of the metadata.

    Raises SampleError for a document without that key.
    """
    if key == ID:
        return document.id
    if key == PAGE:
        return page_of(document)
    if document.metadata.get(key) is None:
        raise SampleError(
            f"Document {document.id!r} has no {key!r} in its metadata, only {sorted(document.metadata)}. "
            f"Name a key that every document has, {ID!r} or {PAGE!r}."
        )
    return str(document.metadata[key])
