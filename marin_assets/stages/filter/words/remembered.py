"""Values of texts, such as the tokens of a chunk, remembered in a table of limited size."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from marin_assets.stages.filter.words import splitter

V = TypeVar("V")


class Remembered(dict[str, V]):
    """Values by text, computed on their first access. Call `forget` between documents.

    There are two generations: a full table becomes the older one, from which values that are accessed again come back.
    So frequent texts are not computed again.
    """

    def __init__(self, compute: Callable[[str], V]) -> None:
        super().__init__()
        self._compute = compute
        self._older: dict[str, V] = {}
        self._long: list[str] = []

    def __missing__(self, text: str) -> V:
        value = self[text] = self._older[text] if text in self._older else self._compute(text)
        if len(text) > splitter.MAX_REMEMBERED_CHARACTERS:
            self._long.append(text)
        return value

    def forget(self) -> list[str]:
        """Forget long texts, and the older generation if the table is full. Return what was forgotten."""
        for text in self._long:
            del self[text]
        forgotten, self._long = self._long, []
        if len(self) > splitter.MAX_REMEMBERED // 2:
            forgotten += [text for text in self._older if text not in self]
            self._older = dict(self)
            self.clear()
        return forgotten
