"""Token caches in which every sequence says which it is: sequence i of a member is full of the token base + i."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from marin_assets.stages.tokenize.cache import Names, write_shard, write_split
from marin_assets.stages.tokenize.tokenize import tokenizer_digest

SEQUENCE = 32
"""Tokens."""


def write_numbered(
    path: Path, tokenizer_path: str, base: int, sequences: int, *, validation: int = 0, shards: int = 1
) -> str:
    """Write a train side, and a validation side of the same tokens if it has any sequences. Returns the path."""
    metadata = {"tokenizer_sha256": tokenizer_digest(tokenizer_path)}
    for split, length in (("train", sequences), ("validation", validation)):
        if not length:
            continue
        parts = np.array_split(np.arange(base, base + length, dtype=np.int32), shards)
        names = [f"{number:05d}" for number in range(len(parts))]
        for name, part in zip(names, parts, strict=True):
            ends = np.arange(1, len(part) + 1, dtype=np.int64) * SEQUENCE
            each = Names([f"{token}" for token in part], [f"{token}" for token in part])
            write_shard(str(path / split / name), np.repeat(part, SEQUENCE), ends, each, metadata)
        write_split(str(path / split), names, metadata)
    return str(path)
