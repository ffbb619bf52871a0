"""What a sensor says in a tick: what it sees now, and when it saw something new last."""

from __future__ import annotations

import re

LAST = re.compile(r" (Nothing new so far\.|The last new one: .* UTC\.)")


def what_is_there(said: str) -> str:
    """Without the last new one."""
    return LAST.sub("", said)


def what_was_new(said: str) -> str:
    """The last new one alone."""
    found = LAST.search(said)
    assert found is not None, said
    return found.group(1)
