"""The tables of rollouts by their small columns alone, and a few rollouts to read, chosen by these.

In:  `rollouts/` of a training, also of one under way.   Out: rows without texts and tokens, numbers of some of them.
A training of a thousand steps has rollouts of gigabytes, of which these columns are some megabytes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from marin_assets.documents.document import BadRow, DocumentError
from marin_assets.documents.parquet.read import read_chosen_parquet, read_parquet
from marin_assets.stages.train.rl.rollout import FOLDER
from marin_resources.storage.files import names_in
from marin_resources.storage.paths import join


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_reward(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and math.isfinite(value))


SMALL: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("id", "lesson", "finish", "reason"), _is_text),
    **dict.fromkeys(("step", "group", "member", "weights_step"), _is_count),
    "reward": _is_reward,
    "used": lambda value: isinstance(value, bool),
}
"""Columns, and whether a value is one of it: a table may be that of a stranger."""
PARTS = 4
LESSONS = 3
"""Lessons of a step of which rollouts are read."""
COMBINED = re.compile(r"steps-(\d+)-(\d+)\.parquet")
OF_A_STEP = re.compile(r"step-(\d+)\.parquet")

SmallRow = Mapping[str, Any]


def tables_in(output_path: str) -> list[str]:
    """The paths of the tables, by step. One of a step that is in a combined one too, as a kill may leave, is left
    out."""
    folder = join(output_path, FOLDER)
    names = sorted(name for name in names_in(folder) if name.endswith(".parquet") and not name.startswith("."))
    ranges = [range(int(match[1]), int(match[2]) + 1) for name in names if (match := COMBINED.fullmatch(name))]

    def is_double(name: str) -> bool:
        match = OF_A_STEP.fullmatch(name)
        return match is not None and any(int(match[1]) in steps for steps in ranges)

    return [join(folder, name) for name in sorted(names, key=_first_step) if not is_double(name)]


def read_small(path: str) -> list[SmallRow]:
    """The rows of a table by SMALL. Raises DocumentError for a damaged one."""
    rows: list[SmallRow] = []
    try:
        numbered = list(read_parquet(path, list(SMALL)))
    except DocumentError:
        if next(iter(read_parquet(path, None)), None) is None:  # of a step without new rollouts: it has no columns
            return rows
        raise
    for number, row in numbered:
        if isinstance(row, BadRow) or not all(is_kind(row[name]) for name, is_kind in SMALL.items()):
            raise DocumentError(f"Row {number} of {path!r} is no rollout: {row!r:.300}. Compute the output again.")
        rows.append(row)
    return rows


def steps_to_read(steps: Sequence[int]) -> list[int]:
    """The first of these steps, that at each quarter, and the last; without repetition."""
    last = len(steps) - 1
    return list(dict.fromkeys(steps[round(part * last / PARTS)] for part in range(PARTS + 1))) if steps else []


def choose_to_read(rows: Sequence[SmallRow]) -> list[int]:
    """The indices of rollouts that show what is learnt: at each of five steps, of the first group of at most LESSONS
    lessons, the one with the highest reward and the one with the lowest."""
    groups: dict[int, dict[str, list[int]]] = {}
    for index, row in enumerate(rows):
        lessons = groups.setdefault(row["step"], {})
        first = lessons.setdefault(row["lesson"], [])
        if not first or rows[first[0]]["group"] == row["group"]:
            first.append(index)
    chosen = []
    for step in steps_to_read(sorted(groups)):
        for lesson in sorted(groups[step])[:LESSONS]:
            chosen += _ends(rows, groups[step][lesson])
    return chosen


def rows_to_read(tables: Mapping[str, Sequence[SmallRow]]) -> Iterator[tuple[str, int, Mapping[str, Any]]]:
    """Yield path, number and all columns of the chosen rollouts. `tables`: small rows by path. Raises DocumentError."""
    places = [(path, number) for path, rows in tables.items() for number in range(len(rows))]
    chosen = choose_to_read([tables[path][number] for path, number in places])
    numbers: dict[str, list[int]] = {}
    for path, number in (places[index] for index in sorted(chosen)):
        numbers.setdefault(path, []).append(number)
    for path, these in numbers.items():
        for number, row in read_chosen_parquet(path, these):
            if isinstance(row, BadRow):
                raise DocumentError(f"Row {number} of {path!r} is damaged ({row.reason}). Compute the output again.")
            yield path, number, row


def _ends(rows: Sequence[SmallRow], group: Sequence[int]) -> list[int]:
    graded = [index for index in group if rows[index]["reward"] is not None]
    if not graded:
        return list(group[:1])
    best, worst = (end(graded, key=lambda index: rows[index]["reward"]) for end in (max, min))
    return [best] if rows[best]["reward"] == rows[worst]["reward"] else [best, worst]


def _first_step(name: str) -> tuple[int, str]:
    match = COMBINED.fullmatch(name) or OF_A_STEP.fullmatch(name)
    return (int(match[1]) if match else 0, name)
