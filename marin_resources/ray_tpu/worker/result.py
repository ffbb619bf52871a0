"""The result of a step's function, as the record of its output holds it: JSON, and small.

A function that has returned has done its work, and nothing that it returns fails the step. Numbers of numpy and of JAX
are numbers, NaN is null, and values without a JSON form are left out with a warning.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import logging
import math
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import PurePath
from typing import Any

from marin_resources.wire.number import number_of

MAX_RESULT_BYTES = 1_000_000
"""Limit of a function's result as JSON. Each reuse of the output copies it into Dagster's history."""
MAX_DEPTH = 100
"""Levels of nesting, as in a config."""
MAX_INTEGER = 10**4300
"""Python writes no longer whole numbers."""
MAX_ITEMS = 100_000
"""Limit of an array that is written as a list."""
SHOWN = 5

log = logging.getLogger(__name__)


def jsonable(result: Any) -> dict[str, Any]:
    """Return a function's result as the record holds it. Omitted values are logged as a warning."""
    if result is None:
        return {}
    is_object = dataclasses.is_dataclass(result) and not isinstance(result, type)
    fields = _fields_of(result) if is_object else result
    if not isinstance(fields, Mapping):
        log.warning(
            "The function returned %s, expected a dict, a dataclass or None. The record has no result. Return a dict, "
            "such as {'documents': 5}.",
            reprlib.repr(result),
        )
        return {}
    entries, reading = {}, _Reading()
    for key, value in fields.items():
        name = reading.key(key, "result")
        where = f"result[{name!r}]"
        try:
            entry = _LEFT_OUT if name is None else reading.json(value, where, MAX_DEPTH - 1)
        except _TooDeepError:
            entry = reading.leave_out(f"{where} is nested more than {MAX_DEPTH} levels deep")
        if name is not None and entry is not _LEFT_OUT:
            entries[name] = entry
    reading.warn()
    return entries


def keep_small(result: dict[str, Any]) -> dict[str, Any]:
    """Return the result without its largest entries, if it is too large for a record, which every reuse reads. They are
    named in a warning."""
    sizes = {name: len(json.dumps({name: value}).encode()) for name, value in result.items()}
    kept = dict(result)
    for name in sorted(sizes, key=lambda name: -sizes[name]):
        if sum(sizes[key] for key in kept) <= MAX_RESULT_BYTES:
            break
        del kept[name]
        log.warning(
            "result[%r] has %.1f MB, and a result has at most %g MB: it is left out of the record. Write it into a "
            "file below the output path, and return the few numbers that describe it.",
            name,
            sizes[name] / 1e6,
            MAX_RESULT_BYTES / 1e6,
        )
    return kept


_LEFT_OUT = object()


class _TooDeepError(Exception):
    """Everything inside this entry of the result is left out: it may refer to itself."""


@dataclass(kw_only=True)
class _Reading:
    left_out: list[str] = field(default_factory=list)
    """A phrase for each value without a JSON form."""

    def json(self, value: Any, where: str, levels: int) -> Any:
        """The value's JSON, or _LEFT_OUT. Raises _TooDeepError."""
        if levels < 0:
            raise _TooDeepError
        value = value.name if isinstance(value, enum.Enum) else number_of(value)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            return int(value) if abs(value) < MAX_INTEGER else self.leave_out(f"{where} has too many digits")
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else None
        if isinstance(value, str | PurePath):
            return str(value)
        if isinstance(value, timedelta):
            return [value.days, value.seconds, value.microseconds]
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            value = _fields_of(value)
        if isinstance(value, tuple) and hasattr(value, "_asdict"):
            value = value._asdict()
        if _is_small_array(value):
            value = value.tolist()
        if isinstance(value, Mapping):
            return self._entries(value, where, levels)
        if isinstance(value, list | tuple):
            items = (self.json(item, f"{where}[{i}]", levels - 1) for i, item in enumerate(value))
            return [None if item is _LEFT_OUT else item for item in items]
        return self.leave_out(f"{where} is {reprlib.repr(value)} of type {type(value).__name__}")

    def key(self, key: Any, where: str) -> str | None:
        """The key as a text, as JSON has it; None for one that is left out."""
        plain = number_of(key.name if isinstance(key, enum.Enum) else key)
        if isinstance(plain, str | bool | int | float):
            return str(plain)
        self.leave_out(f"{where} has the key {reprlib.repr(key)} of type {type(key).__name__}")
        return None

    def leave_out(self, phrase: str) -> Any:
        self.left_out.append(phrase)
        return _LEFT_OUT

    def warn(self) -> None:
        if not self.left_out:
            return
        more = f"; and {len(self.left_out) - SHOWN} more" if len(self.left_out) > SHOWN else ""
        log.warning(
            "%s%s. It is left out of the record. Return numbers, texts, lists and dicts with text keys.",
            "; ".join(self.left_out[:SHOWN]),
            more,
        )

    def _entries(self, value: Mapping[Any, Any], where: str, levels: int) -> dict[str, Any]:
        named = ((self.key(key, where), item) for key, item in value.items())
        entries = {name: self.json(item, f"{where}[{name!r}]", levels - 1) for name, item in named if name is not None}
        return {name: item for name, item in entries.items() if item is not _LEFT_OUT}


def _is_small_array(value: Any) -> bool:
    shape = getattr(value, "shape", None)
    return isinstance(shape, tuple) and callable(getattr(value, "tolist", None)) and math.prod(shape) <= MAX_ITEMS


def _fields_of(value: Any) -> dict[str, Any]:
    return {member.name: getattr(value, member.name) for member in dataclasses.fields(value) if member.init}
