"""Convert articles in JATS to documents of Markdown text.

In:  pages, shards of documents whose text is JATS, as `read_pmc` has them.
Out: documents, shard for shard under the same names. An article keeps its id, source and metadata. One longer than
     `max_characters` is divided at paragraph borders into documents "<id>#<n>" that share metadata["page"].

Each page is kept or rejected for one reason: pages = pages_kept + rejected, rejected = sum of rejected_<reason>. What
is cut of an article is counted by name. The text is a function of the page alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from marin_assets.documents import Document, document_files, document_shards, read_documents, write_documents
from marin_assets.stages.transform.html_to_markdown import split_page
from marin_assets.stages.transform.jats.jats_content import COUNTS, JatsContent, JatsContentError, check_jats_content
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.shards.file_shards import FileShard
from marin_resources.ray_tpu.shards.map_shards import map_shards

KINDS = ("markdown",)

REASONS = ("bad_xml", "entities", "too_deep", "bad_article", "no_body", "too_short")
"""As of `read_pmc`; and an article whose body has no text, and one with less text than min_characters."""


@dataclass(frozen=True, kw_only=True)
class JatsToMarkdownConfig:
    pages_path: str
    """Shards of documents whose text is JATS."""
    output_path: str = THIS_OUTPUT_PATH
    content: JatsContent = field(default_factory=JatsContent)
    """Parts of an article that are kept."""
    min_characters: int = versioned(100)
    """An article with less text is rejected as too_short."""
    max_characters: int | None = versioned(None)
    """A longer article becomes several documents of about this length; None leaves articles whole."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


def jats_to_markdown(config: JatsToMarkdownConfig) -> dict[str, int | float]:
    """Convert articles in JATS to Markdown documents.

    Returns pages, pages_kept, rejected, each rejected_<reason>, pages_unaccounted, documents, bytes_in, bytes_out,
    cut_characters (without blanks) and each cut_<name>, formulas, formula_images (without a text), tables and
    table_images. Raises JatsContentError for an unknown field of the content or a bound, and if no page is kept.
    """
    _check(config)
    pages = document_files(config.pages_path)
    shards = document_shards(pages, config.output_path, config)
    counts = map_shards(convert_shard, shards, output_path=config.output_path)
    if not counts["pages_kept"]:
        reasons = ", ".join(f"{counts[f'rejected_{r}']:,} {r}" for r in REASONS if counts[f"rejected_{r}"])
        raise JatsContentError(
            f"None of the {counts['pages']:,} pages of {config.pages_path!r} is kept ({reasons or 'none exist'}), "
            "expected articles in JATS with a body. Read them with read_pmc, or lower min_characters."
        )
    unaccounted = counts["pages"] - counts["pages_kept"] - counts["rejected"]
    return {**counts, "pages_unaccounted": unaccounted, **pages.counts}


def _check(config: JatsToMarkdownConfig) -> None:
    check_jats_content(config.content)
    if config.max_characters is not None and config.max_characters < max(1, 2 * config.min_characters):
        raise JatsContentError(
            f"max_characters is {config.max_characters!r}, expected at least twice min_characters "
            f"({config.min_characters!r}), so every piece is long enough. Pass a larger max_characters, or None."
        )


def convert_shard(shard: FileShard) -> dict[str, int]:
    """Convert one group of shards. Returns the counts of `jats_to_markdown`."""
    names = ("pages", "pages_kept", "rejected", *(f"rejected_{reason}" for reason in REASONS), "documents", "bytes_in")
    counts = Counter(dict.fromkeys((*names, "bytes_out", *COUNTS), 0))
    for pages, documents in zip(shard.inputs, shard.outputs, strict=True):
        write_documents(documents, _documents(pages.path, shard.config, counts), replace=False)
    return dict(counts)


def _documents(path: str, config: JatsToMarkdownConfig, counts: Counter[str]) -> Iterator[Document]:
    for page in read_documents(path):
        counts["pages"] += 1
        counts["bytes_in"] += len(page.text.encode())
        text, reason = _text(page, config, counts)
        if reason:
            counts["rejected"] += 1
            counts[f"rejected_{reason}"] += 1
            continue
        counts["pages_kept"] += 1
        for document in split_page(page, text, config.min_characters, config.max_characters):
            counts["documents"] += 1
            counts["bytes_out"] += len(document.text.encode())
            yield document


def _text(page: Document, config: JatsToMarkdownConfig, counts: Counter[str]) -> tuple[str, str]:
    """The Markdown of a page, and the reason to reject it, "" if it is kept."""
    from marin_assets.documents.xml.parse import BadXmlError, parsed  # late, for their weight
    from marin_assets.stages.transform.jats.article import article_markdown

    try:
        root = parsed(page.text)
    except BadXmlError as error:
        return "", error.reason
    if root.tag != "article":
        return "", "bad_article"
    text = article_markdown(root, config.content, counts)
    if text is None:
        return "", "no_body"
    return text, "too_short" if len(text) < config.min_characters else ""
