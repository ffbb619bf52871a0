"""The lines of a file that are rows, and the bytes by which a line may have a text: most lines need no parser."""

from __future__ import annotations

import json
from collections.abc import Iterator

from marin_assets.documents.jsonl.lines import TooLong, read_lines
from marin_assets.documents.rows import BYTE_ORDER_MARK


def row_lines(path: str) -> Iterator[tuple[int, bytes | TooLong]]:
    """(number from 0, line) of the lines that are rows: a blank one is none. Raises DocumentError."""
    number = 0
    for place, line in read_lines(path):
        if place == 1 and isinstance(line, bytes):
            line = line.removeprefix(BYTE_ORDER_MARK)
        if isinstance(line, TooLong) or line.strip():
            yield number, line
            number += 1


def spellings_of(text: str) -> list[bytes]:
    """The bytes by which JSON writes a text, without its quotes. Escapes that nobody needs, as \\u0061, are none."""
    written = {json.dumps(text, ensure_ascii=False), json.dumps(text), json.dumps(text).replace("/", "\\/")}
    return [spelling[1:-1].encode("utf-8", "replace") for spelling in sorted(written)]
