"""Shards of a crawl's files: ranges of bytes, the records that begin in each, and their counts.

A shard owns the gzip members that begin in its range, so the records of all shards, in order, are those of the files,
in order, however the files are divided. A file of another kind is one range.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from marin_assets.stages.download.crawl.crawl_file import UNKNOWN_BYTES, CrawlFile
from marin_assets.stages.download.crawl.damage import lose
from marin_assets.stages.download.warc.members import Readable, next_member
from marin_assets.stages.download.warc.record import CrawlError, Damage, Record
from marin_assets.stages.download.warc.streams import is_divisible, records_from
from marin_resources.storage.files import StoredFile
from marin_resources.storage.paths import join

EVERY_S = 5.0
log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A range of a file's bytes."""

    file: CrawlFile
    start: int
    end: int


@dataclass(frozen=True, kw_only=True)
class CrawlShard:
    """Pieces that follow one another, whose documents are in one output file."""

    pieces: tuple[Piece, ...]
    output: str
    config: Any

    @property
    def inputs(self) -> tuple[StoredFile, ...]:
        """The files of a store. Those of the web are compared with their listing by each request."""
        return tuple(piece.file.stored for piece in self.pieces if piece.file.stored is not None)

    @property
    def outputs(self) -> tuple[str, ...]:
        return (self.output,)


def crawl_shards(files: Sequence[CrawlFile], config: Any) -> list[CrawlShard]:
    """Return shards of about `config.shard_bytes`: small files share one, and a large gzip file is divided."""
    groups = divided(files, config.shard_bytes, lambda file: file.name.lower().endswith(".gz"))
    digits = max(5, len(str(len(groups))))
    return [
        CrawlShard(
            pieces=tuple(pieces),
            output=join(
                config.output_path, f"part-{index:0{digits}d}-of-{len(groups):0{digits}d}{config.output_format}"
            ),
            config=config,
        )
        for index, pieces in enumerate(groups)
    ]


def divided(
    files: Sequence[CrawlFile], shard_bytes: int, is_divisible: Callable[[CrawlFile], bool]
) -> list[list[Piece]]:
    """Return groups of pieces of about `shard_bytes`, in the order of the files. A file of unknown size is a group."""
    groups: list[list[Piece]] = []
    size = 0
    for file in files:
        parts = round(file.size_bytes / shard_bytes) if is_divisible(file) else 1
        parts = max(1, parts)
        borders = [file.size_bytes * part // parts for part in range(parts + 1)]
        for start, end in pairwise(borders):
            if not groups or size + end - start > shard_bytes or file.size_bytes == UNKNOWN_BYTES:
                groups.append([])
                size = 0
            groups[-1].append(Piece(file=file, start=start, end=end))
            size += end - start if file.size_bytes != UNKNOWN_BYTES else shard_bytes
    return groups


def records_of(file: Readable, piece: Piece, config: Any, counts: Counter[str]) -> Iterator[tuple[Record, bool]]:
    """Yield each record that begins in the range and is counted, with True; then with False the ones behind the range.

    A damage is counted under its reason and named in the log. Raises CrawlError for a cut file, unless
    `config.allow_cut_files`.
    """
    is_divided = (piece.start, piece.end) != (0, piece.file.size_bytes)
    if is_divided and not is_divisible(file):
        if piece.start > 0:
            return
        is_divided = False
    first_behind: int | None = None
    is_owned = True
    for item in records_from(file, piece.file.name, piece.start):
        if is_divided and is_owned and item.offset >= piece.end:
            first_behind = next_member(file, piece.end) if first_behind is None else first_behind
            is_owned = isinstance(item, Damage) and (first_behind is None or item.offset < first_behind)
            if not is_owned and item.offset != first_behind:
                raise CrawlError(
                    f"The file {piece.file.name!r} has a record at byte {item.offset} and what looks like one at byte "
                    f"{first_behind}, within the record before: a WARC file in a WARC file. Raise shard_bytes to "
                    f"{piece.file.size_bytes}, so that the file is not divided."
                )
        if not is_owned:
            if isinstance(item, Damage):
                return
            yield item, False
            continue
        counts["records"] += 1
        if isinstance(item, Damage):
            _count_damage(item, piece, config, counts)
        else:
            yield item, True


def _count_damage(damage: Damage, piece: Piece, config: Any, counts: Counter[str]) -> None:
    place = f"{piece.file.name!r} at byte {damage.offset}"
    is_last = damage.reason == "cut_record" or not piece.file.name.lower().endswith(".gz")
    if is_last and not config.allow_cut_files:
        raise CrawlError(
            f"The file {place} is damaged and has no record after it ({damage.reason}: {damage.detail}). Download it "
            "again, or pass allow_cut_files=True to take the records before it."
        )
    lose(counts, (damage.reason, damage.detail), place)


class CountProgress:
    """Logs a line every five seconds within a file: what was read of it, and the rate."""

    def __init__(self, name: str, texts: str) -> None:
        self._name, self._texts = name, texts
        self._began_s = self._logged_at_s = time.monotonic()

    def at(self, count: int) -> None:
        now_s = time.monotonic()
        if now_s - self._logged_at_s < EVERY_S:
            return
        self._logged_at_s = now_s
        log.info("%s: %s %s, %s %s/s", self._name, f"{count:,}", self._texts,
                 f"{count / (now_s - self._began_s):,.0f}", self._texts)  # fmt: skip


class Progress:
    """Logs a line every five seconds within a shard: bytes, rate and time left."""

    def __init__(self, shard: CrawlShard) -> None:
        self._name = shard.output.rpartition("/")[2].partition(".")[0]
        self._all_bytes = sum(max(0, piece.end - piece.start) for piece in shard.pieces)
        self._before, self._start = 0, 0
        self._began_s = self._logged_at_s = time.monotonic()

    def begin(self, piece: Piece) -> None:
        self._start = piece.start

    def end(self, piece: Piece) -> None:
        self._before += max(0, piece.end - piece.start)

    def at(self, offset: int, documents: int) -> None:
        now_s = time.monotonic()
        if now_s - self._logged_at_s < EVERY_S:
            return
        self._logged_at_s = now_s
        elapsed_s, done = now_s - self._began_s, self._before + max(0, offset - self._start)
        left_s = elapsed_s * max(0, self._all_bytes - done) / max(done, 1)  # 0 of a file of unknown size
        log.info("%s: %s of %s MB, %s documents, %s documents/s, %s s left", self._name, f"{done / 1e6:,.1f}",
                 f"{self._all_bytes / 1e6:,.1f}", f"{documents:,}", f"{documents / elapsed_s:,.0f}",
                 f"{left_s:,.0f}")  # fmt: skip
