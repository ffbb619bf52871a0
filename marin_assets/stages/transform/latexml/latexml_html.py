"""The content of a paper: LaTeXML's HTML without authors, references, footnotes, captions and marks that repeat.

LaTeXML closes its elements and quotes its attributes, so one pass over the tags reads them. Formulas are TeX between
dollars, so a dollar of the text is written as \\$. The text is a function of the page alone, and takes linear time.
"""

from __future__ import annotations

import dataclasses
import html
import re
from collections import Counter
from collections.abc import Callable

from marin_assets.documents import Document
from marin_assets.stages.transform.html.html_marks import without_scripts
from marin_assets.stages.transform.html.main_markdown import characters_of
from marin_assets.stages.transform.html.wiki_html import TAG, TAGS, VOID
from marin_assets.stages.transform.latexml.latexml_blocks import Started
from marin_assets.stages.transform.latexml.latexml_content import PARTS, LatexmlContent
from marin_assets.stages.transform.latexml.latexml_lists import ListsAndTables
from marin_assets.stages.transform.latexml.latexml_math import PLACE, Formula, without_formulas
from marin_assets.stages.transform.latexml.latexml_names import (
    AUTHOR_NOTES,
    CUT_CLASSES,
    CUT_NAMES,
    FIRST_SECTION,
    IS_LATEXML,
    REFER_TO_CAPTION,
    TABULAR,
    TITLE,
)

ATTRIBUTE = {name: re.compile(rf"""\s{name}\s*=\s*(?:"([^"]*)"|'([^']*)')""") for name in ("class", "alt")}


def latexml_page(page: Document, fields: LatexmlContent, counts: Counter[str]) -> Document | None:
    """Return a page with the HTML of its content alone and its title in its metadata; None if it is not LaTeXML's.

    Adds to counts cut_<reason>, in elements, for CUT; cut_characters, of their text without blanks; formulas, and
    displays among them.
    """
    if not IS_LATEXML.search(page.text):
        return None
    text, formulas = without_formulas(page.text)
    text = without_scripts(text)
    title = title_of(text, formulas)
    metadata = {**page.metadata, "title": title} if title else page.metadata
    if fields.before_first_section == "drop":
        text = _from_first_section(text, counts)
    text = PaperReader(text, formulas, fields, counts).read()
    return dataclasses.replace(page, text=text, metadata=metadata)


def title_of(page: str, formulas: list[Formula]) -> str:
    """Return the title of a paper in one line, without its notes; "" without one."""
    match = TITLE.search(page)
    if match is None:
        return ""
    title = PaperReader(match[1], formulas, LatexmlContent(drop=PARTS), Counter()).read()
    return " ".join(html.unescape(TAGS.sub(" ", title)).split())


def _from_first_section(page: str, counts: Counter[str]) -> str:
    """Return a page without what its document has before its first section; the page itself without a section."""
    document, section = IS_LATEXML.search(page), FIRST_SECTION.search(page)
    if document is None or section is None or document.end() > section.start():
        return page
    counts["cut_before_section"] += 1
    counts["cut_characters"] += characters_of(TAGS.sub("", page[document.end() : section.start()]))
    return page[: document.end()] + page[section.start() :]


Start = Callable[[ListsAndTables, str, "re.Match[str]"], Started]
STARTS: dict[str, Start] = {
    **dict.fromkeys(("ltx_eqn_table", "ltx_equation", "ltx_equationgroup"), ListsAndTables.start_equation),
    "ltx_listing": ListsAndTables.start_listing,
    "ltx_tag_item": ListsAndTables.start_label,
    "ltx_note": ListsAndTables.start_note,
    "ltx_para": ListsAndTables.start_paragraphs,
    "ltx_p": ListsAndTables.start_paragraph,
    "ltx_runin": ListsAndTables.start_runin,
    "ltx_title_abstract": ListsAndTables.start_abstract,
    "ltx_cite": ListsAndTables.start_cite,
    "ltx_caption": ListsAndTables.start_caption,
    "ltx_tabular": ListsAndTables.start_tabular,
    **dict.fromkeys(TABULAR, ListsAndTables.start_cell),
    "ltx_lstlisting": ListsAndTables.start_code,
}
"""Class -> what its elements become."""
NAMED_STARTS: dict[str, Start] = {
    **dict.fromkeys(("ul", "ol", "dl"), ListsAndTables.start_list),
    "li": ListsAndTables.start_item,
    "dt": ListsAndTables.start_term,
    "dd": ListsAndTables.start_description,
    "table": ListsAndTables.start_tabular,
    **dict.fromkeys(("tr", "td", "th", "thead", "tbody", "tfoot"), ListsAndTables.start_cell),
    **dict.fromkeys(("pre", "code"), ListsAndTables.start_code),
    "figure": ListsAndTables.start_figure,
}
"""Name -> the same, of elements of other classes."""


class PaperReader(ListsAndTables):
    """One pass over the tags of a page."""

    def __init__(self, page: str, formulas: list[Formula], fields: LatexmlContent, counts: Counter[str]) -> None:
        super().__init__(page, fields, counts)
        self.formulas = formulas
        self.cut_at: tuple[int, int, str] | None = None
        """The number of elements around the element that is cut, its start and its reason."""
        self.done = 0

    def read(self) -> str:
        for tag in TAG.finditer(self.page):
            if self.cut_at is None:
                self.text(self.page[self.done : tag.start()])
                self.done = tag.end()
            name = tag[2].lower()
            if tag[1]:
                self.end(name, tag)
            elif name in VOID:
                if self.cut_at is None:
                    self.void(name, tag)
            else:
                end: Started = (None, None)
                if self.cut_at is None:
                    end = self.start(name, tag)
                self.open.append((name, *end))
                self.numbers[name] += 1
        if self.cut_at is None:
            self.text(self.page[self.done :])
        self.close_to(0, len(self.page), "")
        self.write_notes()
        return "".join(self.parts)

    def text(self, text: str) -> None:
        done = 0
        for place in PLACE.finditer(text) if text else ():
            self.words(text[done : place.start()])
            done = place.end()
            if int(place[1]) < len(self.formulas):
                self.formula(self.formulas[int(place[1])])
        self.words(text[done:])

    def start(self, name: str, tag: re.Match[str]) -> Started:
        """Write the start of an element. Return its end tag and what to do at its end."""
        classes = _value("class", tag[3]).split() if tag[3] else []
        if reason := self.reason(name, classes):
            self.cut_at = len(self.open), tag.start(), reason
            return "", None
        if self.equation is not None:
            self.in_equation(classes)
            return "", None
        if self.lines is not None:
            if "ltx_listingline" in classes:
                self.lines.append([])
            return "", None
        for word in classes:
            if word in STARTS:
                return STARTS[word](self, name, tag)
        if name in NAMED_STARTS:
            return NAMED_STARTS[name](self, name, tag)
        self.parts.append(tag[0])
        return None, None

    def reason(self, name: str, classes: list[str]) -> str | None:
        """Return the reason to cut an element, one of CUT."""
        for word in classes:
            reason = CUT_CLASSES.get(word)
            if reason is not None and (reason not in PARTS or reason in self.drop):
                return reason
            if word == "ltx_note":
                reason = "authors" if AUTHOR_NOTES.intersection(classes) else "footnotes"
                return reason if reason in self.drop else None
            if word == "ltx_equation" or word == "ltx_eqn_table" or word == "ltx_eqn_cell":
                return "numbers" if "ltx_eqn_eqno" in classes else None
        reason = CUT_NAMES.get(name)
        return reason if reason is not None and (reason not in PARTS or reason in self.drop) else None

    def in_equation(self, classes: list[str]) -> None:
        assert self.equation is not None
        if "ltx_eqn_row" in classes:
            self.equation.start_row()
        elif "ltx_eqn_cell" in classes and not any("_pad" in word for word in classes):
            self.equation.start_cell()

    def void(self, name: str, tag: re.Match[str]) -> None:
        if self.equation is not None:
            return
        if name == "img":
            alternative = _value("alt", tag[3])
            if REFER_TO_CAPTION.fullmatch(alternative):
                self.counts["cut_images"] += 1
                return
        self.parts.append(tag[0])

    def end(self, name: str, tag: re.Match[str]) -> None:
        if not self.numbers[name]:
            return  # an end tag without a start tag
        depth = len(self.open)
        while self.open[depth - 1][0] != name:
            depth -= 1
        self.close_to(depth, tag.start(), "")
        self.close_to(depth - 1, tag.end(), tag[0])

    def close_to(self, depth: int, end: int, end_tag: str) -> None:
        """Close the elements that are deeper than `depth`. They end at `end`."""
        while len(self.open) > depth:
            name, closing, action = self.open.pop()
            if self.cut_at is not None:
                if self.cut_at[0] == len(self.open):
                    _, start, reason = self.cut_at
                    self.count(reason, TAGS.sub("", self.page[start:end]))
                    self.cut_at, self.done = None, end
            else:
                if action is not None and closing:
                    self.parts.append(closing)
                if action is not None:
                    action()
                elif self.equation is None and self.lines is None:
                    self.parts.append(end_tag if closing is None else closing)
            self.numbers[name] -= 1


def _value(name: str, attributes: str) -> str:
    match = ATTRIBUTE[name].search(attributes)
    return (match[1] or match[2] or "") if match else ""
