"""A text as an array of code points, and their kinds, looked up for all of them at once."""

from __future__ import annotations

import string
import sys
from functools import cache
from typing import Any

UPPER, NUMERIC, SPACE, WORD, LETTER, LINE_FEED = 1, 2, 4, 8, 16, 32
ASCII = 128


def code_points(text: str) -> Any:
    """Return the code points of a text: uint8 [characters] if all are ASCII, else uint32."""
    import numpy as np

    if text.isascii():
        return np.frombuffer(text.encode("ascii"), np.uint8)
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")


def kinds_of(codes: Any) -> Any:
    """Return the kinds of code points from `code_points`, those of one character added up; uint8 [characters].

    UPPER, NUMERIC and SPACE are those of `str.isupper` and so on, WORD that of "w" in regular expressions, LETTER those
    of ASCII.
    """
    return _kinds(ASCII if codes.dtype.itemsize == 1 else sys.maxunicode + 1)[codes]


def begins_of(flags: Any) -> Any:
    """Return whether a run of true flags begins at a character; bool [characters]."""
    begins = flags.copy()
    begins[1:] &= ~flags[:-1]
    return begins


@cache
def _kinds(count: int) -> Any:
    """The kinds of the first `count` characters. All of Unicode take 0.3 s once in a process, and 1 MB."""
    import numpy as np

    characters = list(map(chr, range(count)))
    kinds = np.zeros(count, np.uint8)
    tests = {UPPER: str.isupper, NUMERIC: str.isnumeric, SPACE: str.isspace, WORD: str.isalnum}
    for kind, is_of_kind in tests.items():
        kinds |= np.fromiter(map(is_of_kind, characters), np.uint8, count) * np.uint8(kind)
    kinds[ord("_")] |= WORD
    kinds[list(string.ascii_letters.encode())] |= LETTER
    kinds[ord("\n")] |= LINE_FEED
    return kinds
