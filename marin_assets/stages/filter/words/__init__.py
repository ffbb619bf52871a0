"""Words and sentences of a text, by one of three splitters: "fast", "spacy" or "script".

A threshold holds for the splitter with which it was set: published thresholds were set with the words of spaCy or NLTK.

May import spaCy and regex (inside functions); not marin_resources or any other part of marin_assets.
"""

from functools import cache

from marin_assets.stages.filter.words.by_script import ScriptSplitter
from marin_assets.stages.filter.words.fast import FastSplitter
from marin_assets.stages.filter.words.splitter import Splitter
from marin_resources.types.errors import MarinError
from marin_resources.types.near_names import expected_one_of

__all__ = ["SplitterError", "require_splitter", "splitter_named"]


SPLITTERS = ("fast", "spacy", "script")


class SplitterError(MarinError, ValueError):
    """An unknown splitter."""


@cache
def splitter_named(name: str) -> Splitter:
    """Return this process's splitter: "fast", "spacy" or "script". spaCy is loaded once. Raises SplitterError."""
    if name == "fast":
        return FastSplitter()
    if name == "script":
        return ScriptSplitter()
    if name == "spacy":
        # late, for its weight: every load of the code location imports this module
        from marin_assets.stages.filter.words.spacy_splitter import SpacySplitter

        return SpacySplitter()
    raise _unknown(name)


def require_splitter(name: str) -> None:
    """Raise SplitterError for a name that `splitter_named` does not know. No splitter is loaded."""
    if name not in SPLITTERS:
        raise _unknown(name)


def _unknown(name: str) -> SplitterError:
    return SplitterError(f"The word splitter is {name!r}, {expected_one_of(name, SPLITTERS)}")
