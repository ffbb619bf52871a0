"""Our reading of WARC files against warcio's, and our way to main text against datatrove's.

    python tests/benchmarks/warc.py [WARC] [ROUNDS]

Without a file they are pydoc's pages of the standard library, as Common Crawl writes them: 1,160 to read, and 116 for
the main text, as Trafilatura takes long for their tables. The libraries run in an environment of their own. One process
and one core each, turn by turn; medians of processor time count.

    read           every response with its body, each Content-Length and each border compared; warcio compares none
    main text      read, decoded, and the main text of the page by Resiliparse; datatrove's by Trafilatura
    main content   read, decoded, compared with the limits, and the main content as Markdown, as the stages do it

Limits: 1.5 times warcio's pages a second, 10 and 5 times datatrove's. Exits 1 if one is missed. Takes 2 minutes. Prints
too how long the main content takes beside lxml's parser, as a second of CPU is worth less on a machine with other work.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from warc_files import crawl_records, members

from marin_assets.documents import Document
from marin_assets.stages.download.crawl.block_reader import opened
from marin_assets.stages.download.crawl.crawl_file import CrawlFile
from marin_assets.stages.download.crawl.pages import HTML_TYPES, page_of
from marin_assets.stages.download.warc.http_message import parse_response
from marin_assets.stages.download.warc.members import gzip_records
from marin_assets.stages.download.warc.record import Record
from marin_assets.stages.transform.html.html_marks import LastPage
from marin_assets.stages.transform.html.main_content import MainContent
from marin_assets.stages.transform.html.main_markdown import main_markdown
from marin_assets.stages.transform.html_to_markdown import HtmlToMarkdownConfig, reject_page
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.storage.files import stored_file

PACKAGES = ("warcio==1.8.1", "datatrove[processing,io]==0.10.1")
SIDE = Path(__file__).resolve().parent / "sides/warc_peers.py"
LIMITS = {"read": ("warcio", 1.5), "main text": ("datatrove", 10.0), "main content": ("datatrove", 5.0)}
MAX_BYTES = 10**8


def main() -> int:
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    with tempfile.TemporaryDirectory() as folder:
        many, few = (sys.argv[1], sys.argv[1]) if len(sys.argv) > 1 else written(folder)
        rates: dict[str, list[float]] = {name: [] for name in (*LIMITS, "lxml", "warcio", "datatrove")}
        for _ in range(rounds):
            rates["read"].append(rate_of(read, many))
            rates["warcio"].append(rate_of_peer("warcio", many))
            rates["main text"].append(rate_of(main_text, few))
            rates["main content"].append(rate_of(main_content, few))
            rates["lxml"].append(rate_of_lxml(few))
            rates["datatrove"].append(rate_of_peer("datatrove", few))
    lxml = statistics.median(rates["lxml"])
    times = lxml / statistics.median(rates["main content"])
    print(f"lxml parses {lxml:.0f} pages a second; the main content takes {times:.2f} times as long")
    missed = []
    for ours, (peer, limit) in LIMITS.items():
        rate, other = statistics.median(rates[ours]), statistics.median(rates[peer])
        print(
            f"{ours:12} {rate:8.0f} pages a second, {peer:10} {other:8.1f}: {rate / other:.2f} times (limit {limit:g})"
        )
        if rate < limit * other:
            missed.append(ours)
    print("missed: " + ", ".join(missed) if missed else "all limits held")
    return 1 if missed else 0


def written(folder: str) -> tuple[str, str]:
    """The paths of two WARC files of pydoc's pages, 40 and 4 of each module."""
    paths = []
    for copies in (40, 4):
        paths.append(f"{folder}/{copies}.warc.gz")
        Path(paths[-1]).write_bytes(members(crawl_records(copies=copies)))
    return paths[0], paths[1]


def read(path: str) -> int:
    pages = 0
    with opened(crawl_file(path), Counter(), max_connections=1) as file:
        for item in gzip_records(file, 0):
            if isinstance(item, Record) and item.kind == "response" and item.block is not None:
                response = parse_response(item.block, MAX_BYTES)
                pages += response is not None and len(response.body) > 0
    return pages


def crawl_file(path: str) -> CrawlFile:
    stored = stored_file(path)
    return CrawlFile(name=stored.name, path=path, size_bytes=stored.size_bytes, stored=stored)


def main_text(path: str) -> int:
    from resiliparse.extract.html2text import extract_plain_text

    return sum(
        isinstance(extract_plain_text(page.text, main_content=True, preserve_formatting=True, alt_texts=False), str)
        for page in pages_of(path)
    )


def main_content(path: str) -> int:
    fields = unwrap_versioned_value(MainContent())
    config = HtmlToMarkdownConfig(pages_path="", output_path="", main_content=fields)
    config, last, counts = unwrap_versioned_value(config), LastPage(), Counter[str]()
    pages = 0
    for page in pages_of(path):
        if reject_page(page.text, config, last) is None:
            pages += main_markdown(page.text, fields, counts, last=last) is not None
    return pages


def pages_of(path: str) -> Iterator[Document]:
    with opened(crawl_file(path), Counter(), max_connections=1) as file:
        for item in gzip_records(file, 0):
            page = isinstance(item, Record) and page_of(
                item,
                "",
                source="",
                statuses=(200,),
                content_types=HTML_TYPES,
                max_page_bytes=MAX_BYTES,
                counts=Counter(),
            )
            if isinstance(page, Document):
                yield page


def rate_of_lxml(path: str) -> float:
    """Pages in a second of CPU that lxml parses, without reading them."""
    from lxml import html

    bodies = [page.text.encode() for page in pages_of(path)]
    return rate_of(lambda _: sum(html.document_fromstring(body) is not None for body in bodies), path)


def rate_of(work: Callable[[str], int], path: str) -> float:
    """Pages in a second of CPU."""
    began_s = time.process_time()
    pages = work(path)
    return pages / (time.process_time() - began_s)


def rate_of_peer(name: str, path: str) -> float:
    """Pages in a second of CPU of a library, by its own Python."""
    uv = Path(__file__).resolve().parents[2] / ".tools/bin/uv"
    uv_path = (
        str(uv) if uv.exists() else shutil.which("uv", path=f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin")
    )
    if uv_path is None:
        raise RuntimeError(f"uv is not at {str(uv)!r} and not on the path. Run `make init` first.")
    packages = [word for package in PACKAGES for word in ("--with", package)]
    command = [uv_path, "run", "--isolated", "--no-project", "--python", sys.executable, *packages, "python"]
    done = subprocess.run([*command, str(SIDE), name, path], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    seconds, pages = done.stdout.splitlines()[-1].split()
    return int(pages) / float(seconds)


if __name__ == "__main__":
    sys.exit(main())
