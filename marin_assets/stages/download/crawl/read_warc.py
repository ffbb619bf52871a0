"""Read the responses of WARC files as pages: documents whose text is HTML.

In:  WARC files of a folder, a bucket or the web, or a list of their paths; gzip, zstd, lz4 or plain.
Out: pages in shards "part-00000-of-00012.jsonl.zst", in the order of the files. A page's id is the UUID of its record;
     metadata has url, date, status, mime, charset, file and offset, and what the crawl has: truncated, digest,
     languages. `html_to_markdown` reads pages.

Each record is a page or rejected for one reason: records = pages + rejected, rejected = sum of rejected_<reason>. A
damaged record costs no other one. A damaged end of a file fails the stage, unless `allow_cut_files`.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from marin_assets.documents import Document, write_documents
from marin_assets.stages.download.crawl.block_reader import opened
from marin_assets.stages.download.crawl.crawl_input import CrawlInput
from marin_assets.stages.download.crawl.damage import reject, require_few_damages, require_some
from marin_assets.stages.download.crawl.pages import HTML_TYPES, NOTES, REASONS, crawl_notes, page_of
from marin_assets.stages.download.crawl.shards import CrawlShard, Piece, Progress, crawl_shards, records_of
from marin_assets.stages.download.warc.record import DAMAGES, Record
from marin_assets.step.values import versioned
from marin_resources.ray_tpu.shards.map_shards import Counts, map_shards

KINDS = ("html",)


@dataclass(frozen=True, kw_only=True)
class ReadWarcConfig(CrawlInput):
    statuses: tuple[int, ...] = versioned((200,))
    """HTTP statuses to keep; () keeps all."""
    content_types: tuple[str, ...] = versioned(HTML_TYPES)
    """MIME types to keep, as the crawler identified them, or else by their first bytes."""
    max_page_bytes: int = versioned(10_000_000)
    """Limit of a page's body, decoded. A larger one is rejected as too_large."""


def read_warc(config: ReadWarcConfig) -> dict[str, int | float]:
    """Read the responses of WARC files as pages.

    Returns files, records, pages, rejected, each rejected_<reason>, bytes (of text), and counts of pages: each of NOTES
    and with_languages; ignored_files if any exist. Raises CrawlError, and ShardError with file and byte for a damaged
    end of a file.
    """
    config.check()
    files, ignored = config.files(max_files=config.max_files)
    counts = map_shards(read_shard, crawl_shards(files, config), output_path=config.output_path)
    require_few_damages(counts, config)
    sentence = "Expected responses with HTML. Read WET files with read_wet, or correct statuses and content_types."
    require_some(counts, config.input_path, sentence, of="records", kept="pages")
    return {"files": len(files), **counts, **({"ignored_files": ignored} if ignored else {})}


def read_shard(shard: CrawlShard) -> Counts:
    """Read one shard. Returns the counts of `read_warc`."""
    names = ("records", "pages", "rejected", *(f"rejected_{r}" for r in (*DAMAGES, *REASONS)), "bytes", *NOTES,
             "with_languages")  # fmt: skip
    counts = Counter(dict.fromkeys(names, 0))
    write_documents(shard.output, _pages(shard, counts), replace=False)
    return dict(counts)


def _pages(shard: CrawlShard, counts: Counter[str]) -> Iterator[Document]:
    progress = Progress(shard)
    for piece in shard.pieces:
        progress.begin(piece)
        for page in _pages_of_piece(piece, shard.config, counts, progress):
            counts["pages"] += 1
            counts["bytes"] += len(page.text.encode())
            counts["with_languages"] += "languages" in page.metadata
            yield page
        progress.end(piece)


def _pages_of_piece(
    piece: Piece, config: ReadWarcConfig, counts: Counter[str], progress: Progress
) -> Iterator[Document]:
    """Yield the pages of a range. The metadata record of a page follows it, so a page waits for the next record."""
    waiting: Document | None = None
    waits_for = ""
    with opened(piece.file, counts, max_connections=config.max_connections) as file:
        for record, is_owned in records_of(file, piece, config, counts):
            if waiting is not None and record.kind == "metadata" and waits_for and waits_for in _concurrent_to(record):
                yield dataclasses.replace(waiting, metadata={**waiting.metadata, **crawl_notes(record)})
                waiting = None
            if not is_owned:
                if waiting is None or record.kind != "metadata":
                    break
                continue
            page = page_of(
                record,
                piece.file.name,
                source=config.source,
                statuses=tuple(config.statuses),
                content_types=tuple(config.content_types),
                max_page_bytes=config.max_page_bytes,
                counts=counts,
            )
            if isinstance(page, str):
                reject(counts, page)
            if record.kind in ("response", "request") and waiting is not None:
                yield waiting
                waiting = None
            if isinstance(page, Document):
                waiting, waits_for = page, record.headers.get("warc-record-id", "").strip()
            progress.at(record.offset, counts["pages"])
        if waiting is not None:
            yield waiting


def _concurrent_to(record: Record) -> list[str]:
    names = f"{record.headers.get('warc-concurrent-to', '')} {record.headers.get('warc-refers-to', '')}"
    return names.split()
