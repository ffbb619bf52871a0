"""Search the lines of a file for the row with an id. Only lines that have the id's letters are parsed.

A writer of JSON may escape any character of an id, and some escape "/", "<", "&" or what is not ASCII. Letters and
digits are escaped by none, except as "\\u0020" to "\\u007f": such lines are parsed too.
"""

from __future__ import annotations

import re

from marin_assets.documents.jsonl.json_line import LineParser
from marin_assets.documents.jsonl.lines import TooLong

PLAIN = re.compile(rb"[A-Za-z0-9_.:-]+")
ESCAPED = re.compile(rb"\\u00[2-7]")


class IdSearch:
    """Compares lines with one id."""

    def __init__(self, id: str) -> None:
        parts = sorted(PLAIN.findall(id.encode(errors="replace")), key=len, reverse=True)
        self._id, self._longest, self._others = id, parts[0] if parts else b"", parts[1:]
        self._parser = LineParser()

    def is_in(self, line: bytes | TooLong) -> bool:
        """Whether the line is a row whose "id" is the searched one."""
        if isinstance(line, TooLong) or not self._may_be_in(line):
            return False
        row = self._parser.row(line)
        return isinstance(row, dict) and row.get("id") == self._id

    def _may_be_in(self, line: bytes) -> bool:
        if self._longest in line and all(part in line for part in self._others):
            return True
        return b"\\u00" in line and ESCAPED.search(line) is not None
