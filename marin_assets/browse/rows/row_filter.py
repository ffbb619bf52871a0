"""Choose the rows that are shown: those with a text, a reason, a source, a value in bounds, kept or rejected ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from marin_assets.browse.cells.tree import POINTER_CHARACTERS
from marin_assets.browse.errors import NotThereError
from marin_assets.browse.query import Query
from marin_assets.browse.rows.lines import row_lines, spellings_of
from marin_assets.browse.rows.measure import (
    LENGTH,
    VALUE,
    category_of,
    keys_of,
    length_of,
    number_of,
    unpacked,
    value_of,
)
from marin_assets.browse.rows.reader import PARQUET, Row
from marin_assets.documents.document import BadRow
from marin_assets.documents.formats import format_of
from marin_assets.documents.jsonl.json_line import LineParser
from marin_assets.documents.rows import read_rows

DEEP = 8
KEPT, REJECTED = "kept", "rejected"


@dataclass(frozen=True, kw_only=True)
class RowFilter:
    """All conditions that are set must hold."""

    text: str = ""
    """A part of a value that is text; upper and lower case differ."""
    reason: str = ""
    """The whole reason of a rejection; or as "attribute/reason" of a sample of rejected documents."""
    source: str = ""
    fate: str = ""
    """KEPT or REJECTED: the decision of an attribute, or whether a training has used a rollout."""
    lesson: str = ""
    """That of a rollout."""
    step: int | None = None
    """That of a rollout."""
    at_least: float | None = None
    at_most: float | None = None
    """Bounds of the measure `of`."""
    equals: str = ""
    """The text, or the truth, that the measure `of` is."""
    of: str = ""
    """The measured value, as a JSON pointer; empty: VALUE."""
    by: str = ""
    """LENGTH: its length is measured. Empty: its number."""

    @property
    def is_empty(self) -> bool:
        return replace(self, of="", by="") == RowFilter()

    @property
    def has_measure(self) -> bool:
        """Whether a condition on the measure is set."""
        return self.at_least is not None or self.at_most is not None or bool(self.equals)

    @property
    def conditions(self) -> dict[str, object]:
        """The conditions as values of an address."""
        return {name: value for name, value in vars(self).items() if value not in ("", None)}

    def accepts(self, row: Row) -> bool:
        if isinstance(row, BadRow):
            return False
        if self.text and not _has_text(row, self.text, 0):
            return False
        if self.reason and self.reason not in (row.get("reason"), f"{row.get('attribute')}/{row.get('reason')}"):
            return False
        if self.source and row.get("source") != self.source:
            return False
        if self.fate and row.get("keep", row.get("used")) is not (self.fate == KEPT):
            return False
        if self.lesson and row.get("lesson") != self.lesson:
            return False
        if self.step is not None and row.get("step") != self.step:
            return False
        return self._has_measure(row)

    def _has_measure(self, row: Mapping[str, Any]) -> bool:
        if not self.has_measure:
            return True
        value = value_of(row, keys_of(self.of or VALUE))
        if self.equals and category_of(value) != self.equals:
            return False
        if self.at_least is None and self.at_most is None:
            return True
        number = length_of(value) if self.by == LENGTH else number_of(value)
        if number is None:
            return False
        return (self.at_least is None or number >= self.at_least) and (self.at_most is None or number <= self.at_most)


def filter_of(query: Query) -> RowFilter:
    """The filter of an address. Raises NotThereError."""
    fate = query.text("fate")
    if fate not in ("", KEPT, REJECTED):
        raise NotThereError(f"fate is {fate!r:.60}, expected '{KEPT}' or '{REJECTED}'. Correct the address.")
    of, by = query.text("of"), query.text("by")
    if of and (not of.startswith("/") or len(of) > POINTER_CHARACTERS):
        raise NotThereError(f"of is {of!r:.60}, expected a JSON pointer such as '{VALUE}'. Correct the address.")
    if by not in ("", LENGTH):
        raise NotThereError(f"by is {by!r:.60}, expected '{LENGTH}' or nothing. Correct the address.")
    return RowFilter(
        of=of,
        by=by,
        equals=query.text("equals"),
        text=query.text("text"),
        reason=query.text("reason"),
        source=query.text("source"),
        fate=fate,
        lesson=query.text("lesson"),
        step=query.number("step") if query.has("step") else None,
        at_least=query.decimal("at_least"),
        at_most=query.decimal("at_most"),
    )


def accepted_rows(path: str, chosen: RowFilter, start: int) -> Iterator[tuple[int, Row | None]]:
    """(number, row) of each row from `start` on that the filter accepts; (number, None) of the others.

    A line that cannot have a text of the filter is not parsed. Raises DocumentError.
    """
    if format_of(path) == PARQUET:
        for number, row in read_rows(path):
            if number > start:
                yield number - 1, row if chosen.accepts(unpacked(path, row)) else None
        return
    required = [spellings_of(text) for text in (chosen.text, chosen.source, chosen.lesson) if text]
    parser = LineParser()
    for number, line in row_lines(path):
        if number < start:
            continue
        if isinstance(line, bytes) and all(any(spelling in line for spelling in texts) for texts in required):
            row = parser.row(line)
            yield number, row if chosen.accepts(row) else None
        else:
            yield number, None


def _has_text(value: Any, text: str, depth: int) -> bool:
    if isinstance(value, str):
        return text in value
    if depth == DEEP or not isinstance(value, dict | list):
        return False
    items = value.values() if isinstance(value, dict) else value
    return any(_has_text(item, text, depth + 1) for item in items)
