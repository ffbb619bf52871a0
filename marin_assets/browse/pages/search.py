"""Rows by a text, a reason, a source, a value, or their fate: shown as they are reached, until a limit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from marin_assets.browse.cells.short_text import ShortText, short_text, visible
from marin_assets.browse.errors import LimitError
from marin_assets.browse.pages.files_of_rows import FilesOfRows, files_of_rows
from marin_assets.browse.pages.rewards.rollout import is_rollout
from marin_assets.browse.query import address
from marin_assets.browse.rows.reader import Row
from marin_assets.browse.rows.row_filter import RowFilter, accepted_rows, filter_of
from marin_assets.browse.site import Asked, Shown
from marin_assets.documents.document import DocumentError
from marin_assets.stages.train.rl.rollout import FOLDER as ROLLOUTS

HITS = 100
FATES = {"keep": ("kept", "rejected"), "used": ("used", "not used")}
"""Key of a decision -> its words, for true and for false."""
AROUND, PREVIEW = 100, 300
"""Characters before and after a text; of a row without one."""


@dataclass(frozen=True, kw_only=True)
class Hit:
    link: str
    name: str
    number: int
    id: ShortText
    fate: str
    before: str
    match: str
    after: str


@dataclass
class Search:
    """The hits of one search, and how far it came."""

    asked: Asked
    shown: FilesOfRows
    chosen: RowFilter
    file: int
    """Index of the file that is read."""
    row: int
    """The next row of it."""
    rows: int = 0
    """Rows that were read."""
    note: str = ""
    """Why it stopped before the end; empty at the end."""
    damage: list[str] = field(default_factory=list)
    _send: Callable[[], None] = lambda: None

    def call_before_waiting(self, send: Callable[[], None]) -> None:
        """Set a function to call before the search continues behind a hit: it sends the text until then."""
        self._send = send

    @property
    def next_address(self) -> str:
        """The address of the search from where it stopped."""
        return address("search", path=self.shown.place.text, **self.chosen.conditions, file=self.file, row=self.row)

    @property
    def download_address(self) -> str:
        """The address of all its rows, as a file."""
        return address("selection", path=self.shown.place.text, **self.chosen.conditions)

    def hits(self) -> Iterator[Hit]:
        """The hits, HITS at most. A limit of the request ends them with a note."""
        shown = 0
        try:
            while self.file < len(self.shown.files):
                for number, row in self._rows():
                    self.row, self.rows = number + 1, self.rows + 1
                    if row is None:
                        continue
                    yield self._hit(number, row)
                    shown += 1
                    self._send()
                    if shown == HITS:
                        self.note = f"{HITS} rows are shown."
                        return
                self.file, self.row = self.file + 1, 0
        except LimitError as error:
            self.note = str(error)

    def _rows(self) -> Iterator[tuple[int, Row | None]]:
        """The rows of the file; a damaged one is noted, and ends there."""
        file = self.shown.files[self.file]
        try:
            yield from accepted_rows(file.path, self.chosen, self.row)
        except (DocumentError, OSError) as error:
            self.damage.append(str(error))

    def _hit(self, number: int, row: Row) -> Hit:
        assert isinstance(row, dict)  # a filter accepts no other
        before, match, after = _around(row, self.chosen.text)
        return Hit(
            link=address("rollout" if is_rollout(row) else "row", path=self.shown.texts[self.file], row=number),
            name=self.shown.files[self.file].name,
            number=number,
            id=short_text(row.get("id", ""), 100),
            fate=_fate(row),
            before=before,
            match=match,
            after=after,
        )


def _fate(row: dict[str, Any]) -> str:
    """The decision about a row and its value: of an attribute, or of a rollout with its lesson, step and reward."""
    decision, words = next(((row[key], words) for key, words in FATES.items() if key in row), (None, ("", "")))
    fate = ""
    if isinstance(decision, bool):
        fate = words[0] if decision else f"{words[1]}: {short_text(row.get('reason'), 100).text}"
    value = row.get("value", row.get("reward"))
    fate += f" {short_text(value, 40).text}" if isinstance(value, int | float) else ""
    if "lesson" in row and "step" in row:
        fate += f" ({short_text(row['lesson'], 100).text}, step {short_text(row['step'], 20).text})"
    return fate


def search(asked: Asked) -> Shown:
    shown, chosen = files_of_rows(asked), filter_of(asked.query)
    running = Search(asked, shown, chosen, asked.query.number("file"), asked.query.number("row"))
    if chosen.is_empty:
        running.file = len(shown.files)
    facts: dict[str, Any] = {
        "shown": shown,
        "chosen": chosen,
        "search": running,
        "started": not chosen.is_empty,
        "has_rollouts": any(f"/{ROLLOUTS}/" in file.path for file in shown.files),
    }
    return Shown(template="search", facts=facts, waits=running)


def _around(row: dict[str, Any], text: str) -> tuple[str, str, str]:
    """The text with its surroundings, in the first value that has it; the beginning of the row without one."""
    for value in row.values() if text else ():
        if isinstance(value, str) and (place := value.find(text)) >= 0:
            end = place + len(text)
            before, after = value[max(place - AROUND, 0) : place], value[end : end + AROUND]
            before, after = "…" * (place > AROUND) + before, after + "…" * (end + AROUND < len(value))
            return visible(before), visible(text[:PREVIEW]), visible(after)
    beginning = short_text(row.get("text", row), PREVIEW)
    return "", "", beginning.text + "…" * beginning.is_cut
