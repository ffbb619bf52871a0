"""The batches of a crawl become its outputs.

    warc/pages-00000.warc.gz               records of all answers, in the order of the batches
    outcomes/part-00000-of-00001.jsonl.zst one row for each address, in the order of the listing
    robots/part-00000-of-00001.jsonl.zst   one row for each robots.txt that was requested

An address has its first outcome. Of several that redirect to the same page outside of the listing, the first of the
listing is "fetched", and the others are "redirected". One without an outcome is "budget", since only a budget ends a
crawl.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import IO, Any

from marin_assets.documents import shard_name, write_rows
from marin_assets.stages.download.fetch.batches import RECORDS, rows_in
from marin_assets.stages.download.fetch.listing import entries_of
from marin_assets.stages.download.fetch.warc_records import warcinfo
from marin_assets.stages.download.links.seen_addresses import hash_of
from marin_assets.stages.download.links.sorted_lines import LineSorter
from marin_resources.storage.files import open_atomic, open_to_read
from marin_resources.storage.paths import join

WARC, OUTCOMES, ROBOTS = "warc", "outcomes", "robots"
ROWS_OF_A_SHARD = 1_000_000
PUBLISHED = ("outcome", "status", "target", "date", "bytes", "detail")


@dataclass(frozen=True, kw_only=True)
class Publication:
    """The outputs to write, and their sources."""

    output_path: str
    listing: str
    batches_folder: str
    batches: tuple[int, ...]
    """Their numbers, ascending."""
    urls: int
    warc_bytes: int
    info: Mapping[str, str]
    """Fields of warcinfo."""


def publish(publication: Publication) -> Counter[str]:
    """Write the outputs. Returns each outcome_<x>, bytes (of fetched pages, with heads), hosts, warc_files,
    robots_files."""
    counts, dropped = Counter[str](bytes=0, hosts=0), set[tuple[int, int]]()
    with LineSorter() as sorter:
        for number in publication.batches:
            for row in rows_in(publication.batches_folder, number):
                if row["kind"] == "page":
                    sorter.add(f"{row['key']}\t{number:08d}\t{json.dumps(row)}".encode())
        rows = _outcomes(publication, sorter.lines(), counts, dropped)
        shards = max(1, -(-publication.urls // ROWS_OF_A_SHARD))
        for index in range(shards):
            path = join(publication.output_path, OUTCOMES, shard_name(index, shards))
            write_rows(path, islice(rows, ROWS_OF_A_SHARD), replace=False)
        for _ in rows:  # none is left; it ends behind the last outcome
            pass
    robots = join(publication.output_path, ROBOTS, shard_name(0, 1))
    counts["robots_files"] = write_rows(robots, _robots(publication), replace=False)
    counts["warc_files"] = _write_warc(publication, dropped)
    return counts


def _outcomes(
    publication: Publication, lines: Iterator[bytes], counts: Counter[str], dropped: set[tuple[int, int]]
) -> Iterator[dict[str, Any]]:
    """Yield the row of each address. `dropped` gets the batch and offset of records that are left out."""
    reached, host = set[int](), ""
    later = map(_parsed, lines)
    result = next(later, None)
    for key, url in entries_of(publication.listing):
        counts["hosts"] += key[:-17] != host
        host = key[:-17]
        first: _Result | None = None
        while result is not None and result.row["key"] <= key:
            if first is None and result.row["key"] == key:
                first = result
            else:  # a second outcome, or one of an address that is not in the listing any more
                result.drop(dropped)
            result = next(later, None)
        row: dict[str, Any] = {"outcome": "budget"} if first is None else first.row
        if first is not None and row["outcome"] == "fetched" and "target" in row:
            target = hash_of(row["target"])
            if target in reached:
                first.drop(dropped)
                row["outcome"] = "redirected"
            reached.add(target)
        counts[f"outcome_{row['outcome']}"] += 1
        counts["bytes"] += row.get("bytes", 0) if row["outcome"] == "fetched" else 0
        yield {"id": key[-16:], "url": url, **{name: row[name] for name in PUBLISHED if name in row}}
    while result is not None:
        result.drop(dropped)
        result = next(later, None)


@dataclass(frozen=True, slots=True)
class _Result:
    """A row of a batch with the outcome of an address."""

    batch: int
    row: dict[str, Any]

    def drop(self, dropped: set[tuple[int, int]]) -> None:
        """Leave out its records, if it has some."""
        if "offset" in self.row:
            dropped.add((self.batch, self.row["offset"]))


def _parsed(line: bytes) -> _Result:
    _, batch, text = line.rsplit(b"\t", 2)
    return _Result(int(batch), json.loads(text))


def _robots(publication: Publication) -> Iterator[dict[str, Any]]:
    for number in publication.batches:
        for row in rows_in(publication.batches_folder, number):
            if row["kind"] == "robots":
                yield {name: value for name, value in row.items() if name != "kind"}


def _write_warc(publication: Publication, dropped: set[tuple[int, int]]) -> int:
    """Write the records of all batches, in files of about `warc_bytes`. Return the number of files."""
    records = _records(publication, dropped)
    first = next(records, None)
    files = 0
    while first is not None:
        name = f"pages-{files:05d}.warc.gz"
        date, data = first
        with open_atomic(join(publication.output_path, WARC, name), replace=False) as out:
            out.write(warcinfo(name, date, publication.info))
            size = 0
            while first is not None and (size == 0 or size + len(data) <= publication.warc_bytes):
                out.write(data)
                size += len(data)
                first = next(records, None)
                data = first[1] if first is not None else b""
        files += 1
    return files


def _records(publication: Publication, dropped: set[tuple[int, int]]) -> Iterator[tuple[str, bytes]]:
    """Yield the date and the records of each answer."""
    for number in publication.batches:
        file: IO[bytes] | None = None
        try:
            for row in rows_in(publication.batches_folder, number):
                if row["kind"] != "page" or "offset" not in row or (number, row["offset"]) in dropped:
                    continue
                if file is None:
                    file = open_to_read(join(publication.batches_folder, f"{number:08d}{RECORDS}"))
                file.seek(row["offset"])
                yield row["date"], file.read(row["length"])
        finally:
            if file is not None:
                file.close()
