"""One superscript or subscript as text: x^2, H_2O, 10^-3, 1st."""

from __future__ import annotations

import re

ONE_TERM = re.compile(r"[-+−±]?\w+|[-+−±]|\([^()]*\)")
RAISED_TEXT = re.compile(r"st|nd|rd|th|tm|sm|[\[*†‡§¶®™°′″].*", re.IGNORECASE | re.DOTALL)
"""Superscripts that are no exponents: 1st, TM, and references such as [1] and *."""


def raised(sign: str, text: str) -> str:
    """Return the text of a superscript, whose `sign` is "^", or a subscript, "_"; in parentheses if it has terms."""
    if sign == "^" and RAISED_TEXT.fullmatch(text):
        return text
    return sign + (text if ONE_TERM.fullmatch(text) else f"({text})")


def with_blanks(inside: str, text: str) -> str:
    """Return `text`, which stands for `inside`, between the blanks at its ends: "<sub>2 </sub>and" has one."""
    return f"{' ' * inside[:1].isspace()}{text}{' ' * inside[-1:].isspace()}"
