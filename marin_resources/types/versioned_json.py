"""JSON files that carry a `format_version`: parse one, and refuse a file that is damaged or newer than this software.

VersionedJson   one kind of file: its versions, its fields, and the error that its readers raise
misfit          the first difference of JSON from a shape, as a phrase
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from marin_resources.types.errors import InvalidInputError

FIELD = "format_version"
MAX_DEPTH = 150
"""Levels of nesting in a file. Python's own limit is about 1,000 calls, and each level takes up to three of them."""
SHOWN_CHARACTERS = 80
"""Characters of a wrong value, in an error."""
NESTED = (dict, list, tuple)
ANY = "*"
"""In a shape: every other field."""


class ControlFileError(InvalidInputError):
    """A control file that cannot be used: one sentence with its path and what to do."""


@dataclass(frozen=True)
class Required:
    """The shape of a field that must exist."""

    shape: Any


Shape = Any
"""A type; a list of one shape, for lists; or a mapping from field to shape, for objects. None fits every shape."""


@dataclass(frozen=True, kw_only=True)
class VersionedJson:
    """One kind of file, such as the manifest of an output."""

    kind: str
    """For error sentences: "manifest"."""
    newest: int
    """The newest format version that this software reads, and the one that it writes."""
    error: type[Exception]
    """Raised with one sentence that names the kind, the path and the way out."""
    default: int | None = None
    """Version of a file without `format_version`. None refuses such a file."""
    shape: Mapping[str, Shape] = field(default_factory=dict)
    """The fields whose types its readers rely on."""
    if_newer: str = "Update this checkout."
    if_damaged: str = "Look at the file; move it aside if it is damaged."

    def parse(self, text: bytes | str, path: str) -> dict[str, Any]:
        """The fields of a file. Raises `error` unless the text is a JSON object of a known format and this shape."""
        try:
            fields = json.loads(text)
        except RecursionError:
            raise self._nested(path) from None
        except ValueError as error:
            raise self.damaged(path, f"is not JSON ({error})") from error
        if not isinstance(fields, dict):
            raise self.damaged(path, "is not a JSON object")
        self.check(fields, path)
        if is_deeper(fields, MAX_DEPTH):
            raise self._nested(path)
        if wrong := misfit(fields, self.shape):
            raise self.damaged(path, f"has {wrong}")
        return fields

    def check(self, fields: Mapping[str, Any], path: str) -> None:
        """Raise `error` unless the fields have a format version that this software knows."""
        version = fields.get(FIELD, self.default)
        oldest = 1 if self.default is None else self.default
        if type(version) is not int or version < oldest:
            raise self.damaged(path, f"has the {FIELD} {_shown(version)}, expected a number")
        if version > self.newest:
            raise self.error(
                f"The {self.kind} {path!r} has format version {version} and this software knows up to {self.newest}. "
                f"{self.if_newer}"
            )

    def damaged(self, path: str, problem: str) -> Exception:
        """The error for a file that cannot be used; `problem` follows the path: "is not JSON"."""
        return self.error(f"The {self.kind} {path!r} {problem}. {self.if_damaged}")

    def invalid(self, path: str, error: Exception) -> Exception:
        """The error for a file whose fields are missing, or have other types than expected."""
        return self.damaged(path, f"is not valid ({_cut(repr(error))})")

    def _nested(self, path: str) -> Exception:
        return self.damaged(path, f"is nested more than {MAX_DEPTH} levels deep")


def is_deeper(value: Any, levels: int) -> bool:
    """Whether JSON is nested deeper than `levels`. Takes no recursion."""
    level = [value]
    for _ in range(levels):
        level = [item.values() if isinstance(item, dict) else item for item in level if isinstance(item, NESTED)]
        level = [part for parts in level for part in parts if isinstance(part, NESTED)]
        if not level:
            return False
    return True


def misfit(value: Any, shape: Shape, where: str = "") -> str:
    """The first field that differs from its shape, as a phrase: "the field 'a.b' as 5, expected a text". "" if none."""
    # the names of fields are joined for the one that is wrong alone: thousands of records are checked
    if type(shape) is Required:
        if value is None:
            return f"no field {where!r}"
        shape = shape.shape
    if value is None:
        return ""
    if isinstance(shape, Mapping):
        return _misfit_in_object(value, shape, where)
    if isinstance(shape, Sequence):
        if not isinstance(value, list):
            return _wrong(where, value, list)
        for i, item in enumerate(value):
            if type(item) is not shape[0] and (phrase := misfit(item, shape[0], f"{where}.[{i}]".strip("."))):
                return phrase
        return ""
    return "" if _is_a(value, shape) else _wrong(where, value, shape)


def _misfit_in_object(value: Any, shape: Mapping[str, Shape], where: str) -> str:
    if not isinstance(value, Mapping):
        return _wrong(where, value, dict)
    every = shape.get(ANY)
    if every is not None:
        plain = every.shape if type(every) is Required else every
        for name, item in value.items():
            if name not in shape and type(item) is not plain and (phrase := misfit(item, every, _below(where, name))):
                return phrase
    for name, part in shape.items():
        item = value.get(name)
        if name != ANY and type(item) is not part and (phrase := misfit(item, part, _below(where, name))):
            return phrase
    return ""


def _below(where: str, name: str) -> str:
    return f"{where}.{name}".strip(".")


def _is_a(value: Any, expected: type) -> bool:
    if isinstance(value, bool):
        return expected in (bool, object)
    return isinstance(value, int | float if expected is float else expected)


def _wrong(where: str, value: Any, expected: type) -> str:
    return f"the field {where!r} as {_shown(value)}, expected {_NOUNS[expected]}"


def _shown(value: Any) -> str:
    return f"a {type(value).__name__}" if isinstance(value, Mapping | list) else _cut(repr(value))


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 1]}…"


_NOUNS = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    dict: "an object",
    list: "a list",
}
