"""Near names: the end of a sentence about a name that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

SHOWN = 8
"""The most names that a sentence lists."""
PROPOSED = 2


def near_names(name: object, names: Iterable[str], *, number: int = PROPOSED) -> list[str]:
    """Return at most `number` of the names that are like `name`, the nearest first; also in other cases of letters."""
    by_lower_case = {candidate.lower(): candidate for candidate in names}
    near = difflib.get_close_matches(str(name).lower(), by_lower_case, n=number)
    return [by_lower_case[candidate] for candidate in near]


def expected_one_of(name: object, names: Iterable[str], called: str = "") -> str:
    """Return what was expected in place of `name`, as the end of a sentence: "expected one of 'a', 'b'. Did you mean
    'a'?". Of many names only the near ones are in it, or the first. `called`: a plural, "members", for "one of the
    members 'a', 'b'"."""
    candidates = list(dict.fromkeys(names))
    near = near_names(name, candidates)
    meant = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    if not candidates:
        return f"and there are no {called or 'names'}."
    if len(candidates) == 1 and not called:
        return f"expected {candidates[0]!r}."
    if len(candidates) <= SHOWN:
        return f"expected one of {called and f'the {called} '}{', '.join(map(repr, candidates))}.{meant}"
    count = f"the {len(candidates)} {called}" if called else f"{len(candidates)} names"
    return f"expected one of {count}.{meant}" if near else f"expected one of {count}, such as {_first(candidates)}."


def _first(names: list[str]) -> str:
    return ", ".join(map(repr, names[:SHOWN]))
