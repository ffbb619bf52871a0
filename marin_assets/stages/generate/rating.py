"""Read the rating in a model's answer, by a grammar that a rubric can state.

    "4", "Score: 4", "Educational score: **4**", "4/5", "4 out of 5", "0 to 5: 4"     4
    "Score: 2 for style. Score: 4"      4: of several labelled ratings the last, as a rubric wants it at the end
    "2 or 3", "3.5", "", "7"            no rating: several, no whole number, none, outside of the scale

In:  an answer, and the scale that the rubric states.   Out: the rating, or the reason why it has none.
"""

from __future__ import annotations

import re
from typing import Literal

Unreadable = Literal["no_number", "several_numbers", "not_whole", "off_the_scale"]

NUMBER = re.compile(r"(?<![\w.,])[-−]?\d+(?:[.,]\d+)?(?![\w%]|[.,]\d)")
LABELLED = re.compile(
    r"(?i)\b(?:score|rating|grade|rate|points?)\b[^\w\n]*?(?:(?:is|of|as|it|this|a|an|would|be)\b[^\w\n]*?){0,4}"
    r"([-−]?\d+(?:[.,]\d+)?)(?![\w%]|[.,]\d)"
)
"""A number behind the word for it: "Score: **4**", "I would rate this a 4"."""


def rating_of(answer: str, lowest: int, highest: int) -> int | Unreadable:
    """Return the rating of an answer, a whole number from `lowest` to `highest`, or the reason why it has none."""
    text = _without_scale(answer, lowest, highest)
    labelled = LABELLED.findall(text)
    numbers = labelled[-1:] or list(dict.fromkeys(NUMBER.findall(text)))
    if not numbers:
        return "no_number"
    if len(numbers) > 1:
        return "several_numbers"
    number = numbers[0].replace("−", "-").replace(",", ".")
    if not float(number).is_integer():
        return "not_whole"
    rating = int(float(number))
    return rating if lowest <= rating <= highest else "off_the_scale"


def _without_scale(answer: str, lowest: int, highest: int) -> str:
    """The answer without mentions of the scale: "0 to 5", "0-5", "/5", "out of 5"."""
    scale = rf"(?<![\w.]){lowest}\s*(?:to|-|–|—|\.\.\.?|and)\s*{highest}(?![\w.]*\d)"
    most = rf"(?<=\d)\s*(?:/|out\s+of|of)\s*{highest}(?![\w.]*\d)"
    return re.sub(rf"(?i){most}", " ", re.sub(rf"(?i){scale}", " ", answer))
