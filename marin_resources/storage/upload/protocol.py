"""The body of an upload, and the interface of a store that takes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Protocol


@dataclass(frozen=True, kw_only=True, slots=True)
class Body:
    """The first `size_bytes` bytes of a file, which may grow during the upload."""

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
    """Errors of `put` and `digest` when the store refuses or does not answer."""

    def put(self, body: Body, content_type: str, *, replace: bool) -> None:
        """Write the object; without `replace`, only if it does not exist."""

    def digest(self) -> tuple[int, str] | None:
        """Size in bytes and hexadecimal md5 of the stored object; None if it does not exist."""
