"""The formats of files of rows, by the ends of their names: lines of JSON, plain or compressed, and parquet.

Upper and lower case are the same.
"""

from __future__ import annotations

from marin_assets.documents.document import DocumentError
from marin_resources.types.near_names import expected_one_of

FORMATS = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".parquet")
"""The formats that stages write. They read some more."""
COMPRESSIONS = (".gz", ".zst", ".bz2", ".xz")
ZSTD = ".zstd"
"""Another ending of ".zst": Nemotron-CC's."""
READABLE = (
    *(f"{lines}{compression}" for lines in (".jsonl", ".ndjson") for compression in ("", *COMPRESSIONS, ZSTD)),
    *(f".json{compression}" for compression in (*COMPRESSIONS, ZSTD)),
    ".parquet",
)
"""The formats that stages read. Corpora such as C4 and Dolma name compressed lines ".json.gz". A plain ".json" is not
read: beside documents it is one value, such as a report."""


def is_readable(name: str) -> bool:
    """Whether the name ends with one of READABLE."""
    return name.lower().endswith(READABLE)


def format_of(path: str) -> str:
    """Return the format of a file by its name, in lower case. Raises DocumentError for a name without one."""
    for suffix in READABLE:
        if path.lower().endswith(suffix):
            return suffix
    raise DocumentError(f"{path!r} has an unknown format, expected one of {', '.join(READABLE)}. Rename or convert it.")


def compression_of(path: str) -> str:
    """Return the last of COMPRESSIONS in the name, or "" if the file is not compressed."""
    name = path.lower()
    return ".zst" if name.endswith(ZSTD) else next((suffix for suffix in COMPRESSIONS if name.endswith(suffix)), "")


def without_format(name: str) -> str:
    """Return the name without its format."""
    return name[: -len(format_of(name))]


def check_format(output_format: str) -> None:
    """Raise DocumentError for a format that cannot be written."""
    if output_format not in FORMATS:
        raise DocumentError(f"output_format is {output_format!r}, {expected_one_of(output_format, FORMATS)}")
