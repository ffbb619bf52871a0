"""Recipe: an HTML dump of Wikipedia to tokens: articles in their newest version, content alone, infoboxes as tables.

python -m marin_assets.experiments.recipes.wikipedia_like            a dump of Python's documentation; a minute
python -m marin_assets.experiments.recipes.wikipedia_like --dry-run
python -m marin_assets.experiments.recipes.wikipedia_like --dump gs://bucket/enwiki-NS0-….json.tar.gz

`--dump` is a dump, a folder of them in any store, an address, or a list of paths. DUMP has the same in this file.
"""

from __future__ import annotations

import gzip
import html
import io
import json
import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from marin_assets import THIS_OUTPUT_PATH, Step, executor_main, expect, output_path_of, versioned
from marin_assets.defaults import default_tokenize, default_tokenizer, default_wikipedia
from marin_assets.documents import Document, list_shards, read_documents
from marin_assets.run.recipe_options import take_source_option
from marin_assets.stages.download.pydoc import PydocConfig, render_pydoc
from marin_resources.storage.files import write_bytes
from marin_resources.storage.paths import join

NAME = "wikipedia_like"
DUMP: str | None = None
"""A dump of your own; None: one of the running Python's documentation."""
VALIDATION = 0.05
HATNOTE = '<div role="note" class="hatnote">This article is about the language. For the snake, see Pythonidae.</div>'
REFERENCE = '<sup class="mw-ref reference"><a href="#cite_note-1">[1]</a></sup>'
REFERENCES = (
    '<section data-mw-section-id="9"><h2 id="References">References</h2><div class="mw-references-wrap">'
    '<ol class="mw-references references"><li>The Python Language Reference</li></ol></div></section>'
    '<div role="navigation" class="navbox">v t e Python topics</div>'
    '<link rel="mw:PageProp/Category" href="./Category:Python_(programming_language)"/>'
)
REDIRECT = '<p><link rel="mw:PageProp/redirect" href="./Python"/></p>'


@dataclass(frozen=True, kw_only=True)
class DumpConfig:
    pages_path: str
    """Shards of documents whose text is HTML, of which those of the source "topics" become articles."""
    output_path: str = THIS_OUTPUT_PATH


def write_dump(config: DumpConfig) -> dict[str, int]:
    """Write topics as Wikimedia's dumps have articles: some in two versions, and redirects among them."""
    counts = {"articles": 0, "older": 0, "redirects": 0}
    pages = (page for shard in list_shards(config.pages_path) for page in read_documents(shard))
    topics = [page for page in pages if page.source == "topics"]
    half = len(topics) // 2
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for number, part in enumerate((topics[:half], topics[half:])):
            lines = "".join(json.dumps(row) + "\n" for row in _rows(part, number * half, counts)).encode()
            member = tarfile.TarInfo(f"pywiki_{number}.ndjson")
            member.size = len(lines)
            archive.addfile(member, io.BytesIO(lines))
    name = "pywiki-NS0-ENTERPRISE-HTML.json.tar.gz"
    write_bytes(join(config.output_path, name), gzip.compress(out.getvalue(), mtime=0))
    return counts


def _rows(topics: list[Document], first: int, counts: dict[str, int]) -> Iterator[dict[str, Any]]:
    for number, page in enumerate(topics, first + 1):
        title = str(page.metadata["topic"])
        counts["articles"] += 1
        newest = _row(title, number, 2, _article(title, page.text))
        if number % 10:
            yield newest
        else:
            counts["older"] += 1
            older = _row(title, number, 1, "<p>An older version of the article.</p>")
            yield from (newest, older) if number % 20 else (older, newest)
        if number % 9 == 0:
            counts["redirects"] += 1
            yield _row(f"{title} (Python)", 1000 + number, 1, REDIRECT)


def _row(title: str, number: int, version: int, body: str) -> dict[str, Any]:
    return {
        "name": title,
        "identifier": number,
        "url": f"https://wiki.example.org/wiki/{title}",
        "date_modified": "2024-05-18T01:58:10Z",
        "version": {"identifier": version},
        "namespace": {"identifier": 0},
        "in_language": {"identifier": "en"},
        "is_part_of": {"identifier": "pywiki"},
        "license": [{"name": "Python Software Foundation License"}],
        "article_body": {"html": f"<!DOCTYPE html><html><head><title>{title}</title></head><body>{body}</body></html>"},
    }


def _article(title: str, page: str) -> str:
    """Return a topic's page in Parsoid's form. Its text has paragraphs, indented code, and headings above a line."""
    text = html.unescape(re.sub("<[^<>]*>", "", page.partition("</h1>")[2])).replace("\u00a0", " ")
    sections = [HATNOTE + f'<table class="infobox"><tr><th>Topic</th><td>{title}</td></tr>'
                '<tr><th>Language</th><td>Python</td></tr></table>']  # fmt: skip
    for block in re.split(r"\n\s*\n", text.strip()):
        first, _, rest = block.strip("\n").partition("\n")
        if re.fullmatch(r"[*=\-~^]{3,}\s*", rest):
            heading = html.escape(first.strip())
            sections.append(f'<h2>{heading}<span class="mw-editsection">[edit]</span></h2>')
        elif block.startswith("  "):
            sections[-1] += f"<pre>{html.escape(block)}</pre>"
        else:
            sections[-1] += f"<p>{html.escape(block)}{REFERENCE}</p>"
    parts = (f'<section data-mw-section-id="{number}">{section}</section>' for number, section in enumerate(sections))
    return "".join(parts) + REFERENCES


def steps(dump: str | None = DUMP) -> list[Step]:
    """Return the steps from the dump at `dump` to tokens; None: of a dump that is written here."""
    source = example_dump() if dump is None else dump
    documents = default_wikipedia(NAME, source, expectations=[expect("pages_kept", at_least=1)])
    tokenizer = default_tokenizer(NAME, documents, vocab_size=2048, validation_fraction=VALIDATION)
    return [documents, default_tokenize(NAME, documents, tokenizer, validation_fraction=VALIDATION)]


def example_dump() -> Step:
    """Return the step that writes the example's dump."""
    pages = Step(
        name=f"raw/{NAME}/pages", fn=render_pydoc, config=PydocConfig(max_modules=versioned(1)), resumable=True
    )
    return Step(name=f"raw/{NAME}/dump", fn=write_dump, config=DumpConfig(pages_path=output_path_of(pages)))


if __name__ == "__main__":
    executor_main(take_source_option(steps, "--dump", DUMP))
