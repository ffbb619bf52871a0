"""The last line of a growing log, or its last lines: the state of an attempt, without reading all of its output."""

from __future__ import annotations

import os

from marin_resources.ray_tpu.log.attempt_log import local_log, visible
from marin_resources.storage.files import open_to_read, read_from, size_of
from marin_resources.storage.paths import is_local

TAIL_BYTES = 4096
LINES_BYTES = 32 * 1024


def last_line(path: str) -> str:
    """The last line with a word in it; empty without such a line or a log. Raises what the store raises."""
    lines = [visible(line).strip() for line in _tail(path).split(b"\n")]
    return next((line for line in reversed(lines) if line), "")


def last_lines(path: str, most: int) -> list[str]:
    """The last lines, at most `most` and at most 32 KiB of them, each whole; none without a log. Raises what the store
    raises."""
    data = _tail(path, LINES_BYTES + 1)
    lines = data.split(b"\n")
    whole = lines[1:] if len(data) > LINES_BYTES else lines
    shown = [visible(line).rstrip() for line in whole]
    while shown and not shown[-1]:
        shown.pop()
    return shown[-most:]


def _tail(path: str, most_bytes: int = TAIL_BYTES) -> bytes:
    try:
        with open_to_read(local_log(path)) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - most_bytes))
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        if is_local(path):
            return b""
    try:
        return read_from(path, max(0, size_of(path) - most_bytes))
    except FileNotFoundError:
        return b""
