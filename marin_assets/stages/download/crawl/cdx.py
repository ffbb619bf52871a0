"""The index of a crawl: a line for each capture, sorted by the reversed host and the path of its address.

    org,wikipedia,an)/wiki/escopete 20240518015810 {"url": …, "status": …, "filename": …, "offset": …, "length": …}

The lines are in files cdx-00000.gz, …, in gzip members of 3,000 lines. `cluster.idx` has the first key, the file, the
offset and the length of each member, so a query for a domain reads the members that can have it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from marin_assets.stages.download.warc.members import Readable
from marin_assets.stages.download.warc.record import CrawlError

CLUSTER = "cluster.idx"
INFLATED_BYTES = 2**20
MAX_LINE_BYTES = 2**24
LINE_BYTES = 2**16
"""Longest line of cluster.idx. An address in it has at most 2 kB."""


@dataclass(frozen=True, kw_only=True)
class Block:
    """A gzip member of lines, or several that follow one another in a file."""

    file: str
    offset: int
    length: int


def key_ranges(domains: Sequence[str], hosts: Sequence[str]) -> list[tuple[str, str]]:
    """Ranges of keys, from the first to below the second: of domains with their subdomains, and of hosts alone."""
    ranges = []
    for name in {domain.lower().strip(".") for domain in domains}:
        key = ",".join(reversed(name.split(".")))
        ranges += [(f"{key})", f"{key}-"), (f"{key}:", f"{key};")]
    for name in {host.lower().strip(".").removeprefix("www.") for host in hosts}:
        key = ",".join(reversed(name.split(".")))
        ranges += [(f"{key})", f"{key}*"), (f"{key}:", f"{key};")]
    return sorted(ranges)


def in_ranges(key: str, ranges: Sequence[tuple[str, str]]) -> bool:
    """Whether a key is in one of the ranges, or none is given."""
    return not ranges or any(first <= key < behind for first, behind in ranges)


def blocks_of(cluster: Readable, ranges: Sequence[tuple[str, str]], most_bytes: int) -> list[Block]:
    """The blocks that can have keys of the ranges, all without ranges; neighbours are joined up to `most_bytes`.

    Raises CrawlError for a line that is none of cluster.idx.
    """
    chosen: dict[tuple[str, int], Block] = {}
    for first, behind in ranges or [("", "\U0010ffff")]:
        for key, block in _lines_from(cluster, _line_before(cluster, first)):
            if key >= behind:
                break
            chosen[block.file, block.offset] = block
    joined: list[Block] = []
    for block in sorted(chosen.values(), key=lambda block: (block.file, block.offset)):
        last = joined[-1] if joined else None
        follows = last is not None and (last.file, last.offset + last.length) == (block.file, block.offset)
        if last is not None and follows and last.length + block.length <= most_bytes:
            joined[-1] = Block(file=last.file, offset=last.offset, length=last.length + block.length)
        else:
            joined.append(block)
    return joined


def _line_before(cluster: Readable, key: str) -> int:
    """The offset of the last line whose key is at most `key`, 0 without one: the block before may end with it."""
    low, high = 0, cluster.size_bytes
    while high - low > 1:
        middle = (low + high) // 2
        start = _line_start(cluster, middle)
        if start is None or start >= high:
            high = middle
        elif next(_lines_from(cluster, start))[0] <= key:
            low = start
        else:
            high = middle
    return low


def _line_start(cluster: Readable, offset: int) -> int | None:
    """The offset of the first line that begins at `offset` or behind it; None without one."""
    if offset == 0:
        return 0
    at = offset - 1
    while at < cluster.size_bytes and (data := cluster.read_at(at, LINE_BYTES)):
        if (end := data.find(b"\n")) >= 0:
            return at + end + 1 if at + end + 1 < cluster.size_bytes else None
        at += len(data)
    return None


def _lines_from(cluster: Readable, offset: int) -> Iterator[tuple[str, Block]]:
    held = b""
    while offset < cluster.size_bytes or held:
        data = cluster.read_at(offset, LINE_BYTES)
        offset += len(data)
        *lines, held = (held + data).split(b"\n")
        for line in lines if data else [held]:
            yield _parsed(line)
        if not data:
            return
        if len(held) > LINE_BYTES:
            raise CrawlError(f"{CLUSTER!r} has a line of more than {LINE_BYTES} bytes. Download it again.")


def _parsed(line: bytes) -> tuple[str, Block]:
    parts = line.decode("utf-8", "replace").split("\t")
    if len(parts) < 4 or not parts[2].isdecimal() or not parts[3].isdecimal() or "/" in parts[1]:
        raise CrawlError(
            f"{CLUSTER!r} has the line {line[:200]!r}, expected a key, a file, an offset and a length, with "
            "tabs between them. Download it again."
        )
    return parts[0].partition(" ")[0], Block(file=parts[1], offset=int(parts[2]), length=int(parts[3]))


def lines_of(file: Readable, block: Block) -> Iterator[bytes]:
    """Yield the lines of a block. Raises CrawlError for one that is damaged or cut."""
    position, end, rest = block.offset, block.offset + block.length, b""
    inflate = None
    try:
        while position < end:
            data = file.read_at(position, min(LINE_BYTES, end - position))
            if not data:
                raise EOFError(f"the file ends at {position}")
            position += len(data)
            while data:
                inflate = inflate or zlib.decompressobj(31)
                *lines, rest = (rest + inflate.decompress(data, INFLATED_BYTES)).split(b"\n")
                yield from lines
                if len(rest) > MAX_LINE_BYTES:
                    raise EOFError(f"it has a line of more than {MAX_LINE_BYTES} bytes")
                data = inflate.unused_data if inflate.eof else inflate.unconsumed_tail
                inflate = None if inflate.eof else inflate
        if inflate is not None:
            raise EOFError("its last gzip member is not whole")
        if rest:
            yield rest
    except (zlib.error, EOFError) as error:
        raise CrawlError(
            f"The index file {block.file!r} is damaged between the bytes {block.offset} and {end} ({error}). "
            "Download it again."
        ) from error
