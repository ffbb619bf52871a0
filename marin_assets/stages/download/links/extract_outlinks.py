"""Extract the links of pages to pages that are not fetched yet: the list of a crawl of one's own.

In:  pages, documents whose text is HTML, with metadata.url; and lists of addresses that are seen already.
Out: rows in shards "part-00000-of-00016.jsonl.zst", each address once, in the order of its hash,

         {"id", "url", "domain", "anchor", "context", "page_id", "page_url"}

     `id` is the hash of the address, 16 hexadecimal digits; `anchor` and `context` are the text of the link and around
     it, on the page whose address is the first in order of those with this link.

Each link is a row or rejected for one reason: links = outlinks + rejected, rejected = sum of rejected_<reason>. The
rows depend on the pages alone, not on their order or shards.

Tasks extract the links of their pages, sorted, by slots of the hash; then one task for each slot merges them, and marks
what is seen (`seen`). Memory is bounded: 64 MB of lines, and 8 bytes for each address of a slot.
"""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import IO, Any

from marin_assets.documents import Document, document_files, document_shards, read_documents, shard_name, write_rows
from marin_assets.stages.download.links import addresses
from marin_assets.stages.download.links.addresses import Url, canonical_url, domain_of
from marin_assets.stages.download.links.anchors import Anchor, links_of
from marin_assets.stages.download.links.seen_addresses import (
    SLOTS,
    LinksError,
    hash_addresses,
    hash_of,
    mark_seen,
    seen_shards,
)
from marin_assets.stages.download.links.sorted_lines import LineSorter
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.shards.file_shards import FileShard
from marin_resources.ray_tpu.shards.map_shards import Counts, map_shards
from marin_resources.storage.files import StoredFile, open_atomic, open_to_read, remove_folder, stored_file
from marin_resources.storage.paths import join

KINDS = ("jsonl",)

HIDDEN = ".marin/outlinks"
EXTENSIONS = tuple(
    (  # noqa: SIM905
        ".7z .aac .apk .avi .bin .bmp .bz2 .css .csv .deb .dmg .doc .docx .epub .exe .flac .flv .gif .gz .ico .iso "
        ".jar .jpeg .jpg .js .json .m4a .m4v .mid .mkv .mov .mp3 .mp4 .mpeg .mpg .msi .odt .ogg .otf .pdf .png "
        ".ppt .pptx .ps .rar .rpm .rss .svg .swf .tar .tgz .tif .tiff .ttf .wav .webm .webp .wma .wmv .woff .woff2 "
        ".xls .xlsx .xml .xz .zip .zst "
    ).split()
)
"""Ends of paths that are no pages of HTML."""
PAGE_REASONS = ("no_url", "too_long", "nofollow")
"""Reasons of a page whose links are not read: it has no address, more than max_page_characters, requests it."""
REASONS = (*addresses.REASONS, "nofollow", "same_page", "own_site", "extension", "repeated", "sample")
_HASH_DIGITS = 16


@dataclass(frozen=True, kw_only=True)
class ExtractOutlinksConfig:
    pages_path: str
    """Pages: documents whose text is HTML, with their address in metadata.url."""
    output_path: str = THIS_OUTPUT_PATH
    seen: Mapping[str, str] = field(default_factory=dict)
    """Name -> files of addresses that are left out, as seen_<name>: outlinks or outcomes of earlier crawls, captures
    of an index, tables of Common Crawl's index, documents with metadata.url. Wrap a path in versioned(), unless it is
    the output of a step."""
    keep_own_site: bool = versioned(False)
    """Whether links within the registered domain of the page are kept."""
    follow_nofollow: bool = versioned(False)
    """Whether links are kept that the page marks with rel=nofollow, or all of its links by <meta name=robots>."""
    skipped_extensions: tuple[str, ...] = versioned(EXTENSIONS)
    """Ends of paths that are left out, in lower case, such as ".pdf"."""
    sample_fraction: float = versioned(1.0)
    """Share of the addresses, chosen by their hash: the same of any pages, and of a larger share all of a smaller."""
    max_page_characters: int = versioned(10_000_000)
    """A longer page has no links."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


@dataclass(frozen=True, kw_only=True)
class PagesShard:
    """A group of files of pages, whose links are written by slot."""

    inputs: tuple[StoredFile, ...]
    outputs: tuple[str, ...]
    """One for each slot."""
    config: ExtractOutlinksConfig


@dataclass(frozen=True, kw_only=True)
class SlotShard:
    """The links of all pages with hashes of one slot."""

    inputs: tuple[StoredFile, ...]
    """The file of the slot, of each group of pages."""
    also_read: tuple[StoredFile, ...]
    """The hashes of the seen addresses."""
    lists: tuple[str, ...]
    """For each of these its list."""
    outputs: tuple[str, ...]
    slot: int
    sample_fraction: float


def extract_outlinks(config: ExtractOutlinksConfig) -> dict[str, int | float]:
    """Extract the links of pages to pages that are not fetched yet.

    Returns pages, pages_without_links (rejected_page_<reason> each, of PAGE_REASONS), links, outlinks, rejected, each
    rejected_<reason>, of which rejected_seen_<name> for each list, domains (of the outlinks; one that is in several
    parts counts in each), seen_addresses and seen_without_address. Raises LinksError if no link is left.
    """
    _check(config)
    hidden = join(config.output_path, HIDDEN)
    pages = document_files(config.pages_path)
    reading = [
        PagesShard(
            inputs=shard.inputs,
            outputs=tuple(join(hidden, "links", f"{number:05d}-{slot:02d}") for slot in range(SLOTS)),
            config=config,
        )
        for number, shard in enumerate(document_shards(pages, join(hidden, "unused"), None))
    ]
    counts = Counter(map_shards(read_pages, reading, output_path=config.output_path))
    hashing = seen_shards(config.seen, join(hidden, "seen"))
    counts.update(map_shards(hash_addresses, hashing, output_path=config.output_path) if hashing else {})
    merging = _slot_shards(config, reading, hashing)
    counts.update(map_shards(merge_slot, merging, output_path=config.output_path))
    if not counts["outlinks"]:
        reasons = ", ".join(f"{count:,} {name.removeprefix('rejected_')}" for name, count in counts.items()
                            if name.startswith("rejected_") and count)  # fmt: skip
        raise LinksError(
            f"The {counts['pages']:,} pages of {config.pages_path!r} have no link that is left ({reasons or 'none'}). "
            "Pass other pages, or keep_own_site=versioned(True)."
        )
    remove_folder(hidden)
    return {**counts, **pages.counts}


def _check(config: ExtractOutlinksConfig) -> None:
    if not 0 < config.sample_fraction <= 1:
        raise LinksError(f"sample_fraction is {config.sample_fraction!r}, expected a fraction above 0, at most 1.")
    if config.max_page_characters < 1:
        raise LinksError(f"max_page_characters is {config.max_page_characters!r}, expected 1 or more.")
    for extension in config.skipped_extensions:
        if not extension.startswith(".") or extension != extension.lower():
            raise LinksError(f"skipped_extensions has {extension!r}, expected an end such as '.pdf'. Correct it.")
    for name in config.seen:
        if not name.replace("_", "").isalnum():
            raise LinksError(f"seen has the name {name!r}, expected letters, digits and _. Rename it.")


def read_pages(shard: PagesShard) -> Counts:
    """Write the links of one group of files, sorted, by slot. Returns pages, links and the reasons found here."""
    names = (
        "pages",
        "pages_without_links",
        *(f"rejected_page_{reason}" for reason in PAGE_REASONS),
        "links",
        "rejected",
    )
    counts = Counter(dict.fromkeys((*names, *(f"rejected_{reason}" for reason in REASONS)), 0))
    with LineSorter() as sorter, ExitStack() as stack:
        for file in shard.inputs:
            for page in read_documents(file.path):
                for line in _lines_of(page, shard.config, counts):
                    sorter.add(line)
        files = [stack.enter_context(open_atomic(path, replace=False)) for path in shard.outputs]
        for line in _first_of_each(sorter.lines(), counts):
            files[int(line[:1], 16)].write(line + b"\n")
    return dict(counts)


def _lines_of(page: Document, config: ExtractOutlinksConfig, counts: Counter[str]) -> Iterator[bytes]:
    """Yield a line for each link that is kept: hash, address of the page, its id, number of the link, the row."""
    counts["pages"] += 1
    address = page.metadata.get("url")
    own = canonical_url(address) if isinstance(address, str) else "no_url"
    reason = "no_url" if isinstance(own, str) else "too_long" if len(page.text) > config.max_page_characters else ""
    links = links_of("" if reason else page.text)
    reason = reason or ("nofollow" if links.nofollow and not config.follow_nofollow else "")
    if reason or isinstance(own, str):
        counts["pages_without_links"] += 1
        counts[f"rejected_page_{reason}"] += 1
        return
    base = canonical_url(links.base, own.url) if links.base else own
    base_url = own.url if isinstance(base, str) else base.url
    for number, anchor in enumerate(links.anchors):
        counts["links"] += 1
        url = canonical_url(anchor.href, base_url)
        reason = url if isinstance(url, str) else _reason(url, own, anchor, config)
        if isinstance(url, str) or reason:
            _reject(counts, reason)
            continue
        row = _row(url, anchor, page, own)
        text = json.dumps(row, ensure_ascii=True)
        yield f"{row['id']}\t{own.url}\t{json.dumps(page.id)}\t{number:08d}\t{text}".encode()


def _reason(url: Url, page: Url, anchor: Anchor, config: ExtractOutlinksConfig) -> str:
    if not config.follow_nofollow and "nofollow" in anchor.rel:
        return "nofollow"
    if url.url == page.url:
        return "same_page"
    if not config.keep_own_site and domain_of(url.host) == domain_of(page.host):
        return "own_site"
    return "extension" if url.extension in config.skipped_extensions else ""


def _row(url: Url, anchor: Anchor, page: Document, own: Url) -> dict[str, Any]:
    return {
        "id": f"{hash_of(url.url):0{_HASH_DIGITS}x}",
        "url": url.url,
        "domain": domain_of(url.host),
        "anchor": anchor.text,
        "context": anchor.context,
        "page_id": page.id,
        "page_url": own.url,
    }


def _reject(counts: Counter[str], reason: str) -> None:
    counts["rejected"] += 1
    counts[f"rejected_{reason}"] += 1


def _first_of_each(lines: Iterator[bytes], counts: Counter[str]) -> Iterator[bytes]:
    """Yield the first line of each hash; the others are counted."""
    last = b""
    for line in lines:
        if line[:_HASH_DIGITS] == last:
            _reject(counts, "repeated")
            continue
        last = line[:_HASH_DIGITS]
        yield line


def _slot_shards(config: ExtractOutlinksConfig, reading: list[PagesShard], hashing: list[FileShard]) -> list[SlotShard]:
    lists = [(shard.config.list_name, stored_file(path)) for shard in hashing for path in shard.outputs]
    return [
        SlotShard(
            inputs=tuple(stored_file(shard.outputs[slot]) for shard in reading),
            also_read=tuple(file for _, file in lists),
            lists=tuple(name for name, _ in lists),
            outputs=(join(config.output_path, shard_name(slot, SLOTS)),),
            slot=slot,
            sample_fraction=config.sample_fraction,
        )
        for slot in range(SLOTS)
    ]


def merge_slot(shard: SlotShard) -> Counts:
    """Write the rows of one slot. Returns outlinks, rejected and the reasons found here, domains."""
    names = sorted(set(shard.lists))
    counts = Counter(
        dict.fromkeys(("outlinks", "rejected", *(f"rejected_seen_{name}" for name in names), "domains"), 0)
    )
    hashes = _hashes_of(shard)
    numbered = [(names.index(name) + 1, file.path) for name, file in zip(shard.lists, shard.also_read, strict=True)]
    marks = mark_seen(hashes, numbered, shard.slot)
    write_rows(shard.outputs[0], _rows(shard, marks, names, counts), replace=False)
    return dict(counts)


def _hashes_of(shard: SlotShard) -> Any:
    import numpy as np

    with ExitStack() as stack:
        lines = _first_of_each(heapq.merge(*_opened(shard, stack)), Counter())
        return np.fromiter((int(line[:_HASH_DIGITS], 16) for line in lines), np.uint64)


def _rows(shard: SlotShard, marks: Any, names: list[str], counts: Counter[str]) -> Iterator[dict[str, Any]]:
    from xxhash import xxh3_64_intdigest

    domains = set[str]()
    with ExitStack() as stack:
        lines = _first_of_each(heapq.merge(*_opened(shard, stack)), counts)
        for mark, line in zip(marks, lines, strict=True):
            row: dict[str, Any] = json.loads(line.rsplit(b"\t", 1)[1])
            if mark:
                _reject(counts, f"seen_{names[mark - 1]}")
            # another hash than that of the slots, or a sample would be the first of them
            elif xxh3_64_intdigest(row["url"].encode(), seed=1) >= shard.sample_fraction * 2**64:
                _reject(counts, "sample")
            else:
                counts["outlinks"] += 1
                domains.add(row["domain"])
                yield row
    counts["domains"] = len(domains)


def _opened(shard: SlotShard, stack: ExitStack) -> list[Iterator[bytes]]:
    files: list[IO[bytes]] = [stack.enter_context(open_to_read(file.path)) for file in shard.inputs]
    return [(line.rstrip(b"\n") for line in file) for file in files]
