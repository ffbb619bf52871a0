"""Whether a document is for training or for validation: the one place where that is decided.

The unit is the page, so that chunks of one page never stand on both sides, and the decision is a hash of its name
alone: it holds for every shard, every stage and every machine, and a new page moves no old one.
"""

from __future__ import annotations

import hashlib

from marin_assets.documents import Document

TRAIN = "train"
VALIDATION = "validation"
SPLITS = (TRAIN, VALIDATION)


class SplitError(ValueError):
    """A fraction that is not one."""


def split_of(document: Document, validation_fraction: float) -> str:
    """ "train" or "validation", which `validation_fraction` of all pages are."""
    digest = hashlib.sha256(page_of(document).encode()).digest()
    return VALIDATION if int.from_bytes(digest[:8], "big") < validation_fraction * 2**64 else TRAIN


def page_of(document: Document) -> str:
    """The page that the document is a chunk of, `metadata["page"]`; the document's id if it is a page itself."""
    return str(document.metadata.get("page") or document.id)


def check_fraction(validation_fraction: float) -> None:
    """Raises SplitError if `validation_fraction` is not a number from 0 up to, but not including, 1."""
    if isinstance(validation_fraction, bool) or not isinstance(validation_fraction, int | float):
        raise SplitError(f"validation_fraction is {validation_fraction!r}, expected a number from 0 to below 1.")
    if not 0 <= validation_fraction < 1:
        raise SplitError(
            f"validation_fraction is {validation_fraction!r}, expected a number from 0 to below 1. "
            "0.05 keeps a twentieth of the pages for validation."
        )
