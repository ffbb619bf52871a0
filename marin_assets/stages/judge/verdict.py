"""Read the verdict in a judge's answer, by the grammars that the prompts state.

"… So [[A]]", "[[B]]", "B."              a choice: "A", "B", or "C" for a tie
"[[7]]", "Rating: [[7.5]]", "[[7/10]]"   a grade from 1 to 10
"", "[[A]] or [[B]]", "[[D]]", "[[11]]"  none: the reason is returned in its place
"""

from __future__ import annotations

import re
from typing import Literal

FIRST, SECOND, TIE = "A", "B", "C"
LOWEST, HIGHEST = 1.0, 10.0
MARKED_CHOICE = re.compile(r"\[\[\s*(\w+)\s*\]\]")
CHOICE_ALONE = re.compile(r"\W*([ABC])\W*")
MARKED_GRADE = re.compile(r"\[\[\s*(-?\d+(?:\.\d+)?)\s*(?:/\s*10)?\s*\]\]")

Unreadable = Literal["no_verdict", "several_verdicts", "unknown_verdict", "off_the_scale"]
UNREADABLE: tuple[Unreadable, ...] = ("no_verdict", "several_verdicts", "unknown_verdict", "off_the_scale")


def preference_of(answer: str) -> float | Unreadable:
    """Preference for the first answer: 1, 0, or 0.5 for a tie; or why the judge's text has none."""
    alone = CHOICE_ALONE.fullmatch(answer)
    choices = {alone[1]} if alone else set(MARKED_CHOICE.findall(answer))
    if not choices:
        return "no_verdict"
    if len(choices) > 1:
        return "several_verdicts"
    return {FIRST: 1.0, SECOND: 0.0, TIE: 0.5}.get(choices.pop(), "unknown_verdict")  # type: ignore[arg-type]


def grade_of(answer: str) -> float | Unreadable:
    """The grade from LOWEST to HIGHEST; or the reason why the judge's text has none."""
    grades = {float(number) for number in MARKED_GRADE.findall(answer)}
    if not grades:
        return "no_verdict"
    if len(grades) > 1:
        return "several_verdicts"
    grade = grades.pop()
    return grade if LOWEST <= grade <= HIGHEST else "off_the_scale"
