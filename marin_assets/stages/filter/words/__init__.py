"""Words and sentences of a text, by one of two splitters: "fast" or "spacy". A threshold holds for the splitter with
which it was set: published thresholds were set with the words of spaCy or NLTK.

May import spaCy (inside functions); not marin_resources or any other part of marin_assets.
"""

from marin_assets.stages.filter.words.by_name import SplitterError, splitter_named

__all__ = ["SplitterError", "splitter_named"]
