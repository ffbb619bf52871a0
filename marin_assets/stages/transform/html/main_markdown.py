"""The main content of a foreign page as Markdown: its text without navigation, notices, comments and lists of links.

Resiliparse leaves out elements by their names and classes (Bevendorff et al. 2018); `main_blocks` cuts what of the rest
is no text. Both look at the page alone, so a page has one text, whatever was converted before it.
"""

from __future__ import annotations

import html
import re
from collections import Counter

from marin_assets.stages.transform.html.html_marks import INFO, INFO_END, LINK, LINK_END, LastPage, mark_main
from marin_assets.stages.transform.html.main_blocks import main_blocks
from marin_assets.stages.transform.html.main_content import MainContent
from marin_assets.stages.transform.html.resiliparse_markdown import RENDERED_TWICE, MinimalHtml

CAPTIONS = ("figcaption", ".wp-caption-text", "p[class*=caption]", "span[class*=caption]", "div[class$=caption]")
LINE_NUMBERS = (
    "td.linenos",
    "td.gutter",
    "td.blob-num",
    ".linenodiv",
    ".line-numbers-rows",
    ".lntable td.lntd:first-child",
    ".rouge-gutter",
    ".crayon-nums",
    ".hljs-ln-numbers",
)
"""Cells of line numbers beside code: of Pygments, Hexo, GitHub, Prism, Hugo, Rouge, Crayon and highlight.js."""
TAGS = re.compile(r"<[^<>]*>")
ANCHOR = re.compile(r"""<a href="([^"<>]*)">|</a>""")
KEPT_LINK = re.compile(rf"{LINK}([^{LINK}{LINK_END}\n]*){LINK_END}{INFO}l(\d{{1,9}}){INFO_END}")
ADDRESS = re.compile(r"(?!(?:javascript|data|vbscript):)[^<>\n]+\Z", re.IGNORECASE)
GENERATED = re.compile(
    r"""<meta\b[^<>]{0,200}\bname\s{0,9}=\s{0,9}["']?generator\b[^<>]{0,200}?\bcontent\s{0,9}=\s{0,9}["']?"""
    r"(?:DocBook|publican|Docutils|LaTeXML|LaTeX2HTML|TeX4ht|hevea|pandoc|asciidoc|texi2any|makeinfo|Doxygen)",
    re.IGNORECASE,
)
"""Programs that render documents. Their pages have few links around the text and many in it, and a `sidebar` is a note
in the text: Resiliparse would leave out a third of a manual."""
FEW_TAGS = 8
"""Resiliparse's time is quadratic in the depth: 20,000 levels take 8 s, and 4,000, of as many tags, 0.3 s."""
HEAD = 20_000
"""Characters in which a page names its generator."""
PAGE_ANCHOR = re.compile(r"<a(?=[\s>])([^>]{0,4000})>|</a\s{0,9}>", re.IGNORECASE)
HREF = re.compile(r"""\bhref\s{0,9}=\s{0,9}(?:"([^"<>]*)"|'([^'<>]*)')""", re.IGNORECASE)
SIDEBAR = re.compile(r"""(<(?:div|aside)\b[^<>]{0,200}\bclass\s{0,9}=\s{0,9}["'])sidebar(?=["'])""")
TWEET = re.compile(r"(<blockquote\b[^<>]{0,200}?)\btwitter-(tweet|video)\b")
"""A quotation from a site whose buttons have its name too, by which Resiliparse leaves them out."""


def main_markdown(
    page: str,
    fields: MainContent,
    counts: Counter[str],
    *,
    max_depth: int = 512,
    last: LastPage | None = None,
) -> str | None:
    """Return the main content of a page as Markdown, "" if it has none; None if it has more than FEW_TAGS tags for each
    level of `max_depth`, and elements that are nested deeper. `last` may hold the page already.

    Adds to counts, in characters without blanks: page_characters (of the page's text), main_characters (of what
    Resiliparse leaves of it) and cut_characters (of what is cut of that); and in blocks cut_<reason>, for REASONS.
    """
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.html import HTMLTree

    last = last or LastPage()
    marked = mark_main(page, last, keep_figures=fields.keep_captions)
    if "twitter-" in marked:
        marked = TWEET.sub(r"\1\2", marked)
    links = Links(keep=fields.keep_links)
    if b"generator" in page[:HEAD].encode("utf-8", "surrogatepass").lower() and GENERATED.search(page, 0, HEAD):
        marked = SIDEBAR.sub(r"\1note", links.hidden(marked))
    tree = HTMLTree.parse(marked)
    body = tree.body
    if body is None:
        return ""
    if marked.count("<") > FEW_TAGS * max_depth and body.query_selector(" > ".join("*" * (max_depth + 1))):
        return None
    skipped = [*LINE_NUMBERS, *(() if fields.keep_captions else CAPTIONS)]
    skipped += RENDERED_TWICE if last.has(page, "math") else ()
    minimal = extract_plain_text(
        tree,
        preserve_formatting="minimal_html",
        main_content=True,
        alt_texts=fields.keep_alt_texts,
        links=True,
        comments=fields.keep_comments,
        post_meta=False,
        skip_elements=skipped,
    )
    counts["page_characters"] += characters_of(body.text or "")
    counts["main_characters"] += characters_of(TAGS.sub("", minimal))

    def cut(text: str) -> str:
        return main_blocks(text, counts, keep_title=fields.keep_title)

    return MinimalHtml(cut=cut, finish=links.written).markdown(links.marked(minimal))


def characters_of(text: str) -> int:
    """Return the number of characters without blanks, tabs and line ends."""
    return len(text) - text.count(" ") - text.count("\n") - text.count("\t")


class Links:
    """The links of one page. Marks hold their places, as the share of links in a block decides about it."""

    def __init__(self, *, keep: bool) -> None:
        self.keep = keep
        self.addresses: list[str] = []

    def hidden(self, page: str) -> str:
        """Return a page with marks in place of its <a>: Resiliparse leaves out lists and tables by their links."""
        return PAGE_ANCHOR.sub(self.hide, page)

    def hide(self, match: re.Match[str]) -> str:
        if match[1] is None:
            return self.end()
        href = HREF.search(match[1])
        self.addresses.append(((href[1] or href[2]) if href else None) or "")
        return LINK

    def marked(self, minimal: str) -> str:
        """Return minimal HTML with marks in place of its <a>."""
        return ANCHOR.sub(self.mark, minimal)

    def mark(self, match: re.Match[str]) -> str:
        if match[1] is None:
            return self.end()
        self.addresses.append(match[1])
        return LINK

    def end(self) -> str:
        return f"{LINK_END}{INFO}l{len(self.addresses) - 1}{INFO_END}" if self.keep and self.addresses else LINK_END

    def written(self, text: str) -> str:
        """Return Markdown with its links, if they are kept."""
        return KEPT_LINK.sub(self.link, text) if self.keep else text

    def link(self, match: re.Match[str]) -> str:
        text, number = match[1], int(match[2])
        address = html.unescape(self.addresses[number]).strip() if number < len(self.addresses) else ""
        if not text.strip() or not ADDRESS.match(address):
            return text
        return f"[{text}](<{address}>)" if re.search(r"[\s()]", address) else f"[{text}]({address})"
