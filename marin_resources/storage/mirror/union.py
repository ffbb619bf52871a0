"""Join the listings of several regions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Info = dict[str, Any]


def joined(listings: Iterable[Mapping[str, Info] | None]) -> dict[str, Info] | None:
    """Path -> info from the first region that has it; None if no region has the listed folder."""
    found: dict[str, Info] | None = None
    for listing in listings:
        if listing is not None:
            found = {**listing, **(found or {})}
    return found


def folders_of(found: Mapping[str, Info], relative: str) -> dict[str, Info]:
    """The folders between `relative` and the files below it."""
    names: set[str] = set()
    for name in found:
        while (name := name.rpartition("/")[0]) and len(name) > len(relative):
            names.add(name)
    return {name: {"name": name, "size": 0, "type": "directory"} for name in sorted(names)}
