"""Two configs field by field, where the same path below another prefix is the same.

A config is recorded as its function was given it, with every path in full. So before they are compared, an output's own
path, those of its inputs and the prefix give way to what they stand for: a prefix that was moved, or an output that was
put elsewhere, is no change of config.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

MIRROR = "mirror://"
"""Stands before a path that may be read from elsewhere."""


def differing_fields(record: Mapping[str, Any], facts: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """(field, was, now) by the field's place in the config, "model.layers" or "sets.[0]"; None where there is none."""
    was = _fields(record["config"], _places(record, _prefix_then(record, facts)))
    now = _fields(facts["config"], _places(facts, facts["prefix"]))
    for field in sorted(was.keys() | now.keys()):
        if was.get(field) != now.get(field):
            yield field, was.get(field), now.get(field)


def _prefix_then(record: Mapping[str, Any], facts: Mapping[str, Any]) -> str:
    """The prefix of the record; for one that does not say, what is left of its path without the part that stays."""
    relative = str(facts["output_path"]).removeprefix(facts["prefix"])
    return record.get("prefix") or str(record.get("output_path", "")).removesuffix(relative)


def _places(known: Mapping[str, Any], prefix: str) -> list[tuple[str, str]]:
    """(path, what it stands for), the longest first, as one may lie below another."""
    inputs = [(path, f"<input {i}>") for i, path in enumerate(known.get("dependencies") or ())]
    places = [(str(known.get("output_path", "")), "<output>"), *inputs, (prefix, "<prefix>")]
    return sorted((place for place in places if place[0]), key=lambda place: -len(place[0]))


def _fields(value: Any, places: list[tuple[str, str]], field: str = "") -> dict[str, Any]:
    """Every leaf of a config by its place."""
    if isinstance(value, Mapping) and value:
        parts = {f"{field}.{key}" if field else key: item for key, item in value.items()}
    elif isinstance(value, list | tuple) and value:
        parts = {f"{field}.[{i}]" if field else f"[{i}]": item for i, item in enumerate(value)}
    else:
        return {field: _placed(value, places) if isinstance(value, str) else value}
    return {place: leaf for key, item in parts.items() for place, leaf in _fields(item, places, key).items()}


def _placed(text: str, places: list[tuple[str, str]]) -> str:
    scheme = MIRROR if text.startswith(MIRROR) else ""
    rest = text.removeprefix(scheme)
    for path, meaning in places:
        if rest == path or rest.startswith(f"{path}/"):
            return scheme + meaning + rest.removeprefix(path)
    return text
