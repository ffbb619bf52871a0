"""Sorted runs of documents: the files between the two phases of a shuffle.

    <name>.runs        zstd frames, run after run; a run has one frame for each range
    <name>.runs.json   {"format_version": 1, "runs": [[start of each frame, …, end]], "bytes": [of each range]}

A line of a frame is the document's position as 16 hex digits, then its row as JSON. Sorting lines as bytes sorts them
by position, and documents of one id by row. The ranges of positions are equal.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any

from marin_assets.documents import Document
from marin_assets.documents.position import POSITIONS, position
from marin_assets.documents.rows import ZSTD_LEVEL
from marin_resources.storage.files import open_atomic, read_json, write_json
from marin_resources.storage.filesystems.filesystem import filesystem_of

RUNS = ".runs"
INDEX = ".json"
FORMAT_VERSION = 1
RUN_BYTES = 64 * 1024**2
"""Size of the lines that are sorted together in memory."""
DIGITS = 16


def row_line(document: Document, salt: str) -> bytes:
    """Return the document's position and row as a line, with its newline."""
    return f"{position(document.id, salt):016x}{json.dumps(document.row(), ensure_ascii=False)}\n".encode()


def write_run_file(path: str, lines: Iterable[bytes], ranges: int) -> None:
    """Write lines as runs, then their index, in flat memory."""
    runs: list[list[int]] = []
    sizes = [0] * ranges
    with open_atomic(path, replace=False) as out:
        for run in _runs(lines):
            runs.append(_write_run(out, run, runs[-1][-1] if runs else 0, sizes))
    write_json(path + INDEX, {"format_version": FORMAT_VERSION, "runs": runs, "bytes": sizes}, replace=False)


def read_index(path: str) -> dict[str, Any]:
    return read_json(path)


def read_range(path: str, index: int) -> Iterator[bytes]:
    """Yield the lines of one range, run after run."""
    import zstandard

    fs, p = filesystem_of(path)
    decompressor = zstandard.ZstdDecompressor()
    for starts in read_index(path + INDEX)["runs"]:
        start, end = starts[index : index + 2]
        if start < end:
            yield from decompressor.decompress(fs.cat_file(p, start=start, end=end)).splitlines(keepends=True)


def write_lines(path: str, lines: Iterable[bytes]) -> None:
    """Write lines without their positions, as a shard of documents."""
    import zstandard

    compressor = zstandard.ZstdCompressor(level=ZSTD_LEVEL)
    with open_atomic(path, replace=False) as raw, compressor.stream_writer(raw, closefd=False) as out:
        for line in lines:
            out.write(line[DIGITS:])


def _runs(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    run: list[bytes] = []
    size = 0
    for line in lines:
        run.append(line)
        size += len(line)
        if size >= RUN_BYTES:
            yield run
            run, size = [], 0
    if run:
        yield run


def _write_run(out: IO[bytes], run: Sequence[bytes], start: int, sizes: list[int]) -> list[int]:
    """Write one run. Returns the start of each of its frames, and the end of the last."""
    import zstandard

    compressor = zstandard.ZstdCompressor(level=ZSTD_LEVEL)
    frames: list[list[bytes]] = [[] for _ in sizes]
    for line in sorted(run):
        frames[int(line[:DIGITS], 16) * len(sizes) // POSITIONS].append(line)
    starts = [start]
    for index, frame in enumerate(frames):
        rows = b"".join(frame)
        sizes[index] += len(rows)
        data = compressor.compress(rows) if rows else b""
        out.write(data)
        starts.append(starts[-1] + len(data))
    return starts
