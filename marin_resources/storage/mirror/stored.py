"""What a mirror knows of one file in one region, and what it asks of a store."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

PROTOCOL = "mirror"
SCHEME = PROTOCOL + "://"
SOURCE, GENERATION, COPY_ID = "marin-mirror-source", "marin-mirror-generation", "marin-mirror-id"
"""Names in the metadata of an object that is a copy."""
OWN_FILE = re.compile(r"\.(?P<name>.+)\.(?:mirror|[0-9a-f]{8}\.tmp)")
"""Names of a mirror's notes on a disk, and of files that are being written. They are no part of what is mirrored."""
CONTROL_FILE = re.compile(r"(?:.*/)?(?:\.executor_[^/]*|\.marin(?:/.*)?)")


class MirrorError(OSError):
    """A file that cannot be brought here: one sentence."""


class ChangedError(MirrorError):
    """A file was replaced while it was read or copied."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """What a copy is of."""

    path: str
    generation: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Stored:
    """One file in one region, at one moment."""

    path: str
    size_bytes: int
    generation: str
    checksum: str | None = None
    """As in `checksum.py`; None where the store has none."""
    origin: Origin | None = None
    """Of a copy that a mirror made; None of a file that was written here."""
    copy_id: str | None = None
    """Differs with every copy that is made."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """Content type and the like, which a copy keeps."""


class Store(Protocol):
    """One kind of store, as a mirror needs it."""

    def find(self, path: str) -> Stored | None:
        """The file at `path` by one request, without a listing."""

    def find_below(self, path: str) -> dict[str, Stored]:
        """Name below `path` -> file, of all files there; "" is the name of a file at `path` itself."""

    def read(self, stored: Stored, start: int, end: int) -> bytes:
        """Bytes of this very generation. Raises ChangedError if there is another now."""

    def take(
        self,
        source: Stored,
        target: str,
        origin: Origin,
        replaces: str | None,
        check: Callable[[], None],
        *,
        source_store: Store,
    ) -> None:
        """Make `target` a copy of `source` (in `source_store`), noted as one of `origin`: whole and verified, or not at
        all.

        Raises FileExistsError if another generation than `replaces` (None: nothing) is at `target`, and ChangedError
        if the source is replaced meanwhile. `check` is called before bytes are moved, and may raise.
        """


def is_control(relative: str) -> bool:
    """Whether it is a status, record, lease or log: these say something of their own region alone."""
    return CONTROL_FILE.fullmatch(relative) is not None


def is_own(name: str) -> bool:
    """Whether a name, or the last part of a path, is one of a mirror's own files."""
    return OWN_FILE.fullmatch(name.rpartition("/")[2]) is not None


def changed(path: str) -> ChangedError:
    return ChangedError(f"{path!r} was replaced while it was read. Open it again.")


def damaged(source: Stored, target: str, found: str) -> MirrorError:
    return MirrorError(
        f"The copy of {source.path!r} ({source.size_bytes} bytes, {source.checksum}) to {target!r} came out as "
        f"{found}, and was thrown away. Run again; if it happens twice, verify the source."
    )
