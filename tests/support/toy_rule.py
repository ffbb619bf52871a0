"""A decision rule by the length of documents, importable by workers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from marin_assets.documents import Document
from marin_assets.documents.attributes import KEPT, Decision


@dataclass(frozen=True)
class Length:
    at_least_words: int = 3
    cut_first_word: bool = False
    without_reason: bool = False


def length_rule(config: Length) -> Callable[[Document], Decision]:
    def decide(document: Document) -> Decision:
        words = document.text.split()
        if len(words) < config.at_least_words:
            return Decision(keep=False, reason="" if config.without_reason else "too_short", value=len(words))
        if config.cut_first_word:
            return Decision(keep=True, cut=((0, len(words[0])),))
        return KEPT

    return decide
