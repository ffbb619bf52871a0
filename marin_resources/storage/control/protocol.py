"""The interface of a store for control files, and its two errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from marin_resources.types.errors import MarinError


class ConflictError(MarinError):
    """The file has another generation than the writer expected: another process has written it."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path!r} was changed by another process in the meantime.")


class UnavailableError(MarinError, OSError):
    """The store did not answer, or not clearly. A write may have succeeded or not."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A control file as it was at one moment."""

    data: bytes
    generation: str


class ControlFiles(Protocol):
    """One kind of store."""

    def read(self, path: str) -> Snapshot | None:
        """The file, or None if it does not exist. Raises UnavailableError, and ControlFileError for a folder there."""

    def write(self, path: str, data: bytes, expected: str | None) -> str:
        """Compare and swap; return the new generation. Raises ConflictError and UnavailableError."""

    def delete(self, path: str, expected: str) -> None:
        """Remove this generation of the file. Raises ConflictError if another or none exists, and UnavailableError."""
