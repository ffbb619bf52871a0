"""Shards of files: a group of input files, one output file for each, and what is asked of them.

A group is what one task works on and what is finished or not. It depends on the files alone, never on how many cores
there are, so a stage that was killed finds its groups again on another machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from marin_resources.storage.files import StoredFile

MAX_GROUP_BYTES = 256 * 1024**2
"""Some minutes of work: what is lost with a worker."""
LEAST_GROUPS = 256
"""So many files are a group each; of more, small ones share one."""


@dataclass(frozen=True, kw_only=True)
class FileShard:
    """What one task works on. Its function creates every output, whole or not at all."""

    inputs: tuple[StoredFile, ...]
    outputs: tuple[str, ...]
    """Paths, one for each input."""
    config: Any
    """What is asked of the files, a frozen dataclass. Another config is another shard."""

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.inputs)


def file_shards(files: Sequence[StoredFile], outputs: Sequence[str], *, config: Any) -> list[FileShard]:
    """Neighbours in groups: at most 256 groups of small files, none much above 256 MB unless one file is."""
    total = sum(file.size_bytes for file in files)
    target = min(MAX_GROUP_BYTES, total // LEAST_GROUPS) if len(files) > LEAST_GROUPS else 0
    return [
        FileShard(inputs=tuple(files[a:b]), outputs=tuple(outputs[a:b]), config=config)
        for a, b in _groups([file.size_bytes for file in files], target)
    ]


def _groups(sizes: Sequence[int], target: int) -> Iterator[tuple[int, int]]:
    start, total = 0, 0
    for end, size in enumerate(sizes, start=1):
        total += size
        if total >= target:
            yield start, end
            start, total = end, 0
    if start < len(sizes):
        yield start, len(sizes)
