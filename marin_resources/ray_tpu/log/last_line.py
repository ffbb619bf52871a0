"""The last line of a growing log: the state of an attempt, without reading all of its output."""

from __future__ import annotations

import os

from marin_resources.ray_tpu.log.attempt_log import local_log, visible
from marin_resources.storage.files import read_from, size_of
from marin_resources.storage.paths import is_local

TAIL_BYTES = 4096


def last_line(path: str) -> str:
    """The last line with a word in it; empty without such a line or a log. Raises what the store raises."""
    lines = [visible(line).strip() for line in _tail(path).split(b"\n")]
    return next((line for line in reversed(lines) if line), "")


def _tail(path: str) -> bytes:
    try:
        with open(local_log(path), "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        if is_local(path):
            return b""
    try:
        return read_from(path, max(0, size_of(path) - TAIL_BYTES))
    except FileNotFoundError:
        return b""
