"""Read the articles of PMC's open access archives as pages: documents whose text is JATS.

In:  archives `oa_bulk/*/xml/*.tar.gz` of files `.nxml` or `.xml`; of a folder, a bucket or the web, or a list of their
     paths. A file `….md5` beside one is compared with it.
Out: pages in shards "part-00000-of-00012.jsonl.zst", in the order of the archives and their members. A page's id is
     "PMC<number>"; metadata has url, pmcid, title, journal, year, doi, pmid, type, language, license, license_text,
     copyright, subset and file. `jats_to_markdown` reads pages.

Each member is a page or rejected for one reason: articles = documents + rejected, rejected = sum of rejected_<reason>.
Of several articles with one PMCID the last archive has the valid one. A damaged or too large member costs no other one.
A cut archive fails the stage, unless `allow_cut_files`.

An archive is read once, as a stream, by one task: it cannot be entered in the middle.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from marin_assets.stages.download.crawl.crawl_input import DumpInput
from marin_assets.stages.download.crawl.damage import CutError, lose, reject, require_few_damages, require_some
from marin_assets.stages.download.crawl.shards import CountProgress
from marin_assets.stages.download.pubmed.articles import DAMAGES, Article, article_of
from marin_assets.stages.download.pubmed.sources import (
    DigestedShard,
    Text,
    published_order,
    source_shards,
    write_latest,
    write_texts,
)
from marin_assets.stages.download.pubmed.streams import whole_file
from marin_assets.stages.download.stores.tar_stream import Stream, tar_members
from marin_assets.step.values import versioned
from marin_resources.ray_tpu.shards.map_shards import Counts, map_shards

KINDS = ("xml",)

PMC = "https://ftp.ncbi.nlm.nih.gov/pub/pmc/"
SUFFIXES = (".tar.gz", ".tgz", ".tar")
MEMBERS = (".nxml", ".xml")
REASONS = ("too_large",)


@dataclass(frozen=True, kw_only=True)
class ReadPmcConfig(DumpInput):
    base_url: str = PMC
    """The place below which the paths of a list are."""
    source: str = versioned("")
    """The `source` of every page. "": the subset in the name of its archive, oa_comm, oa_noncomm or oa_other, by the
    licences; "pmc" without one."""
    max_article_bytes: int = versioned(20_000_000)
    """Limit of an article's XML. A larger one is rejected as too_large."""


def read_pmc(config: ReadPmcConfig) -> dict[str, int | float]:
    """Read the articles of PMC's open access archives as pages.

    Returns files, articles, documents, rejected, each rejected_<reason>, bytes (of XML), verified_files (those with an
    MD5), cut_files, ignored_members; ignored_files if any exist. Raises CrawlError, and ShardError with the archive for
    a cut one and a wrong MD5.
    """
    config.check()
    files, ignored = config.files(kind="PMC", suffixes=SUFFIXES, expected=".tar.gz or .tar")
    shards = source_shards(published_order(files), config)
    counts = Counter(map_shards(read_archive, shards, output_path=config.output_path))
    require_few_damages(counts, config, damages=DAMAGES, of="articles")
    counts.update(write_latest(shards, config.output_path))
    sentence = "Expected articles of JATS in .nxml or .xml. Correct input_path."
    require_some(counts, config.input_path, sentence, of="articles", kept="documents")
    ignored -= sum(shard.md5 is not None for shard in shards)
    return {"files": len(files), **counts, **({"ignored_files": ignored} if ignored > 0 else {})}


def read_archive(shard: DigestedShard) -> Counts:
    """Read one archive: write its parts, and its numbers at the end. Returns the counts of `read_pmc`, without
    documents."""
    names = ("articles", "rejected", *(f"rejected_{reason}" for reason in (*DAMAGES, *REASONS)))
    counts = Counter(dict.fromkeys((*names, "verified_files", "cut_files", "ignored_members"), 0))
    write_texts(shard, _articles(shard, counts), ())
    return dict(counts)


def _articles(shard: DigestedShard, counts: Counter[str]) -> Iterator[Text]:
    config, name = shard.config, shard.file.name
    with whole_file(shard, counts, texts="articles") as chunks:
        stream = Stream(chunks)
        if stream.peek(512)[257:262] != b"ustar":
            raise CutError("it does not begin as a tar archive")
        progress = CountProgress(name, "articles")
        for member, size, parts in tar_members(stream, MEMBERS, counts):
            content = b"".join(parts) if size <= config.max_article_bytes else None
            counts["articles"] += 1
            if content is None:
                reject(counts, "too_large")
                continue
            article = article_of(content, member, name, source=config.source)
            if isinstance(article, Article):
                yield article.number, 0, article.page
            else:
                place = f"{name!r} {member!r:.200}"
                lose(counts, article, place, damages=DAMAGES, event="an article is lost")
            progress.at(counts["articles"])
