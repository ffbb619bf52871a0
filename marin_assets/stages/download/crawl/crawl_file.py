"""One file of a crawl: its name, and its state where it is stored."""

from __future__ import annotations

from dataclasses import dataclass

from marin_resources.storage.files import StoredFile

UNKNOWN_BYTES = -1
"""Size of a file of the web that was not requested yet."""


@dataclass(frozen=True, kw_only=True)
class CrawlFile:
    """A file, as its store or its server has it."""

    name: str
    """Path in the list, or below the folder. Documents have it, so it does not depend on the place."""
    path: str
    size_bytes: int
    """UNKNOWN_BYTES, and no etag, for a file of a long list of the web."""
    stored: StoredFile | None
    """State in a store; None for a file of the web."""
    etag: str = ""
    """The mark of a file of the web, which changes with it."""


@dataclass(frozen=True, kw_only=True)
class CrawlFileShard:
    """Work on one file."""

    file: CrawlFile
    output: str

    @property
    def inputs(self) -> tuple[StoredFile, ...]:
        """The file in a store. One of the web is compared with its listing by each request."""
        return () if self.file.stored is None else (self.file.stored,)

    @property
    def outputs(self) -> tuple[str, ...]:
        return (self.output,)
