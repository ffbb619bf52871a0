"""The scripts of a text, by Unicode's property of each character."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from functools import cache

NO_SCRIPT = frozenset({"Zyyy", "Zinh", "Zzzz"})
"""Unicode's codes for characters of all scripts (digits, marks), of the one before, and of none."""
ASCII = re.compile(r"[\x00-\x7f]+")
ASCII_OTHERS = bytes(code for code in range(128) if not chr(code).isalpha())
"""Most characters of most pages are ASCII, and need no table."""


def scripts_of(text: str) -> Counter[str]:
    """The number of characters of each script, by its ISO 15924 code; without digits, marks and white space."""
    letters = len(text.encode("ascii", "ignore").translate(None, ASCII_OTHERS))
    scripts = Counter(Latn=letters) if letters else Counter[str]()
    for character, count in Counter(ASCII.sub("", text)).items():
        script = _script(character)
        if script not in NO_SCRIPT:
            scripts[script] += count
    return scripts


@cache
def _script(character: str) -> str:
    from fontTools.unicodedata.Scripts import RANGES, VALUES  # of the extra "curate"

    return VALUES[bisect_right(RANGES, ord(character)) - 1]
