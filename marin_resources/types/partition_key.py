"""Partition keys as path segments: each key is one segment of a path, and each segment is one key.

In:  a key, any text.   Out: the segment: letters, digits and `-_.=+@:` as they are, other bytes in UTF-8 as `%XX`.

A key that cannot be a folder everywhere is refused: empty, `.`, `..`, or over 200 bytes as a segment.

A delivery of raw data that was taken again is a revision: "2026-01@2" is a later state of "2026-01".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import quote, unquote

from marin_resources.types.errors import MarinError

SAFE = "-_.=+@:"
MAX_SEGMENT_BYTES = 200
"""A file system takes 255 for a name; the files beside a folder have longer names than the folder."""


_REVISED = re.compile(r"(?P<delivery>.+)@(?P<number>[2-9]|[1-9][0-9]+)")


class PartitionKeyError(MarinError, ValueError):
    """A key that no partition can have: one sentence."""


def segment_of(key: str) -> str:
    """Return the path segment of a key. Raises PartitionKeyError."""
    if not isinstance(key, str) or not key or key in (".", ".."):
        raise PartitionKeyError(f"The partition key {key!r} is not a name. Expected a text such as '2026-01' or 'en'.")
    try:
        segment = quote(key, safe=SAFE)
    except UnicodeEncodeError:
        raise PartitionKeyError(
            f"The partition key {key!r} has half of a surrogate pair, which UTF-8 does not have. Correct the key."
        ) from None
    if segment.startswith("."):  # readers of data pass over names with a leading dot
        segment = f"%2E{segment[1:]}"
    if len(segment) > MAX_SEGMENT_BYTES:
        raise PartitionKeyError(
            f"The partition key {key[:40]!r}… takes {len(segment)} bytes as a folder's name, and at most "
            f"{MAX_SEGMENT_BYTES} are possible. Shorten it."
        )
    return segment


def key_of(segment: str) -> str | None:
    """Return the key of a path segment; None for a segment that `segment_of` does not make."""
    try:
        key = unquote(segment, errors="strict")
        return key if segment_of(key) == segment else None
    except (UnicodeDecodeError, PartitionKeyError):
        return None


def require_distinct(keys: Iterable[str], owner: str) -> None:
    """Raise PartitionKeyError, which begins with `owner`, unless each key has a folder of its own."""
    folders: dict[str, str] = {}
    for key in keys:
        other = folders.setdefault(segment_of(key).lower(), key)
        if other != key:
            raise PartitionKeyError(
                f"{owner} has the keys {other!r} and {key!r}, which are one folder where case does not matter, as on "
                "macOS. Rename one of them."
            )


class FoldersOfKeys:
    """The folders of keys, on file systems where case does not matter. Keys that existed before keep theirs."""

    def __init__(self, existing: Iterable[str]) -> None:
        self._existing = frozenset(existing)
        self._folders = {_folder(key): key for key in sorted(self._existing)}

    def require_free(self, key: str, owner: str) -> None:
        """Take the folder of a new key. Raises PartitionKeyError, which names the set with `owner`, if another key has
        it, and for a key that no partition can have."""
        if key in self._existing:
            return
        other = self._folders.setdefault(segment_of(key).lower(), key)
        if other != key:
            raise PartitionKeyError(
                f"The partition key {key!r} is new in {owner}, and {other!r} is one folder with it where case does not "
                f"matter, as on macOS. Use {other!r}, or rename the key."
            )


def _folder(key: str) -> str:
    """The folder of a key, where case does not matter; a key that no partition can have has none of its own."""
    try:
        return segment_of(key).lower()
    except PartitionKeyError:
        return ""


def key_of_revision(delivery: str, revision: int) -> str:
    """Return the partition key of a delivery's revision: of the first one, the delivery's name."""
    return delivery if revision == 1 else f"{delivery}@{revision}"


def revision_of(key: str) -> tuple[str, int]:
    """Return the delivery and the revision that a key names."""
    match = _REVISED.fullmatch(key)
    return (match["delivery"], int(match["number"])) if match else (key, 1)
