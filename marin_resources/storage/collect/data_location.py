"""Location of the data that an output owns: below its path, or below that of its region."""

from __future__ import annotations

from marin_resources.storage.collect.errors import KeptError
from marin_resources.storage.output.leftovers import StoreError
from marin_resources.storage.output.region_copies import Copy, list_copies
from marin_resources.types.record import Record


def data_path_elsewhere(record: Record) -> str | None:
    """The path of the data in another region; None for data beside the record, and for adopted data, which are not the
    output's own."""
    return None if record.adopted else record.data_path


def copies_at(data_path: str | None) -> list[Copy]:
    """The control files that repeat those of the home beside data elsewhere. Raises KeptError for those of another
    deployment."""
    try:
        return list_copies(data_path) if data_path is not None else []
    except StoreError as error:
        raise KeptError(str(error)) from None
