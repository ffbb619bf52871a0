"""Convert rows with any columns to documents.

In:  files of lines of JSON, plain or compressed, or of parquet below a folder, with columns of any names.
Out: documents, file for file under the same names. Without an id column a document's id is the xxh3 of its text (128
     bits, 32 hexadecimal digits), so equal texts have equal ids. With `path_keys`, documents have what folders such as
"quality=high" of their file's path state.

A bad row is one that is not a document. It fails the stage, or is counted under its reason if `bad_rows` is "reject". A
damaged file always fails the stage, since its lost rows cannot be counted.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from marin_assets.documents import (
    SUFFIX,
    BadRow,
    Document,
    DocumentError,
    DocumentFiles,
    RepeatedKeys,
    check_format,
    document_files,
    document_shards,
    format_of,
    read_rows,
    write_documents,
)
from marin_assets.documents.parquet.columns import missing_column
from marin_assets.stages.transform.path_keys import PathKeys, check_path_keys, values_in
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.shards.file_shards import FileShard
from marin_resources.ray_tpu.shards.map_shards import Counts, map_shards
from marin_resources.types.errors import MarinError
from marin_resources.types.near_names import expected_one_of

KINDS = ("jsonl",)

ALL = "all"
BAD_ROWS = ("fail", "reject")
WITHOUT = "documents_without_"
"""Before the name of a metadata column that some documents do not have: they have no such metadata."""
REASONS = (
    "too_long", "invalid_utf8", "invalid_json", "not_an_object", "no_text", "text_not_a_string", "empty", "no_id",
    "bad_metadata",
)  # fmt: skip


class IngestError(MarinError, ValueError):
    """An invalid config, or input with too few documents: one sentence."""


@dataclass(frozen=True, kw_only=True)
class IngestConfig:
    input_path: str
    """A folder of files, or one file."""
    output_path: str = THIS_OUTPUT_PATH
    text_column: str = versioned("text")
    id_column: str | None = versioned(None)
    """Column of ids, strings or integers; None derives the ids from the texts."""
    source: str = versioned("")
    """The `source` of every document."""
    metadata_columns: tuple[str, ...] | str = versioned(())
    """Columns to keep as metadata, or "all" except text and id. Dates become ISO strings, decimals strings, NaN null.
    """
    bad_rows: str = versioned("fail")
    """"fail" at the first bad row, or "reject" and count bad rows."""
    max_bad_fraction: float = versioned(0.01)
    """Largest share of rejected rows. Above it the stage fails: a wrong `text_column` must not lose a corpus."""
    max_whitespace_run: int | None = versioned(None)
    """Longer runs of whitespace are shortened to this length and counted; None keeps them. Marin's `normalize`: 128."""
    output_format: str = versioned(SUFFIX)
    """".jsonl", ".jsonl.gz", ".jsonl.zst" or ".parquet"."""
    path_keys: PathKeys | None = None
    """PathKeys(names=("quality",)) keeps the values of folders such as "quality=high" as metadata; None ignores them.
    """

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


def ingest(config: IngestConfig) -> dict[str, int | float]:
    """Convert rows to documents.

    Returns documents (rows), kept, rejected, each rejected_<reason>, bytes (of text), whitespace_runs_cut, and, if
    any exist, rows_with_repeated_keys and ignored_files. Raises IngestError, and ShardError with file and line for
    a bad row or a damaged file.
    """
    _check(config)
    files = document_files(config.input_path)
    if config.path_keys is not None:
        for file in files.shards:
            values_in(file.path, config.path_keys)
    shards = document_shards(files, config.output_path, config, suffix=config.output_format)
    counts = map_shards(ingest_shard, shards, output_path=config.output_path)
    if not counts["documents"]:
        raise IngestError(f"The files of {config.input_path!r} have no rows. Correct input_path or the files.")
    if counts["rejected"] > config.max_bad_fraction * counts["documents"]:
        reasons = ", ".join(f"{counts[f'rejected_{r}']:,} {r}" for r in REASONS if counts[f"rejected_{r}"])
        raise IngestError(
            f"{counts['rejected']:,} of the {counts['documents']:,} rows of {config.input_path!r} are not documents "
            f"({reasons}), more than max_bad_fraction {config.max_bad_fraction:g}{_columns_note(config, files)}. "
            f"Check text_column {config.text_column!r} and the files, or raise max_bad_fraction."
        )
    if all(format_of(file.name) == ".parquet" for file in files.shards):
        _require_some_of_each(config, counts)
    return {**counts, **files.counts}


def _columns_note(config: IngestConfig, files: DocumentFiles) -> str:
    """Return what the first row shows about a wrong text_column."""
    first = files.shards[0].path
    row = next((row for _, row in read_rows(first) if not isinstance(row, BadRow)), None)
    if row is None or config.text_column in row:
        return ""
    return f"; the first row of {first!r} has {missing_column(config.text_column, row)}"


def _require_some_of_each(config: IngestConfig, counts: Counts) -> None:
    """Raise IngestError for a metadata column that no file has: a typo must not lose what it names. Lines of JSON may
    leave out a key that is null."""
    for name in () if config.metadata_columns == ALL else config.metadata_columns:
        if counts["kept"] and counts.get(f"{WITHOUT}{name}", 0) == counts["kept"]:
            raise IngestError(
                f"No document of {config.input_path!r} has the column {name!r} of metadata_columns. Correct the name, "
                "or leave it out."
            )


def _check(config: IngestConfig) -> None:
    check_format(config.output_format)
    if config.path_keys is not None:
        check_path_keys(config.path_keys)
    if config.bad_rows not in BAD_ROWS:
        raise IngestError(f"bad_rows is {config.bad_rows!r}, {expected_one_of(config.bad_rows, BAD_ROWS)}")
    if not 0 <= config.max_bad_fraction <= 1:
        raise IngestError(f"max_bad_fraction is {config.max_bad_fraction!r}, expected a fraction from 0 to 1.")
    if config.max_whitespace_run is not None and config.max_whitespace_run < 1:
        raise IngestError(f"max_whitespace_run is {config.max_whitespace_run!r}, expected 1 or more, or None.")
    if isinstance(config.metadata_columns, str) and config.metadata_columns != ALL:
        raise IngestError(f"metadata_columns is {config.metadata_columns!r}, expected names in a tuple, or {ALL!r}.")


def ingest_shard(shard: FileShard) -> Counts:
    """Convert one group of files. Returns the counts of `ingest`."""
    names = ("documents", "kept", "rejected", *(f"rejected_{r}" for r in REASONS), "bytes", "whitespace_runs_cut")
    counts = Counter(dict.fromkeys(names, 0))
    for file, target in zip(shard.inputs, shard.outputs, strict=True):
        write_documents(target, documents_of(file.path, shard.config, counts), replace=False)
    return dict(counts)


def documents_of(path: str, config: IngestConfig, counts: Counter[str]) -> Iterator[Document]:
    """Yield the documents of one file, and add to `counts`. Raises DocumentError for a bad row with bad_rows "fail"."""
    document_of = row_reader(config, counts, values_in(path, config.path_keys) if config.path_keys else {})
    optional = () if config.metadata_columns == ALL else tuple(config.metadata_columns)
    for number, row in read_rows(path, _columns(config), optional):
        counts["documents"] += 1
        if type(row) is RepeatedKeys:
            counts["rows_with_repeated_keys"] += 1
        document = row if isinstance(row, BadRow) else document_of(row)
        if isinstance(document, BadRow):
            if config.bad_rows == "fail":
                raise DocumentError(f"{path!r} line {number} is not a document {_why_not(document, row, config)}")
            counts["rejected"] += 1
            counts[f"rejected_{document.reason}"] += 1
            continue
        counts["kept"] += 1
        counts["bytes"] += len(document.text.encode())
        yield document


def _why_not(bad: BadRow, row: Mapping[str, Any] | BadRow, config: IngestConfig) -> str:
    """Return the end of the sentence about a bad row. If it lacks a column, the name in the config may be wrong."""
    field = {"no_text": "text_column", "no_id": "id_column"}.get(bad.reason, "")
    column = getattr(config, field) if field else None
    if column is None or isinstance(row, BadRow) or column in row:
        return f"({bad.reason}: {bad.detail}). Fix it, or set bad_rows='reject'."
    return (
        f"({bad.reason}: it has {missing_column(column, row)}). Correct {field} or the row, or set bad_rows='reject'."
    )


def _columns(config: IngestConfig) -> list[str] | None:
    """Return the columns that a file of parquet must have; None reads all."""
    if config.metadata_columns == ALL:
        return None
    return list(dict.fromkeys(filter(None, [config.text_column, config.id_column])))


def row_reader(
    config: IngestConfig, counts: Counter[str], path_values: Mapping[str, str]
) -> Callable[[Mapping[str, Any]], Document | BadRow]:
    """Return the function from a row to its document, or to a BadRow with the reason. It adds to `counts`.

    `path_values` are those of `config.path_keys` in the path of the file.
    """
    from xxhash import xxh3_128_hexdigest

    longest = config.max_whitespace_run
    expected = frozenset[str]() if config.metadata_columns == ALL else frozenset(config.metadata_columns)
    long_run = re.compile(rf"\s{{{longest + 1},}}") if longest else None

    def document_of(row: Mapping[str, Any]) -> Document | BadRow:
        text = row.get(config.text_column)
        if text is None:
            columns = ", ".join(map(repr, row)) or "none"
            return BadRow("no_text", f"{config.text_column!r} is missing or null, the columns are {columns}"[:500])
        if not isinstance(text, str):
            return BadRow("text_not_a_string", f"{config.text_column!r} is {text!r:.80} of type {type(text).__name__}")
        if not text.strip():
            return BadRow("empty", f"{config.text_column!r} is {text!r:.80}")
        if long_run:
            text, cut = long_run.subn(lambda run: run[0][:longest], text)
            counts["whitespace_runs_cut"] += cut
        id = xxh3_128_hexdigest(text.encode()) if config.id_column is None else given_id(row.get(config.id_column))
        metadata = metadata_of(row, config)
        if id is None:
            return BadRow("no_id", f"{config.id_column!r} is {row.get(config.id_column or '')!r:.80}")
        if isinstance(metadata, BadRow):
            return metadata
        for name in expected.difference(row):
            counts[f"{WITHOUT}{name}"] += 1
        if config.path_keys is not None:
            if different := [key for key, value in path_values.items() if metadata.get(key, value) != value]:
                key = different[0]
                return BadRow("bad_metadata", f"{key!r} is {metadata[key]!r:.80}, and {path_values[key]!r} in the path")
            metadata = {f"{config.path_keys.metadata_prefix}{k}": v for k, v in {**metadata, **path_values}.items()}
            id = f"{path_values[config.path_keys.id_key]}/{id}" if config.path_keys.id_key else id
        return Document(id=id, text=text, source=config.source, metadata=metadata)

    return document_of


def given_id(value: Any) -> str | None:
    """Return the id in an id column, a string or an integer; None for any other value."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) and value else None


def metadata_of(row: Mapping[str, Any], config: IngestConfig) -> dict[str, Any] | BadRow:
    """Return the kept columns as JSON values, or a BadRow for a value without a JSON form."""
    names = config.metadata_columns
    if names == ALL:
        names = tuple(name for name in row if name not in (config.text_column, config.id_column))
    try:
        return {name: json_value(row[name]) for name in names if name in row}
    except TypeError as error:
        return BadRow("bad_metadata", f"{error}; name the columns to keep in metadata_columns")


def json_value(value: Any) -> Any:
    """Return a value of a parquet column or a line as JSON. Raises TypeError for a type without a JSON form: bytes."""
    import datetime
    import decimal

    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return str(value)
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    if isinstance(value, dict):
        return {str(key): json_value(item) for key, item in value.items()}
    raise TypeError(f"a value of type {type(value).__name__}, {value!r:.60}, has no JSON form")
