"""The score of an answer about a long context: the share of the expected values that it has, as RULER scores it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any


def share_of_answers(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, float]:
    """Return lm-eval's `acc` of a question. A value counts as a word of its own: 123 is not in 1234."""
    answers = doc["answers"]
    given = [answer for answer in answers if re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", results[0], re.IGNORECASE)]
    return {"acc": len(given) / len(answers)}
