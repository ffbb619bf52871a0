"""Convert HTML pages to documents of Markdown text.

In:  pages, shards of documents whose text is HTML.
Out: documents, shard for shard under the same names. A page keeps its id, source and metadata; metadata["page"] is the
     page's id. A page longer than `max_characters` is divided at paragraph borders into documents "<page id>#<n>" that
     share metadata["page"], so a split by page keeps them together. A code block or a table is never divided.

With `main_content`, pages of foreign sites lose their navigation, notices, comments and lists of links; what is cut is
counted. The text is a function of the page alone: no limit of time, and no memory of other pages. With `wiki`, pages of
wikis lose references, navigation, notices and some sections, and get their title and categories. With `thread`, the
question and the answers of a page become one text by templates. With `latexml`, papers lose authors, references,
footnotes and captions, and their equations are aligned displays. With `formulas`, MathML and the forms of MathJax,
images and forums are TeX between dollars.

Each page is kept or rejected for one reason: pages = pages_kept + rejected, rejected = sum of rejected_<reason>.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from marin_assets.documents import Document, document_files, document_shards, read_documents, write_documents
from marin_assets.stages.transform.formulas import fields as formulas_fields
from marin_assets.stages.transform.formulas.fields import Formulas
from marin_assets.stages.transform.html import thread_content, wiki_content
from marin_assets.stages.transform.html.main_content import COUNTS, MainContent, check_main_content
from marin_assets.stages.transform.html.page_limits import has_too_many_attributes, is_too_deep
from marin_assets.stages.transform.html.pieces import pieces
from marin_assets.stages.transform.html.thread_content import ThreadContent
from marin_assets.stages.transform.html.wiki_content import WikiContent
from marin_assets.stages.transform.latexml import latexml_content
from marin_assets.stages.transform.latexml.latexml_content import LatexmlContent
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.shards.file_shards import FileShard
from marin_resources.ray_tpu.shards.map_shards import map_shards
from marin_resources.types.errors import MarinError
from marin_resources.types.near_names import expected_one_of

if TYPE_CHECKING:
    from marin_assets.stages.transform.html.html_marks import LastPage

KINDS = ("markdown",)

REASONS = ("too_long", "too_many_attributes", "too_deep", "empty", "too_short")
TAG_NAMES = (
    "a|abbr|article|aside|b|blockquote|body|br|button|center|code|dd|div|dl|dt|em|font|footer|form|h[1-6]|head|header|hr|"
    "html|i|img|input|li|link|main|meta|nav|ol|option|p|pre|script|section|select|small|span|strong|style|sub|sup|table|"
    "tbody|td|th|thead|title|tr|u|ul"
)
TAG = re.compile(rf"</?(?:{TAG_NAMES})(?:\s[^<>]*)?/?>", re.IGNORECASE)
"""A tag of HTML. Text such as `<module>` or `List<int>` does not match."""


EXTRACTORS = ("resiliparse-2",)
CONTENTS = ("main_content", "wiki", "thread", "latexml")
"""Fields of which one may be given."""


class ExtractorError(MarinError, ValueError):
    """An unknown extractor."""


@dataclass(frozen=True, kw_only=True)
class HtmlToMarkdownConfig:
    pages_path: str
    """Shards of documents whose text is HTML."""
    output_path: str = THIS_OUTPUT_PATH
    extractor: str = versioned("resiliparse-2")
    """Name of the extractor: its number grows when its text changes, so the steps of this stage get other versions."""
    min_characters: int = versioned(100)
    """A page with less text, such as a title without content, is rejected as too_short."""
    max_page_characters: int = versioned(10_000_000)
    """A longer page is rejected as too_long without parsing: a parsed page takes up to 100 times its size. Crawls
    truncate pages at 1 to 5 MB."""
    max_depth: int = versioned(512)
    """A page is rejected as too_deep without parsing if its lists are nested deeper (10,000 levels become 200 MB of
    indentation), or if its unclosed <b>, <font> and so on would create millions of elements. With `main_content`, also
    if any elements of a page of many tags are nested deeper: the time is quadratic. Browsers stop at 512."""
    max_characters: int | None = versioned(6000)
    """A longer page becomes several documents of about this length at most, or of one longer line, code block or table;
    None leaves pages whole."""
    main_content: MainContent | None = None
    """MainContent() keeps the main content of pages alone; None keeps all text, as of pages without navigation."""
    wiki: WikiContent | None = None
    """WikiContent() keeps the content of pages that are Parsoid's HTML, as `read_wiki_html` has them."""
    thread: ThreadContent | None = None
    """ThreadContent() composes the text of pages that are threads, as `read_stackexchange` has them."""
    latexml: LatexmlContent | None = None
    """LatexmlContent() keeps the content of papers that are LaTeXML's HTML, as `read_ar5iv` has them."""
    formulas: Formulas | None = None
    """Formulas() writes formulas of every form as TeX; None only those whose MathML carries its TeX."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


def html_to_markdown(config: HtmlToMarkdownConfig) -> dict[str, int | float]:
    """Convert HTML pages to Markdown documents.

    Returns pages, pages_kept, rejected, each rejected_<reason>, pages_unaccounted, documents, markup_left (pages whose
    text still has tags), bytes_in and bytes_out; with main_content also page_characters, main_characters,
    cut_characters and each cut_<reason>, of all pages that were parsed; with wiki cut_characters, each cut_<reason>,
    infoboxes and without_section_names; with thread answers, answers_without_text and formulas; with latexml
    cut_characters, each cut_<reason>, formulas and displays. Raises ExtractorError for an unknown extractor, and for a
    max_characters too small, MainContentError, WikiContentError, ThreadContentError, LatexmlContentError and
    FormulasError for unknown rules.
    """
    _check(config)
    pages = document_files(config.pages_path)
    shards = document_shards(pages, config.output_path, config)
    counts = map_shards(convert_shard, shards, output_path=config.output_path)
    unaccounted = counts["pages"] - counts["pages_kept"] - counts["rejected"]
    return {**counts, "pages_unaccounted": unaccounted, **pages.counts}


def _check(config: HtmlToMarkdownConfig) -> None:
    _require_extractor(config.extractor)
    if config.main_content is not None:
        check_main_content(config.main_content)
    if config.wiki is not None:
        wiki_content.check_wiki_content(config.wiki)
    if config.thread is not None:
        thread_content.check_thread_content(config.thread)
    if config.latexml is not None:
        latexml_content.check_latexml_content(config.latexml)
    given = [name for name in CONTENTS if getattr(config, name) is not None]
    if len(given) > 1:
        raise ExtractorError(f"{' and '.join(given)} are both given, expected one of them. Leave one out.")
    if config.formulas is not None:
        formulas_fields.check_formulas(config.formulas)
        if own := [name for name in ("thread", "latexml") if getattr(config, name) is not None]:
            raise ExtractorError(
                f"formulas and {own[0]} are both given, and {own[0]} has formulas of its own. Leave one out."
            )
    check_lengths(config.min_characters, config.max_characters)


def check_lengths(min_characters: int, max_characters: int | None) -> None:
    """Raise ExtractorError for a `max_characters` that pieces of `min_characters` exceed."""
    if max_characters is not None and max_characters < max(1, 2 * min_characters):
        raise ExtractorError(
            f"max_characters is {max_characters!r}, expected at least twice min_characters "
            f"({min_characters!r}), so every piece is long enough. Pass a larger max_characters, or None."
        )


def convert_shard(shard: FileShard) -> dict[str, int]:
    """Convert one group of shards. Returns the counts of `html_to_markdown`."""
    names = ["pages", "pages_kept", "rejected", *(f"rejected_{r}" for r in REASONS), "documents", "markup_left"]
    names += [*(COUNTS if shard.config.main_content else ()), "bytes_in", "bytes_out"]
    if shard.config.wiki:
        names += [*(f"rejected_{reason}" for reason in wiki_content.REASONS), *wiki_content.COUNTS]
    names += thread_content.COUNTS if shard.config.thread else ()
    if shard.config.latexml:
        names += [*(f"rejected_{reason}" for reason in latexml_content.REASONS), *latexml_content.COUNTS]
    names += formulas_fields.COUNTS if shard.config.formulas else ()
    counts = Counter(dict.fromkeys(names, 0))
    for pages, documents in zip(shard.inputs, shard.outputs, strict=True):
        write_documents(documents, convert_pages(pages.path, shard.config, counts), replace=False)
    return dict(counts)


def convert_pages(path: str, config: HtmlToMarkdownConfig, counts: Counter[str]) -> Iterator[Document]:
    """Yield the documents of one shard of pages, and add to `counts`."""
    last = _last_page(config)
    to_markdown = markdown_function(config, counts, last)
    if config.wiki is not None:
        from marin_assets.stages.transform.html import wiki_html  # late, for its weight
    if (thread := config.thread) is not None:
        from marin_assets.stages.transform.html.thread_text import thread_text  # late, for its weight
    for page in read_documents(path):
        counts["pages"] += 1
        counts["bytes_in"] += len(last.encoded(page.text) if last else page.text.encode())
        content, reason = content_of(page, config, counts, last)
        text = None
        if reason is None:
            text = thread_text(page, thread, to_markdown, counts) if thread else to_markdown(content.text)
        reason = reason or reject_text(text, config.min_characters)
        if config.wiki is not None and text is not None:
            reason = reason or wiki_html.reject_text(text, config.wiki)
            text = wiki_html.with_title(text, page, config.wiki)
        if reason or text is None:
            counts["rejected"] += 1
            counts[f"rejected_{reason}"] += 1
            continue
        counts["pages_kept"] += 1
        counts["markup_left"] += markup_left(text, page.text)
        for document in split_page(content, text, config.min_characters, config.max_characters):
            counts["documents"] += 1
            counts["bytes_out"] += len(document.text.encode())
            yield document


def _last_page(config: HtmlToMarkdownConfig) -> LastPage | None:
    if config.main_content is None:
        return None
    from marin_assets.stages.transform.html.html_marks import LastPage  # late, for its weight

    return LastPage()


def content_of(
    page: Document, config: HtmlToMarkdownConfig, counts: Counter[str], last: LastPage | None
) -> tuple[Document, str | None]:
    """Return a page with the HTML of its content alone, and the reason to reject it before parsing, or None."""
    if config.latexml is None:
        reason = reject_page(page.text, config, last)
        if reason or config.wiki is None:
            return page, reason
        from marin_assets.stages.transform.html.wiki_html import wiki_page  # late, for its weight

        return wiki_page(page, config.wiki, counts), None
    if len(page.text) > config.max_page_characters:
        return page, "too_long"
    from marin_assets.stages.transform.latexml.latexml_html import latexml_page

    content = latexml_page(page, config.latexml, counts)
    # The content is parsed, not the page, which is MathML for the most part.
    return (page, "not_latexml") if content is None else (content, reject_page(content.text, config))


def reject_page(page: str, config: HtmlToMarkdownConfig, last: LastPage | None = None) -> str | None:
    """Return the reason to reject a page before parsing, one of REASONS; None to parse it.

    With `last` scripts are left out: a comparison in one is no tag; without main content it counts as one.
    """
    if len(page) > config.max_page_characters:
        return "too_long"
    if last is not None:
        page = last.text(page)
    if has_too_many_attributes(page):
        return "too_many_attributes"
    return "too_deep" if is_too_deep(page, config.max_depth) else None


def reject_text(text: str | None, min_characters: int) -> str | None:
    """Return the reason to reject a page by its text, which is None of a page too deep; None to keep it."""
    if text is None:
        return "too_deep"
    if not text:
        return "empty"
    return "too_short" if len(text) < min_characters else None


def markdown_function(
    config: HtmlToMarkdownConfig, counts: Counter[str], last: LastPage | None
) -> Callable[[str], str | None]:
    """Return the function from HTML to Markdown; None of a page that is too deep."""
    extract = _extract_function(config, counts, last)
    if config.formulas is None:
        return extract
    from marin_assets.stages.transform.formulas.formulas import with_formulas  # late, for its weight

    rules = config.formulas.rules
    return lambda page: extract(with_formulas(page, counts, rules))


def _extract_function(
    config: HtmlToMarkdownConfig, counts: Counter[str], last: LastPage | None
) -> Callable[[str], str | None]:
    if (fields := config.main_content) is None:
        return extractor_named(config.extractor)
    from marin_assets.stages.transform.html.main_markdown import main_markdown  # late, for its weight

    return lambda page: main_markdown(page, fields, counts, max_depth=config.max_depth, last=last)


def extractor_named(name: str) -> Callable[[str], str]:
    """Return the function from HTML to Markdown. Raises ExtractorError for an unknown name."""
    # Late, for its weight: who only reads the stage's config extracts nothing.
    from marin_assets.stages.transform.html.resiliparse_markdown import resiliparse_markdown

    _require_extractor(name)
    return resiliparse_markdown


def _require_extractor(name: str) -> None:
    if name not in EXTRACTORS:
        raise ExtractorError(f"The extractor is {name!r}, {expected_one_of(name, EXTRACTORS)}")


def markup_left(text: str, page: str) -> bool:
    """Whether the text has more HTML tags than the page mentions in its text (escaped, as `&lt;br&gt;`)."""
    tags = len(TAG.findall(text))
    return tags > 0 and tags > len(TAG.findall(html.unescape(re.sub(r"<[^<>]*>", "", page))))


def split_page(page: Document, text: str, min_characters: int, max_characters: int | None) -> Iterator[Document]:
    """Yield the page's documents: one with the page's id, or several with "#0", "#1", … appended to it."""
    metadata = {**page.metadata, "page": page.id}
    if max_characters is None or len(text) <= max_characters:
        yield Document(id=page.id, text=text, source=page.source, metadata=metadata)
        return
    for number, piece in enumerate(pieces(text, min_characters, max_characters)):
        yield Document(id=f"{page.id}#{number}", text=piece, source=page.source, metadata=metadata)
