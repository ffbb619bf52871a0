"""Set fields of Levanter's config by their dotted paths."""

from __future__ import annotations

import dataclasses
import difflib
import typing
from collections.abc import Mapping
from typing import Any

import draccus

from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.specs.levanter_fields import check_paths


def apply_overrides(config: Any, levanter: Mapping[str, Any] | None) -> None:
    """Set each field of Levanter's config. Raises TrainError for an unknown path, or a value of another type."""
    check_paths(levanter or {})
    for path, value in (levanter or {}).items():
        _set(config, path.split("."), path, value)


def _set(config: Any, names: list[str], path: str, value: Any) -> Any:
    """The config with the field set: the same one, or a copy if it is frozen."""
    name, *rest = names
    known = [field.name for field in dataclasses.fields(config) if field.init]
    if name not in known:
        near = difflib.get_close_matches(name, known, n=3) or sorted(known)
        where = path.rpartition(name)[0]
        raise TrainError(
            f"levanter has {path!r}, and {type(config).__name__} has no field {name!r}. Near it: "
            f"{', '.join(f'{where}{each}' for each in near)}."
        )
    hint = typing.get_type_hints(type(config))[name]
    if rest:
        inner = getattr(config, name)
        inner = _new(hint) if inner is None else inner
        if not dataclasses.is_dataclass(inner):
            raise TrainError(f"levanter has {path!r}, and {name!r} has no fields. Give the value of {name!r} itself.")
        new = _set(inner, rest, path, value)
    else:
        new = _decode(hint, value, path)
    if type(config).__dataclass_params__.frozen:
        return dataclasses.replace(config, **{name: new})
    setattr(config, name, new)
    return config


def _new(hint: Any) -> Any:
    """The default of an optional dataclass; None if it is none."""
    kind: Any = next((kind for kind in typing.get_args(hint) if dataclasses.is_dataclass(kind)), None)
    return None if kind is None else kind()


def _decode(hint: Any, value: Any, path: str) -> Any:
    """The value as the field's type. A text is no number and a number no text, as draccus would take them."""
    kinds = typing.get_args(hint) or (hint,)
    scalars = [kind for kind in kinds if kind in (bool, int, float, str)]
    is_right = type(value) in scalars or (type(value) is int and float in scalars)
    if is_right or (value is None and type(None) in kinds):
        return value
    expected = getattr(hint, "__name__", str(hint)) if not typing.get_args(hint) else str(hint)
    if isinstance(value, bool | int | float | str) and len(scalars) == len([k for k in kinds if k is not type(None)]):
        raise TrainError(f"levanter has {path!r} as {value!r}, expected {expected}.")
    try:
        return draccus.decode(hint, list(value) if isinstance(value, tuple) else value)
    except Exception as error:  # draccus raises errors of several kinds, also those of the classes that it makes
        raise TrainError(f"levanter has {path!r} as {value!r}, expected {expected}: {error}.") from error
