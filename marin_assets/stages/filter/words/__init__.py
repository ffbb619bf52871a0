"""Words and sentences of a text, by one of two splitters: "fast" or "spacy". A threshold holds for the splitter with
which it was set: published thresholds were set with the words of spaCy or NLTK.

May import spaCy (inside functions); not marin_resources or any other part of marin_assets.
"""

from functools import cache

from marin_assets.stages.filter.words.fast import FastSplitter
from marin_assets.stages.filter.words.splitter import Splitter
from marin_resources.types.errors import MarinError

__all__ = ["SplitterError", "splitter_named"]


class SplitterError(MarinError, ValueError):
    """An unknown splitter."""


@cache
def splitter_named(name: str) -> Splitter:
    """Return this process's splitter, "fast" or "spacy". spaCy is loaded once. Raises SplitterError for other names."""
    if name == "fast":
        return FastSplitter()
    if name == "spacy":
        # late, for its weight: every load of the code location imports this module
        from marin_assets.stages.filter.words.spacy_splitter import SpacySplitter

        return SpacySplitter()
    raise SplitterError(f"The word splitter is {name!r}, expected 'fast' or 'spacy'.")
