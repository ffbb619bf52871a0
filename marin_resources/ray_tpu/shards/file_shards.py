"""Shards of files: a group of input files, one output file for each, and their config.

One task processes one group, which is finished or not as a whole. Groups depend on the files alone, never on the number
of cores, so a killed stage finds its groups again on another machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from marin_resources.storage.files import StoredFile, stored_files

MAX_GROUP_BYTES = 256 * 1024**2
"""Some minutes of work, which a lost worker loses."""
MAX_SMALL_GROUPS = 256
"""Up to this many files are a group each. More small files share at most this many groups, and one for the rest."""


class Shard(Protocol):
    """The unit of work of one task: a frozen dataclass with all that its function needs."""

    @property
    def inputs(self) -> tuple[StoredFile, ...]:
        """All files that the function reads, as listed. If one changes, the shard is another one, and runs again."""


@dataclass(frozen=True, kw_only=True)
class FileShard:
    """Work on files. Its function creates every output, whole or not at all."""

    inputs: tuple[StoredFile, ...]
    outputs: tuple[str, ...]
    """Paths, one for each input."""
    config: Any
    """The processing of the files, a frozen dataclass. Another config is another shard."""
    also_read: tuple[StoredFile, ...] = ()
    """Files that the function also reads: a tokenizer, a model, attributes. Their state is the shard's too."""


def file_shards(
    files: Sequence[StoredFile], outputs: Sequence[str], *, config: Any, also_read: Sequence[StoredFile] = ()
) -> list[FileShard]:
    """Group neighbouring files: at most 256 groups of small files, none much above 256 MB unless one file is."""
    total_bytes = sum(file.size_bytes for file in files)
    target_bytes = min(MAX_GROUP_BYTES, total_bytes // MAX_SMALL_GROUPS) if len(files) > MAX_SMALL_GROUPS else 0
    return [
        FileShard(inputs=tuple(files[a:b]), outputs=tuple(outputs[a:b]), config=config, also_read=tuple(also_read))
        for a, b in _groups([file.size_bytes for file in files], target_bytes)
    ]


@dataclass(frozen=True, kw_only=True, slots=True)
class FolderState(StoredFile):
    """A folder as one file: its stamp is a digest of its listing."""


def folder_state(path: str) -> FolderState:
    """Return the state of a folder of which a shard reads many files.

    Raises FileNotFoundError if nothing exists at `path`.
    """
    files = stored_files(path)
    digest = hashlib.sha256(repr([(file.name, file.size_bytes, file.stamp) for file in files]).encode()).hexdigest()
    return FolderState(path=path, name="", size_bytes=sum(file.size_bytes for file in files), stamp=digest)


def _groups(sizes: Sequence[int], target_bytes: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of each group of neighbours, closed at `target_bytes`."""
    start, total = 0, 0
    for end, size in enumerate(sizes, start=1):
        total += size
        if total >= target_bytes:
            yield start, end
            start, total = end, 0
    if start < len(sizes):
        yield start, len(sizes)
