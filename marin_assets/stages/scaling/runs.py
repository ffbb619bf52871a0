"""Read the table of runs that a law is fitted to: a row for each finished run.

    label   params       tokens        flops        loss     any further columns, which are kept
    190M    190354176    3.8e9         7.3e18       3.1

In:  a file (CSV, a list in JSON, lines of JSON, parquet) or a folder with such files, among them documents, whose
     metadata are columns too.
Out: rows with the file and line that they are from; runs with checked numbers.

`label` is optional: documents have their id, and others the number of the row. `flops` is optional: 6 times params
times tokens, or another factor.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from marin_assets.documents import BadRow, read_rows
from marin_assets.documents.formats import is_readable
from marin_assets.stages.scaling.errors import ScalingError
from marin_resources.storage.files import read_bytes, stored_files
from marin_resources.types.near_names import expected_one_of

COLUMNS = ("label", "params", "tokens", "flops", "loss")
"""Columns of the table. A table with other names has them in `columns`: {"loss": "c4"}."""
SCORE = "score"
"""A further column of a ladder: the score of the task, from 0 to 1."""
FLOPS_PER_PARAMETER_TOKEN = 6.0
"""Operations of training for a parameter and a token: 2 forward, 4 backward (Kaplan et al. 2020)."""
TABLES = (".csv", ".json")
"""Formats that are read beside those of documents."""
LEAST_NUMBER, MOST_NUMBER = 1e-12, 1e40
"""Numbers of any run: beyond, powers of them are no floats."""
MAX_BYTES = 64 << 20
"""Largest file of a table: a law has hundreds of runs, and more is another file."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A row as it was read."""

    place: str
    """ "path line 3", for sentences."""
    number: int
    """Number among all rows, from 1."""
    values: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """A run with its measured values."""

    label: str
    params: float
    tokens: float
    flops: float
    values: Mapping[str, float]
    """The columns that were requested as values, such as loss."""
    row: Row


def read_table(path: str) -> list[Row]:
    """Return the rows of a file, or of all files of rows below a folder.

    Raises ScalingError for a file of another kind, a damaged row or a table without rows, FileNotFoundError for none.
    """
    files = stored_files(path)
    tables = [file.path for file in files if is_readable(file.name) or file.name.lower().endswith(TABLES)]
    if not tables:
        names = ", ".join(repr(file.name) for file in files[:5])
        raise ScalingError(
            f"{path!r} has no table of runs, only {names}. Expected a CSV, JSON, JSONL or parquet file, or a folder "
            "with such files."
        )
    if large := next((file for file in files if file.path in tables and file.size_bytes > MAX_BYTES), None):
        raise ScalingError(
            f"{large.path!r} has {large.size_bytes:,} bytes, expected at most {MAX_BYTES:,} of a table of runs. "
            "Pass the table of finished runs."
        )
    rows = [
        Row(place=f"{file!r} line {line}", number=number, values=values)
        for number, (file, line, values) in enumerate(_rows(tables), 1)
    ]
    if not rows:
        raise ScalingError(f"{path!r} has no rows, expected a table with a row for each finished run.")
    return rows


def rows_where(rows: Sequence[Row], where: Mapping[str, Any]) -> list[Row]:
    """Return the rows with these values. Numbers are compared as numbers. Raises ScalingError for a column that no row
    has, or if no row is left."""
    for column, expected in where.items():
        _require_column(rows, column, f"where names the column {column!r}")
        matching = [row for row in rows if _equal(row.values.get(column), expected)]
        if not matching:
            values = list(dict.fromkeys(str(row.values.get(column)) for row in rows))
            raise ScalingError(f"No run has {column!r} = {expected!r}, {expected_one_of(expected, values, 'values')}")
        rows = matching
    return list(rows)


def label_of(row: Row, columns: Mapping[str, str]) -> str:
    """The label of a row: its column, the id of a document, or the number of the row."""
    value = row.values.get(columns.get("label", "label"), row.values.get("id"))
    return f"row {row.number}" if value in (None, "") else str(value)


def runs_of(
    rows: Sequence[Row],
    columns: Mapping[str, str],
    values: Sequence[str] = ("loss",),
    flops_per_parameter_token: float = FLOPS_PER_PARAMETER_TOKEN,
    may_be_zero: Sequence[str] = (),
) -> list[Run]:
    """Return the runs of these rows, with the `values` that are requested of each.

    Raises ScalingError for a column that the table lacks, and for a number that is missing, not finite or not positive.
    """
    if not rows:
        return []
    for name in ("params", "tokens", *values):
        _require_column(rows, columns.get(name, name), f"The column of {name} is {columns.get(name, name)!r}")
    if "label" in columns:
        _require_column(rows, columns["label"], f"The column of label is {columns['label']!r}")
    flops = columns.get("flops", "flops")
    has_flops = "flops" in columns or any(flops in row.values for row in rows)
    if has_flops:
        _require_column(rows, flops, f"The column of flops is {flops!r}")

    def run(row: Row) -> Run:
        label = label_of(row, columns)
        params, tokens = (_number(row, label, columns.get(name, name)) for name in ("params", "tokens"))
        return Run(
            label=label,
            params=params,
            tokens=tokens,
            flops=_number(row, label, flops) if has_flops else flops_per_parameter_token * params * tokens,
            values={name: _number(row, label, columns.get(name, name), name in may_be_zero) for name in values},
            row=row,
        )

    return [run(row) for row in rows]


def _rows(paths: Iterable[str]) -> Iterator[tuple[str, int, dict[str, Any]]]:
    for path in paths:
        for line, row in _rows_of_file(path):
            if isinstance(row, BadRow):
                raise ScalingError(f"{path!r} line {line} is no row ({row.reason}: {row.detail:.200}). Correct it.")
            yield path, line, _with_metadata(row)


def _rows_of_file(path: str) -> Iterator[tuple[int, dict[str, Any] | BadRow]]:
    if is_readable(path):
        yield from read_rows(path)
        return
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ScalingError(f"{path!r} is no text in UTF-8 ({error}). Save the table as UTF-8.") from error
    yield from _csv_rows(path, text) if path.lower().endswith(".csv") else _json_rows(path, text)


def _csv_rows(path: str, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    reader = csv.DictReader(io.StringIO(text), strict=True)
    names = [name.strip() for name in reader.fieldnames or ()]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ScalingError(f"{path!r} has the column {twice!r} twice, expected each once. Rename one.")
    reader.fieldnames = names
    try:
        for row in reader:
            if None in row or None in row.values():
                raise ScalingError(
                    f"{path!r} line {reader.line_num} has another number of cells than the header, expected "
                    f"{len(names)}. Correct the line."
                )
            yield reader.line_num, dict(row)
    except csv.Error as error:
        raise ScalingError(f"{path!r} line {reader.line_num} is not CSV ({error}). Correct the line.") from error


def _json_rows(path: str, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ScalingError(f"{path!r} is not JSON ({error}). Correct the file.") from error
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ScalingError(
            f"{path!r} is no list of objects, expected [{{'params': …, 'tokens': …, 'loss': …}}, …]. Of an output with "
            "other files too, pass the table itself: step / 'runs.csv'."
        )
    yield from enumerate(rows, 1)


def _with_metadata(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row, and the metadata of a document as further columns."""
    metadata = row.get("metadata")
    if isinstance(metadata, str):  # parquet holds them as JSON text
        try:
            metadata = json.loads(metadata)
        except (ValueError, RecursionError):
            metadata = None
    if not isinstance(metadata, Mapping):
        return dict(row)
    return {**metadata, **{name: value for name, value in row.items() if name != "metadata"}}


def _require_column(rows: Sequence[Row], column: str, begin: str) -> None:
    if not any(column in row.values for row in rows):
        names = list(dict.fromkeys(name for row in rows for name in row.values))
        raise ScalingError(f"{begin}, which the table lacks, {expected_one_of(column, names, 'columns')}")


def _number(row: Row, label: str, column: str, may_be_zero: bool = False) -> float:
    value = row.values.get(column)
    try:
        number = math.nan if value is None or isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not (LEAST_NUMBER <= number <= MOST_NUMBER or (may_be_zero and number == 0)):
        expected = "a number from 0" if may_be_zero else "a positive number"
        expected += f" of {LEAST_NUMBER:g} to {MOST_NUMBER:g}" if 0 < number < math.inf else ""
        raise ScalingError(
            f"{row.place}, the run {label!r}, has {column} = {value!r:.80}, expected {expected}. Correct it, or leave "
            "the run out."
        )
    return number


def _equal(value: Any, expected: Any) -> bool:
    try:
        return float(value) == float(expected)
    except (TypeError, ValueError):
        return str(value) == str(expected)
