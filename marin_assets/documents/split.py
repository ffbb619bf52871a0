"""The split: assign each document to training or to validation. Nothing else decides this.

The unit is the page, so all chunks of a page are on one side. The side depends on a hash of the page's name alone: it
is the same in every shard, stage and machine, and a new page moves no other page.
"""

from __future__ import annotations

from marin_assets.documents.document import Document, page_of
from marin_assets.documents.position import POSITIONS, position
from marin_resources.types.errors import MarinError

TRAIN = "train"
VALIDATION = "validation"
SPLITS = (TRAIN, VALIDATION)


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
