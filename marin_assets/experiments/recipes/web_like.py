"""Recipe: pages of a web crawl to tokens, as FineWeb has them: main content, filters, near-duplicates, tokens.

python -m marin_assets.experiments.recipes.web_like            a crawl of Python's documentation; a minute on two cores
python -m marin_assets.experiments.recipes.web_like --dry-run
python -m marin_assets.experiments.recipes.web_like --crawl https://data.commoncrawl.org/crawl-data/CC-MAIN-2024-22/warc.paths.gz

`--crawl` is a WARC file, a folder of them in any store, or a list of paths. CRAWL has the same in this file.
"""

from __future__ import annotations

import argparse
import gzip
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

from marin_assets import THIS_OUTPUT_PATH, Step, executor_main, expect, output_path_of, versioned
from marin_assets.defaults import default_tokenize, default_tokenizer, default_warc
from marin_assets.documents import Document, list_shards, read_documents
from marin_assets.stages.consolidate.consolidate import Applied, ConsolidateConfig, consolidate
from marin_assets.stages.dedup.decide_near_duplicates import DecideNearDuplicatesConfig, decide_near_duplicates
from marin_assets.stages.dedup.near_duplicates import FindNearDuplicatesConfig, find_near_duplicates
from marin_assets.stages.download.pydoc import PydocConfig, render_pydoc
from marin_assets.stages.filter.filter_documents import FilterDocumentsConfig, filter_documents
from marin_assets.stages.filter.registry import fineweb_filters, named
from marin_resources.storage.files import write_bytes
from marin_resources.storage.paths import join

NAME = "web_like"
CRAWL: str | None = None
"""WARC files of your own; None: a crawl of the running Python's documentation."""
VALIDATION = 0.05
DATE = "2024-05-18T01:58:10Z"
HEADERS = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"
MENU = (
    "<nav><ul>"
    + "".join(f'<li><a href="/{name}">{name}</a></li>' for name in ("Home", "Modules", "About"))
    + "</ul></nav>"
)
NOTICE = '<div class="cookie-banner">This site uses cookies. <a href="/cookies">Accept all cookies</a></div>'


@dataclass(frozen=True, kw_only=True)
class CrawlConfig:
    pages_path: str
    """Shards of documents whose text is HTML."""
    output_path: str = THIS_OUTPUT_PATH


def write_crawl(config: CrawlConfig) -> dict[str, int]:
    """Write pages as a crawler finds them: with a menu and a notice, some at two addresses, some gone."""
    counts = {"pages": 0, "mirrored": 0, "gone": 0}
    for number, shard in enumerate(list_shards(config.pages_path)):
        content = b"".join(_records(read_documents(shard), counts))
        write_bytes(join(config.output_path, f"{number:05}.warc.gz"), content)
    return counts


def _records(pages: Iterator[Document], counts: dict[str, int]) -> Iterator[bytes]:
    for number, page in enumerate(pages):
        framed = page.text.replace("<body>", f"<body>{MENU}{NOTICE}", 1).encode()
        counts["pages"] += 1
        yield _response(f"https://docs.example.org/{page.id}", HEADERS + framed)
        if number % 10 == 0:
            counts["mirrored"] += 1
            yield _response(f"https://mirror.example.org/{page.id}", HEADERS + framed)
        if number % 25 == 0:
            counts["gone"] += 1
            yield _response(f"https://docs.example.org/{page.id}/old", b"HTTP/1.1 404 Not Found\r\n\r\n")


def _response(url: str, block: bytes) -> bytes:
    """A record of WARC, as a member of gzip of its own."""
    fields = {
        "WARC-Type": "response",
        "WARC-Record-ID": f"<urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, url)}>",
        "WARC-Date": DATE,
        "WARC-Target-URI": url,
        "Content-Type": "application/http; msgtype=response",
        "Content-Length": str(len(block)),
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return gzip.compress(f"WARC/1.0\r\n{lines}\r\n".encode() + block + b"\r\n\r\n", mtime=0)


def steps(crawl: str | None = CRAWL) -> list[Step]:
    """Return the steps from the WARC files at `crawl` to tokens; None: of a crawl that is written here."""
    source = example_crawl() if crawl is None else crawl
    # FineWeb's rules are for prose: of documentation they keep one page in a hundred
    rules = [named("gopher_repetition@reference")] if crawl is None else fineweb_filters()
    documents = default_warc(NAME, source, expectations=[expect("pages_kept", at_least=1)])
    filters = Step(
        name=f"attributes/{NAME}/filters",
        fn=filter_documents,
        config=FilterDocumentsConfig(documents_path=output_path_of(documents), filters=rules, words=versioned("fast")),
        extras=("curate",),
        resumable=True,
    )
    clusters = Step(
        name=f"clusters/{NAME}",
        fn=find_near_duplicates,
        config=FindNearDuplicatesConfig(documents_path=output_path_of(documents)),
        extras=("curate",),
        resumable=True,
    )
    copies = Step(
        name=f"attributes/{NAME}/near_duplicates",
        fn=decide_near_duplicates,
        config=DecideNearDuplicatesConfig(
            documents_path=output_path_of(documents), clusters_path=output_path_of(clusters)
        ),
        extras=("curate",),
        resumable=True,
    )
    kept = Step(
        name=f"consolidated/{NAME}",
        fn=consolidate,
        config=ConsolidateConfig(
            documents_path=output_path_of(documents),
            attributes=[
                Applied(name="filters", path=output_path_of(filters)),
                Applied(name="near_duplicates", path=output_path_of(copies)),
            ],
        ),
        extras=("curate",),
        resumable=True,
        expectations=[expect("documents_unaccounted", at_least=0, at_most=0), expect("kept", at_least=1)],
    )
    tokenizer = default_tokenizer(NAME, kept, vocab_size=2048, validation_fraction=VALIDATION)
    return [
        documents,
        filters,
        clusters,
        copies,
        kept,
        default_tokenize(NAME, kept, tokenizer, validation_fraction=VALIDATION),
    ]


def example_crawl() -> Step:
    """Return the step that writes the example's WARC files."""
    pages = Step(name=f"raw/{NAME}/pages", fn=render_pydoc, config=PydocConfig(shards=versioned(2)), resumable=True)
    return Step(name=f"raw/{NAME}/crawl", fn=write_crawl, config=CrawlConfig(pages_path=output_path_of(pages)))


def take_options() -> list[Step]:
    """Take `--crawl` off the command line, and return the steps; the rest is that of executor_main."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--crawl", metavar="PATH", default=CRAWL)
    options, sys.argv[1:] = parser.parse_known_args()
    return steps(options.crawl)


if __name__ == "__main__":
    executor_main(take_options())
