"""Words of a text as RedPajama-V2's signals take them (Weber et al. 2024, arXiv:2411.12372).

    raw words   runs of letters and digits, and runs of other characters that are no whitespace
    words       of the text without ASCII punctuation, in lower case, in Unicode's form NFD, between whitespace

Each number is computed on its first access, once for all signals.
"""

from __future__ import annotations

import json
import re
import string
import unicodedata
from collections import Counter
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import Any

from marin_assets.stages.filter.cached_property import once
from marin_assets.stages.filter.signals.code_points import (
    LETTER,
    LINE_FEED,
    SPACE,
    UPPER,
    WORD,
    begins_of,
    code_points,
    kinds_of,
)
from marin_assets.stages.filter.signals.redpajama_lines import RedPajamaLines
from marin_assets.stages.filter.signals.repeats import Repeats, repeats_of

MARK_RUN = re.compile(r"[^\w\s]+")
PUNCTUATION = string.punctuation.encode()
RUN = string.ascii_letters + string.digits + "_"
ONLY_RUNS = bytes(code if chr(code) in RUN else ord(" ") for code in range(256))
"""For `bytes.translate`: a letter, digit or "_" of ASCII stays."""
TOP, DUPLICATE = range(2, 5), range(5, 11)
"""The n of the n-grams that signals measure."""


class RedPajamaText:
    """The parts of one text that signals measure."""

    def __init__(self, text: str) -> None:
        self.text = text

    @once
    def raw_words(self) -> int:
        """Number of raw words."""
        return len(self._runs) + self._marks

    @once
    def raw_words_with_letter(self) -> int:
        """Number of raw words with an ASCII letter: the runs that are left without other letters and digits."""
        marked: bytes = _letters_of_kinds()[self.kinds].tobytes()
        return len(marked.translate(None, b"x").split())

    @once
    def raw_words_in_capitals(self) -> int:
        """Number of raw words with upper-case and no other cased characters. Some of them are marks, such as "Ⓐ"."""
        words = sum(map(str.isupper, self._runs))
        if self.text.isascii() or not (self._is_mark & (self.kinds & UPPER > 0)).any():
            return words
        return words + sum(map(str.isupper, MARK_RUN.findall(self.text)))

    @once
    def raw_stop_words(self) -> int:
        """Number of raw words that are stop words, case-sensitive."""
        return sum(map(_stop_words().__contains__, self._runs))

    @once
    def normalized(self) -> str:
        """The text without ASCII punctuation, in lower case, in the form NFD. It has the text's line feeds."""
        encoded = self.text.encode("utf-8", "surrogatepass").translate(None, PUNCTUATION)  # of a text it takes 20 times
        return unicodedata.normalize("NFD", encoded.decode("utf-8", "surrogatepass").lower())

    @once
    def words_of_lines(self) -> list[list[str]]:
        """The words of each line; none after the last line feed of the text."""
        lines = list(map(str.split, self.normalized.split("\n")))
        return lines if self.text and not self.text.endswith("\n") else lines[:-1]

    @once
    def words(self) -> list[str]:
        return list(chain.from_iterable(self.words_of_lines))

    @once
    def word_counts(self) -> Counter[str]:
        return Counter(self.words)

    @once
    def word_lengths(self) -> list[int]:
        return list(map(len, self.words))

    @once
    def word_characters(self) -> int:
        return sum(self.word_lengths)

    @once
    def repeats(self) -> Repeats:
        """The repeats of the n-grams of words."""
        return repeats_of(self.words, self.word_lengths, self.word_counts, TOP, DUPLICATE)

    @once
    def lines(self) -> RedPajamaLines:
        return RedPajamaLines(self.text, self.kinds, self.normalized, self.words_of_lines)

    @once
    def kinds(self) -> Any:
        """The kinds of the text's characters; uint8 [characters]."""
        return kinds_of(code_points(self.text))

    @once
    def _runs(self) -> list[str]:
        """Runs of letters and digits: what is between whitespace once every other character is a space."""
        import numpy as np

        if self.text.isascii():
            return self.text.encode("ascii").translate(ONLY_RUNS).decode("ascii").split()
        codes = np.where(self.kinds & WORD > 0, code_points(self.text), np.uint32(ord(" ")))
        return codes.tobytes().decode("utf-32-le").split()

    @once
    def _is_mark(self) -> Any:
        """Whether a character is neither a letter or digit nor whitespace; bool [characters]."""
        return self.kinds & (WORD | SPACE) == 0

    @once
    def _marks(self) -> int:
        """Number of runs of such characters."""
        return int(begins_of(self._is_mark).sum())


@cache
def _letters_of_kinds() -> Any:
    """For each kind of character: "a" for an ASCII letter, "x" for another letter or digit, a space for the rest."""
    import numpy as np

    letters = ["a" if kind & LETTER else "x" if kind & WORD else " " for kind in range(2 * LINE_FEED)]
    return np.frombuffer("".join(letters).encode(), np.uint8)


@cache
def _stop_words() -> frozenset[str]:
    text = files("marin_assets.stages.filter.signals").joinpath("stop_words.json").read_text(encoding="utf-8")
    return frozenset(json.loads(text)["english"])
