"""Links to public pages in the result of a step, such as a published model or a run of Weights & Biases."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from marin_resources.scrub.patterns import is_public

LINK = re.compile(r"https://[\w.-]+\.[a-z]{2,}(?:/[\w.~%/@+=,:-]*)?")
"""Without a query, which may hold a signature."""
MOST = 10


def links_of(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Place in the result -> address, of at most `MOST` texts that are wholly an address of a public site."""
    return [(place, text) for place, text in _texts(result, "") if LINK.fullmatch(text) and is_public(text)][:MOST]


def _texts(values: Mapping[str, Any], at: str) -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        place = f"{at}.{name}" if at else str(name)
        if isinstance(value, Mapping):
            yield from _texts(value, place)
        elif isinstance(value, str):
            yield place, value
