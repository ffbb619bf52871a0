"""Parse a line of JSON to a row, or to the reason why it is none."""

from __future__ import annotations

import json
import re
from typing import Any

from marin_assets.documents.document import BadRow
from marin_assets.documents.jsonl.lines import MAX_LINE_BYTES, TooLong

HALF_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
"""An escaped half of a surrogate pair; the other half may follow."""
WHITESPACE = " \t\r"


class RepeatedKeys(dict[str, Any]):
    """A row whose text has a key twice in one object. Of each key it has the last value, as in Python."""


class LineParser:
    """Parses the lines of one file. A repeated key is noticed at the cost of a call for each object."""

    def __init__(self) -> None:
        repeated: list[bool] = []

        def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            value = dict(pairs)
            if len(value) != len(pairs):
                repeated.append(True)
            return value

        self._repeated = repeated
        self._decoder = json.JSONDecoder(object_pairs_hook=object_of)
        # JSONDecoder.decode takes 0.6 µs a line more, for whitespace
        self._scan = self._decoder.scan_once  # type: ignore[attr-defined]

    def row(self, line: bytes | TooLong) -> dict[str, Any] | BadRow:
        if isinstance(line, TooLong):
            return BadRow("too_long", f"a line of more than {MAX_LINE_BYTES:,} bytes")
        self._repeated.clear()
        try:
            row = self._value(line.decode())
            if HALF_SURROGATE.search(line):
                json.dumps(row, ensure_ascii=False).encode()  # raises for half of a surrogate pair
        except UnicodeError as error:
            return BadRow("invalid_utf8", str(error))
        except (ValueError, RecursionError) as error:
            return BadRow("invalid_json", str(error))
        if not isinstance(row, dict):
            return BadRow("not_an_object", f"JSON of type {type(row).__name__}")
        return RepeatedKeys(row) if self._repeated else row

    def _value(self, text: str) -> Any:
        try:
            value, end = self._scan(text, 0)
        except StopIteration:  # whitespace before the value, or no value
            return self._decoder.decode(text)
        return value if end == len(text) or not text[end:].strip(WHITESPACE) else self._decoder.decode(text)
