"""The lines of a file that are rows, and the bytes by which a line may have a text: most lines need no parser."""

from __future__ import annotations

import json
from collections.abc import Iterator

from marin_assets.documents.jsonl.lines import TooLong, read_row_lines


def row_lines(path: str) -> Iterator[tuple[int, bytes | TooLong]]:
    """(number from 0, line) of the lines that are rows. Raises DocumentError."""
    return enumerate(line for _, line in read_row_lines(path))


def spellings_of(text: str) -> list[bytes]:
    """The bytes by which JSON writes a text, without its quotes. Escapes that nobody needs, as \\u0061, are none."""
    written = {json.dumps(text, ensure_ascii=False), json.dumps(text), json.dumps(text).replace("/", "\\/")}
    return [spelling[1:-1].encode("utf-8", "replace") for spelling in sorted(written)]
