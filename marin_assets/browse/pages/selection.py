"""The rows of a search as a file, for another program: a fit, a notebook. It is whole, or none is given."""

from __future__ import annotations

from marin_assets.browse.errors import LimitError
from marin_assets.browse.pages.files_of_rows import files_of_rows
from marin_assets.browse.rows.row_filter import accepted_rows, filter_of
from marin_assets.browse.site import Asked, Download
from marin_assets.documents.document import DocumentError
from marin_assets.documents.rows import ENCODER


def selection(asked: Asked) -> Download:
    """All rows that the filter of the address accepts, as lines of JSON; all rows without a filter. A line that is no
    row is in no selection.

    Raises LimitError for more than a page may hold, DocumentError for a damaged file and for a row that JSON cannot
    have.
    """
    shown, chosen = files_of_rows(asked), filter_of(asked.query)
    lines, size = list[bytes](), 0
    for file in shown.files:
        for number, row in accepted_rows(file.path, chosen, 0):
            if row is None:
                continue
            try:
                line = ENCODER.encode(row).encode()
            except (TypeError, ValueError) as error:
                raise DocumentError(f"Row {number} of {file.name!r} cannot be written as JSON: {error}.") from error
            lines.append(line + b"\n")
            size += len(line)
            if size > asked.limits.page_bytes:
                raise LimitError(
                    f"The selected rows have more than {asked.limits.page_bytes:,} bytes, the limit of a download. "
                    "Add a condition, or read the output itself."
                )
    return Download(content=b"".join(lines), name=f"{shown.place.name}.selection.jsonl")
