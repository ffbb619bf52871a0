"""Compare values with type annotations: the fields of a config, and the arguments of a function.

In:  a dataclass instance, or a value and an annotation.
Out: the first value of another type: its place, and what was expected.

Checked are int, float, bool, str, None, Path, Literal, classes, `X | Y`, and lists, tuples, dicts and their abstract
forms with their items, to any depth. JSON has lists, so a list and a tuple stand for each other. An annotation that is
known to type checkers alone, a Protocol and a TypeVar take every value. A path that is known later stands for what is
no number.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import functools
import inspect
import numbers
import sys
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from marin_assets.step.values import MirroredValue, Placeholder, StepMarker, VersionedValue
from marin_resources.types.near_names import expected_one_of

SHOWN_CHARACTERS = 80
SEQUENCES = (list, tuple, collections.abc.Sequence, collections.abc.Collection, collections.abc.Iterable)
SCALARS: Mapping[Any, Any] = {int: numbers.Integral, float: numbers.Real, bool: bool}
"""Annotations for which no path can stand, with the types of their values."""
TEXTS = (str, PurePath)


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A value of another type than its annotation."""

    value: Any
    expected: str
    """The end of a sentence, without its stop: "expected int"."""
    place: str = ""
    """Below the checked value: ".rate", "[2]", ".models['a'].rate"; empty for the value itself."""
    annotation: str = ""
    """That of the field, in the dataclass `owner`."""
    owner: str = ""

    def below(self, place: str) -> Mismatch:
        return dataclasses.replace(self, place=f"{place}{self.place}")


Check = Callable[[Any], Mismatch | None]


def mismatch_in(config: Any) -> Mismatch | None:
    """Return the first mismatch of a dataclass instance, or of one in it."""
    kind: Any = type(config)
    for name, annotation, check in _checks_of(kind):
        wrong = check(getattr(config, name))
        if wrong is not None:
            wrong = wrong if wrong.owner else dataclasses.replace(wrong, annotation=annotation, owner=kind.__name__)
            return wrong.below(f".{name}")
    return None


def check_of(annotation: Any, namespace: Mapping[str, Any]) -> Check:
    """Return the check of an annotation; a text is one of the module with this namespace."""
    hint = _resolved(annotation, namespace, {})
    return _compiled(hint, _spelled(hint))


def described(value: Any) -> str:
    """The value and its type, as a sentence has them: "'5', a str"."""
    text = repr(value)
    shown = text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"
    return shown if value is None else f"{shown}, a {type(value).__name__}"


@functools.cache
def _checks_of(kind: Any) -> tuple[tuple[str, str, Check], ...]:
    """Name, annotation and check of each field, taken apart once: a code location has thousands of configs."""
    checks = []
    for field in dataclasses.fields(kind):
        owner = next((base for base in kind.__mro__ if field.name in inspect.get_annotations(base)), kind)
        namespace = vars(sys.modules[owner.__module__]) if owner.__module__ in sys.modules else {}
        text = _as_text(field.type)
        checks.append((field.name, text, _compiled(_resolved(field.type, namespace, vars(owner)), text)))
    return tuple(checks)


def _resolved(annotation: Any, namespace: Mapping[str, Any], own: Mapping[str, Any]) -> Any:
    """The annotation; Any for a text that has no value here: a name that only type checkers import, or that is local
    to a function."""
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, dict(namespace), dict(own))
    except (NameError, AttributeError, TypeError, SyntaxError):
        return Any


def _as_text(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else _spelled(annotation)


def _spelled(hint: Any) -> str:
    """The annotation as it would be written, without aliases and modules: "Step | Mapping[str, Step]"."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return " | ".join(map(_spelled, arguments))
    if origin is typing.Literal:
        return f"Literal[{', '.join(map(repr, arguments))}]"
    if origin is not None:
        inner = [", ".join(map(_spelled, part)) if isinstance(part, list) else _spelled(part) for part in arguments]
        return f"{getattr(origin, '__name__', origin)}[{', '.join(inner)}]"
    if hint is type(None) or hint is None:
        return "None"
    return "..." if hint is Ellipsis else str(getattr(hint, "__name__", hint))


def _compiled(hint: Any, text: str) -> Check:
    """The check of an annotation, for a value with or without versioned()."""
    check = _plain(hint, text)

    def unwrapped(value: Any) -> Mismatch | None:
        kind = type(value)
        if kind is VersionedValue or kind is MirroredValue:
            value = value.value
        return check(value)

    return unwrapped


def _plain(hint: Any, text: str) -> Check:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return _plain(arguments[0], text)
    if isinstance(hint, typing.NewType):
        return _plain(hint.__supertype__, text)
    if hint is None or hint is type(None):
        return _instance(type(None), text, takes_paths=False)
    if hint in SCALARS:
        return _instance(SCALARS[hint], text, takes_paths=False)
    if hint in TEXTS or (isinstance(hint, type) and issubclass(hint, PurePath)):
        return _text_or_paths(text)
    if origin is typing.Literal:
        return _choice(arguments)
    if origin in (typing.Union, types.UnionType):
        return _union(arguments, text)
    container = origin or hint
    if container in SEQUENCES:
        return _sequence(container, arguments, text)
    if isinstance(container, type) and issubclass(container, Mapping):
        return _mapping(arguments, text)
    if container is collections.abc.Callable:
        return lambda value: None if callable(value) else Mismatch(value, f"expected {text}")
    is_checked = isinstance(container, type) and container not in (Any, object, type) and not _is_protocol(container)
    return _instance(container, text, takes_paths=not _is_step(container)) if is_checked else _nested


def _is_step(kind: Any) -> bool:
    return issubclass(kind, StepMarker | Placeholder)


def _is_protocol(kind: type) -> bool:
    return bool(getattr(kind, "_is_protocol", False))


def _nested(value: Any) -> Mismatch | None:
    """The mismatch in a dataclass that may be anything."""
    is_config = hasattr(value, "__dataclass_fields__") and not isinstance(value, type | Placeholder | StepMarker)
    return mismatch_in(value) if is_config else None


def _instance(kind: Any, text: str, *, takes_paths: bool) -> Check:
    def check(value: Any) -> Mismatch | None:
        if isinstance(value, kind):
            return _nested(value)
        if takes_paths and isinstance(value, Placeholder | StepMarker):
            return None
        return Mismatch(value, f"expected {text}")

    return check


def _text_or_paths(text: str) -> Check:
    """The check of a text. Paths that are known later may be several, in a list or a dict."""

    def check(value: Any) -> Mismatch | None:
        if isinstance(value, TEXTS):
            return None
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
        if any(isinstance(part, Placeholder | StepMarker) for part in (value, *parts)):
            return None
        return Mismatch(value, f"expected {text}")

    return check


def _choice(choices: tuple[Any, ...]) -> Check:
    def check(value: Any) -> Mismatch | None:
        if any(value == choice and type(value) is type(choice) for choice in choices):
            return None
        if isinstance(value, Placeholder | StepMarker):
            return None
        return Mismatch(value, expected_one_of(value, map(str, choices)).rstrip("."))

    return check


def _union(alternatives: tuple[Any, ...], text: str) -> Check:
    checks = [(hint, _plain(hint, text)) for hint in alternatives]

    def check(value: Any) -> Mismatch | None:
        mismatches = []
        for _, alternative in checks:
            wrong = alternative(value)
            if wrong is None:
                return None
            mismatches.append(wrong)
        inner = [mismatch for mismatch in mismatches if mismatch.place]  # of the right kind, with a wrong item
        return inner[0] if inner else Mismatch(value, f"expected {text}")

    return check


def _sequence(container: Any, arguments: tuple[Any, ...], text: str) -> Check:
    is_fixed = container is tuple and bool(arguments) and arguments[-1] is not Ellipsis
    items = [_compiled(hint, _as_text(hint)) for hint in arguments if hint is not Ellipsis] or [_nested]

    def check(value: Any) -> Mismatch | None:
        if not isinstance(value, list | tuple):
            takes = isinstance(value, Placeholder | StepMarker | container) and not isinstance(value, str | bytes)
            return None if takes else Mismatch(value, f"expected {text}")
        if is_fixed and len(value) != len(items):
            return Mismatch(value, f"expected {text}, of {len(items)} items")
        for i, item in enumerate(value):
            wrong = items[i if is_fixed else 0](item)
            if wrong is not None:
                return wrong.below(f"[{i}]")
        return None

    return check


def _mapping(arguments: tuple[Any, ...], text: str) -> Check:
    keys, items = [_compiled(hint, _as_text(hint)) for hint in arguments] if len(arguments) == 2 else (_nested, _nested)

    def check(value: Any) -> Mismatch | None:
        if not isinstance(value, Mapping):
            is_path = isinstance(value, Placeholder | StepMarker)
            return None if is_path else Mismatch(value, f"expected {text}")
        for key, item in value.items():
            if keys(key) is not None:
                return Mismatch(key, f"expected keys as in {text}")
            wrong = items(item)
            if wrong is not None:
                return wrong.below(f"[{key!r}]")
        return None

    return check
