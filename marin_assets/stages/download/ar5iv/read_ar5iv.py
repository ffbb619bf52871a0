"""Read the papers of ar5iv's zip archives as pages: documents whose text is HTML.

In:  zip archives of HTML that LaTeXML has written, one member a paper, "<yymm>/<id>.html" or "<id>.html"; of a
     folder, a bucket or the web, or a list of their paths.
Out: pages in shards "part-00000-of-00012.jsonl.zst", in the order of the archives' names and of the members in them. A
     page's id is the paper's at arXiv, such as "2105.04404" or "hep-lat/9107001"; metadata has url, date (the month of
     the first version), set (no-problem, warning or error, by the archive's name), file and member, and version if the
     member's name has one. `html_to_markdown` with `latexml=LatexmlContent()` reads pages.

Each member is a page or rejected for one reason: members = pages + rejected, rejected = sum of rejected_<reason>. A
paper that occurs twice is kept in its greatest version. A damaged member costs no other one.

The directory of an archive is read once. Members that follow one another are read forward by ranges of the file.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from marin_assets.documents import Document, shard_name, write_documents
from marin_assets.stages.download.ar5iv.listing import Listing, Members, leave_out_duplicates, listing_of
from marin_assets.stages.download.ar5iv.papers import paper_of, set_of
from marin_assets.stages.download.ar5iv.zip_directory import entries_of
from marin_assets.stages.download.ar5iv.zip_member import DAMAGES, read_member
from marin_assets.stages.download.crawl.block_reader import opened
from marin_assets.stages.download.crawl.crawl_file import CrawlFile, CrawlFileShard
from marin_assets.stages.download.crawl.crawl_input import FilesInput
from marin_assets.stages.download.crawl.damage import lose, reasons_of, require_few_damages
from marin_assets.stages.download.crawl.shards import CountProgress
from marin_assets.stages.download.warc.record import CrawlError
from marin_assets.step.values import versioned
from marin_resources.ray_tpu.shards.map_shards import Counts, map_shards
from marin_resources.storage.paths import join

KINDS = ("html",)

SUFFIXES = (".zip",)
REASONS = ("no_arxiv_id", "duplicate", "too_large", "empty")
"""Reasons of a whole member: its name is no id of arXiv; another member has the paper in a greater version, or an
earlier one in the same; it has more than max_page_bytes; it has no text."""
BYTE_ORDER_MARK = "\ufeff"
log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ReadAr5ivConfig(FilesInput):
    max_page_bytes: int = versioned(20_000_000)
    """Limit of a page's HTML. A larger one is rejected as too_large."""
    max_connections: int = 4
    """Limit of the connections of one machine to a server."""


@dataclass(frozen=True, kw_only=True)
class PapersShard(CrawlFileShard):
    """Members of one archive that follow one another."""

    members: Members
    source: str
    max_connections: int


def read_ar5iv(config: ReadAr5ivConfig) -> dict[str, int | float]:
    """Read the papers of ar5iv's archives as pages.

    Returns files, members, pages, rejected, each rejected_<reason>, bytes (of text), ignored_members; ignored_files if
    any exist. Raises CrawlError for a file that is no zip archive, for archives without a paper, and for too many
    damaged members.
    """
    config.check()
    files, ignored = config.files(kind="zip", suffixes=SUFFIXES, expected=".zip")
    names = ("members", "pages", "rejected", *(f"rejected_{reason}" for reason in (*DAMAGES, *REASONS)), "bytes",
             "ignored_members")  # fmt: skip
    counts = Counter(dict.fromkeys(names, 0))
    listings = [_listing(file, config, counts) for file in files]
    leave_out_duplicates(listings, counts)
    shards = _shards(files, listings, config)
    del listings
    if shards:
        counts.update(map_shards(read_papers, shards, output_path=config.output_path))
    require_few_damages(dict(counts), config, damages=DAMAGES, of="members")
    if not counts["pages"]:
        raise CrawlError(
            f"{config.input_path!r} has no paper that can be read: {counts['members']:,} .html members "
            f"({reasons_of(counts)}), {counts['ignored_members']:,} others. Expected members such as "
            "'2105/2105.04404.html'. Correct input_path."
        )
    return {"files": len(files), **counts, **({"ignored_files": ignored} if ignored else {})}


def _listing(file: CrawlFile, config: ReadAr5ivConfig, counts: Counter[str]) -> Listing:
    """The papers of an archive by its directory."""
    before = counts["members"]
    with opened(file, counts, max_connections=config.max_connections) as archive:
        entries = entries_of(archive, file.name)
        listing = listing_of(entries, file_bytes=file.size_bytes, max_page_bytes=config.max_page_bytes, counts=counts)
    log.info("%s: %s members, %s to read", file.name, f"{counts['members'] - before:,}", f"{len(listing.names):,}")
    return listing


def _shards(files: Sequence[CrawlFile], listings: Sequence[Listing], config: ReadAr5ivConfig) -> list[PapersShard]:
    groups = [
        (file, group)
        for file, listing in zip(files, listings, strict=True)
        for group in listing.groups(config.shard_bytes)
    ]
    return [
        PapersShard(
            file=file,
            members=members,
            output=join(config.output_path, shard_name(index, len(groups))),
            source=config.source,
            max_connections=config.max_connections,
        )
        for index, (file, members) in enumerate(groups)
    ]


def read_papers(shard: PapersShard) -> Counts:
    """Read the members of one shard. Returns pages, bytes, rejected with its reasons, and the requests to a server."""
    counts = Counter({"pages": 0, "bytes": 0})
    write_documents(shard.output, _pages(shard, counts), replace=False)
    return dict(counts)


def _pages(shard: PapersShard, counts: Counter[str]) -> Iterator[Document]:
    progress = CountProgress(shard.output.rpartition("/")[2], "members")
    with opened(shard.file, counts, max_connections=shard.max_connections) as archive:
        for number, member in enumerate(shard.members, 1):
            content = read_member(archive, member)
            page = content if isinstance(content, tuple) else _page(content, member.name, shard)
            if isinstance(page, Document):
                counts["pages"] += 1
                counts["bytes"] += len(page.text.encode())
                yield page
            else:
                place = f"{shard.file.name!r} {member.name!r}"
                lose(counts, page, place, damages=DAMAGES, event="a member is lost")
            progress.at(number)


def _page(content: bytes, member: str, shard: PapersShard) -> Document | tuple[str, str]:
    paper = paper_of(member)
    assert paper is not None  # the listing has no other member
    try:
        text = content.decode().removeprefix(BYTE_ORDER_MARK)
    except UnicodeDecodeError as error:
        return "not_utf8", str(error)
    if not text.strip():
        return "empty", ""
    metadata = {
        "url": paper.url,
        "date": paper.month,
        "set": set_of(shard.file.name),
        **({"version": paper.version} if paper.version else {}),
        "file": shard.file.name,
        "member": member,
    }
    return Document(id=paper.id, text=text, source=shard.source, metadata=metadata)
