"""Read the texts of WET files as documents: the plain text that a crawl has extracted from its pages.

In:  WET files, as `read_warc` reads WARC files.
Out: documents in shards "part-00000-of-00012.jsonl.zst", in the order of the files, each text byte for byte. metadata
     has url, date, file and offset, and what the crawl has: the record of the page (refers_to), languages, digest.

Each record is a document or rejected for one reason: records = documents + rejected, as in `read_warc`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from marin_assets.documents import Document, write_documents
from marin_assets.stages.download.crawl.block_reader import opened
from marin_assets.stages.download.crawl.crawl_input import CrawlInput
from marin_assets.stages.download.crawl.damage import reject, require_few_damages, require_some
from marin_assets.stages.download.crawl.pages import id_of
from marin_assets.stages.download.crawl.shards import CrawlShard, Progress, crawl_shards, records_of
from marin_assets.stages.download.warc.record import DAMAGES, Record
from marin_assets.step.values import versioned
from marin_resources.ray_tpu.shards.map_shards import Counts, map_shards

KINDS = ("text",)

REASONS = ("other_type", "segmented", "too_large", "invalid_utf8", "empty", "no_url", "language")


@dataclass(frozen=True, kw_only=True)
class ReadWetConfig(CrawlInput):
    languages: tuple[str, ...] = versioned(())
    """Keep texts whose first language is one of these, as the crawl has detected it, such as "spa"; () keeps all."""


def read_wet(config: ReadWetConfig) -> dict[str, int | float]:
    """Read the texts of WET files as documents.

    Returns files, records, documents, rejected, each rejected_<reason>, bytes (of text), and ignored_files if any.
    Raises CrawlError, also if no record is a text, and ShardError with file and byte for a damaged end of a file.
    """
    config.check()
    files, ignored = config.files(max_files=config.max_files)
    counts = map_shards(read_shard, crawl_shards(files, config), output_path=config.output_path)
    require_few_damages(counts, config)
    sentence = "Expected conversions of WET files. Read WARC files with read_warc, or correct languages."
    require_some(counts, config.input_path, sentence, of="records", kept="documents")
    return {"files": len(files), **counts, **({"ignored_files": ignored} if ignored else {})}


def read_shard(shard: CrawlShard) -> Counts:
    """Read one shard. Returns the counts of `read_wet`."""
    names = ("records", "documents", "rejected", *(f"rejected_{r}" for r in (*DAMAGES, *REASONS)), "bytes")
    counts = Counter(dict.fromkeys(names, 0))
    write_documents(shard.output, _documents(shard, counts), replace=False)
    return dict(counts)


def _documents(shard: CrawlShard, counts: Counter[str]) -> Iterator[Document]:
    progress, config = Progress(shard), shard.config
    for piece in shard.pieces:
        progress.begin(piece)
        with opened(piece.file, counts, max_connections=config.max_connections) as file:
            for record, is_owned in records_of(file, piece, config, counts):
                if not is_owned:
                    break
                document = _document(record, piece.file.name, config)
                if isinstance(document, str):
                    reject(counts, document)
                    continue
                counts["documents"] += 1
                counts["bytes"] += len(document.text.encode())
                progress.at(record.offset, counts["documents"])
                yield document
        progress.end(piece)


def _document(record: Record, file: str, config: ReadWetConfig) -> Document | str:
    """The document of a record, or its reason, one of REASONS."""
    headers = record.headers
    if record.kind != "conversion":
        return "other_type"
    if "warc-segment-number" in headers:
        return "segmented"
    if record.block is None:
        return "too_large"
    url = headers.get("warc-target-uri", "").strip("<>")
    if not url:
        return "no_url"
    languages = [
        code.strip() for code in headers.get("warc-identified-content-language", "").split(",") if code.strip()
    ]
    if config.languages and (not languages or languages[0] not in config.languages):
        return "language"
    try:
        text = record.block.decode("utf-8")
    except UnicodeDecodeError:
        return "invalid_utf8"
    if not text.strip():
        return "empty"
    metadata = {
        "url": url,
        "date": headers.get("warc-date", ""),
        **({"languages": languages} if languages else {}),
        **({"refers_to": headers["warc-refers-to"].strip("<>").removeprefix("urn:uuid:")} if "warc-refers-to" in headers
           else {}),
        **({"digest": headers["warc-payload-digest"]} if "warc-payload-digest" in headers else {}),
        "file": file,
        "offset": record.offset,
    }  # fmt: skip
    return Document(id=id_of(record, file), text=text, source=config.source, metadata=metadata)
