"""Read the articles of XML dumps of Wikipedia as documents whose text is wikitext.

In:  dumps of pages in XML, plain or bzip2, in one file or in parts, with or without the index of a "multistream"; of a
     folder, a bucket or the web, or a list of their paths.
Out: documents in shards "part-00000-of-00012.jsonl.zst", in the order of the files and of their pages. An id is
     "<wiki>/<page>", such as "enwiki/22", as `read_wiki_html` has it; metadata has url, title, language, date, wiki,
     version and namespaces: the names that links to files and to categories have. `wikitext_to_markdown` reads them.

Each page is a document or rejected for one reason: articles = pages + rejected, rejected = sum of rejected_<reason>. A
damaged page costs no other one, and a damaged bzip2 stream its own pages. A cut file fails the stage, unless
`allow_cut_files`.

A large file is divided: a plain one anywhere, bzip2 at its streams. A file of one stream is read by one task.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from marin_assets.documents import Document, shard_name, write_documents
from marin_assets.stages.download.crawl.block_reader import opened
from marin_assets.stages.download.crawl.crawl_file import CrawlFile
from marin_assets.stages.download.crawl.crawl_input import DumpInput
from marin_assets.stages.download.crawl.damage import CutError, count_cut, lose, require_few_damages, require_some
from marin_assets.stages.download.crawl.shards import CountProgress, Piece, divided
from marin_assets.stages.download.crawl.two_phases import remove_if_exists
from marin_assets.stages.download.warc.members import Readable
from marin_assets.stages.download.warc.record import CrawlError
from marin_assets.stages.download.wiki.articles import Article
from marin_assets.stages.download.wiki.read_wiki_html import WIKIMEDIA
from marin_assets.stages.download.wiki.versions import Versions, read_versions, superseded
from marin_assets.stages.download.wiki.xml_files import (
    DumpFiles,
    FileFacts,
    dump_files,
    require_sums,
    write_index,
    write_sha1,
)
from marin_assets.stages.download.wiki.xml_head import Head, read_head
from marin_assets.stages.download.wiki.xml_pages import DAMAGES, REASONS, article_of_page
from marin_assets.stages.download.wiki.xml_pieces import Cut, LostPages, PageXml, Splitter, verified
from marin_assets.stages.download.wiki.xml_streams import Text, as_utf8, has_streams, is_bz2, parts_from
from marin_assets.step.values import versioned
from marin_resources.ray_tpu.shards.map_shards import Counts, map_shards
from marin_resources.storage.files import StoredFile, read_json
from marin_resources.storage.paths import join

KINDS = ("text",)

HIDDEN = ".marin/wiki"


@dataclass(frozen=True, kw_only=True)
class ReadWikiXmlConfig(DumpInput):
    base_url: str = WIKIMEDIA
    """The place below which the paths of a list are."""
    checksums_path: str | None = None
    """A file of SHA-1s to compare the files with, as Wikimedia's sha1sums.txt; None: one that is among the files."""
    namespaces: tuple[int, ...] = versioned((0,))
    """Numbers of namespaces to keep, 0 for articles; () keeps all."""
    max_page_bytes: int = versioned(20_000_000)
    """Limit of a page's XML. A larger one is rejected as too_large. MediaWiki's own limit of a text is 2 MiB."""
    shard_bytes: int = versioned(256 * 2**20)
    """Stored bytes of a shard. A larger file is divided."""


@dataclass(frozen=True, kw_only=True)
class XmlShard:
    """Pieces that follow one another, whose articles become one file, and their versions another."""

    pieces: tuple[Piece, ...]
    indexed: tuple[tuple[tuple[int, int], ...], ...]
    """Streams of the index of each piece: offset and number of pages. Empty without an index."""
    output: str
    versions: str
    config: ReadWikiXmlConfig

    @property
    def inputs(self) -> tuple[StoredFile, ...]:
        return tuple(piece.file.stored for piece in self.pieces if piece.file.stored is not None)

    @property
    def outputs(self) -> tuple[str, ...]:
        return (self.output, self.versions)


def read_wiki_xml(config: ReadWikiXmlConfig) -> dict[str, int | float]:
    """Read the articles of XML dumps as documents of wikitext.

    Returns files, articles (pages of the dump), pages, rejected, each rejected_<reason>, bytes (of text), cut_files,
    verified_files, indexed_pages and ignored_files. Raises CrawlError, also for a page that occurs twice and if no page
    is kept, and ShardError with the file for a cut one.
    """
    config.check()
    files = dump_files(config.input_path, config.base_url, config.checksums_path, config.max_connections)
    counts = _verify(files, config)
    shards, indexed = _shards(files, config)
    counts.update(indexed)
    counts.update(map_shards(read_shard, shards, output_path=config.output_path))
    require_few_damages(counts, config, damages=DAMAGES, of="articles", noun="pages")
    _require_one_of_each(shards, config)
    sentence = "Expected articles of wikitext. Correct the path or the namespaces."
    require_some(counts, config.input_path, sentence, of="articles", kept="pages")
    remove_if_exists(join(config.output_path, HIDDEN))
    return {"files": len(files.dumps), **counts, "ignored_files": files.ignored}


def _facts(files: list[CrawlFile], kind: str, config: ReadWikiXmlConfig) -> list[FileFacts]:
    hidden = join(config.output_path, HIDDEN)
    return [
        FileFacts(file=file, output=join(hidden, f"{n:05}.{kind}"), max_connections=config.max_connections)
        for n, file in enumerate(files)
    ]


def _verify(files: DumpFiles, config: ReadWikiXmlConfig) -> Counter[str]:
    """Compare the files with their checksums."""
    listed = [file for file in (*files.dumps, *files.indexes.values()) if file.name.rpartition("/")[2] in files.sums]
    if files.sums and not listed:
        raise CrawlError(
            f"The checksums have none of the files of {config.input_path!r}, such as {files.dumps[0].name!r}. Correct "
            "checksums_path."
        )
    shards = _facts(listed, "sha1", config)
    counts = Counter({"verified_files": 0, **map_shards(write_sha1, shards, output_path=config.output_path)})
    require_sums(shards, files.sums)
    return counts


def _shards(files: DumpFiles, config: ReadWikiXmlConfig) -> tuple[list[XmlShard], Counts]:
    facts = _facts(list(files.indexes.values()), "streams", config)
    counts = {"indexed_pages": 0, **map_shards(write_index, facts, output_path=config.output_path)}
    streams = {name: read_json(shard.output) for name, shard in zip(files.indexes, facts, strict=True)}
    groups = divided(files.dumps, config.shard_bytes, lambda file: _is_divisible(file, config))
    shards = []
    for n, pieces in enumerate(groups):
        indexed = tuple(
            tuple((at, pages) for at, pages in streams.get(piece.file.name, ()) if piece.start <= at < piece.end)
            for piece in pieces
        )
        output = join(config.output_path, shard_name(n, len(groups)))
        versions = join(config.output_path, HIDDEN, f"{n:05}.versions")
        shards.append(XmlShard(pieces=tuple(pieces), indexed=indexed, output=output, versions=versions, config=config))
    return shards, counts


def _is_divisible(file: CrawlFile, config: ReadWikiXmlConfig) -> bool:
    """Whether a file that is large enough has text that can be entered."""
    if file.size_bytes < 1.5 * config.shard_bytes:
        return False
    with opened(file, Counter(), max_connections=config.max_connections) as readable:
        return _head(readable, file.name).encoding == "utf-8" and (not is_bz2(readable) or has_streams(readable))


def _head(file: Readable, name: str) -> Head:
    return read_head((part.data for part in parts_from(file, 0) if isinstance(part, Text)), name)


def read_shard(shard: XmlShard) -> Counts:
    """Read one shard. Returns the counts of `read_wiki_xml`."""
    names = ("articles", "pages", "rejected", *(f"rejected_{r}" for r in (*DAMAGES, *REASONS)), "bytes", "cut_files")
    counts, versions = Counter(dict.fromkeys(names, 0)), Versions()
    write_documents(shard.output, _documents(shard, counts, versions), replace=False)
    versions.parts.append(counts["pages"])
    versions.write(shard.versions)
    return dict(counts)


def _documents(shard: XmlShard, counts: Counter[str], versions: Versions) -> Iterator[Document]:
    for piece, indexed in zip(shard.pieces, shard.indexed, strict=True):
        for article in _articles(piece, indexed, shard.config, counts):
            counts["pages"] += 1
            counts["bytes"] += len(article.page.text.encode())
            versions.add(article)
            yield article.page


def _articles(
    piece: Piece, indexed: tuple[tuple[int, int], ...], config: ReadWikiXmlConfig, counts: Counter[str]
) -> Iterator[Article]:
    name = piece.file.name
    progress = CountProgress(name, "articles")
    with opened(piece.file, counts, max_connections=config.max_connections) as file:
        head = _head(file, name)
        parts = parts_from(file, piece.start)
        splitter = Splitter(
            head.prefix,
            end=2**63 if piece.end == piece.file.size_bytes else piece.end,
            is_plain=not is_bz2(file),
            most_bytes=config.max_page_bytes,
        )
        for item in verified(splitter.pages(parts if head.encoding == "utf-8" else as_utf8(parts, head.encoding))):
            if isinstance(item, Cut):
                count_cut(counts, config, name, CutError(item.detail), texts="articles")
            elif isinstance(item, LostPages):
                _lose(item, name, indexed, counts)
            else:
                counts["articles"] += 1
                article = _article(item, head, config)
                if isinstance(article, Article):
                    yield article
                else:
                    place = f"{name!r} at byte {item.offset}"
                    lose(counts, article, place, damages=DAMAGES, event="1 pages are lost")
            progress.at(counts["articles"])


def _article(page: PageXml, head: Head, config: ReadWikiXmlConfig) -> Article | tuple[str, str]:
    if page.reason:
        return page.reason, "it has no end" if page.reason == "bad_page" else ""
    return article_of_page(page.xml, head, source=config.source, namespaces=tuple(config.namespaces))


def _lose(lost: LostPages, name: str, indexed: tuple[tuple[int, int], ...], counts: Counter[str]) -> None:
    behind = lost.stream.behind if lost.stream.behind is not None else 2**63
    pages = max(lost.pages, sum(pages for at, pages in indexed if lost.stream.offset <= at < behind) - lost.yielded)
    counts["articles"] += pages
    rejected, place = ("lost_stream", lost.stream.detail), f"{name!r} at byte {lost.stream.offset}"
    lose(counts, rejected, place, damages=DAMAGES, event=f"{pages} pages are lost", number=pages)


def _require_one_of_each(shards: list[XmlShard], config: ReadWikiXmlConfig) -> None:
    """Raise CrawlError for a page that occurs twice: a dump has each once."""
    files = [read_versions(shard.versions) for shard in shards]
    twice = sum(of_file.count(1) for of_file in superseded(files))
    if twice:
        raise CrawlError(
            f"{twice:,} pages occur twice below {config.input_path!r}, expected the parts of one dump of a wiki. Leave "
            "the other dumps out."
        )
