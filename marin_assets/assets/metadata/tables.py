"""Tables of a result or a config, as a person would read them.

A table is a list of flat rows, or a mapping of names to flat mappings. A result such as

    {"by_reason": {"quality/low_quality": {"documents": 7, "bytes": 900}}, "generated": [{"prompt": "def", "text": …}]}

gives the tables "by_reason" and "generated". The page is narrow and cuts what is too wide, so numbers come first.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import dagster as dg

from marin_resources.types.digits import rounded

Row = Mapping[str, Any]

NAME = "name"
"""The column of a mapping's names, unless its rows have such a column."""
MAX_ROWS = 50
"""The rest of a longer table is in the results, on the same page."""
MAX_CHARACTERS = 400
"""Longest text of one cell. Dagster's database stores each table once for every materialization."""


def tables_of(result: Mapping[str, Any]) -> dict[str, dg.MetadataValue]:
    """The tables of a result, by their names in it."""
    tables: dict[str, dg.MetadataValue] = {}
    for name, value in result.items():
        if rows := _rows_of(value):
            more = f" (first {MAX_ROWS} of {len(rows)})" if len(rows) > MAX_ROWS else ""
            tables[f"{name}{more}"] = table(rows[:MAX_ROWS])
    return tables


def config_table(config: Any, versioned: Iterable[str]) -> dg.MetadataValue:
    """The fields of a config with their values, and whether a field enters the version.

    `versioned` are the dotted names of those that do. A config that is no mapping is shown as JSON.
    """
    if not isinstance(config, Mapping) or not config:
        return dg.MetadataValue.json(config if isinstance(config, Mapping | list) else {"config": config})
    names = list(versioned)
    return table(
        [{"field": name, "value": value, "in the version": _covers(name, names)} for name, value in _leaves(config)]
    )


def table(rows: Sequence[Row]) -> dg.MetadataValue:
    """Dagster's table of these rows. A column has the keys of all rows, in the order in which they appear."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    return dg.MetadataValue.table(
        [dg.TableRecord({key: _cell(row.get(key)) for key in columns}) for row in rows],
        dg.TableSchema([dg.TableColumn(key, _type(row.get(key) for row in rows)) for key in columns]),
    )


def _rows_of(value: Any) -> list[Row]:
    """The rows of a value that is a table; none for any other value."""
    if isinstance(value, list) and value and all(_is_row(row) for row in value):
        return list(value)
    if isinstance(value, Mapping) and value and all(_is_row(row) for row in value.values()):
        return _turned(value) if len(value) < _width(value.values()) else _named(value)
    return []


def _is_row(value: Any) -> bool:
    return isinstance(value, Mapping) and bool(value) and not any(isinstance(v, Mapping | list) for v in value.values())


def _width(rows: Iterable[Row]) -> int:
    return len({key for row in rows for key in row})


def _named(rows: Mapping[str, Row]) -> list[Row]:
    column = _free_column(key for row in rows.values() for key in row)
    return [{**row, column: name} for name, row in rows.items()]


def _turned(columns: Mapping[str, Row]) -> list[Row]:
    """A row for each key of the inner mappings: two tasks with twenty metrics are read from top to bottom."""
    keys = dict.fromkeys(key for column in columns.values() for key in column)
    first = _free_column(columns)
    return [{first: key, **{name: column.get(key) for name, column in columns.items()}} for key in keys]


def _free_column(taken: Iterable[str]) -> str:
    """NAME, with underscores if a column of that name exists."""
    names, free = set(taken), NAME
    while free in names:
        free += "_"
    return free


def _leaves(config: Mapping[str, Any], at: str = "") -> Iterable[tuple[str, Any]]:
    for key, value in config.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{at}{key}.")
        else:
            yield f"{at}{key}", value


def _covers(name: str, versioned: Sequence[str]) -> bool:
    return any(name == other or other.startswith(f"{name}.") or name.startswith(f"{other}.") for other in versioned)


def _cell(value: Any) -> str | int | float | bool:
    if value is None:
        return ""
    if isinstance(value, int | float):
        return rounded(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"{text[:MAX_CHARACTERS]} …" if len(text) > MAX_CHARACTERS else text


def _type(values: Iterable[Any]) -> str:
    kinds = {type(value) for value in values}
    if kinds == {bool}:
        return "bool"
    if kinds == {int}:
        return "int"
    return "float" if kinds and kinds <= {int, float} else "string"
