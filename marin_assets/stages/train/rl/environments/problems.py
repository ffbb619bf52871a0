"""Problems of one's own: rows in the config, or files of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from marin_assets.documents.document import BadRow
from marin_assets.documents.formats import READABLE, is_readable
from marin_assets.documents.rows import read_rows
from marin_resources.storage.files import list_files
from marin_resources.types.errors import InvalidInputError

Problems = Sequence[Mapping[str, Any]] | str
"""Rows, which enter the version; or a path: a file, or a folder, such as the output of a step."""


class ProblemError(InvalidInputError):
    """Problems that cannot be used. The message names the row."""


def read_problems(problems: Problems, fields: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows, in the order of files and rows, all of which have these fields. Raises ProblemError.

    A file is lines of JSON or parquet.
    """
    rows = list(_rows_of(problems))
    for place, row in rows:
        if not isinstance(row, Mapping):
            reason = row.reason if isinstance(row, BadRow) else "it is no object"
            raise ProblemError(f"The problem in {place} cannot be read: {reason}. Correct or remove the row.")
        if missing := [field for field in fields if row.get(field) is None]:
            raise ProblemError(
                f"The problem in {place} has no field {missing[0]!r}, expected {', '.join(fields)}; it has "
                f"{', '.join(map(str, row)) or 'none'}. Name the fields that your problems have."
            )
    if not rows:
        raise ProblemError(f"problems is {problems!r:.200}, in which there is no row, expected at least one problem.")
    return [dict(row) for _, row in rows]


def _rows_of(problems: Problems) -> Iterator[tuple[str, Any]]:
    """Each row with its place, in words."""
    if isinstance(problems, list | tuple):
        yield from ((f"row {number} of problems", row) for number, row in enumerate(problems))
        return
    if not isinstance(problems, str | PurePath):
        raise ProblemError(f"problems is {problems!r:.200}, expected a list of rows, or a path.")
    files = [path for path in list_files(str(problems)) if is_readable(path)]
    if not files:
        raise ProblemError(
            f"problems is the path {str(problems)!r}, where no file ends with one of {', '.join(READABLE)}."
        )
    for path in files:
        yield from ((f"line {number} of {path!r}", row) for number, row in read_rows(path))
