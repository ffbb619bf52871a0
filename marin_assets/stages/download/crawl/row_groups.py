"""The row groups of a table of captures that can match a query, by their statistics.

Common Crawl's tables are sorted by url_surtkey, the key of the CDX index, so a query for a domain reads few of the row
groups of a table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

KEY, STATUS = "url_surtkey", "fetch_status"


def row_groups(metadata: Any, ranges: Sequence[tuple[str, str]], statuses: Sequence[int]) -> list[int]:
    """Return the numbers of the row groups whose least and greatest values do not exclude a match.

    `metadata` is parquet's; `ranges` are those of keys, from the first to below the second, () for all. Values that
    are None, and a table without a column or its statistics, exclude nothing.
    """

    def has_key(least: str, greatest: str) -> bool:
        return any(first <= greatest and least < behind for first, behind in ranges)

    def has_status(least: int, greatest: int) -> bool:
        return any(least <= status <= greatest for status in statuses)

    tests: list[tuple[str, type, Callable[[Any, Any], bool]]] = []
    tests += [(KEY, str, has_key)] if ranges else []
    tests += [(STATUS, int, has_status)] if statuses else []
    return [
        number
        for number in range(metadata.num_row_groups)
        if all(_permits(metadata.row_group(number), *test) for test in tests)
    ]


def _permits(group: Any, name: str, kind: type, test: Callable[[Any, Any], bool]) -> bool:
    columns = (group.column(index) for index in range(group.num_columns))
    column = next((column for column in columns if column.path_in_schema == name), None)
    statistics = None if column is None else column.statistics
    if statistics is None or not statistics.has_min_max:
        return True
    if kind is int and statistics.null_count != 0:
        return True  # a missing status is 0
    least, greatest = statistics.min, statistics.max
    return not isinstance(least, kind) or not isinstance(greatest, kind) or test(least, greatest)
