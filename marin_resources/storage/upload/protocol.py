"""What is uploaded, and what a store does for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Protocol


@dataclass(frozen=True, kw_only=True, slots=True)
class Body:
    """What is to be uploaded: so many bytes of a file, which may grow meanwhile."""

    file: IO[bytes]
    size_bytes: int
    md5: bytes

    def read(self, start: int, length: int) -> bytes:
        self.file.seek(start)
        return self.file.read(min(length, self.size_bytes - start))

    def parts(self, part_bytes: int) -> Iterator[bytes]:
        for start in range(0, self.size_bytes, part_bytes):
            yield self.read(start, part_bytes)


class Target(Protocol):
    """An object in one kind of store."""

    errors: tuple[type[BaseException], ...]
    """What `put` and `digest` raise when the store refused, or did not answer."""

    def put(self, body: Body, content_type: str, *, replace: bool) -> None:
        """Write the object, without `replace` only if there is none."""

    def digest(self) -> tuple[int, str] | None:
        """Bytes and hexadecimal md5 of what is there; None if there is nothing."""
