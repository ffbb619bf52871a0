"""The files of rows of the place of an address: the file itself, or all of an output or a folder of it."""

from __future__ import annotations

from dataclasses import dataclass

from marin_assets.browse.errors import NotThereError
from marin_assets.browse.pages.rows import file_of_rows
from marin_assets.browse.places import Place
from marin_assets.browse.site import Asked
from marin_assets.browse.stored.files import REJECTED, files_at
from marin_assets.browse.stored.row_counts import noted_rows
from marin_assets.browse.stored.rows_of_id import id_table
from marin_assets.browse.stored.state import OutputState
from marin_assets.documents.formats import is_readable
from marin_resources.storage.files import StoredFile


@dataclass(frozen=True, kw_only=True)
class FilesOfRows:
    place: Place
    owner: OutputState | None
    files: list[StoredFile]
    texts: list[str]
    """The address of each."""
    noted: dict[str, int]
    """The rows by the name of the file, where the table of ids or a note of a shard has them."""


def files_of_rows(asked: Asked) -> FilesOfRows:
    """The files, without the sample of a consolidation unless that is the place. Raises NotThereError without any."""
    place = asked.place()
    if is_readable(place.name):
        shown = file_of_rows(asked)
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


def rows_of_shards(owner: OutputState) -> dict[str, int]:
    """The rows of the shards of an output by their names: by one file if it has a table of ids, else by its notes.

    Raises DocumentError for a damaged table.
    """
    table = id_table(owner)
    if table is not None and not table.others:
        return {shard.name: shard.rows for shard in table.shards}
    return noted_rows(owner.place.path)
