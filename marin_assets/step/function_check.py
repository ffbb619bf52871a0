"""Check a step's function and config when the step is created: can a worker import it, and does it take this config?"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import numbers
from collections.abc import Callable, Iterator
from pathlib import PurePath
from typing import Any

from marin_assets.step.values import ConfigError, Placeholder, StepMarker, VersionedValue

SIMPLE: dict[str, type | tuple[type, ...]] = {
    "int": numbers.Integral,
    "float": numbers.Real,
    "str": (str, PurePath),
    "bool": bool,
    "None": type(None),
}
"""Annotations that a value is compared with. A field with another one is not checked."""


def require_function(fn: Any, step: str) -> None:
    """Raise ConfigError for what is no function, and for one that a worker cannot import by its name."""
    if type(fn).__module__.partition(".")[0] == "ray":
        raise ConfigError(
            f"Step {step!r} has a remote function of Ray, expected the plain function: the step is submitted to Ray "
            "itself. Leave out @ray.remote, and state resources= of the step."
        )
    if isinstance(fn, functools.partial):
        raise ConfigError(
            f"Step {step!r} has a partial of {_name(fn.func)}, which no worker can import, and whose arguments would "
            "not enter the version. Put them into fields of the config."
        )
    if not callable(fn):
        raise ConfigError(f"Step {step!r} has fn={fn!r}, expected a function that takes the config.")
    if _name(fn) == "<lambda>":
        raise ConfigError(
            f"Step {step!r} has a lambda, which no worker can import. Define it at the top level of a module or of the "
            "script, as a function."
        )


def require_config_fits(fn: Callable[..., Any], config: Any, step: str) -> None:
    """Raise ConfigError if `fn` does not take one argument, or takes one of another dataclass."""
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):  # of a function in C
        return
    try:
        signature.bind(config)
    except TypeError:
        raise ConfigError(
            f"Step {step!r} has the function {_name(fn)}{signature}, expected one that takes the config alone. Put "
            "other arguments into the config."
        ) from None
    expected = next(iter(signature.parameters.values())).annotation
    if isinstance(expected, str):
        expected = getattr(fn, "__globals__", {}).get(expected)
    if isinstance(expected, type) and dataclasses.is_dataclass(expected) and not isinstance(config, expected):
        raise ConfigError(
            f"Step {step!r} has a config of {type(config).__name__}, and its function {_name(fn)} takes "
            f"{expected.__name__}. Pass one of that."
        )


def require_types(config: Any, step: str) -> None:
    """Raise ConfigError for a field whose value is of another type than its annotation, if that is a plain one."""
    for place, annotation, value in _mismatches(config, ""):
        raise ConfigError(
            f"Step {step!r} config.{place} is {value!r}, a {type(value).__name__}, expected {annotation}, as its "
            f"annotation in {type(config).__name__} states."
        )


def _mismatches(config: Any, above: str) -> Iterator[tuple[str, str, Any]]:
    """Yield (place, annotation, value) of each field with a plain annotation and a value of another type."""
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        value = value.value if isinstance(value, VersionedValue) else value
        annotation = field.type if isinstance(field.type, str) else getattr(field.type, "__name__", str(field.type))
        names = [name.strip() for name in annotation.split("|")]
        if _has_path(value):
            continue
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            yield from _mismatches(value, f"{above}{field.name}.")
        elif all(name in SIMPLE for name in names) and not any(isinstance(value, SIMPLE[name]) for name in names):
            yield f"{above}{field.name}", annotation, value


def _has_path(value: Any) -> bool:
    """Whether it is a path that is known later, or a list or a dict of some."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return any(isinstance(part, Placeholder | StepMarker) for part in (value, *parts))


def _name(fn: Any) -> str:
    return str(getattr(fn, "__name__", repr(fn)))
