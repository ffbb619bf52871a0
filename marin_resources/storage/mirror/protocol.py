"""A file of a mirror in one region, a copy to make, and the interface of a store."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from marin_resources.types.errors import MarinError

PROTOCOL = "mirror"
SCHEME = PROTOCOL + "://"
SOURCE, GENERATION, COPY_ID = "marin-mirror-source", "marin-mirror-generation", "marin-mirror-id"
"""Keys in the metadata of an object that is a copy."""
OWN_FILE = re.compile(r"\.(?P<name>.+)\.(?:mirror|[0-9a-f]{8}\.tmp)")
"""Names of a mirror's notes on a disk, and of files that are being written. They are not mirrored."""
CONTROL_FILE = re.compile(r"(?:.*/)?(?:\.executor_[^/]*|\.marin(?:/.*)?)")


class MirrorError(MarinError, OSError):
    """A file that cannot be copied: one sentence."""


class ChangedError(MirrorError):
    """A file was replaced while it was read or copied."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """The file that a copy was made from."""

    path: str
    generation: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Stored:
    """One file in one region, at one moment."""

    path: str
    size_bytes: int
    generation: str
    checksum: str | None = None
    """As in `checksum.py`; None if the store has none."""
    origin: Origin | None = None
    """Origin of a copy that a mirror made; None for a file that was written in the region."""
    copy_id: str | None = None
    """Different for every copy."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """Content type and similar metadata, which a copy keeps."""


class Store(Protocol):
    """One kind of store, with the operations that a mirror needs."""

    def find(self, path: str) -> Stored | None:
        """The file at `path`, by one request and without a listing; None if it does not exist."""

    def find_below(self, path: str) -> dict[str, Stored]:
        """Name below `path` -> file, of every file there; "" is the name of a file at `path` itself."""

    def read(self, stored: Stored, start: int, end: int) -> bytes:
        """Bytes of this generation of the file. Raises ChangedError if it has another by now."""

    def write_copy(self, copy: FileCopy) -> None:
        """Make the copy, whole and verified, or not at all.

        Raises FileExistsError if the target has another generation than the one to replace, and ChangedError if the
        source is replaced meanwhile.
        """


@dataclass(frozen=True, kw_only=True, slots=True)
class FileCopy:
    """A copy to make of one file."""

    source: Stored
    source_store: Store
    target: str
    origin: Origin
    """Recorded with the copy. It is the source, or the source's own origin."""
    replaces: str | None = None
    """Generation to replace at the target; None: the target must not exist."""
    check: Callable[[], None] = lambda: None
    """Called before bytes are moved; may raise."""


def is_control(relative: str) -> bool:
    """Whether it is a status, record, lease or log: these describe an output of their own region alone."""
    return CONTROL_FILE.fullmatch(relative) is not None


def is_own(name: str) -> bool:
    """Whether a name, or the last part of a path, is a mirror's own file."""
    return OWN_FILE.fullmatch(name.rpartition("/")[2]) is not None


def changed(path: str) -> ChangedError:
    return ChangedError(f"{path!r} was replaced while it was read. Open it again.")


def damaged(copy: FileCopy, content: str) -> MirrorError:
    return MirrorError(
        f"The copy of {copy.source.path!r} ({copy.source.size_bytes} bytes, {copy.source.checksum}) to {copy.target!r} "
        f"has {content}, and was removed. Run again; if it happens twice, verify the source."
    )
