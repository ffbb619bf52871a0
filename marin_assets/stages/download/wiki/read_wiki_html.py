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

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from marin_assets.documents import Document
from marin_assets.documents.jsonl.json_line import LineParser
from marin_assets.stages.download.crawl.block_reader import opened
from marin_assets.stages.download.crawl.crawl_input import DumpInput
from marin_assets.stages.download.crawl.damage import CutError, count_cut, lose, require_few_damages
from marin_assets.stages.download.crawl.shards import CountProgress
from marin_assets.stages.download.crawl.two_phases import SourceShard, write_parts, write_valid
from marin_assets.stages.download.wiki.articles import DAMAGES, REASONS, Article, article_of
from marin_assets.stages.download.wiki.dump_lines import dump_lines
from marin_assets.stages.download.wiki.versions import Versions, read_versions, superseded
from marin_assets.step.values import versioned
from marin_resources.ray_tpu.shards.map_shards import Counts, map_shards
from marin_resources.storage.paths import join

KINDS = ("html",)

WIKIMEDIA = "https://dumps.wikimedia.org/"
SUFFIXES = (".tar.gz", ".tgz", ".tar", ".ndjson", ".ndjson.gz")
HIDDEN = ".marin/wiki"


@dataclass(frozen=True, kw_only=True)
class ReadWikiHtmlConfig(DumpInput):
    base_url: str = WIKIMEDIA
    """The place below which the paths of a list are."""
    namespaces: tuple[int, ...] = versioned((0,))
    """Numbers of namespaces to keep, 0 for articles; () keeps all."""
    max_page_bytes: int = versioned(20_000_000)
    """Limit of a page's HTML. A larger one is rejected as too_large."""


def read_wiki_html(config: ReadWikiHtmlConfig) -> dict[str, int | float]:
    """Read the articles of HTML dumps as pages.

    Returns files, articles, pages, rejected, each rejected_<reason>, bytes (of text), cut_files, ignored_members;
    ignored_files if any exist. Raises CrawlError, and ShardError with the file for a cut archive.
    """
    config.check()
    files, ignored = config.files(kind="dump", suffixes=SUFFIXES, expected=".tar.gz, .tar, .ndjson or .ndjson.gz")
    hidden = join(config.output_path, HIDDEN)
    dumps = [
        SourceShard(file=file, folder=join(hidden, f"{n:05}"), output=join(hidden, f"{n:05}.versions"), config=config)
        for n, file in enumerate(files)
    ]
    counts = Counter(map_shards(read_dump, dumps, output_path=config.output_path))
    require_few_damages(counts, config, damages=DAMAGES, of="articles", noun="lines")
    versions = [read_versions(dump.output) for dump in dumps]
    states = zip([of_file.parts for of_file in versions], superseded(versions), strict=True)
    counts.update(write_valid(dumps, states, config.output_path, texts="pages", reasons=("superseded",)))
    return {"files": len(files), **counts, **({"ignored_files": ignored} if ignored else {})}


def read_dump(shard: SourceShard) -> Counts:
    """Read one file: write its parts, and its versions at the end. Returns the counts of `read_wiki_html`, without
    pages."""
    names = ("articles", "rejected", *(f"rejected_{r}" for r in (*DAMAGES, *REASONS)), "cut_files", "ignored_members")
    counts, versions = Counter(dict.fromkeys(names, 0)), Versions()
    versions.parts.extend(write_parts(shard, _pages(shard, counts, versions)))
    versions.write(shard.output)
    return dict(counts)


def _pages(shard: SourceShard, counts: Counter[str], versions: Versions) -> Iterator[Document]:
    config, name, parser = shard.config, shard.file.name, LineParser()
    progress = CountProgress(name, "articles")
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
                    versions.add(article)
                    yield article.page
                else:
                    place = f"{name!r} {member!r} line {number}"
                    lose(counts, article, place, damages=DAMAGES, event="an article is lost")
                progress.at(counts["articles"])
        except CutError as error:
            count_cut(counts, config, name, error, texts="articles")
