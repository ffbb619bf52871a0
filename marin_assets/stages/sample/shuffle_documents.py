"""Shuffle all documents together.

In:  documents.
Out: the same documents in `shards` shards, in the order of a hash of their ids. The order depends on the documents and
     the seed, not on the shards of the input.

Two phases. First, each shard of documents is written to `.marin/shuffle` as sorted runs, with a zstd frame for each
output shard (`runs.py`). Then each output shard reads its frames, sorts them and writes the documents. The first phase
holds 64 MB of documents in memory, the second a whole output shard: choose `shards` so that one has 100 to 500 MB of
text. The runs take the disk space of the documents once more, until the end.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

from marin_assets.documents import document_files, document_shards, read_documents, shard_name
from marin_assets.documents.position import SampleError
from marin_assets.stages.sample.runs import INDEX, RUNS, read_index, read_range, row_line, write_lines, write_run_file
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.shards.file_shards import FileShard, folder_state
from marin_resources.ray_tpu.shards.map_shards import Counts, map_shards
from marin_resources.storage.files import remove_folder, stored_files
from marin_resources.storage.paths import join

FOLDER = ".marin/shuffle"
MAX_SHARD_BYTES = 4 * 1024**3
"""A larger output shard is refused, because it is sorted in memory."""


@dataclass(frozen=True, kw_only=True)
class ShuffleDocumentsConfig:
    documents_path: str
    """Documents to shuffle."""
    output_path: str = THIS_OUTPUT_PATH
    shards: int = versioned(64)
    """Number of output shards. The order of all documents does not depend on it."""
    seed: int = versioned(0)

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


@dataclass(frozen=True, kw_only=True)
class Scatter:
    """Config of a shard of `scatter_shard`."""

    shards: int
    seed: int


@dataclass(frozen=True, kw_only=True)
class PositionRange:
    """Config of a shard of `write_shard`."""

    index: int


def shuffle_documents(config: ShuffleDocumentsConfig) -> Counts:
    """Write all documents in a new order. Returns documents, bytes, shards, shards_empty, documents_unaccounted (0).

    Raises SampleError if a shard would be too large to sort in memory.
    """
    _check(config)
    folder, documents = join(config.output_path, FOLDER), document_files(config.documents_path)
    first = [
        dataclasses.replace(shard, outputs=(*shard.outputs, *(path + INDEX for path in shard.outputs)))
        for shard in document_shards(documents, folder, Scatter(shards=config.shards, seed=config.seed), suffix=RUNS)
    ]
    read = map_shards(scatter_shard, first, output_path=config.output_path)
    written = map_shards(write_shard, list(_shards(config, folder)), output_path=config.output_path)
    remove_folder(folder)
    return {
        "documents": read["documents"],
        "bytes": read["bytes"],
        "shards": config.shards,
        "shards_empty": written["shards_empty"],
        "documents_unaccounted": read["documents"] - written["documents"],
        **documents.counts,
    }


def _check(config: ShuffleDocumentsConfig) -> None:
    if isinstance(config.shards, bool) or not isinstance(config.shards, int) or config.shards < 1:
        raise SampleError(f"A shuffle has shards={config.shards!r}, expected a whole number of at least 1.")


def scatter_shard(shard: FileShard) -> Counts:
    """Write one file of runs for each file of documents."""
    scatter: Scatter = shard.config
    counts = {"documents": 0, "bytes": 0}
    for file, output in zip(shard.inputs, shard.outputs, strict=False):
        write_run_file(output, _lines(file.path, scatter.seed, counts), scatter.shards)
    return dict(counts)


def _lines(path: str, seed: int, counts: dict[str, int]) -> Iterator[bytes]:
    for document in read_documents(path):
        counts["documents"] += 1
        counts["bytes"] += len(document.text.encode())
        yield row_line(document, f"shuffle/{seed}/")


def _shards(config: ShuffleDocumentsConfig, folder: str) -> Iterator[FileShard]:
    """Yield the output shards. The input of each is its part of the folder of all runs."""
    runs = folder_state(folder)
    sizes = [0] * config.shards
    for file in stored_files(folder):
        if file.path.endswith(INDEX):
            sizes = [a + b for a, b in zip(sizes, read_index(file.path)["bytes"], strict=True)]
    if max(sizes) > MAX_SHARD_BYTES:
        raise SampleError(
            f"A shard of the shuffle would have {max(sizes):,} bytes, expected at most {MAX_SHARD_BYTES:,}, as it is "
            f"sorted in memory. Pass more than shards={config.shards}: {sum(sizes) // 2**28 + 1} make 256 MB each."
        )
    for index, size in enumerate(sizes):
        yield FileShard(
            inputs=(dataclasses.replace(runs, size_bytes=size),),
            outputs=(join(config.output_path, shard_name(index, config.shards)),),
            config=PositionRange(index=index),
        )


def write_shard(shard: FileShard) -> Counts:
    """Sort the documents of one output shard, and write them."""
    positions: PositionRange = shard.config
    [folder], [output] = shard.inputs, shard.outputs
    runs = [file.path for file in stored_files(folder.path) if file.path.endswith(RUNS)]
    lines = sorted(line for path in runs for line in read_range(path, positions.index))
    write_lines(output, lines)
    return {"documents": len(lines), "shards_empty": int(not lines)}
