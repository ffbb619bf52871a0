"""Write rows of evaluations as JSONL. Unlike `documents.write_rows`, it accepts NaN and infinite numbers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from marin_resources.storage.files import open_atomic


def write_jsonl(path: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write one JSON object a line, atomically."""
    with open_atomic(path) as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
