"""HTML as Markdown, by Resiliparse's minimal HTML (Bevendorff et al. 2018)."""

from __future__ import annotations

import html
import re


def resiliparse_markdown(page: str) -> str:
    """Extract a page's minimal HTML with Resiliparse (Bevendorff et al. 2018), and return it as Markdown.

    Minimal HTML has ten tags. It escapes all text, so everything in the form of a tag is a tag.
    """
    from resiliparse.extract.html2text import extract_plain_text

    minimal = extract_plain_text(page, preserve_formatting="minimal_html", main_content=False)
    parts = re.split(r"(<pre>.*?</pre>)", minimal, flags=re.DOTALL)
    return tidy("".join(fenced(part) if part.startswith("<pre>") else outlined(part) for part in parts))


def fenced(preformatted: str) -> str:
    """Return a <pre> element as a fenced code block."""
    code = html.unescape(re.sub(r"<[^<>]*>", "", preformatted)).strip("\n")
    return f"\n\n```\n{code}\n```\n\n" if code.strip() else "\n\n"


def outlined(minimal: str) -> str:
    """Return minimal HTML without <pre> as Markdown with headings and lists."""
    # Tabs occur only between cells of a table. Without the look-behind a long run of blanks takes quadratic time.
    text = re.sub(r"(?<![ \u00a0])[ \u00a0]*\t[ \u00a0\t]*", "\t", minimal)
    text = re.sub(r"^\t|\t$", "", text, flags=re.MULTILINE)
    text = re.sub(r"<h([1-6])>\s*(.*?)\s*</h\1>", heading, text, flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^<>]*>", "", numbered(text)))


def heading(match: re.Match[str]) -> str:
    """Return a matched <h1> to <h6> as a Markdown heading."""
    words = " ".join(re.sub(r"<[^<>]*>", " ", match[2]).split())
    return f"{'#' * int(match[1])} {words}" if words else ""


def numbered(text: str) -> str:
    """Mark the items of lists with "-" or their number. Resiliparse already indents them by their depth."""
    counters: list[int | None] = []

    def replace(match: re.Match[str]) -> str:
        tag = match[0]
        if tag in ("<ul>", "<ol>"):
            counters.append(0 if tag == "<ol>" else None)
        elif tag in ("</ul>", "</ol>"):
            counters[-1:] = []
        elif counters and (count := counters[-1]) is not None:
            counters[-1] = count + 1
            return f"{count + 1}. "
        else:
            return "- "
        return ""

    return re.sub(r"</?[uo]l>|<li>\s*", replace, re.sub(r"\n *(</?[uo]l>)", r"\1", text))


def tidy(text: str) -> str:
    """Replace no-break spaces, remove blanks at the ends of lines, and keep at most one blank line in a row."""
    text = re.sub(r"(?<![ \t])[ \t]+$", "", text.replace("\u00a0", " ").replace("\r", ""), flags=re.MULTILINE)
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n")
