"""Rows drawn at random from many files: each row with the same probability, and the same rows for the same seed."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate

from marin_assets.browse.rows.lines import row_lines
from marin_assets.browse.rows.reader import PAGE_CHARACTERS, PARQUET, Row, read_page
from marin_assets.documents.formats import format_of
from marin_assets.documents.jsonl.json_line import LineParser


def draw(rows: Sequence[int], count: int, seed: int) -> list[tuple[int, int]]:
    """At most `count` pairs (file, row) without repetition, in order. `rows` are the rows of each file."""
    ends = list(accumulate(rows))
    total = ends[-1] if ends else 0
    chosen = sorted(random.Random(seed).sample(range(total), min(count, total)))
    files = [bisect_right(ends, position) for position in chosen]
    return [(file, position - (ends[file] - rows[file])) for file, position in zip(files, chosen, strict=True)]


def rows_at(path: str, numbers: Sequence[int]) -> Mapping[int, Row]:
    """The rows of a file with these numbers, which are in order. A file without an index is read once.

    Rows are left out when those before have more than PAGE_CHARACTERS. Raises DocumentError.
    """
    read: dict[int, Row] = {}
    for place, number in enumerate(numbers):
        page = read_page(path, start=number, count=1)
        read.update(zip((number,), page.rows, strict=False))
        if page.skipped and numbers[place + 1 :] and format_of(path) != PARQUET:
            return read | _in_one_pass(path, numbers[place + 1 :])
    return read


def count_lines(path: str) -> int:
    """The rows of a file of lines, by reading it. Raises DocumentError."""
    return sum(1 for _ in row_lines(path))


def _in_one_pass(path: str, numbers: Sequence[int]) -> dict[int, Row]:
    chosen, parser, read, characters = set(numbers), LineParser(), dict[int, Row](), 0
    for number, line in row_lines(path):
        if number in chosen:
            read[number] = parser.row(line)
            characters += len(line) if isinstance(line, bytes) else 0
            if number == numbers[-1] or characters > PAGE_CHARACTERS:
                break
    return read
