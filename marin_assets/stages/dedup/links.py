"""Linking: documents that agree in a band, found by sorting one range of one band's hashes at a time.

A document is a number: the index of its shard times 2^32, plus its row from 0. Of those that agree, each is linked to
the first. A link is two u64, little-endian: (first, other).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from marin_assets.stages.dedup.bands import SLOTS, read_band
from marin_assets.stages.dedup.minhash import MinHash
from marin_resources.ray_tpu.shards.file_shards import FileShard
from marin_resources.storage.files import StoredFile, open_atomic, read_bytes, read_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LINK_BYTES = 16
RANGE_DOCUMENTS = 1 << 22
"""Documents of a band that are sorted at once, in about 300 MB; up to a billion documents."""


class LinkFileError(ValueError):
    """A file that holds no links."""


@dataclass(frozen=True, kw_only=True)
class LinkConfig:
    minhash: MinHash
    band: int
    first_slot: int
    end_slot: int
    """Of the keys' first byte."""


def ranges_for(documents: int) -> list[range]:
    """Ranges of slots, a power of two of them, so that none has many more than RANGE_DOCUMENTS keys."""
    count = 1
    while documents > RANGE_DOCUMENTS * count and count < SLOTS:
        count *= 2
    return [range(start, start + SLOTS // count) for start in range(0, SLOTS, SLOTS // count)]


def link_band(shard: FileShard) -> dict[str, int]:
    """Write the links of one range of one band. The input is the list of all band files. Returns links."""
    config: LinkConfig = shard.config
    [index], [target] = shard.inputs, shard.outputs
    files = [StoredFile(path=path, name="", size_bytes=size, stamp="") for path, size in read_json(index.path)]
    links = links_among(*band_of(files, config))
    with open_atomic(target, replace=False) as out:
        out.write(links.astype("<u8").tobytes())
    return {"links": len(links)}


def band_of(files: list[StoredFile], config: LinkConfig) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """(keys, documents) of all shards, by document."""
    import numpy as np

    keys, documents = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)]
    for shard, file in enumerate(files):
        for found, rows in read_band(file, config.minhash, config.band, range(config.first_slot, config.end_slot)):
            keys.append(found)
            documents.append(rows + np.uint64(shard << 32))
    return np.concatenate(keys), np.concatenate(documents)


def links_among(keys: NDArray[np.uint64], documents: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Links [n, 2] of documents with one key, ordered by key, then document."""
    import numpy as np

    order = np.lexsort((documents, keys))
    keys, documents = keys[order], documents[order]
    same = np.zeros(len(keys), bool)
    same[1:] = keys[1:] == keys[:-1]
    firsts = np.flatnonzero(~same)
    others = np.flatnonzero(same)
    return np.stack([documents[firsts[np.searchsorted(firsts, others) - 1]], documents[others]], axis=1)


def read_links(path: str) -> NDArray[np.uint64]:
    """Links [n, 2]. Raises LinkFileError."""
    import numpy as np

    data = read_bytes(path)
    if len(data) % LINK_BYTES:
        raise LinkFileError(f"{path!r} has {len(data):,} bytes, which are no links of {LINK_BYTES}. Remove it.")
    return np.frombuffer(data, "<u8").astype(np.uint64).reshape(-1, 2)
