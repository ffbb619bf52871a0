"""The `filter` of a list of Compute Engine: comparisons of fields with AND, OR, NOT and brackets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fake_google.refusals import RefusalError

TOKEN = re.compile(r"\s*(\(|\)|!=|=|:|\"[^\"]*\"|[^\s()=:!]+)")


def matches(thing: Mapping[str, Any], text: str) -> bool:
    """Whether the filter takes the thing. Raises RefusalError."""
    tokens = TOKEN.findall(text)
    found, rest = _any(tokens, thing)
    if rest:
        raise RefusalError(400, f"Invalid value for field 'filter': '{text}'. Invalid list filter expression.")
    return found


def _any(tokens: list[str], thing: Mapping[str, Any]) -> tuple[bool, list[str]]:
    found, rest = _all(tokens, thing)
    while rest and rest[0] == "OR":
        more, rest = _all(rest[1:], thing)
        found = found or more
    return found, rest


def _all(tokens: list[str], thing: Mapping[str, Any]) -> tuple[bool, list[str]]:
    found, rest = _one(tokens, thing)
    while rest and rest[0] not in ("OR", ")"):
        more, rest = _one(rest[1:] if rest[0] == "AND" else rest, thing)
        found = found and more
    return found, rest


def _one(tokens: list[str], thing: Mapping[str, Any]) -> tuple[bool, list[str]]:
    if tokens[:1] == ["NOT"]:
        found, rest = _one(tokens[1:], thing)
        return not found, rest
    if tokens[:1] == ["("]:
        found, rest = _any(tokens[1:], thing)
        if rest[:1] != [")"]:
            raise RefusalError(400, "Invalid list filter expression: a bracket is open.")
        return found, rest[1:]
    if len(tokens) < 3 or tokens[1] not in ("=", "!=", ":"):
        raise RefusalError(400, f"Invalid list filter expression at {' '.join(tokens[:3])!r}.")
    name, comparison, wanted = tokens[0], tokens[1], tokens[2].strip('"')
    value: Any = thing
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    if comparison == ":":
        return value is not None and (wanted == "*" or wanted in str(value)), tokens[3:]
    return (str(value) == wanted) is (comparison == "="), tokens[3:]
