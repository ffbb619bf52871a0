"""The values of rows by their field, as numbers, lengths and categories; others are counted by their kind.

In:  rows, one by one.   Out: their fields.   Memory: 16 bytes a value of each field, and a limited number of texts.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from marin_assets.browse.cells.tree import POINTER_CHARACTERS, escaped
from marin_assets.browse.rows.measure import EXACT, MISSING, category_of, length_of, number_of

MOST_FIELDS = 40
MOST_CATEGORIES = 500
"""Different texts of a field; with more it has no categories."""
CATEGORY_CHARACTERS = 200
FEW = 20
"""Different texts of a field that are always categories; more are only if five rows in the mean share each."""
ROWS_OF_A_CATEGORY = 5
ROW_BITS = 40
DEEP = 2
"""Levels of objects whose values are fields, such as those of `metadata`."""
MISSED, NULL, NAN = "missing", "null", "NaN"
ID = "/id"
INFINITE = {True: "infinity", False: "-infinity"}
LARGE = "whole numbers over 2^53"


@dataclass
class Field:
    """The values of one field."""

    pointer: str
    numbers: array[float] = field(default_factory=lambda: array("d"))
    """The finite numbers, without whole ones over 2**53."""
    places: array[int] = field(default_factory=lambda: array("q"))
    """The file and the row of each number: see `file_and_row`."""
    is_whole: bool = True
    lengths: array[float] = field(default_factory=lambda: array("d"))
    categories: Counter[str] | None = field(default_factory=Counter)
    """The texts and truths; None if too many differ."""
    special: Counter[str] = field(default_factory=Counter)
    """Values that are in no histogram, by their kind."""
    seen: int = 0
    """Rows that have the field."""

    def add(self, value: Any, place: int) -> None:
        self.seen += 1
        number = number_of(value)
        if number is not None:
            self._add_number(number, place)
            return
        length = length_of(value)
        if length is not None:
            self.lengths.append(length)
        category = category_of(value)
        if category is not None:
            self._add_category(category)
        elif value is None:
            self.special[NULL] += 1
        elif length is None:
            self.special[f"values of the type {type(value).__name__}"] += 1

    @property
    def has_categories(self) -> bool:
        """Whether its texts and truths are few enough for a bar each."""
        if not self.categories:
            return False
        return len(self.categories) <= max(FEW, self.categories.total() // ROWS_OF_A_CATEGORY)

    def _add_number(self, number: int | float, place: int) -> None:
        if isinstance(number, int):
            if abs(number) > EXACT:
                self.special[LARGE] += 1
                return
        elif not math.isfinite(number):
            self.special[NAN if math.isnan(number) else INFINITE[number > 0]] += 1
            return
        elif self.is_whole and (abs(number) > EXACT or not number.is_integer()):
            self.is_whole = False
        self.numbers.append(number)
        self.places.append(place)

    def _add_category(self, category: str) -> None:
        if self.categories is None:
            return
        if len(category) > CATEGORY_CHARACTERS:
            self.categories = None
            return
        self.categories[category] += 1
        if len(self.categories) > MOST_CATEGORIES:
            self.categories = None


class Fields:
    """The fields of many rows: a chosen one, or all down to DEEP."""

    def __init__(self, pointer: str = "") -> None:
        self._pointer = pointer
        self.fields: dict[str, Field] = {pointer: Field(pointer)} if pointer else {}
        self.left_out: dict[str, None] = {}
        """Fields beyond MOST_FIELDS, of which as many are named."""
        self.rows = 0

    def add(self, row: Mapping[str, Any], value: Any, file: int, number: int) -> None:
        """Add a row. `value`: that of the one field, if one is chosen; MISSING without it."""
        self.rows += 1
        place = (file << ROW_BITS) + number
        if not self._pointer:
            self._add_all(row, "", place, 1)
        elif value is not MISSING:
            self.fields[self._pointer].add(value, place)

    def finish(self) -> list[Field]:
        """The fields, ids last, with the rows that do not have them counted."""
        for one_field in self.fields.values():
            if self.rows > one_field.seen:
                one_field.special[MISSED] = self.rows - one_field.seen
        return sorted(self.fields.values(), key=lambda one_field: one_field.pointer == ID)

    def _add_all(self, row: Mapping[str, Any], above: str, place: int, depth: int) -> None:
        for key, value in row.items():
            pointer = f"{above}/{escaped(str(key))}"
            if isinstance(value, dict) and value and depth < DEEP:
                self._add_all(value, pointer, place, depth + 1)
                continue
            entry = self.fields.get(pointer)
            if entry is None:
                if len(self.fields) >= MOST_FIELDS or len(pointer) > POINTER_CHARACTERS:
                    if len(self.left_out) < MOST_FIELDS:
                        self.left_out[pointer[:POINTER_CHARACTERS]] = None
                    elif len(row) > MOST_FIELDS:
                        return  # a row of 100,000 keys: the others are too many as well
                    continue
                entry = self.fields[pointer] = Field(pointer)
            entry.add(value, place)


def file_and_row(place: int) -> tuple[int, int]:
    """The index of the file and the number of the row of a place."""
    return place >> ROW_BITS, place & (2**ROW_BITS - 1)
