"""Positions: a pseudo-random order of documents by a hash of a name. Splits and samples use no other chance.

A position depends on the name and the salt alone, not on shards, machines or other documents. The split assigns each
document to training or to validation by it, and nothing else does. Its unit is the page: all chunks of a page are on
one side, and a new page moves no other page.
"""

from __future__ import annotations

import hashlib

from marin_assets.documents.document import Document, page_of
from marin_resources.types.errors import MarinError

POSITIONS = 2**64
ID = "id"
PAGE = "page"
TRAIN = "train"
VALIDATION = "validation"
SPLITS = (TRAIN, VALIDATION)


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


class SplitError(MarinError, ValueError):
    """A validation fraction outside its bounds."""


def split_of(document: Document, validation_fraction: float) -> str:
    """Return "validation" for `validation_fraction` of all pages, "train" for the others."""
    return VALIDATION if position(page_of(document)) < validation_fraction * POSITIONS else TRAIN


def check_fraction(validation_fraction: float) -> None:
    """Raise SplitError unless `validation_fraction` is a number from 0 up to, but not including, 1."""
    if isinstance(validation_fraction, bool) or not isinstance(validation_fraction, int | float):
        raise SplitError(f"validation_fraction is {validation_fraction!r}, expected a number from 0 to below 1.")
    if not 0 <= validation_fraction < 1:
        raise SplitError(
            f"validation_fraction is {validation_fraction!r}, expected a number from 0 to below 1. "
            "0.05 keeps a twentieth of the pages for validation."
        )
