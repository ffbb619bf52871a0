"""The content of a page of a wiki: the HTML of Parsoid without references, navigation, notices and some sections.

Parsoid closes its elements and quotes its attributes, so one pass over the tags finds where each element ends. An
infobox is moved to the end of the page. Categories go to the page's metadata. The text is a function of the page alone.
"""

from __future__ import annotations

import dataclasses
import html
import re
import unicodedata
from collections import Counter
from urllib.parse import unquote

from marin_assets.documents import Document
from marin_assets.stages.transform.html.html_marks import without_scripts
from marin_assets.stages.transform.html.main_blocks import WIDE
from marin_assets.stages.transform.html.main_markdown import characters_of
from marin_assets.stages.transform.html.wiki_content import WikiBounds, WikiContent

CLASSES = {
    **dict.fromkeys(("mw-ref", "reference", "reflist", "references", "mw-references-wrap"), "reference"),
    **dict.fromkeys(
        ("navbox", "navbox-styles", "vertical-navbox", "sidebar", "toc", "portalbox", "portal-bar", "sistersitebox",
         "authority-control", "catlinks"),
        "navigation",
    ),
    **dict.fromkeys(("metadata", "ambox", "noprint", "Inline-Template"), "notice"),
    **dict.fromkeys(("hatnote", "dablink", "rellink"), "hatnote"),
    **dict.fromkeys(("mw-editsection", "mw-editsection-like"), "edit"),
}  # fmt: skip
"""Classes of MediaWiki and of the templates that most wikis have."""
ROLES = {"navigation": "navigation", "note": "hatnote"}
VOID = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr")
)
TAG = re.compile(r"""<(/?)([a-zA-Z][^\s/>]*+)((?:[^>"']++|"[^"]*+"|'[^']*+')*+)>?""")
TAGS = re.compile(r"<[^<>]*>")
ATTRIBUTE = {
    name: re.compile(rf"""\s{name}\s*=\s*(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE)
    for name in ("class", "role", "style", "rel", "href", "data-mw-section-id")
}
FORMULA_IMAGE = "mwe-math-fallback-image"
HIDDEN = re.compile(r"display\s*:\s*none", re.IGNORECASE)
SECTION_HEADING = re.compile(
    r"\s{0,99}(?:<div\b[^<>]{0,500}>\s{0,99})?<h([1-6])\b[^<>]{0,500}>(.{0,2000}?)</h\1", re.DOTALL
)


def wiki_page(page: Document, fields: WikiContent, counts: Counter[str]) -> Document:
    """Return a page with the HTML of its content alone, and the categories of its HTML in its metadata.

    Adds to counts cut_<reason>, in elements, for CUT; cut_characters, of their text without blanks; infoboxes (moved or
    kept); and without_section_names (pages of a language without names of sections to drop). Takes linear time.
    """
    names = fields.drop_sections.get(str(page.metadata.get("language", "")))
    counts["without_section_names"] += names is None
    cutter = Cutter(fields, frozenset(map(folded_heading, names or ())), counts)
    text = cutter.cut(page.text)
    categories = [*page.metadata.get("categories", ()), *cutter.categories]
    return dataclasses.replace(
        page, text=text, metadata={**page.metadata, "categories": list(dict.fromkeys(categories))}
    )


def reject_text(text: str, fields: WikiBounds) -> str | None:
    """Return the reason to reject a text, one of REASONS; None to keep it."""
    size = max(1, len(text) - sum(map(str.isspace, text)))
    if sum(map(str.isdigit, text)) > fields.max_digit_fraction * size:
        return "mostly_digits"
    if words_of(text) < fields.min_words:
        return "too_few_words"
    specials = size - sum(map(str.isalnum, text))
    return "mostly_specials" if specials > fields.max_special_fraction * size else None


def words_of(text: str) -> int:
    """Return the number of words between blanks; a letter of a script without blanks is a word."""
    wide = 0 if text.isascii() else len(WIDE.findall(text))
    return wide + len((WIDE.sub(" ", text) if wide else text).split())


def with_title(text: str, page: Document, fields: WikiBounds) -> str:
    """Return a text below its page's title, if the page has one and it is kept."""
    title = " ".join(str(page.metadata.get("title") or "").split())
    return f"# {title}\n\n{text}" if title and fields.keep_title else text


def folded_heading(heading: str) -> str:
    """Return a heading as headings are compared."""
    return " ".join(unicodedata.normalize("NFC", heading).casefold().split())


class Cutter:
    """One pass over the tags of a page."""

    def __init__(self, fields: WikiContent, sections: frozenset[str], counts: Counter[str]) -> None:
        self.fields, self.sections, self.counts = fields, sections, counts
        self.categories: list[str] = []
        self.page, self.has_mathml = "", False
        self.parts: list[str] = []
        self.boxes: list[str] = []
        """Infoboxes, which follow the page."""
        self.open: list[str] = []
        """Names of the open elements."""
        self.numbers: Counter[str] = Counter()
        self.cut_at: tuple[int, int, str] | None = None
        """The number of elements around the element that is cut, its start and its reason."""
        self.box_depth: int | None = None
        """Number of the elements around the infobox."""
        self.done = 0

    def cut(self, page: str) -> str:
        self.has_mathml = "<math" in page
        self.page = without_scripts(page)  # which also writes MathML as TeX
        for tag in TAG.finditer(self.page):
            name = tag[2].lower()
            if tag[1]:
                self.end(name, tag)
            elif name in VOID:
                self.void(name, tag)
            else:
                self.start(name, tag)
                self.open.append(name)
                self.numbers[name] += 1
        self.close_to(0, len(self.page))
        self.write(len(self.page))
        return "".join([*self.parts, *self.boxes])

    def write(self, end: int) -> None:
        """Write the page up to `end`, unless it is cut."""
        (self.parts if self.box_depth is None else self.boxes).append(self.page[self.done : end])
        self.done = end

    def start(self, name: str, tag: re.Match[str]) -> None:
        if self.cut_at is not None or not tag[3]:
            return
        depth = len(self.open)
        classes = _value("class", tag[3]).split()
        if name == "table" and "infobox" in classes and self.fields.infobox != "drop":
            self.counts["infoboxes"] += 1
            if self.fields.infobox == "end" and self.box_depth is None:
                self.write(tag.start())
                self.box_depth = depth
        elif reason := self.reason(name, classes, tag):
            self.write(tag.start())
            self.cut_at = depth, tag.start(), reason

    def reason(self, name: str, classes: list[str], tag: re.Match[str]) -> str | None:
        """Return the reason to cut an element, one of CUT."""
        if name in ("html", "body"):
            return None
        if name == "table" and "infobox" in classes:
            return "infobox"
        for word in classes:
            if word in CLASSES:
                return CLASSES[word]
        if role := ROLES.get(_value("role", tag[3])):
            return role
        if HIDDEN.search(_value("style", tag[3])) and not any(word.startswith("mwe-math") for word in classes):
            return "hidden"
        if name == "section" and self.sections and _value("data-mw-section-id", tag[3]):
            heading = SECTION_HEADING.match(self.page, tag.end())
            if heading and folded_heading(html.unescape(TAGS.sub("", heading[2]))) in self.sections:
                return "section"
        return None

    def void(self, name: str, tag: re.Match[str]) -> None:
        """Read the categories, and cut the images of formulas that the page also has as MathML."""
        if name == "link":
            self.category(tag[3])
        elif name == "img" and self.has_mathml and self.cut_at is None and FORMULA_IMAGE in _value("class", tag[3]):
            self.write(tag.start())
            self.counts["cut_formula_image"] += 1
            self.done = tag.end()

    def category(self, attributes: str) -> None:
        if "mw:PageProp/Category" not in _value("rel", attributes).split():
            return
        address = unquote(html.unescape(_value("href", attributes))).partition("#")[0]
        name = address.partition(":")[2].replace("_", " ").strip()
        if name:
            self.categories.append(name)

    def end(self, name: str, tag: re.Match[str]) -> None:
        if not self.numbers[name]:
            return  # an end tag without a start tag
        depth = len(self.open)
        while self.open[depth - 1] != name:
            depth -= 1
        self.close_to(depth, tag.start())
        self.close_to(depth - 1, tag.end())

    def close_to(self, depth: int, end: int) -> None:
        """Close the elements that are deeper than `depth`. They end at `end`."""
        for name in self.open[depth:]:
            self.numbers[name] -= 1
        del self.open[depth:]
        if self.cut_at is not None and self.cut_at[0] >= depth:
            _, start, reason = self.cut_at
            self.counts[f"cut_{reason}"] += 1
            self.counts["cut_characters"] += characters_of(TAGS.sub("", self.page[start:end]))
            self.cut_at, self.done = None, end
        if self.box_depth is not None and self.box_depth >= depth:
            self.write(end)
            self.box_depth = None


def _value(name: str, attributes: str) -> str:
    match = ATTRIBUTE[name].search(attributes)
    return (match[1] or match[2] or "") if match else ""
