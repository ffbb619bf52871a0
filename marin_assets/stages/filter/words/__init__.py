"""Words and sentences of a text, by one of three splitters: "fast", "spacy" (of many languages) or "script".

A threshold holds for the splitter with which it was set: published thresholds were set with the words of spaCy or NLTK.

May import spaCy and regex (inside functions); not marin_resources or any other part of marin_assets.
"""

from functools import cache

from marin_assets.stages.filter.cached_property import once
from marin_assets.stages.filter.words.by_script import ScriptSplitter
from marin_assets.stages.filter.words.fast import FastSplitter
from marin_assets.stages.filter.words.spacy_language import SpacyLanguageSplitter, spacy_languages
from marin_assets.stages.filter.words.splitter import Splitter
from marin_resources.types.errors import MarinError
from marin_resources.types.near_names import expected_one_of

__all__ = ["ENGLISH", "SplitterError", "require_splitter", "spacy_languages", "splitter_named"]


SPLITTERS = ("fast", "spacy", "script")
ENGLISH = "english"


class SplitterError(MarinError, ValueError):
    """An unknown splitter, or a language that it has no rules for."""


@cache
def splitter_named(name: str, language: str = ENGLISH) -> Splitter:
    """Return this process's splitter: "fast", "spacy" or "script". Raises SplitterError.

    `language` is that of spaCy's rules: "english", or a tag such as "deu_Latn". spaCy is loaded once, when the first
    text is split: some filters need no words.
    """
    require_splitter(name, language)
    if name == "fast":
        return FastSplitter()
    if name == "script":
        return ScriptSplitter()
    return _LoadedLate(language)


class _LoadedLate:
    """The "spacy" splitter of a language."""

    def __init__(self, language: str) -> None:
        self._language = language

    @once
    def _splitter(self) -> Splitter:
        if self._language != ENGLISH:
            return SpacyLanguageSplitter(spacy_languages()[self._language])
        # late, for its weight: every load of the code location imports this module
        from marin_assets.stages.filter.words.spacy_splitter import SpacySplitter

        return SpacySplitter()

    def words(self, text: str) -> list[str]:
        return self._splitter.words(text)

    def sentences(self, text: str) -> list[str]:
        return self._splitter.sentences(text)

    def count_sentences(self, text: str) -> int:
        return self._splitter.count_sentences(text)


def require_splitter(name: str, language: str = ENGLISH) -> None:
    """Raise SplitterError for a name or a language that `splitter_named` does not know. No splitter is loaded."""
    if name not in SPLITTERS:
        raise SplitterError(f"The word splitter is {name!r}, {expected_one_of(name, SPLITTERS)}")
    if language == ENGLISH:
        return
    if language not in spacy_languages():
        languages = expected_one_of(language, [ENGLISH, *spacy_languages()])
        raise SplitterError(
            f'The language of the words is {language!r}, {languages} words="script" has no rules of one.'
        )
    if name != "spacy":
        raise SplitterError(f"The language is {language!r} and words is {name!r}, which has no rules of a language.")
