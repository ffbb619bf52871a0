"""`.marin/attempts/<n>.json` and `<n>.log`: every try at an output, who made it, how it ended, and what it printed.

The number is the attempt's fence: it only grows, and one writer has it. The mark is also how we know that files
beside it are ours.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from marin_resources.storage.files import filesystem_of, join, read_json, write_json

FOLDER = ".marin/attempts"
FORMAT_VERSION = 1


def latest_attempt(output_path: str) -> int:
    """The number of the latest attempt, 0 if there was none."""
    fs, folder = filesystem_of(join(output_path, FOLDER))
    try:
        names = [os.path.basename(name) for name in fs.ls(folder, detail=False)]
    except (FileNotFoundError, NotADirectoryError):
        return 0
    return max((int(name.removesuffix(".json")) for name in names if name.removesuffix(".json").isdigit()), default=0)


def log_path(output_path: str, attempt: int) -> str:
    return join(output_path, FOLDER, f"{attempt}.log")


def read_attempt(output_path: str, attempt: int) -> dict[str, Any]:
    return read_json(join(output_path, FOLDER, f"{attempt}.json"))


def begin_attempt(output_path: str, attempt: int, facts: Mapping[str, Any]) -> None:
    """Put the mark of a new attempt. Raises FileExistsError if the number is taken."""
    fs, path = filesystem_of(join(output_path, FOLDER, f"{attempt}.json"))
    fs.makedirs(os.path.dirname(path), exist_ok=True)
    with fs.open(path, "xb") as file:
        file.write(json.dumps({"format_version": FORMAT_VERSION, "attempt": attempt, **facts}, indent=2).encode())


def end_attempt(output_path: str, attempt: int, facts: Mapping[str, Any]) -> None:
    """Add how the attempt ended to its mark."""
    write_json(join(output_path, FOLDER, f"{attempt}.json"), {**read_attempt(output_path, attempt), **facts})
