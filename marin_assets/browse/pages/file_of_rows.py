"""The file of rows of the place of an address, and the number of its rows where that is known without reading them."""

from __future__ import annotations

from dataclasses import dataclass

from marin_assets.browse.errors import NotThereError
from marin_assets.browse.places import Place
from marin_assets.browse.rows.reader import count_rows
from marin_assets.browse.site import Asked
from marin_assets.browse.stored.row_counts import noted_rows
from marin_assets.browse.stored.state import OutputState
from marin_assets.documents.formats import is_readable
from marin_resources.storage.files import StoredFile


@dataclass(frozen=True, kw_only=True)
class FileOfRows:
    """A file of rows with what is known about it."""

    place: Place
    file: StoredFile
    owner: OutputState | None
    total: int | None
    """The number of its rows, if that is known without reading them."""


def file_of_rows(asked: Asked, name: str = "path") -> FileOfRows:
    """The file of the address. Raises NotThereError if it is not one of rows."""
    place, file = asked.file(name)
    if not is_readable(file.name):
        raise NotThereError(
            f"{place.text!r:.300} is not a file of rows by its name. Open the output, and a file of it."
        )
    owner = asked.owner(place)
    return FileOfRows(place=place, file=file, owner=owner, total=_total(place, owner))


def _total(place: Place, owner: OutputState | None) -> int | None:
    rows = count_rows(place.path)
    if rows is None and owner is not None and place.path.startswith(f"{owner.data_path}/"):
        rows = noted_rows(owner.place.path).get(place.path[len(owner.data_path) + 1 :])
    return rows
