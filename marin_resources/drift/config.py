"""Compare two configs field by field, with paths relative to the output, its inputs and the prefix.

A record holds the config that the function received, with full paths. Before the comparison the output's path, the
inputs' paths and the prefix are replaced by placeholders. So a moved prefix, or an output at another path, is not a
change of the config.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from marin_resources.types.record import Record

MIRROR = "mirror://"
"""Scheme of a path that may be read from another region."""


def differing_fields(record: Record, facts: Record) -> Iterator[tuple[str, Any, Any]]:
    """(field, before, now) for each difference. A field is "model.layers" or "sets.[0]"; a missing value is None."""
    if record.config == facts.config and _places(record) == _places(facts):  # of most outputs
        return
    prefix, numbers = _prefix_then(record, facts), _numbers(record)
    was = _fields(_at_home(record.config, record.data_prefix, prefix), _placeholders(record, prefix, numbers))
    today = str(facts.prefix)
    now = _fields(_at_home(facts.config, facts.data_prefix, today), _placeholders(facts, today, numbers))
    for field in sorted(was.keys() | now.keys()):
        if was.get(field) != now.get(field):
            yield field, was.get(field), now.get(field)


def fields_of(value: Any) -> dict[str, Any]:
    """Field -> value, of every leaf of a JSON value: "resources.cpus", "extras.[0]"."""
    return _fields(value, [])


def _places(record: Record) -> tuple[Any, ...]:
    """All that decides which parts of a config become placeholders."""
    return record.prefix, record.data_prefix, record.output_path, list(record.dependencies)


def _at_home(value: Any, data_prefix: str | None, prefix: str) -> Any:
    """A config with the paths below the prefix of a region as paths below the home prefix."""
    if data_prefix is None:
        return value
    if isinstance(value, Mapping):
        return {key: _at_home(item, data_prefix, prefix) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_at_home(item, data_prefix, prefix) for item in value]
    if isinstance(value, str) and (value == data_prefix or value.startswith(f"{data_prefix}/")):
        return prefix + value.removeprefix(data_prefix)
    return value


def _prefix_then(record: Record, facts: Record) -> str:
    """The record's prefix; for a record without one, its output path without the part below the prefix."""
    relative = str(facts.output_path).removeprefix(str(facts.prefix))
    return record.prefix or str(record.output_path or "").removesuffix(relative)


def _numbers(record: Record) -> list[int]:
    """The number of each input. Two that were read at one path, as one is adopted from the other, have one number."""
    paths = list(record.dependencies)
    return [paths.index(path) for path in paths]


def _placeholders(record: Record, prefix: str, numbers: list[int]) -> list[tuple[str, str]]:
    """(path, placeholder), the longest path first, as one may be below another."""
    paths = list(record.dependencies)
    if len(paths) != len(numbers):
        numbers = list(range(len(paths)))
    inputs = [(path, f"<input {number}>") for number, path in zip(numbers, paths, strict=True)]
    placeholders = [(str(record.output_path or ""), "<output>"), *inputs, (prefix, "<prefix>")]
    return sorted((place for place in placeholders if place[0]), key=lambda place: -len(place[0]))


def _fields(value: Any, placeholders: list[tuple[str, str]], field: str = "") -> dict[str, Any]:
    """Field -> value, of every leaf of a config."""
    if isinstance(value, Mapping) and value:
        parts = {f"{field}.{key}" if field else key: item for key, item in value.items()}
    elif isinstance(value, list | tuple) and value:
        parts = {f"{field}.[{i}]" if field else f"[{i}]": item for i, item in enumerate(value)}
    else:
        return {field: _with_placeholder(value, placeholders) if isinstance(value, str) else value}
    return {place: leaf for key, item in parts.items() for place, leaf in _fields(item, placeholders, key).items()}


def _with_placeholder(text: str, placeholders: list[tuple[str, str]]) -> str:
    scheme = MIRROR if text.startswith(MIRROR) else ""
    rest = text.removeprefix(scheme)
    for path, placeholder in placeholders:
        if rest == path or rest.startswith(f"{path}/"):
            return scheme + placeholder + rest.removeprefix(path)
    return text
