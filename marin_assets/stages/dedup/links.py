"""Link documents that agree in a band, by sorting one range of one band's hashes at a time.

A document number is the index of its shard times 2^32, plus its row from 0. Each document is linked to the first of the
documents with the same hash. A link is two little-endian u64: (first, other).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from marin_assets.stages.dedup.bands import SLOTS, read_band
from marin_assets.stages.dedup.minhash import MinHash
from marin_resources.ray_tpu.shards.file_shards import FileShard
from marin_resources.storage.files import StoredFile, open_atomic, read_bytes, write_bytes
from marin_resources.storage.paths import join
from marin_resources.types.errors import MarinError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LINK_BYTES = 16
LISTING = "bands.json.zst"
"""Every range of every band reads it. Compressed, it takes some bytes for each band file."""
RANGE_DOCUMENTS = 1 << 22
"""Documents of a band that are sorted at once, in about 300 MB. This holds up to a billion documents."""


class LinkFileError(MarinError, ValueError):
    """A damaged file of links."""


@dataclass(frozen=True, kw_only=True)
class LinkConfig:
    """The config of `link_band`: the keys of one band whose first byte is in first_slot .. end_slot - 1."""

    listing_path: str
    """The list of all band files with their sizes."""
    minhash: MinHash
    band: int
    first_slot: int
    end_slot: int


def ranges_for(documents: int) -> list[range]:
    """Return ranges of slots. Their number is a power of two, so none has many more than RANGE_DOCUMENTS keys."""
    count = 1
    while documents > RANGE_DOCUMENTS * count and count < SLOTS:
        count *= 2
    return [range(start, start + SLOTS // count) for start in range(0, SLOTS, SLOTS // count)]


def link_band(shard: FileShard) -> dict[str, int]:
    """Write the links of one range of one band. The input is the folder of all band files. Returns links.

    Raises BandFileError.
    """
    config: LinkConfig = shard.config
    [target] = shard.outputs
    links = links_among(*band_of(read_listing(config.listing_path), config))
    with open_atomic(target, replace=False) as out:
        out.write(links.astype("<u8").tobytes())
    return {"links": len(links)}


def write_listing(path: str, files: Sequence[tuple[str, int]]) -> None:
    """Write the list of all band files: (name below `bands` beside the list, size in bytes)."""
    import zstandard

    write_bytes(path, zstandard.compress(json.dumps(list(zip(*files, strict=True))).encode()))


def read_listing(path: str) -> list[StoredFile]:
    """Return the band files that `write_listing` listed, without their stamps."""
    import zstandard

    names, sizes = json.loads(zstandard.decompress(read_bytes(path)))
    folder = join(path.rpartition("/")[0], "bands")
    return [
        StoredFile(path=join(folder, name), name=name, size_bytes=size, stamp="")
        for name, size in zip(names, sizes, strict=True)
    ]


def band_of(files: list[StoredFile], config: LinkConfig) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return (keys, documents) of all shards, shard by shard."""
    import numpy as np

    keys, documents = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)]
    for shard, file in enumerate(files):
        for band_keys, rows in read_band(file, config.minhash, config.band, range(config.first_slot, config.end_slot)):
            keys.append(band_keys)
            documents.append(rows + np.uint64(shard << 32))
    return np.concatenate(keys), np.concatenate(documents)


def links_among(keys: NDArray[np.uint64], documents: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the links [n, 2] of documents with equal keys, ordered by key, then document."""
    import numpy as np

    order = np.lexsort((documents, keys))
    keys, documents = keys[order], documents[order]
    same = np.zeros(len(keys), bool)
    same[1:] = keys[1:] == keys[:-1]
    firsts = np.flatnonzero(~same)
    others = np.flatnonzero(same)
    return np.stack([documents[firsts[np.searchsorted(firsts, others) - 1]], documents[others]], axis=1)


def read_links(path: str) -> NDArray[np.uint64]:
    """Return the links [n, 2] of a file. Raises LinkFileError."""
    import numpy as np

    data = read_bytes(path)
    if len(data) % LINK_BYTES:
        raise LinkFileError(f"{path!r} has {len(data):,} bytes, expected a multiple of {LINK_BYTES}. Remove it.")
    return np.frombuffer(data, "<u8").astype(np.uint64).reshape(-1, 2)
