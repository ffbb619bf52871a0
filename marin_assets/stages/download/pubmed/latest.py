"""Texts that occur several times: the latest file has the valid one, and may remove it.

Each text has a number, its PMID or PMCID. Files are in the order of their publication. A number belongs to the last
file that names it; within that file to the greatest version, of equal ones to the last row. A file that deletes a
number deletes it from itself and from all files before it.

Exact in bounded memory: a table has 4 bytes for each number up to the greatest, 160 MB for all of PubMed and 400 MB at
most, whatever the number of files. The rows of one file at a time are read beside it.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from marin_resources.storage.files import read_bytes, write_bytes

MAX_NUMBER = 99_999_999
"""NLM: a PMID has one to eight digits."""
VALID, SUPERSEDED, DELETED = 0, 1, 2
REASONS = ("superseded", "deleted")
"""Names of SUPERSEDED and DELETED."""


@dataclass(kw_only=True)
class Numbers:
    """The numbers that one file names."""

    rows: array[int] = field(default_factory=lambda: array("q"))
    """Number, version, and the row in the parts, -1 for a text without one."""
    deleted: array[int] = field(default_factory=lambda: array("q"))
    parts: list[int] = field(default_factory=list)
    """Rows of each part."""

    def add(self, number: int, version: int, row: int) -> None:
        self.rows.extend((number, version, row))

    def write(self, path: str) -> None:
        head = json.dumps({"parts": self.parts, "deleted": len(self.deleted)}).encode()
        write_bytes(path, head + b"\n" + self.deleted.tobytes() + self.rows.tobytes())


def read_numbers(path: str) -> Numbers:
    head, _, content = read_bytes(path).partition(b"\n")
    facts = json.loads(head)
    values = array("q", content)
    deleted = facts["deleted"]
    return Numbers(rows=values[deleted:], deleted=values[:deleted], parts=facts["parts"])


class Owners:
    """The table: for each number the last file that names it, and whether it deletes it."""

    def __init__(self, paths: Sequence[str]) -> None:
        """`paths`: files of Numbers, in the order of publication."""
        import numpy as np

        self._table: Any = np.zeros(MAX_NUMBER + 1, np.uint32)  # pages of it that stay 0 take no memory
        for place, path in enumerate(paths):
            numbers = read_numbers(path)
            self._table[_columns(numbers)[:, 0]] = 2 * (place + 1)
            self._table[np.array(numbers.deleted, dtype=np.int64)] = 2 * (place + 1) + 1

    def states(self, place: int, numbers: Numbers) -> bytes:
        """For each row of the parts of the file at a place one byte: VALID, SUPERSEDED or DELETED."""
        import numpy as np

        rows = _columns(numbers)
        owners = self._table[rows[:, 0]]
        states = np.where(owners == 2 * (place + 1), VALID, np.where(owners % 2 == 1, DELETED, SUPERSEDED))
        order = np.lexsort((rows[:, 1], rows[:, 0]))  # stable: the last of equal rows stays last
        ordered = rows[order, 0]
        is_repeated = np.zeros(len(rows), dtype=bool)
        is_repeated[order[:-1]] = ordered[:-1] == ordered[1:]
        states[is_repeated & (states == VALID)] = SUPERSEDED
        return bytes(states[rows[:, 2] >= 0].astype(np.uint8))


def _columns(numbers: Numbers) -> Any:
    import numpy as np

    return np.array(numbers.rows, dtype=np.int64).reshape(-1, 3)
