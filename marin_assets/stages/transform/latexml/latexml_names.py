"""The classes and names of LaTeXML's HTML, version 0.8, and of ar5iv's pages."""

from __future__ import annotations

import re

IS_LATEXML = re.compile(r"""<[a-z]+\b[^<>]*\bclass\s*=\s*["'](?:[^"'<>]*\s)?ltx_document\b[^<>]*>""")
"""The start of a paper."""
TITLE = re.compile(r"<h1\b[^<>]*\bltx_title_document\b[^<>]*>(.*?)</h1", re.DOTALL)
FIRST_SECTION = re.compile(
    r"""<section\b[^<>]*\bclass\s*=\s*["'](?:[^"'<>]*\s)?"""
    r"""ltx_(?:part|chapter|section|subsection|subsubsection|paragraph|subparagraph)["'\s]"""
)
ABSTRACT = "h2"
"""The heading of the abstract; LaTeXML's is an <h6>."""
CUT_CLASSES = {
    **dict.fromkeys(("ltx_authors", "ltx_dates", "ltx_titlepage", "ltx_contact", "ltx_creator", "ltx_author_before"),
                    "authors"),
    **dict.fromkeys(("ltx_bibliography", "ltx_biblist"), "bibliography"),
    "ltx_caption": "captions",
    **dict.fromkeys(("ltx_page_footer", "ltx_page_logo", "ltx_page_header", "ltx_page_navbar", "ar5iv-footer",
                     "ar5iv-nav-button"), "footer"),
    **dict.fromkeys(("ltx_TOC", "ltx_toclist"), "contents"),
    **dict.fromkeys(("ltx_tag_note", "ltx_note_mark", "ltx_note_type", "ltx_tag_equation", "ltx_tag_equationgroup",
                     "ltx_tag_listingline", "ltx_listing_data"), "numbers"),
    "ltx_ERROR": "errors",
    "ltx_picture": "pictures",
}  # fmt: skip
"""Class -> reason to cut its elements."""
CUT_NAMES = {"footer": "footer", "svg": "pictures"}
"""Name -> the same."""
AUTHOR_NOTES = frozenset(
    f"ltx_role_{role}"
    for role in ("thanks", "author", "authormark", "institutetext", "institutemark", "affiliation", "affiliationtext",
                 "address", "email", "emailtext", "correspondence", "date", "dedicatory", "urladdr", "orcid")
)  # fmt: skip
"""Notes about authors, with their addresses."""
TABULAR = {"ltx_tr": "tr", "ltx_td": "td", "ltx_th": "th", "ltx_thead": "thead", "ltx_tbody": "tbody",
           "ltx_tfoot": "tfoot"}  # fmt: skip
"""Class -> name of the part of a table."""
FIRST_LABEL = re.compile(
    r"\s{0,99}<li\b[^<>]*>\s{0,99}<span\b[^<>]*\bltx_tag_item\b[^<>]*>\s{0,99}(?:<span\b[^<>]*>\s{0,99}){0,9}([^<]{0,99})"
)
NUMBER = re.compile(r"[\[(]?(\d{1,6})[\]).:]{0,2}")
"""The mark of an item that Markdown's number stands for."""
BULLETS = frozenset(
    ("bullet", "circ", "star", "ast", "cdot", "diamond", "triangleright", "blacktriangleright", "square", "blacksquare",
     "checkmark", "rightarrow", "Rightarrow", "to", "dagger", "diamondsuit")
)  # fmt: skip
"""Commands of marks that mean nothing."""
BULLET_TEX = re.compile(r"\$\\([A-Za-z]+)\$")
NUMBERS_IN_BRACKETS = re.compile(r"\[\d{1,4}(?:[-–,;]+\d{1,4})*\]")
REFER_TO_CAPTION = re.compile(r"(?:Refer to caption|\[LOGO\]|\[Uncaptioned image\])", re.IGNORECASE)
"""Descriptions that LaTeXML writes for images without one."""


def is_bullet(label: str) -> bool:
    """Whether the mark of an item has no letter, digit or meaning."""
    if command := BULLET_TEX.fullmatch(label):
        return command[1] in BULLETS
    return not any(map(str.isalnum, label))
