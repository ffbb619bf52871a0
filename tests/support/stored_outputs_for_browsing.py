"""Complete outputs with rows, as steps leave them: status, record, notes of shards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from marin_assets.documents.rows import write_rows
from marin_resources.storage.files import write_bytes, write_json
from marin_resources.storage.paths import join

NOW = 1767323045
"""Time of the markers, in seconds since 1970."""


def store_output(
    prefix: str,
    name: str,
    files: Mapping[str, Iterable[Mapping[str, Any]]],
    *,
    status: str = "SUCCESS",
    reads: Sequence[str] = (),
    config: Mapping[str, Any] | None = None,
    version: str = "abc123",
    fn_name: str = "toy:write",
    result: Mapping[str, Any] | None = None,
    age_s: int = 0,
) -> str:
    """Write the rows of each file, and the control files of the output, whose marker is `age_s` seconds older than
    those of others; return its path below the prefix."""
    below = f"{name}-{version}"
    path = join(prefix, below)
    for file, rows in files.items():
        write_rows(join(path, file), rows)
    record = {
        "format_version": 1,
        "name": name,
        "prefix": prefix,
        "output_path": path,
        "dependencies": [join(prefix, read) for read in reads],
        "config": dict(config or {}),
        "finished_at": "2026-01-02T03:04:05+00:00",
        "fn_name": fn_name,
        **({} if result is None else {"result": dict(result)}),
    }
    write_json(join(path, ".executor_info"), record)
    write_bytes(join(path, ".executor_status"), status.encode())
    if status == "SUCCESS":
        marker = f"{below}.0123456789abcdef.1.{len(files)}.100.{NOW - age_s}"
        write_bytes(join(prefix, ".marin/complete", marker), b"")
    return below
