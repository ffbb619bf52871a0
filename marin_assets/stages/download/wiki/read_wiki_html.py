"""Read the articles of HTML dumps of Wikipedia as pages: documents whose text is HTML.

In:  dumps of Wikimedia Enterprise, tar.gz archives of NDJSON, or NDJSON files; of a folder, a bucket or the web, or a
     list of their paths.
Out: pages in shards "part-00000-of-00012.jsonl.zst", in the order of the files and of their lines. A page's id is
     "<wiki>/<article>", such as "enwiki/22"; metadata has url, title, language, date, license, categories, redirects
     (their number), wiki and version. `html_to_markdown` with `wiki=WikiContent()` reads pages.

Each line is a page or rejected for one reason: articles = pages + rejected, rejected = sum of rejected_<reason>. An
article that occurs twice is kept in its greatest version. A damaged line costs no other one. A cut archive fails the
stage, unless `allow_cut_files`.

A file is read once, as a stream, by one task: it cannot be entered in the middle. The pages then wait in hidden files
of the output until all versions are known, 24 bytes of memory for each.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain

from marin_assets.documents import Document, read_documents, shard_name, write_documents
from marin_assets.documents.jsonl.json_line import LineParser
from marin_assets.stages.download.crawl.crawl_file import CrawlFile
from marin_assets.stages.download.crawl.crawl_input import DumpInput
from marin_assets.stages.download.crawl.opened import opened
from marin_assets.stages.download.crawl.shards import reject, require_few_damages
from marin_assets.stages.download.warc.record import CrawlError
from marin_assets.stages.download.wiki.articles import DAMAGES, REASONS, Article, article_of
from marin_assets.stages.download.wiki.dump_lines import CutError, dump_lines
from marin_assets.stages.download.wiki.versions import Versions, read_versions, superseded_rows
from marin_assets.step.values import versioned
from marin_resources.ray_tpu.shards.map_shards import Counts, map_shards
from marin_resources.storage.files import StoredFile, remove, remove_folder, stored_file
from marin_resources.storage.paths import join

KINDS = ("html",)

WIKIMEDIA = "https://dumps.wikimedia.org/"
SUFFIXES = (".tar.gz", ".tgz", ".tar", ".ndjson", ".ndjson.gz")
HIDDEN = ".marin/wiki"
NO_PAGES = {"pages": 0, "bytes": 0, "rejected": 0, "rejected_superseded": 0}
LOGGED_DAMAGES = 20
"""Damaged lines of a file that the log names."""
EVERY_S = 5.0
log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ReadWikiHtmlConfig(DumpInput):
    base_url: str = WIKIMEDIA
    """The place below which the paths of a list are."""
    namespaces: tuple[int, ...] = versioned((0,))
    """Numbers of namespaces to keep, 0 for articles; () keeps all."""
    max_page_bytes: int = versioned(20_000_000)
    """Limit of a page's HTML. A larger one is rejected as too_large."""


@dataclass(frozen=True, kw_only=True)
class DumpShard:
    """One file, whose pages become parts in a folder, and whose versions a file."""

    file: CrawlFile
    folder: str
    output: str
    config: ReadWikiHtmlConfig

    @property
    def inputs(self) -> tuple[StoredFile, ...]:
        return () if self.file.stored is None else (self.file.stored,)

    @property
    def outputs(self) -> tuple[str, ...]:
        return (self.output,)


@dataclass(frozen=True, kw_only=True)
class PartShard:
    """One part, which becomes an output file without some rows."""

    part: StoredFile
    superseded: tuple[int, ...]
    output: str

    @property
    def inputs(self) -> tuple[StoredFile, ...]:
        return (self.part,)

    @property
    def outputs(self) -> tuple[str, ...]:
        return (self.output,)


def read_wiki_html(config: ReadWikiHtmlConfig) -> dict[str, int | float]:
    """Read the articles of HTML dumps as pages.

    Returns files, articles, pages, rejected, each rejected_<reason>, bytes (of text), cut_files, ignored_members;
    ignored_files if any exist. Raises CrawlError, and ShardError with the file for a cut archive.
    """
    config.check()
    files, ignored = config.files(kind="dump", suffixes=SUFFIXES, expected=".tar.gz, .tar, .ndjson or .ndjson.gz")
    hidden = join(config.output_path, HIDDEN)
    dumps = [
        DumpShard(file=file, folder=join(hidden, f"{n:05}"), output=join(hidden, f"{n:05}.versions"), config=config)
        for n, file in enumerate(files)
    ]
    counts = Counter(map_shards(read_dump, dumps, output_path=config.output_path))
    require_few_damages(counts, config, damages=DAMAGES, of="articles", noun="lines")
    counts.update({**NO_PAGES, **map_shards(write_part, _parts(dumps, config), output_path=config.output_path)})
    for dump in dumps:
        remove(dump.output)  # first, so a stage that is killed here reads again and does not miss parts
    with suppress(FileNotFoundError):
        remove_folder(hidden)  # in a bucket it does not exist without pages
    return {"files": len(files), **counts, **({"ignored_files": ignored} if ignored else {})}


def read_dump(shard: DumpShard) -> Counts:
    """Read one file: write its parts, and its versions at the end. Returns the counts of `read_wiki_html`, without
    pages."""
    names = ("articles", "rejected", *(f"rejected_{r}" for r in (*DAMAGES, *REASONS)), "cut_files", "ignored_members")
    counts, versions = Counter(dict.fromkeys(names, 0)), Versions()
    with suppress(FileNotFoundError):
        remove_folder(shard.folder)  # of a worker that was lost
    articles = _articles(shard, counts)
    for article in articles:
        rows = len(versions.rows)
        part = join(shard.folder, f"{len(versions.parts):05}.jsonl.zst")
        write_documents(part, _part(chain([article], articles), versions, shard.config.shard_bytes), replace=False)
        versions.parts.append((len(versions.rows) - rows) // 3)
    versions.write(shard.output)
    return dict(counts)


def _part(articles: Iterator[Article], versions: Versions, most_bytes: int) -> Iterator[Document]:
    size = 0
    for article in articles:
        versions.add(article)
        yield article.page
        size += len(article.page.text.encode())
        if size >= most_bytes:
            return


def _articles(shard: DumpShard, counts: Counter[str]) -> Iterator[Article]:
    config, name, parser = shard.config, shard.file.name, LineParser()
    began_s = logged_at_s = time.monotonic()
    with opened(shard.file, counts, max_connections=config.max_connections) as file:
        try:
            for member, number, line in dump_lines(file, name, counts):
                if isinstance(line, bytes) and not line.strip():
                    continue
                counts["articles"] += 1
                article = article_of(
                    line,
                    parser,
                    source=config.source,
                    namespaces=tuple(config.namespaces),
                    max_page_bytes=config.max_page_bytes,
                )
                if isinstance(article, Article):
                    yield article
                else:
                    _count(counts, article, f"{name!r} {member!r} line {number}")
                if (now_s := time.monotonic()) - logged_at_s >= EVERY_S:
                    logged_at_s = now_s
                    log.info("%s: %s articles, %s articles/s", name, f"{counts['articles']:,}",
                             f"{counts['articles'] / (now_s - began_s):,.0f}")  # fmt: skip
        except CutError as error:
            if not config.allow_cut_files:
                raise CrawlError(
                    f"The file {name!r} is damaged or cut after {counts['articles']:,} articles ({error}). Download it "
                    "again, or pass allow_cut_files=True to take the articles before it."
                ) from error
            counts["cut_files"] += 1
            log.warning("%r is cut after %s articles (%s)", name, f"{counts['articles']:,}", error)


def _count(counts: Counter[str], rejected: tuple[str, str], place: str) -> None:
    reason, detail = rejected
    reject(counts, reason)
    if reason in DAMAGES and sum(counts[f"rejected_{damage}"] for damage in DAMAGES) <= LOGGED_DAMAGES:
        log.warning("%s: an article is lost (%s: %s)", place, reason, detail)


def _parts(dumps: list[DumpShard], config: ReadWikiHtmlConfig) -> list[PartShard]:
    files = [read_versions(dump.output) for dump in dumps]
    lost = superseded_rows(files)
    parts = [
        (join(dump.folder, f"{number:05}.jsonl.zst"), rows)
        for dump, of_file in zip(dumps, lost, strict=True)
        for number, rows in enumerate(of_file)
    ]
    return [
        PartShard(
            part=stored_file(path), superseded=rows, output=join(config.output_path, shard_name(index, len(parts)))
        )
        for index, (path, rows) in enumerate(parts)
    ]


def write_part(shard: PartShard) -> Counts:
    """Write one part without the superseded rows. Returns pages, bytes, rejected and rejected_superseded."""
    counts = Counter(NO_PAGES)
    write_documents(shard.output, _kept(shard, counts), replace=False)
    return dict(counts)


def _kept(shard: PartShard, counts: Counter[str]) -> Iterator[Document]:
    superseded = set(shard.superseded)
    for row, page in enumerate(read_documents(shard.part.path)):
        if row in superseded:
            reject(counts, "superseded")
            continue
        counts["pages"] += 1
        counts["bytes"] += len(page.text.encode())
        yield page
