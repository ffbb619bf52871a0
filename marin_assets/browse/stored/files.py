"""The files of an output, or of any folder: which page shows each, its size, and its rows if they are known."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from marin_assets.browse.places import Place, Places
from marin_assets.browse.rows.reader import count_rows
from marin_assets.browse.stored.row_counts import noted_rows
from marin_assets.documents.caches.token_cache import LEDGER
from marin_assets.documents.document import DocumentError
from marin_assets.documents.formats import is_readable
from marin_resources.storage.files import StoredFile, stored_and_unusable_files, stored_files
from marin_resources.storage.output.record import NAME as RECORD
from marin_resources.storage.paths import is_local, join

REJECTED = ".marin/rejected"
"""A sample of what a consolidation has rejected. It is hidden from stages, not from people."""
TEXTS = (".json", ".txt", ".md", ".csv", ".log", ".yaml", ".yml", ".py", ".html", ".htm", ".xml", ".tsv")
MOST_FOOTERS = {True: 200, False: 16}
"""Files whose rows are counted by their footer for one page, on a disk and in a bucket."""


@dataclass(frozen=True, kw_only=True)
class ShownFile:
    """A file of an output."""

    name: str
    """The path below the output's data."""
    text: str
    """The address of its place."""
    size_bytes: int
    page: str
    """The page that shows it: "rows", "file", "tokens"; empty if none does."""
    rows: int | None = None
    note: str = ""
    """Why its rows are not known, if it is damaged."""


def files_at(places: Places, folder: Place) -> tuple[list[StoredFile], list[str]]:
    """The data files below a folder by name, then the samples of rejected rows; and a phrase for each place that cannot
    be shown, such as a link that leads out of the prefix. Raises OSError."""
    files, unusable = stored_and_unusable_files(folder.path)
    shown, hidden = (files, []) if not is_local(folder.path) else inside(places, files)
    with suppress(FileNotFoundError):
        shown += [_below(file, REJECTED) for file in stored_files(join(folder.path, REJECTED))]
    notes = [f"{name}: {error if not error.strerror else error.strerror}" for name, error in unusable.items()]
    return shown, [*(f"{name}: a link that leads out of what is shown" for name in hidden), *notes]


def inside(places: Places, files: Sequence[StoredFile]) -> tuple[list[StoredFile], list[str]]:
    """The files of a disk that are below a prefix; and the names of the links by which others are reached."""
    folders: dict[str, bool] = {}
    shown, hidden = [], dict[str, None]()
    for file in files:
        folder = os.path.dirname(file.path)
        if folder not in folders:
            folders[folder] = places.text_of(folder) is not None
        if folders[folder] and not (os.path.islink(file.path) and places.text_of(file.path) is None):
            shown.append(file)
        else:
            hidden[os.path.dirname(file.name) if not folders[folder] else file.name] = None
    return shown, list(hidden)


def shown_files(places: Places, output_path: str, folder: Place, files: Sequence[StoredFile]) -> list[ShownFile]:
    """These files with their pages and rows. `output_path` has the notes of shards; `folder` has the files."""
    noted = noted_rows(output_path) if any(is_readable(file.name) for file in files) else {}
    footers = MOST_FOOTERS[is_local(folder.path)]
    shown = []
    for file in files:
        rows, note = noted.get(file.name), ""
        if rows is None and is_readable(file.name) and footers:
            footers -= 1
            try:
                rows = count_rows(file.path)
            except (DocumentError, OSError) as error:
                note = str(error)
        text = join(folder.text, file.name) if folder.text else file.name
        shown.append(
            ShownFile(
                name=file.name,
                text=text.removesuffix(f"/{LEDGER}") if file.name.endswith(LEDGER) else text,
                size_bytes=file.size_bytes,
                page=page_of(file.name),
                rows=rows,
                note=note,
            )
        )
    return shown


def page_of(name: str) -> str:
    """The page that shows a file, by its name; empty if none does."""
    if is_readable(name):
        return "rows"
    if name.rpartition("/")[2] == LEDGER:
        return "tokens"
    return "file" if name.lower().endswith((*TEXTS, RECORD)) else ""


def _below(file: StoredFile, folder: str) -> StoredFile:
    return StoredFile(path=file.path, name=f"{folder}/{file.name}", size_bytes=file.size_bytes, stamp=file.stamp)
