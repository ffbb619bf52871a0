"""The relative path in a `mirror://` path."""

from __future__ import annotations

from marin_resources.storage.mirror.protocol import SCHEME, MirrorError
from marin_resources.storage.transfer.regions import Regions


def relative_of(path: str, regions: Regions) -> str:
    """The path below a region's prefix, without slashes at its ends. "" is the prefix itself.

    A full path below one of the regions' prefixes (`mirror:///data/a/raw/x`) means the same relative path in all of
    them. Raises MirrorError for a path that leaves the prefix.
    """
    plain = path.removeprefix(SCHEME)
    for candidate in (plain, "/" + plain):
        held = regions.holding(candidate.rstrip("/"))
        if held is not None:
            plain = held[1]
            break
    parts = [part for part in plain.split("/") if part]
    if ".." in parts or "." in parts:
        raise MirrorError(f"{path!r} has '.' or '..' in it. Give the path below the prefix itself.")
    return "/".join(parts)
