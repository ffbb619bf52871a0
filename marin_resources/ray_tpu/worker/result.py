"""The result of a step's function, as the record of its output holds it: JSON, and small."""

from __future__ import annotations

import dataclasses
import json
import reprlib
from collections.abc import Mapping
from typing import Any

from marin_resources.wire.config_json import encode, plain

MAX_RESULT_BYTES = 1_000_000
"""Of a function's result as JSON. Each reuse of the output copies it into Dagster's history."""


def jsonable(result: Any) -> dict[str, Any]:
    """Return a function's result as the record holds it. Raises TypeError or ValueError for a value without JSON."""
    if result is None:
        return {}
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        result = plain(encode(result, "result"))
    if not isinstance(result, Mapping):
        raise TypeError(f"The function returned {reprlib.repr(result)}, expected a dict, a dataclass or None.")
    return plain(encode(dict(result), "result"))


def require_small(result: dict[str, Any]) -> dict[str, Any]:
    """Return the result. Raises ValueError with its size if it is too large for a record, which every reuse reads."""
    size_bytes = len(json.dumps(result).encode())
    if size_bytes > MAX_RESULT_BYTES:
        raise ValueError(
            f"The function returned {size_bytes / 1e6:.1f} MB, expected at most {MAX_RESULT_BYTES / 1e6:g} MB. Write "
            "it into a file below the output path, and return the few numbers that describe it."
        )
    return result
