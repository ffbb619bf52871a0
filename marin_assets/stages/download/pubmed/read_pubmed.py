"""Read the citations of PubMed as documents of title and abstract.

In:  files of NLM's baseline and updates, `pubmed25n0001.xml.gz` and so on; of a folder, a bucket or the web, or a list
     of their paths. A file `….md5` beside one is compared with it.
Out: documents in shards "part-00000-of-01274.jsonl.zst", in the order of the files and their citations. The id is
     "PMID<number>"; metadata has url, pmid, version, title, journal, year, languages, types, mesh, doi, pmcid, and as
     license the copyright statement of the abstract.

Each citation is a document or rejected for one reason: citations = documents + rejected, rejected = sum of
rejected_<reason>. Of several citations with one PMID the last file has the valid one, and <DeleteCitation> of a file
removes one from it and all before it: `latest.py` holds 4 bytes for each PMID. A damaged citation costs no other one. A
file that is cut, or no XML, fails the stage, unless `allow_cut_files`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from marin_assets.documents.xml.parse import elements
from marin_assets.stages.download.crawl.crawl_input import DumpInput
from marin_assets.stages.download.crawl.damage import lose, reject, require_few_damages, require_some
from marin_assets.stages.download.crawl.shards import CountProgress
from marin_assets.stages.download.pubmed.citations import (
    DAMAGES,
    ELEMENTS,
    REASONS,
    ROOT,
    Citation,
    citation_of,
    number_of,
)
from marin_assets.stages.download.pubmed.sources import (
    DigestedShard,
    Text,
    published_order,
    source_shards,
    write_latest,
    write_texts,
)
from marin_assets.stages.download.pubmed.streams import whole_file
from marin_assets.step.values import versioned
from marin_resources.ray_tpu.shards.map_shards import Counts, map_shards

KINDS = ("markdown",)

NLM = "https://ftp.ncbi.nlm.nih.gov/pubmed/"
SUFFIXES = (".xml.gz", ".xml")
MAX_CITATION_BYTES = 16 * 2**20
"""Bytes of XML without the end of a citation. One with 5,000 authors has 5 MB, and 16 MB of empty elements take
500 MB of memory."""


@dataclass(frozen=True, kw_only=True)
class ReadPubmedConfig(DumpInput):
    base_url: str = NLM
    """The place below which the paths of a list are."""
    source: str = versioned("pubmed")
    """The `source` of every document."""
    labels: bool = versioned(True)
    """Whether the labels of an abstract's parts, such as METHODS, become headings."""


def read_pubmed(config: ReadPubmedConfig) -> dict[str, int | float]:
    """Read the citations of PubMed as documents of title and abstract.

    Returns files, citations, documents, rejected, each rejected_<reason>, bytes (of text), deletions (PMIDs that files
    delete), verified_files (those with an MD5) and cut_files; ignored_files if any exist. Raises CrawlError, and
    ShardError with the file for a cut one and a wrong MD5.
    """
    config.check()
    files, ignored = config.files(kind="PubMed", suffixes=SUFFIXES, expected=".xml.gz or .xml")
    shards = source_shards(published_order(files), config)
    counts = Counter(map_shards(read_file, shards, output_path=config.output_path))
    require_few_damages(counts, config, damages=DAMAGES, of="citations")
    counts.update(write_latest(shards, config.output_path))
    sentence = "Expected citations with abstracts. Correct input_path."
    require_some(counts, config.input_path, sentence, of="citations", kept="documents")
    ignored -= sum(shard.md5 is not None for shard in shards)
    return {"files": len(files), **counts, **({"ignored_files": ignored} if ignored > 0 else {})}


def read_file(shard: DigestedShard) -> Counts:
    """Read one file: write its parts, and its numbers at the end. Returns the counts of `read_pubmed`, without
    documents."""
    names = ("citations", "rejected", *(f"rejected_{reason}" for reason in (*DAMAGES, *REASONS)))
    counts = Counter(dict.fromkeys((*names, "deletions", "bad_deletions", "verified_files", "cut_files"), 0))
    deleted: list[int] = []
    write_texts(shard, _citations(shard, counts, deleted), deleted)
    return dict(counts)


def _citations(shard: DigestedShard, counts: Counter[str], deleted: list[int]) -> Iterator[Text]:
    with whole_file(shard, counts, texts="citations") as chunks:
        progress = CountProgress(shard.file.name, "citations")
        for element in elements(chunks, ELEMENTS, root=ROOT, most_bytes=MAX_CITATION_BYTES):
            if element.tag == "DeleteCitation":
                numbers = [number_of(pmid) for pmid in element.iterfind("PMID")]
                deleted.extend(number for number in numbers if number is not None)
                counts["deletions"] += len(numbers)
                counts["bad_deletions"] += numbers.count(None)
            elif citation := _citation(shard, element, counts):
                yield citation.pmid, citation.version, citation.document
            progress.at(counts["citations"])


def _citation(shard: DigestedShard, element: Any, counts: Counter[str]) -> Citation | None:
    """The citation of an element; None if it was rejected and none of its PMID is to be compared with it."""
    counts["citations"] += 1
    if element.tag == "PubmedBookArticle":
        reject(counts, "book")
        return None
    citation = citation_of(element, source=shard.config.source, labels=shard.config.labels)
    if not isinstance(citation, Citation):
        event = f"citation {counts['citations']} is lost"
        lose(counts, ("bad_citation", citation), f"{shard.file.name!r}", damages=DAMAGES, event=event)
        return None
    if citation.document is None:
        reject(counts, "no_abstract")
    return citation
