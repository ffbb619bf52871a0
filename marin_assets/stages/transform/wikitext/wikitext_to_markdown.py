"""Convert pages of wikitext to documents of Markdown text.

In:  documents whose text is wikitext, as `read_wiki_xml` has them.
Out: documents, shard for shard under the same names, with the page's id, source and metadata, without namespaces, and
     with categories; metadata["page"] is the page's id, and metadata["wikitext"] the number of templates, tables,
     references, formulas and images of the page. A page longer than `max_characters` is divided as `html_to_markdown`
     divides it.

Wikitext has the names of templates, and not their text: dates, units, quotations and infoboxes are missing. An HTML
dump has them: `read_wiki_html`. What is missing is counted, of each document and in the result.

Each page is kept or rejected for one reason: pages = pages_kept + rejected, rejected = sum of rejected_<reason>.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from marin_assets.documents import Document, document_files, document_shards, read_documents, write_documents
from marin_assets.stages.transform import html_to_markdown
from marin_assets.stages.transform.html import wiki_content
from marin_assets.stages.transform.wikitext.content import COUNTS, WikitextContent, check_wikitext_content
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.shards.file_shards import FileShard
from marin_resources.ray_tpu.shards.map_shards import map_shards

KINDS = ("markdown",)

REASONS = ("too_long", "disambiguation", "empty", "too_short", *wiki_content.REASONS)


@dataclass(frozen=True, kw_only=True)
class WikitextToMarkdownConfig:
    pages_path: str
    """Shards of documents whose text is wikitext."""
    output_path: str = THIS_OUTPUT_PATH
    content: WikitextContent = field(default_factory=WikitextContent)
    """The content that is kept of a page."""
    min_characters: int = versioned(100)
    """A page with less text is rejected as too_short."""
    max_page_characters: int = versioned(10_000_000)
    """A longer page is rejected as too_long without parsing. MediaWiki's own limit is 2 MiB."""
    max_characters: int | None = versioned(6000)
    """A longer page becomes several documents, as in HtmlToMarkdownConfig; None leaves pages whole."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


def wikitext_to_markdown(config: WikitextToMarkdownConfig) -> dict[str, int | float]:
    """Convert pages of wikitext to Markdown documents.

    Returns pages, pages_kept, rejected, each rejected_<reason>, pages_unaccounted, documents, bytes_in, bytes_out, and
    of the pages that were parsed each of COUNTS. Raises WikitextContentError, WikiContentError and ExtractorError for
    fields that do not go together.
    """
    _check(config)
    pages = document_files(config.pages_path)
    counts = map_shards(
        convert_shard, document_shards(pages, config.output_path, config), output_path=config.output_path
    )
    unaccounted = counts["pages"] - counts["pages_kept"] - counts["rejected"]
    return {**counts, "pages_unaccounted": unaccounted, **pages.counts}


def _check(config: WikitextToMarkdownConfig) -> None:
    check_wikitext_content(config.content)
    html_to_markdown.check_lengths(config.min_characters, config.max_characters)


def convert_shard(shard: FileShard) -> dict[str, int]:
    """Convert one group of shards. Returns the counts of `wikitext_to_markdown`."""
    names = ("pages", "pages_kept", "rejected", *(f"rejected_{r}" for r in REASONS), "documents", *COUNTS, "bytes_in",
             "bytes_out")  # fmt: skip
    counts = Counter(dict.fromkeys(names, 0))
    for pages, documents in zip(shard.inputs, shard.outputs, strict=True):
        write_documents(documents, convert_pages(pages.path, shard.config, counts), replace=False)
    return dict(counts)


def convert_pages(path: str, config: WikitextToMarkdownConfig, counts: Counter[str]) -> Iterator[Document]:
    """Yield the documents of one shard of pages, and add to `counts`."""
    for page in read_documents(path):
        counts["pages"] += 1
        counts["bytes_in"] += len(page.text.encode())
        document = _document(page, config, counts)
        if isinstance(document, str):
            counts["rejected"] += 1
            counts[f"rejected_{document}"] += 1
            continue
        counts["pages_kept"] += 1
        for piece in html_to_markdown.split_page(document, document.text, config.min_characters, config.max_characters):
            counts["documents"] += 1
            counts["bytes_out"] += len(piece.text.encode())
            yield piece


def _document(page: Document, config: WikitextToMarkdownConfig, counts: Counter[str]) -> Document | str:
    """The document of a page, or its reason, one of REASONS."""
    from marin_assets.stages.transform.html import wiki_html  # late, for their weight
    from marin_assets.stages.transform.wikitext.sections import content_of

    if len(page.text) > config.max_page_characters:
        return "too_long"
    content = content_of(page, config.content)
    counts.update(content.hidden)
    if not {name.lower() for name in config.content.disambiguations}.isdisjoint(content.templates):
        return "disambiguation"
    reason = html_to_markdown.reject_text(content.text, config.min_characters)
    if reason := reason or wiki_html.reject_text(content.text, config.content):
        return reason
    metadata = {name: value for name, value in page.metadata.items() if name != "namespaces"}
    hidden = {name: count for name, count in content.hidden.items() if name != "without_section_names"}
    metadata |= {"categories": list(content.categories), "wikitext": hidden}
    return dataclasses.replace(page, text=wiki_html.with_title(content.text, page, config.content), metadata=metadata)
