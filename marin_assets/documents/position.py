"""Where a document stands in an order that is a hash of its name: the one source of chance in splits and samples.

It depends on the name and the seed alone: not on shards, machines or other documents, which may come and go.
"""

from __future__ import annotations

import hashlib

from marin_assets.documents import Document
from marin_assets.documents.split import page_of

POSITIONS = 2**64
ID = "id"
PAGE = "page"


class SampleError(ValueError):
    """A sample, split or shuffle that cannot be made as asked: one sentence."""


def position(name: str, salt: str = "") -> int:
    """A number from 0 to below 2**64, evenly spread; without a salt the one that `tokenize` divides pages by."""
    return int.from_bytes(hashlib.sha256(f"{salt}{name}".encode()).digest()[:8], "big")


def key_of(document: Document, key: str) -> str:
    """The name that decides: "id", "page" (the page that it is a chunk of, or its id), or a key of the metadata.

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
