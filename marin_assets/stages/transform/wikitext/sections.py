"""The text of a page as Markdown: parsed by mwparserfromhell, section by section."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from marin_assets.documents import Document
from marin_assets.stages.transform.html.wiki_html import folded_heading
from marin_assets.stages.transform.wikitext.balance import balanced, restored
from marin_assets.stages.transform.wikitext.content import CATEGORIES, COUNTS, FILES, WikitextContent
from marin_assets.stages.transform.wikitext.wiki_tables import table_of

LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[a-z]+)*|simple")
QUOTES = re.compile(r"'{2,}")
JUNK = re.compile(r"\[\[|\]\]|\{\{+|\}\}+|__[A-Z]{3,30}__|\{\||\|\}(?!\})")
JUNK_LINE = re.compile(r"^[ \t]*[|!].*$|^[ \t]*\{\|.*$", re.MULTILINE)
"""A line of a table or of a template that has lost its start."""
LIST = re.compile(r"([*#:;]+)[ \t]*(.*)")
OPENED_BRACKET = re.compile(r"\([ \t]*(?:[,;:][ \t]*)+")
EMPTY_BRACKETS = re.compile(r"[ \t]*\([ \t]*\)")
"""Brackets of a pronunciation or a date that was a template: their start, or all of them."""


@dataclass(kw_only=True)
class Section:
    level: int
    heading: str
    parts: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Content:
    text: str
    categories: tuple[str, ...]
    hidden: dict[str, int]
    """HIDDEN and others of COUNTS, of this page."""
    templates: tuple[str, ...]


def content_of(page: Document, fields: WikitextContent) -> Content:
    """Return the Markdown of a page of wikitext, without its title. Takes linear time."""
    counts: Counter[str] = Counter(dict.fromkeys(COUNTS, 0))
    names = fields.drop_sections.get(str(page.metadata.get("language", "")))
    counts["without_section_names"] += names is None
    cleaned = balanced(page.text, counts)
    namespaces = page.metadata.get("namespaces")
    links = Links(namespaces if isinstance(namespaces, dict) else {}, counts)
    walk = Walk(links, counts, keep_tables=fields.keep_tables)
    sections = _kept(walk.sections(cleaned.text), frozenset(map(folded_heading, names or ())), counts)
    text = restored(_markdown(sections), cleaned.kept)
    return Content(
        text=text.strip(),
        categories=tuple(dict.fromkeys(restored(category, cleaned.kept) for category in links.categories)),
        hidden={name: counts[name] for name in COUNTS},
        templates=tuple(cleaned.templates),
    )


class Walk:
    """The nodes of a page in order."""

    def __init__(self, links: Links, counts: Counter[str], *, keep_tables: bool) -> None:
        self._links, self._counts, self._keep_tables = links, counts, keep_tables

    def sections(self, text: str) -> list[Section]:
        import mwparserfromhell  # late, for its weight
        from mwparserfromhell.nodes import Heading

        sections = [Section(level=1, heading="")]
        for node in mwparserfromhell.parse(text, skip_style_tags=True).nodes:
            if isinstance(node, Heading):
                heading = " ".join(QUOTES.sub("", self.text(node.title)).replace("\x04", " ").split())
                sections.append(Section(level=max(2, node.level), heading=heading))
            else:
                sections[-1].parts.append(self.node(node))
        return sections

    def text(self, code: Any) -> str:
        return "".join(map(self.node, code.nodes)) if code is not None else ""

    def node(self, node: Any) -> str:
        kind = type(node).__name__
        if kind == "Text":
            return str(node.value)
        if kind == "Wikilink":
            return self._links.shown(self.text(node.title), None if node.text is None else self.text(node.text))
        if kind == "HTMLEntity":
            return _character(node)
        if kind == "ExternalLink":
            return self.text(node.title) if node.title is not None else "" if node.brackets else str(node.url)
        if kind == "Tag":
            return self.tag(node)
        return self.text(node.title) if kind == "Heading" else ""

    def tag(self, node: Any) -> str:
        name = str(node.tag).strip().lower()
        if name == "table":
            table = table_of(node, self.text)
            self._counts["tables"] += table is not None
            self._counts["tables_dropped"] += table is None or not self._keep_tables
            return f"\n\n\x05{table}\x06\n\n" if table is not None and self._keep_tables else "\n\n\x05\x06\n\n"
        if name in ("li", "dd", "dt") and node.wiki_markup:
            return str(node.wiki_markup)
        return "\n" if name == "hr" else self.text(node.contents)


class Links:
    """The links of one page."""

    def __init__(self, namespaces: Mapping[str, str], counts: Counter[str]) -> None:
        """`namespaces`: the wiki's own names of files, "6", and of categories, "14"."""
        self._files = {*FILES, _folded(namespaces.get("6", "file"))}
        self._categories = {*CATEGORIES, _folded(namespaces.get("14", "category"))}
        self._counts = counts
        self.categories: list[str] = []

    def shown(self, title: str, text: str | None) -> str:
        """Return the text of a link; of a category, a file and another language "", and note the first two."""
        is_shown = title.lstrip().startswith(":")
        title = title.strip().lstrip(":").strip()
        prefix, colon, rest = title.partition(":")
        namespace = _folded(prefix)
        if colon and namespace in self._categories:
            if not is_shown:
                self.categories.append(" ".join(rest.replace("_", " ").replace("\x04", " ").split()))
                return ""
            title = rest.strip()
        elif colon and namespace in self._files:
            if not is_shown:
                self._counts["images"] += 1
                return ""
            title = rest.strip()
        elif colon and not is_shown and text is None and LANGUAGE.fullmatch(prefix):
            return ""
        return text.strip() if text and text.strip() else title


def _folded(name: str) -> str:
    return " ".join(name.replace("_", " ").casefold().split())


def _character(entity: Any) -> str:
    try:
        character = str(entity.normalize())
    except (ValueError, OverflowError):
        return ""
    return "" if len(character) == 1 and (character < " " or 0xD800 <= ord(character) < 0xE000) else character


def _kept(sections: list[Section], dropped: frozenset[str], counts: Counter[str]) -> list[Section]:
    """The sections that are not dropped, and no heading without a text and without subsections."""
    kept: list[Section] = []
    above = None
    for section in sections:
        above = None if above is not None and section.level <= above else above
        if above is None and section.heading and folded_heading(section.heading) in dropped:
            above = section.level
            counts["sections_dropped"] += 1
        if above is None:
            section.parts = [_cleaned("".join(section.parts))]
            kept.append(section)
    result: list[Section] = []
    for section in reversed(kept):
        if section.parts[0] or (result and result[-1].level > section.level):
            result.append(section)
    return result[::-1]


def _markdown(sections: list[Section]) -> str:
    blocks = []
    for section in sections:
        if section.heading:
            blocks.append(f"{'#' * min(6, section.level)} {section.heading}")
        blocks += [section.parts[0]] if section.parts[0] else []
    return "\n\n".join(blocks)


def _cleaned(text: str) -> str:
    """Return the text of a section without the rest of its markup; tables are as they are."""
    parts = []
    for part in re.split("(\x05[^\x06]*\x06)", text):
        is_table = part.startswith("\x05")
        parts.append(_plain(part.strip("\x05\x06")) if is_table else _lines(_plain(JUNK_LINE.sub("", part))))
    joined = "".join(f"\n\n{part}\n\n" if part else "" for part in parts)
    return re.sub(r"\n{3,}", "\n\n", joined).strip()


def _plain(text: str) -> str:
    text = QUOTES.sub(lambda match: "'" if len(match[0]) == 4 or len(match[0]) > 5 else "", text)
    text = JUNK.sub("", text.replace("\xa0", " "))
    return EMPTY_BRACKETS.sub("", OPENED_BRACKET.sub("(", text))


def _lines(text: str) -> str:
    lines = []
    for line in text.split("\n"):
        match = LIST.match(line)
        if match is None:
            line = line[1:] if line.startswith(" ") else line
            lines.append(re.sub(r"[ \t]+", " ", line.replace("\x04", "\n")).rstrip(" "))
            continue
        marks, item = match[1], " ".join(match[2].replace("\x04", " ").split())
        if not item:
            continue
        indent = "  " * (len(marks) - 1)
        bullet = {"*": f"{indent}- ", "#": f"{indent}1. "}.get(marks[-1], indent if set(marks) - {":", ";"} else "")
        lines.append(bullet + item)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")
