"""HTML as Markdown, by Resiliparse's minimal HTML (Bevendorff et al. 2018) and marks on what that leaves out."""

from __future__ import annotations

import html
import re
from collections.abc import Callable

from marin_assets.documents.xml.superscripts import raised
from marin_assets.stages.transform.html.html_marks import (
    ALL,
    BLOCK,
    BLOCK_END,
    CODE,
    CODE_END,
    DROPPED,
    INFO,
    INFO_END,
    ITEM,
    LINK,
    LINK_END,
    SUB,
    SUB_END,
    SUP,
    SUP_END,
    mark,
)
from marin_assets.stages.transform.html.markdown_tables import Tables

RENDERED_TWICE = (
    ".katex-html",
    ".MathJax > nobr",
    ".MathJax_Preview",
    ".mwe-math-fallback-image-inline",
    ".mwe-math-fallback-image-display",
)
"""Elements that KaTeX, MathJax and MediaWiki add to a formula's MathML."""
LINKS = re.compile(rf"{LINK}|{LINK_END}(?:{INFO}l\d{{1,9}}{INFO_END})?")
TAGS = re.compile(r"<[^<>]*>")
BLOCKS = re.compile(rf"{BLOCK}(\d{{1,9}}){BLOCK_END}")
SPAN = re.compile(f"([{CODE}{SUP}{SUB}])([^{CODE}-{SUB_END}]*)([{CODE_END}{SUP_END}{SUB_END}])")
"""The innermost inline code, superscript or subscript."""
SPAN_MARK = re.compile(f"[{CODE}-{SUB_END}]")
SIMPLE_CODE = re.compile(f"[^`&<\\s{BLOCK}]++(?: [^`&<\\s{BLOCK}]++)*+")
CODE_IN_CODE = re.compile(f"{CODE}[^{CODE_END}\n]*{CODE}")
MAX_SPANS = 5
"""Levels of inline code, superscripts and subscripts in one another."""


def resiliparse_markdown(page: str) -> str:
    """Return a page as Markdown: headings, lists, fenced code, tables, inline code, and formulas as text."""
    from resiliparse.extract.html2text import extract_plain_text

    skipped = RENDERED_TWICE if "<math" in page else None
    marked = mark(page)
    minimal = extract_plain_text(marked, preserve_formatting="minimal_html", main_content=False, skip_elements=skipped)
    return MinimalHtml().markdown(minimal)


class MinimalHtml:
    """One page of marked minimal HTML. It has ten tags, and escapes all text, so each tag is a tag.

    `cut` is applied to minimal HTML in which marks stand for code blocks and tables; `finish` to the Markdown, while it
    has the marks of links.
    """

    def __init__(self, cut: Callable[[str], str] = str, finish: Callable[[str], str] = str) -> None:
        self.cut, self.finish = cut, finish
        self.blocks: list[tuple[str, str | None]] = []
        """Code blocks and tables, a table in one line as well."""

    def markdown(self, minimal: str) -> str:
        if not ALL.search(minimal) and "<pre>" not in minimal:
            return tidy(outlined(self.cut(minimal)))
        text = re.sub(f"[{BLOCK}{BLOCK_END}{DROPPED}]", "", minimal)
        text = re.sub(r"<pre>(.*?)</pre>", self.keep_code, text, flags=re.DOTALL)
        text = with_spans(text)
        text = Tables(self.cell_text, self.keep).replaced(text)
        text = tidy(outlined(self.cut(without_dropped(text))))
        return without_marks(self.finish(BLOCKS.sub(self.block, text)))

    def keep_code(self, match: re.Match[str]) -> str:
        """Keep a <pre> element as a fenced code block, out of the reach of later steps."""
        code = html.unescape(TAGS.sub("", without_marks(match[1]))).replace("\u00a0", " ").replace("\r", "").strip("\n")
        if not code.strip():
            return "\n\n"
        fence = "`" * max(3, 1 + longest_run(code))
        return self.keep(f"{fence}\n{code}\n{fence}")

    def keep(self, block: str, line: str | None = None) -> str:
        """Keep a block, and a table in one line as well. Return what stands for it."""
        self.blocks.append((block, line))
        return f"\n\n{BLOCK}{len(self.blocks) - 1}{BLOCK_END}\n\n"

    def block(self, match: re.Match[str]) -> str:
        """Return the block that a mark stands for."""
        number = int(match[1])
        return self.blocks[number][0] if number < len(self.blocks) else ""

    def block_line(self, match: re.Match[str]) -> str:
        """Return the block that a mark stands for in one line: of code, each line in backticks."""
        number = int(match[1])
        block, line = self.blocks[number] if number < len(self.blocks) else ("", "")
        return " ".join(inline_code(code) for code in block.split("\n")[1:-1] if code.strip()) if line is None else line

    def cell_text(self, minimal: str) -> str:
        """Return a cell in one line, with its pipes escaped."""
        text = html.unescape(TAGS.sub(" ", numbered(minimal.replace(DROPPED, ""))))
        text = BLOCKS.sub(self.block_line, " ".join(text.split()))
        return re.sub(r"(\\*)\|", r"\1\1\\|", text)


def without_marks(text: str) -> str:
    """Remove marks at places where they mean nothing: in unclosed elements, or from references such as &#xFDD6;."""
    if not ALL.search(text):
        return text
    return ALL.sub("", re.sub(rf"{INFO}[\w,-]*{INFO_END}", "", text))


def with_spans(text: str) -> str:
    """Replace marks of inline code, superscripts and subscripts, from the inside to the outside."""
    if not SPAN_MARK.search(text):
        return text
    text = text.replace(CODE_END + CODE, "")
    if CODE_IN_CODE.search(text):
        text = "\n".join(map(with_outer_code, text.split("\n")))
    for _ in range(MAX_SPANS):
        if not SPAN_MARK.search(text):
            return text
        text = SPAN.sub(span, text)
    return SPAN_MARK.sub("", text)


def with_outer_code(line: str) -> str:
    """Return a line without the marks of inline code in inline code. They end with the line, as its elements do."""
    if not CODE_IN_CODE.search(line):
        return line
    depth = 0
    parts = []
    for part in re.split(f"([{CODE}{CODE_END}])", line):
        depth = max(0, depth + (part == CODE) - (part == CODE_END))
        if depth + (part == CODE_END) <= 1 or part not in (CODE, CODE_END):
            parts.append(part)
    return "".join(parts)


def span(match: re.Match[str]) -> str:
    """Return inline code in backticks, x^2 or H_2O; the text itself if it has several lines or the marks differ."""
    kind, minimal, end = match.groups()
    if kind == CODE and LINK in minimal:
        minimal = LINKS.sub("", minimal)
    if kind == CODE and end == CODE_END and SIMPLE_CODE.fullmatch(minimal):
        return f"`{minimal}`"
    text = html.unescape(TAGS.sub("", minimal)).strip()
    if not text or ord(end) != ord(kind) + 1 or "\n" in minimal or "<br>" in minimal or BLOCK in minimal:
        changed = minimal.strip(" ")
    elif kind == CODE:
        changed = html.escape(inline_code(text), quote=False)
    elif starts_line(match):
        changed = html.escape(text, quote=False)
    else:
        changed = html.escape(raised("^" if kind == SUP else "_", text), quote=False)
    before = match.string[max(match.start() - 1, 0) : match.start()]
    after = match.string[match.end() : match.end() + 1]
    # A blank inside a mark doubles one outside.
    blank_before = " " if minimal[:1] == " " and before not in ("", " ", "\n", ">") else ""
    blank_after = " " if minimal[-1:] == " " and after not in ("", " ", "\n", "<") else ""
    return blank_before + changed + blank_after


def starts_line(match: re.Match[str]) -> bool:
    """Whether nothing is before a superscript or subscript that it could belong to."""
    return match.start() == 0 or match.string[match.start() - 1] in f"\n>{INFO_END}"


def inline_code(code: str) -> str:
    """Return code between backticks, more than it contains in a row."""
    run = longest_run(code)
    if run == 0:
        return f"`{code}`"
    return f"{'`' * (run + 1)} {code} {'`' * (run + 1)}"


def longest_run(code: str) -> int:
    """Return the length of the longest run of backticks."""
    return max(map(len, re.findall("`+", code)), default=0)


def without_dropped(text: str) -> str:
    """Remove what stands for marks of layout tables, and the lines that have nothing else."""
    if DROPPED not in text:
        return text
    text = re.sub(f"^[ \t]*(?:{DROPPED}[ \t]*)+(?:\n|\\Z)", "", text, flags=re.MULTILINE)
    return re.sub(f"{DROPPED} *", "", text)


def outlined(minimal: str) -> str:
    """Return minimal HTML without <pre> as Markdown with headings and lists."""
    text = minimal
    if "\t" in text:  # only between cells of a layout table
        # Without the look-behind a run of blanks takes quadratic time.
        text = re.sub(r"(?<![ \u00a0])[ \u00a0]*\t[ \u00a0\t]*", "\t", text)
        text = re.sub(r"^\t|\t$", "", text, flags=re.MULTILINE)
    text = re.sub(r"<h([1-6])>\s*(.*?)\s*</h\1>", heading, text, flags=re.DOTALL)
    return html.unescape(TAGS.sub("", numbered(text)))


def heading(match: re.Match[str]) -> str:
    """Return a matched <h1> to <h6> as a Markdown heading, followed by the blocks in it."""
    blocks = "".join(f"\n\n{block[0]}\n\n" for block in BLOCKS.finditer(match[2]))
    words = " ".join(TAGS.sub(" ", BLOCKS.sub(" ", match[2])).split())
    return (f"{'#' * int(match[1])} {words}" if words else "") + blocks


def numbered(text: str) -> str:
    """Mark the items of lists with "-" or their number. Resiliparse already indents them by their depth."""
    counters: list[int | None] = []

    def replace(match: re.Match[str]) -> str:
        tag, number = match[0], match[1]
        if tag in ("<ul>", "<ol>"):
            counters.append(0 if tag == "<ol>" else None)
        elif tag in ("</ul>", "</ol>"):
            counters[-1:] = []
        elif counters and (count := counters[-1]) is not None:
            counters[-1] = count + 1 if number is None else int(number)
            return f"{counters[-1]}.{after(match)}"
        else:
            return f"-{after(match)}"
        return ""

    def after(match: re.Match[str]) -> str:
        return "\n\n" if text.startswith(BLOCK, match.end()) else " "

    text = re.sub(r"\n *(</?[uo]l>)", r"\1", text)
    return re.sub(rf"</?[uo]l>|<li>\s*(?:{ITEM}\s*)?", replace, text)


def tidy(text: str) -> str:
    """Replace no-break spaces, remove blanks at the ends of lines, and keep at most one blank line in a row."""
    lines = text.replace("\u00a0", " ").replace("\r", "").split("\n")
    return re.sub(r"\n{3,}", "\n\n", "\n".join([line.rstrip(" \t") for line in lines])).strip("\n")
