"""Rows drawn at random from many files: each row with the same probability, and the same rows for the same seed."""

from __future__ import annotations

import random
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, islice

from marin_assets.browse.rows.lines import row_lines
from marin_assets.browse.rows.reader import PAGE_CHARACTERS, PARQUET, Row, characters_of
from marin_assets.documents.formats import format_of
from marin_assets.documents.frames.index import IndexedShard, open_indexed
from marin_assets.documents.jsonl.json_line import LineParser
from marin_assets.documents.jsonl.lines import TooLong
from marin_assets.documents.parquet.read import read_chosen_parquet


def draw(rows: Sequence[int], count: int, seed: int) -> list[tuple[int, int]]:
    """At most `count` pairs (file, row) without repetition, in order. `rows` are the rows of each file."""
    ends = list(accumulate(rows))
    total = ends[-1] if ends else 0
    chosen = sorted(random.Random(seed).sample(range(total), min(count, total)))
    files = [bisect_right(ends, position) for position in chosen]
    return [(file, position - (ends[file] - rows[file])) for file, position in zip(files, chosen, strict=True)]


def rows_at(path: str, numbers: Sequence[int]) -> Mapping[int, Row]:
    """The rows of a file with these numbers, which are in order. Raises DocumentError.

    Rows are left out when those before have more than PAGE_CHARACTERS.
    """
    read: dict[int, Row] = {}
    characters = 0
    for number, row in chosen_rows(path, numbers):
        read[number] = row
        characters += characters_of(row)
        if characters > PAGE_CHARACTERS:
            break
    return read


def chosen_rows(path: str, numbers: Sequence[int]) -> Iterator[tuple[int, Row]]:
    """Yield (number, row) of the rows with these numbers, which are in order. Raises DocumentError.

    Only frames and row groups with such rows are read, each once. A file of neither is read once.
    """
    if format_of(path) == PARQUET:
        yield from read_chosen_parquet(path, numbers)
        return
    indexed, parser = open_indexed(path), LineParser()
    lines = _lines_until(path, numbers[-1:]) if indexed is None else _lines_of_frames(indexed, numbers)
    chosen = set(numbers)
    for number, line in lines:
        if number in chosen:
            yield number, parser.row(line)


def count_lines(path: str) -> int:
    """The rows of a file of lines, by reading it. Raises DocumentError."""
    return sum(1 for _ in row_lines(path))


def _lines_until(path: str, last: Sequence[int]) -> Iterator[tuple[int, bytes | TooLong]]:
    return islice(row_lines(path), last[0] + 1) if last else iter(())


def _lines_of_frames(indexed: IndexedShard, numbers: Sequence[int]) -> Iterator[tuple[int, bytes | TooLong]]:
    """The lines from the first to the last chosen one of each frame that has one."""
    first_rows, place = indexed.index.first_rows, 0
    while place < len(numbers) and numbers[place] < indexed.index.rows:
        end = bisect_left(numbers, first_rows[bisect_right(first_rows, numbers[place])], place)
        first, last = numbers[place], numbers[end - 1]
        yield from enumerate(indexed.lines(first, last - first + 1), start=first)
        place = end
