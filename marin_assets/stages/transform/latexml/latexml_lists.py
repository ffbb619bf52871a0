"""The lists and tables of a paper. Marks of items that Markdown writes itself are left out."""

from __future__ import annotations

import re

from marin_assets.stages.transform.html.wiki_html import TAGS
from marin_assets.stages.transform.latexml.latexml_blocks import Blocks, Started
from marin_assets.stages.transform.latexml.latexml_names import FIRST_LABEL, NUMBER, TABULAR, is_bullet

SENTENCE_END = re.compile(r"[.,:;!?–—-]\s*\Z")


class ListsAndTables(Blocks):
    def start_list(self, name: str, tag: re.Match[str]) -> Started:
        """A list. One whose first mark is no number, such as (a) or (iv), keeps its marks behind bullets."""
        label = FIRST_LABEL.match(self.page, tag.end()) if name == "ol" else None
        is_numbered = name == "ol" and (label is None or NUMBER.fullmatch(label[1].strip()) is not None)
        kind = "ol" if is_numbered else "ul"
        self.parts.append(f"<{kind}>")
        self.lists.append(is_numbered)
        return f"</{kind}>", self.end_list

    def end_list(self) -> None:
        self.lists.pop()
        self.item_at = -1

    def start_item(self, name: str, tag: re.Match[str]) -> Started:
        self.parts.append("<li>")
        self.item_at = len(self.parts) - 1
        self.items += 1
        return "</li>", self.end_item

    def end_item(self) -> None:
        self.items -= 1
        self.item_at = -1

    def start_label(self, name: str, tag: re.Match[str]) -> Started:
        """The mark of an item: a number of a numbered list, a bullet, or another text that is kept."""
        item_at = self.item_at

        def end(start: int) -> None:
            label = " ".join(TAGS.sub("", "".join(self.parts[start:])).split())
            if self.open and self.open[-1][0] == "dt":
                return
            number = NUMBER.fullmatch(label) if self.lists and self.lists[-1] else None
            if number is None and not is_bullet(label):
                self.parts[start:] = [label, " "]
                self.item_at = item_at
                return
            del self.parts[start:]
            self.item_at = item_at
            self.count("numbers", label)
            if number is not None and item_at >= 0:
                self.parts[item_at] = f'<li value="{number[1]}">'

        return self.collected("label", end)

    def start_term(self, name: str, tag: re.Match[str]) -> Started:
        """A term of a description list: an item, which its description continues."""
        self.parts.append("<li>")

        def end(start: int) -> None:
            term = " ".join(TAGS.sub("", "".join(self.parts[start:])).split())
            self.parts[start:] = [term if SENTENCE_END.search(term) or not term else f"{term}:", " "]
            self.item_at = len(self.parts) - 1

        return self.collected("term", end)

    def start_description(self, name: str, tag: re.Match[str]) -> Started:
        if self.item_at < 0:
            self.parts.append("<li>")
            self.item_at = len(self.parts) - 1
        self.items += 1
        return "</li>", self.end_item

    def start_tabular(self, name: str, tag: re.Match[str]) -> Started:
        """A table. One in a cell of another is text of the cell."""
        self.tables += 1
        if self.tables == 1:
            self.parts.append("<table>")
        return ("</table>" if self.tables == 1 else " "), self.end_tabular

    def end_tabular(self) -> None:
        self.tables -= 1

    def start_cell(self, name: str, tag: re.Match[str]) -> Started:
        """A part of a table, which may be a <span> of a class: it gets its name."""
        words = tag[3].replace('"', " ").split() if name == "span" else ()
        kind = next((TABULAR[word] for word in words if word in TABULAR), name)
        if self.tables != 1:
            self.parts.append(" ")
            return " ", None
        self.parts.append(f"<{kind}{tag[3]}>")
        return f"</{kind}>", None
