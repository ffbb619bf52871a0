"""Marks of references in a line: "shown before [3,5–7]." becomes "shown before." without them."""

from __future__ import annotations

import re

CUT = "\ufdd0"
"""A noncharacter in the place of a mark that is cut."""
NUMBERS = re.compile(r"[\W\d_]*(?:(?<![^\W\d_])[a-z](?![^\W\d_])[\W\d_]*)*")
"""Digits and signs, also 12a and 3a,b."""
_BETWEEN = r"[\s,;‐-―−-]"
_GROUP = re.compile(
    rf"\s*[(\[](?=[^()\[\]]*{CUT})[\s,;:.&/‐-―−-]*(?:(?:{CUT}|e\.g\.|see\b|and\b)[\s,;:.&/‐-―−-]*)+[)\]]"
    rf"|\s*[\^_]\((?:{CUT}{_BETWEEN}*)+\)"
)
"""Marks in brackets with nothing else, also as a superscript."""
_OPENING = re.compile(rf"([(\[])(?:\s*{CUT}{_BETWEEN}*)+")
_ROW = re.compile(rf"(\s*)(?:{CUT}{_BETWEEN}*)*{CUT}(\s*)")


def is_number(text: str) -> bool:
    """Whether a mark has no letters, but those of 12a."""
    return bool(NUMBERS.fullmatch(text))


def without_cut(line: str) -> str:
    """Return a line without the places of marks, and without the brackets and commas that only they had."""
    if CUT not in line:
        return line
    line = _ROW.sub(_closed, _OPENING.sub(r"\1", _GROUP.sub("", line)))
    return line.strip()


def _closed(match: re.Match[str]) -> str:
    after = match.string[match.end() : match.end() + 1]
    is_between = bool(match[1] or match[2])
    return " " if is_between and after and after not in ".,;:)]" else ""
