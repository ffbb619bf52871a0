"""The blocks of a paper: paragraphs, equations, listings, notes, captions, citations. Each start is a method.

A start writes to `parts`, and returns the end tag to write, None for that of the page, and what to do at the end.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable

from marin_assets.stages.transform.html.main_markdown import characters_of
from marin_assets.stages.transform.html.wiki_html import TAGS
from marin_assets.stages.transform.latexml.latexml_content import LatexmlContent
from marin_assets.stages.transform.latexml.latexml_math import Equation, Formula, in_table
from marin_assets.stages.transform.latexml.latexml_names import ABSTRACT, NUMBERS_IN_BRACKETS

NOTE_MARK = re.compile(r"\[\^\d+\]")
End = Callable[[], None]
Started = tuple[str | None, End | None]


class Blocks:
    """The output of a paper so far, and the state of what is open."""

    def __init__(self, page: str, fields: LatexmlContent, counts: Counter[str]) -> None:
        self.page, self.drop, self.counts = page, frozenset(fields.drop), counts
        self.parts: list[str] = []
        self.open: list[tuple[str, str | None, End | None]] = []
        """The open elements: name, end tag to write or None for that of the page, and what to do at the end."""
        self.numbers: Counter[str] = Counter()
        self.equation: Equation | None = None
        self.lines: list[list[str]] | None = None
        """Lines of the listing."""
        self.verbatim = self.tables = self.items = 0
        """Numbers of open elements of code, of tables and of items."""
        self.lists: list[bool] = []
        """For each open list, whether its items have numbers."""
        self.item_at = -1
        """The part that is the start tag of the item without text so far, -1 without one."""
        self.joins_paragraph = False
        """Whether the next paragraph begins in the line of a heading."""
        self.notes: list[str] = []
        self.note_number = 0
        self.collecting: set[str] = set()
        """Kinds of elements that are collected. One within another of its kind is not, so the time is linear."""
        self.captions: set[str] = set()
        """Captions of the open figure. LaTeXML may write one twice."""

    def words(self, text: str) -> None:
        if not text:
            return
        if self.equation is not None:
            self.equation.add(text)
        elif self.lines is not None:
            self.code(text)
        else:
            if self.item_at >= 0 and text.strip():
                self.item_at = -1
            self.parts.append(text if self.verbatim else text.replace("$", "\\$"))

    def code(self, text: str) -> None:
        assert self.lines is not None
        text = text.strip("\r\n").replace("\n", " ")
        if text and not self.lines:
            self.lines.append([])
        if text:
            self.lines[-1].append(text)

    def formula(self, formula: Formula) -> None:
        self.counts["formulas"] += 1
        if self.equation is not None:
            self.equation.add(formula)
        elif self.lines is not None:
            self.code(html.escape(formula.inline, quote=False))
        elif formula.is_block and formula.is_tex:
            self.display(formula)
        else:
            self.item_at = -1
            self.parts.append(html.escape(in_table(formula) if self.tables else formula.inline, quote=False))

    def display(self, formula: Formula) -> None:
        """Write a formula on lines of its own, in a table or a note within the line."""
        self.item_at = -1
        if self.tables or "note" in self.collecting:
            self.parts.append(f" {html.escape(in_table(formula) if self.tables else formula.inline, quote=False)} ")
            return
        self.counts["displays"] += 1
        self.parts.append(f"<p>{html.escape(f'${formula.inline}$', quote=False)}</p>")

    def count(self, reason: str, text: str) -> None:
        self.counts[f"cut_{reason}"] += 1
        self.counts["cut_characters"] += characters_of(text)

    @property
    def is_nested(self) -> bool:
        """Whether a block of its own would be within a list, a table or a note."""
        return bool(self.items or self.tables or self.lists or "note" in self.collecting)

    def write_notes(self) -> None:
        self.parts += self.notes
        self.notes = []

    def start_equation(self, name: str, tag: re.Match[str]) -> Started:
        self.equation = Equation(is_eqnarray="ltx_eqn_eqnarray" in tag[3])
        return "", self.end_equation

    def end_equation(self) -> None:
        equation, self.equation = self.equation, None
        assert equation is not None
        for block in equation.blocks():
            if isinstance(block, Formula):
                self.display(block)
            else:
                self.parts.append("<p>")
                self.words(block)
                self.parts.append("</p>")

    def start_listing(self, name: str, tag: re.Match[str]) -> Started:
        self.lines = []
        return "", self.end_listing

    def end_listing(self) -> None:
        lines, self.lines = self.lines, None
        assert lines is not None
        code = "\n".join("".join(line).rstrip() for line in lines).rstrip("\n")
        self.parts.append(f"<pre>\n{code}\n</pre>")

    def collected(self, kind: str, end: Callable[[int], None], *, before: str = "", after: str = "") -> Started:
        """Call `end` with the number of the first part of an element at its end, unless one of its kind is open."""
        if kind in self.collecting:
            return "", None
        self.collecting.add(kind)
        start = len(self.parts)
        self.parts.append(before)

        def finish() -> None:
            self.collecting.discard(kind)
            end(start)

        return after, finish

    def start_note(self, name: str, tag: re.Match[str]) -> Started:
        """A note that is kept: its mark in its place, its text after the paragraph."""

        def end(start: int) -> None:
            text = "".join(self.parts[start:]).strip()
            self.note_number += 1
            self.parts[start:] = [f"[^{self.note_number}]"]
            self.notes.append(f"<p>[^{self.note_number}]: {text}</p>")

        return self.collected("note", end)

    def start_paragraphs(self, name: str, tag: re.Match[str]) -> Started:
        return "", lambda: None if self.is_nested else self.write_notes()

    def start_paragraph(self, name: str, tag: re.Match[str]) -> Started:
        """A paragraph; the first of an item, and one after a heading within the line, continue the line."""
        if self.tables or "note" in self.collecting:
            self.parts.append(" ")
            return " ", None
        if self.joins_paragraph:
            self.joins_paragraph = False
            return "</p>", None
        if self.item_at >= 0:
            self.item_at = -1
            return "", None
        self.parts.append("<p>")
        return "</p>", None

    def start_runin(self, name: str, tag: re.Match[str]) -> Started:
        """A heading within the line, such as that of a theorem."""

        def end(start: int) -> None:
            self.parts[start:] = ["<p>", "".join(self.parts[start:]).strip(), " "]
            self.joins_paragraph = True

        return self.collected("runin", end)

    def start_abstract(self, name: str, tag: re.Match[str]) -> Started:
        self.parts.append(f"<{ABSTRACT}>")
        return f"</{ABSTRACT}>", None

    def start_cite(self, name: str, tag: re.Match[str]) -> Started:
        def end(start: int) -> None:
            citation = "".join(TAGS.sub("", "".join(self.parts[start:])).split())
            if "bibliography" in self.drop and NUMBERS_IN_BRACKETS.fullmatch(citation):
                del self.parts[start:]
                if self.parts:
                    self.parts[-1] = self.parts[-1].rstrip(" \n\u00a0")
                self.count("citations", citation)

        return self.collected("cite", end)

    def start_caption(self, name: str, tag: re.Match[str]) -> Started:
        notes = len(self.notes)

        def end(start: int) -> None:
            caption = "".join(self.parts[start:])
            words = "".join(NOTE_MARK.sub("", TAGS.sub("", caption)).split())
            if words in self.captions:
                del self.parts[start:]
                self.note_number -= len(self.notes) - notes
                del self.notes[notes:]
                self.count("repeated", words)
            elif self.numbers["figure"]:
                self.captions.add(words)

        return self.collected("caption", end, before="<p>", after="</p>")

    def start_figure(self, name: str, tag: re.Match[str]) -> Started:
        self.parts.append("<div>")

        def end() -> None:
            if self.numbers["figure"] <= 1:
                self.captions.clear()
                if not self.is_nested:
                    self.write_notes()

        return "</div>", end

    def start_code(self, name: str, tag: re.Match[str]) -> Started:
        kind = "pre" if name == "pre" else "code"
        self.parts.append(f"<{kind}>")
        self.verbatim += 1
        return f"</{kind}>", self.end_code

    def end_code(self) -> None:
        self.verbatim -= 1
