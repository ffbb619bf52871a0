"""The config of a training from its record, which has plain values: no classes, and lists in place of tuples.

In:  the class of the config, and the record's values.   Out: the config. Nothing else is read.

Where a field may have one of several classes, it has the first that has all names of the values; a record has every
field of its class.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from marin_assets.stages.train.errors import InputError
from marin_assets.step.values import unwrap_versioned_value

C = TypeVar("C")


def restore_config(kind: type[C], fields: object) -> C:
    """The config of this class with these values. Raises InputError for a field that the class does not have, or
    lacks."""
    restored: C = _dataclass(kind, fields, "config")
    return unwrap_versioned_value(restored)


def _dataclass(kind: Any, fields: object, where: str) -> Any:
    if not isinstance(fields, Mapping):
        raise InputError(f"{where} of the record is {fields!r:.80}, expected the fields of {kind.__name__}.")
    hints = get_type_hints(kind)
    unknown = [str(name) for name in fields if name not in hints]
    if unknown:
        raise InputError(
            f"{where} of the record has {unknown[0]!r:.80}, which {kind.__name__} does not have: another version of "
            "this software has written it. Use that version."
        )
    try:
        return kind(**{name: _value(hints[name], value, f"{where}.{name}") for name, value in fields.items()})
    except TypeError as error:
        raise InputError(f"{where} of the record lacks a field of {kind.__name__}: {error}.") from error


def _value(hint: Any, value: Any, where: str) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if value is None:
        return None
    if origin in (Union, types.UnionType):
        return _value(_chosen(arguments, value), value, where)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return _dataclass(hint, value, where)
    if origin is tuple and isinstance(value, list):
        kinds = arguments[:1] * len(value) if arguments[1:] == (...,) else arguments
        return tuple(_value(kind, part, where) for kind, part in zip(kinds, value, strict=False))
    if origin is list and isinstance(value, list):
        return [_value(arguments[0], part, where) for part in value]
    if origin in (dict, Mapping) and isinstance(value, dict):
        return {name: _value(arguments[1], part, f"{where}.{name}") for name, part in value.items()}
    return value


def _chosen(kinds: tuple[Any, ...], value: Any) -> Any:
    """The kind of a value among those that it may have; Any if it is none of a structure."""
    names = set(value) if isinstance(value, dict) else set()
    classes = [kind for kind in kinds if isinstance(kind, type) and dataclasses.is_dataclass(kind)]
    for kind in classes if isinstance(value, dict) else ():
        if names == {field.name for field in dataclasses.fields(kind) if field.init}:
            return kind
    for kind in kinds:
        origin = get_origin(kind) or kind
        if isinstance(value, dict) and origin in (dict, Mapping) and not classes:
            return kind
        if isinstance(value, list) and origin in (list, tuple):
            return kind
    return Any if not isinstance(value, dict) or not classes else _nearest(classes, names)


def _nearest(classes: list[Any], names: set[str]) -> Any:
    """The class with the fewest fields beside these names: a record of before may lack new fields."""
    fields = {kind: {field.name for field in dataclasses.fields(kind) if field.init} for kind in classes}
    having_all = [kind for kind in classes if names <= fields[kind]]
    return min(having_all or classes, key=lambda kind: len(fields[kind] - names))
