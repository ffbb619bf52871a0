"""Encode a config as JSON and decode it: the JSON can be read beside the output, and decoding runs no code.

A dataclass is `{"$dataclass": "module:Class", "field": …}`; an Enum, a Path, a timedelta and a tuple have a tag of
their own. Every other value must be native to JSON: None, bool, int, finite float, str, list, and dicts with text keys.
"""

from __future__ import annotations

import dataclasses
import enum
import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path, PurePath
from typing import Any

from marin_resources.types.errors import InvalidInputError
from marin_resources.wire.reference import load, reference_to

Json = Any
MAX_DEPTH = 100
"""Levels of nesting in a value. It is stored in files of at most 150 (`versioned_json`), and Python's own limit is
about 1,000 calls."""


class EncodeError(InvalidInputError):
    """A value that has no JSON form: one sentence with the field, the value and what was expected."""


def encode(value: Any, where: str = "config") -> Json:
    """Return JSON for `value`. `where` names it in errors, for example "config.model.layers". Raises EncodeError."""
    return _encode(value, where, MAX_DEPTH)


def _encode(value: Any, where: str, levels: int) -> Json:
    if levels < 0:
        raise EncodeError(
            f"{re.split(r'[.[]', where)[0]} is nested more than {MAX_DEPTH} levels deep. Write deep values to a file, "
            "and give its path."
        )
    if isinstance(value, enum.Enum):
        return {"$enum": reference_to(type(value)), "name": value.name}
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise EncodeError(f"{where} is {value!r}, which JSON cannot represent. Use a finite number or None.")
        return value
    if isinstance(value, PurePath):
        return {"$path": str(value)}
    if isinstance(value, timedelta):
        return {"$timedelta": [value.days, value.seconds, value.microseconds]}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = (f.name for f in dataclasses.fields(value) if f.init)
        encoded = {name: _encode(getattr(value, name), f"{where}.{name}", levels - 1) for name in fields}
        return {"$dataclass": reference_to(type(value)), **encoded}
    if isinstance(value, list):
        return [_encode(item, f"{where}[{i}]", levels - 1) for i, item in enumerate(value)]
    if isinstance(value, tuple) and not hasattr(value, "_fields"):  # a NamedTuple would lose its names
        return {"$tuple": [_encode(item, f"{where}[{i}]", levels - 1) for i, item in enumerate(value)]}
    if isinstance(value, dict):
        return {_key(key, where): _encode(item, f"{where}[{key!r}]", levels - 1) for key, item in value.items()}
    raise EncodeError(
        f"{where} is {value!r} of type {type(value).__name__}, which cannot be sent as JSON. Use None, bool, int, "
        "float, str, list, tuple, dict with text keys, Enum, Path, timedelta or a dataclass of these."
    )


def decode(value: Json) -> Any:
    """Return the value that was encoded."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    for tag, restore in _TAGS.items():
        if tag in value:
            return restore(value)
    return {key: decode(item) for key, item in value.items()}


def plain(value: Json) -> Json:
    """Return encoded JSON without its tags, as a record holds it for readers."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    for tag in ("$path", "$tuple", "$timedelta"):
        if tag in value:
            return plain(value[tag])
    if "$enum" in value:
        return value["name"]
    return {key: plain(item) for key, item in value.items() if key != "$dataclass"}


def texts_in(value: Any) -> Iterator[str]:
    """Yield every text in a plain value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from texts_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts_in(item)


def references_in(value: Json) -> set[str]:
    """Return the references of every dataclass and Enum in encoded JSON."""
    if isinstance(value, list):
        return set().union(*map(references_in, value))
    if not isinstance(value, dict):
        return set()
    own = {value[tag] for tag in ("$dataclass", "$enum") if tag in value}
    return own.union(*map(references_in, value.values()))


def _key(key: object, where: str) -> str:
    if not isinstance(key, str) or key.startswith("$"):
        raise EncodeError(f"{where} has the key {key!r}, expected a text that does not begin with '$'.")
    return key


def _restore_dataclass(value: dict[str, Json]) -> Any:
    cls = load(value["$dataclass"])
    if not (isinstance(cls, type) and dataclasses.is_dataclass(cls)):
        raise EncodeError(f"{value['$dataclass']!r} is not a dataclass.")
    return cls(**{key: decode(item) for key, item in value.items() if key != "$dataclass"})


def _restore_enum(value: dict[str, Json]) -> enum.Enum:
    cls = load(value["$enum"])
    if not (isinstance(cls, type) and issubclass(cls, enum.Enum)):
        raise EncodeError(f"{value['$enum']!r} is not an Enum.")
    return cls[value["name"]]


_TAGS: dict[str, Callable[[dict[str, Json]], Any]] = {
    "$dataclass": _restore_dataclass,
    "$enum": _restore_enum,
    "$path": lambda value: Path(value["$path"]),
    "$tuple": lambda value: tuple(decode(item) for item in value["$tuple"]),
    "$timedelta": lambda value: timedelta(*value["$timedelta"]),
}
