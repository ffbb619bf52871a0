"""Count the rows that have keys which are not read."""

from __future__ import annotations

from collections import Counter

UNREAD_NAMES, UNREAD_CHARACTERS = 20, 60
"""Keys of rows that a shard counts by name, and the longest name."""


def count_unread(counts: Counter[str], unread: set[str]) -> None:
    """Count the row by each key that is not read. The data name the keys, so all but the first share one name."""
    named, names = {name for name in counts if name.startswith("unread_")}, set()
    for name in sorted(f"unread_{key}" for key in unread):
        if name not in named and (len(named) >= UNREAD_NAMES or len(name) > UNREAD_CHARACTERS):
            name = "unread_others"
        named.add(name)
        names.add(name)
    counts.update(names)
