"""Columns of other outputs beside the rows of a page: the verdicts of attributes, clusters, other texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from marin_assets.browse.cells.short_text import ShortText, short_text
from marin_assets.browse.errors import NotThereError
from marin_assets.browse.pages.file_of_rows import FileOfRows
from marin_assets.browse.places import Places
from marin_assets.browse.rows.beside import rows_beside
from marin_assets.browse.rows.reader import Row
from marin_assets.browse.stored.state import OutputState, state_at
from marin_assets.browse.stored.verdicts import fate_in
from marin_assets.documents.document import DocumentError
from marin_resources.storage.paths import join

MOST = 12
"""Outputs beside a page."""
CELL_CHARACTERS = 120


@dataclass(frozen=True, kw_only=True)
class CellBeside:
    text: ShortText
    number: int
    """The number of the row in its file, from 0."""
    is_rejection: bool = False


@dataclass(frozen=True, kw_only=True)
class ColumnBeside:
    """An output beside the rows of a page."""

    name: str
    text: str
    """The address of its file."""
    cells: Sequence[CellBeside | None]
    """A cell for each row of the page; None if the output does not have it."""
    note: str = ""
    """Why cells may be missing, as a sentence."""
    short_name: str = ""
    """The last part of its name, where no other column has that; else the whole name."""


def columns_beside(
    places: Places, shown: FileOfRows, texts: Sequence[str], start: int, rows: Sequence[Row]
) -> list[ColumnBeside]:
    """The columns of the outputs at these addresses, beside the rows of a file from `start` on.

    Raises NotThereError for an output without a file of that name, and for more than MOST; BrowseError.
    """
    if len(texts) > MOST:
        raise NotThereError(f"{len(texts)} outputs are chosen, and {MOST} is the limit beside a page. Remove some.")
    if not texts:
        return []
    owner, file = place_in_output(shown)
    ids = [_id(row) for row in rows]
    columns = [_column(places, file, text, start, ids) for text in dict.fromkeys(texts)]
    last = Counter(name.rpartition("/")[2] for name in (owner.record.name or "", *(column.name for column in columns)))
    return [replace(column, short_name=_short_name(column.name, last)) for column in columns]


def _short_name(name: str, last: Mapping[str, int]) -> str:
    part = name.rpartition("/")[2]
    return part if last[part] == 1 else name


def place_in_output(shown: FileOfRows) -> tuple[OutputState, str]:
    """The output of a file, and the file's name below its data. Raises NotThereError for a file of none."""
    if shown.owner is None or not shown.place.path.startswith(f"{shown.owner.data_path}/"):
        raise NotThereError(f"{shown.place.text!r:.300} is in no output, and has nothing beside it. Open another file.")
    return shown.owner, shown.place.path[len(shown.owner.data_path) + 1 :]


def _column(places: Places, file: str, text: str, start: int, ids: Sequence[str | None]) -> ColumnBeside:
    state = state_at(places.resolve(text))
    if state is None:
        raise NotThereError(f"{text!r:.300} is not an output, and has nothing beside a row. Choose another one.")
    place = places.resolve(join(state.data_path, file))
    name = state.record.name or state.place.text
    try:
        beside = rows_beside(place.path, start, ids)
    except (FileNotFoundError, NotADirectoryError):
        raise NotThereError(f"{text!r:.300} has no file {file!r:.300}. Choose another output.") from None
    except DocumentError as error:
        return ColumnBeside(name=name, text=place.text, cells=[None] * len(ids), note=str(error))
    note = "Its rows have another order and no index of ids, and are too many: those with the same number are shown."
    return ColumnBeside(
        name=name,
        text=place.text,
        cells=[None if row is None else _cell(*row) for row in beside.rows],
        note=note if beside.by_number_alone else "",
    )


def _cell(number: int, row: Mapping[str, Any]) -> CellBeside:
    fate = fate_in(row)
    if fate:
        return CellBeside(text=ShortText(fate), number=number, is_rejection=row.get("keep") is False)
    text = row.get("text")
    others = {key: value for key, value in row.items() if key != "id"}
    return CellBeside(text=short_text(text if isinstance(text, str) else others, CELL_CHARACTERS), number=number)


def _id(row: Row) -> str | None:
    id = row.get("id") if isinstance(row, dict) else None
    return id if isinstance(id, str) else None
