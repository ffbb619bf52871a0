"""Check that each field of a config, and of the specs in it, has a value of its type. Paths may be placeholders."""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Mapping
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from marin_assets.stages.train.errors import TrainError
from marin_assets.step.values import MirroredValue, Placeholder, StepMarker

NAMES = {int: "a whole number", float: "a finite number", bool: "True or False", str: "a text", type(None): "None"}
LEFT_OUT = ("mixture", "resources", "engine")
"""Fields with checks of their own."""


def check_types(spec: Any, at: str = "") -> None:
    """Raise TrainError for a value of another type, in a config or a spec without versioned()."""
    kind: Any = type(spec)
    hints = _hints_of(kind)
    for field in dataclasses.fields(spec):
        if field.name in LEFT_OUT:
            continue
        value, hint = getattr(spec, field.name), hints[field.name]
        if not _fits(value, hint):
            raise TrainError(f"{at}{field.name} is {value!r}, expected {_described(hint)}.")
        parts = value if isinstance(value, tuple | list) else (value,)
        for part in parts:
            if dataclasses.is_dataclass(part) and not isinstance(part, Placeholder | StepMarker):
                check_types(part, f"{at}{field.name}.")


@dataclasses.dataclass(frozen=True, slots=True)
class _Hint:
    """A type hint, taken apart once: a code location checks each config when it is loaded."""

    kind: Any
    origin: Any
    arguments: tuple[_Hint, ...]


@cache
def _hints_of(kind: Any) -> Mapping[str, _Hint]:
    return {name: _taken_apart(hint) for name, hint in get_type_hints(kind).items()}


def _taken_apart(hint: Any) -> _Hint:
    return _Hint(hint, get_origin(hint), tuple(map(_taken_apart, get_args(hint))))


def _fits(value: Any, hint: _Hint) -> bool:
    kind, origin, arguments = hint.kind, hint.origin, hint.arguments
    if kind is Any:
        return True
    if origin in (Union, types.UnionType):
        return any(_fits(value, alternative) for alternative in arguments)
    if origin is tuple:  # JSON has lists
        if not isinstance(value, tuple | list):
            return False
        kinds = (arguments[0],) * len(value) if arguments[-1].kind is Ellipsis else arguments
        return len(kinds) == len(value) and all(map(_fits, value, kinds))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(
            _fits(key, arguments[0]) and _fits(item, arguments[1]) for key, item in value.items()
        )
    if kind is str:
        return isinstance(value, str | Placeholder | MirroredValue)
    if kind in (int, float):
        is_number = isinstance(value, int if kind is int else int | float) and not isinstance(value, bool)
        return is_number and math.isfinite(value)
    return isinstance(value, kind)


def _described(hint: _Hint) -> str:
    kind, origin, arguments = hint.kind, hint.origin, hint.arguments
    if origin in (Union, types.UnionType):
        *first, last = [_described(alternative) for alternative in arguments]
        return f"{', '.join(first)} or {last}"
    if origin is tuple:
        if arguments[-1].kind is Ellipsis:
            return f"a tuple, each of whose items is {_described(arguments[0])}"
        return f"({', '.join(map(_described, arguments))})"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return f"a dict from {_described(arguments[0])} to {_described(arguments[1])}"
    return str(NAMES.get(kind) or getattr(kind, "__name__", kind))
