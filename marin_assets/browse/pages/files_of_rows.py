"""The files of rows of the place of an address: the file itself, or all of an output or a folder of it."""

from __future__ import annotations

from dataclasses import dataclass

from marin_assets.browse.errors import LimitError, NotThereError
from marin_assets.browse.pages.file_of_rows import file_of_rows
from marin_assets.browse.places import Place
from marin_assets.browse.rows.reader import count_rows
from marin_assets.browse.rows.sample import count_lines
from marin_assets.browse.site import Asked
from marin_assets.browse.stored.files import REJECTED, files_at
from marin_assets.browse.stored.row_counts import noted_rows
from marin_assets.browse.stored.rows_of_id import id_table
from marin_assets.browse.stored.state import OutputState
from marin_assets.documents.formats import is_readable
from marin_resources.storage.files import StoredFile

MOST_COUNTED_BYTES = 256 * 1024**2
"""Bytes of files without a count that are read in order to count their rows."""


@dataclass(frozen=True, kw_only=True)
class FilesOfRows:
    place: Place
    owner: OutputState | None
    files: list[StoredFile]
    texts: list[str]
    """The address of each."""
    noted: dict[str, int]
    """The rows by the name of the file, where the table of ids or a note of a shard has them."""


def files_of_rows(asked: Asked, name: str = "path") -> FilesOfRows:
    """The files, without the sample of a consolidation unless that is the place. Raises NotThereError without any.

    `name`: that of the value of the address that has the place.
    """
    place = asked.place(name)
    if is_readable(place.name):
        shown = file_of_rows(asked, name)
        noted = {} if shown.total is None else {shown.file.name: shown.total}
        return FilesOfRows(place=place, owner=shown.owner, files=[shown.file], texts=[place.text], noted=noted)
    owner = asked.owner(place)
    if owner is None:
        raise NotThereError(f"{place.text!r:.300} is in no output. Open an output, or a file of one.")
    is_whole = owner.place.text == place.text
    data = asked.places.resolve(owner.data_path) if is_whole else place
    files = [file for file in files_at(asked.places, data)[0] if is_readable(file.name)]
    files = [file for file in files if not file.name.startswith(REJECTED)]
    if not files:
        raise NotThereError(f"{place.text!r:.300} has no files of rows. Open an output that has.")
    texts = [asked.places.text_of(file.path) or f"{data.text}/{file.name}" for file in files]
    noted = rows_of_shards(owner) if is_whole else {}
    return FilesOfRows(place=place, owner=owner, files=files, texts=texts, noted=noted)


def counted_rows(shown: FilesOfRows) -> tuple[list[int], int]:
    """The rows of each file, and the bytes of those that were read to be counted. Raises LimitError."""
    counts: list[int] = []
    read = 0
    for file in shown.files:
        rows = shown.noted.get(file.name)
        if rows is None:
            rows = count_rows(file.path)
        if rows is None:
            read += file.size_bytes
            if read > MOST_COUNTED_BYTES:
                raise LimitError(
                    f"The rows of {file.name!r:.200} and of other files are not counted, and more than "
                    f"{MOST_COUNTED_BYTES:,} bytes would be read to count them, the limit. Open one file."
                )
            rows = count_lines(file.path)
        counts.append(rows)
    return counts, read


def rows_of_shards(owner: OutputState) -> dict[str, int]:
    """The rows of the shards of an output by their names: by one file if it has a table of ids, else by its notes.

    Raises DocumentError for a damaged table.
    """
    table = id_table(owner)
    if table is not None and not table.others:
        return {shard.name: shard.rows for shard in table.shards}
    return noted_rows(owner.place.path)
