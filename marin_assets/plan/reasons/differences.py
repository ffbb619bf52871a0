"""In what two versions of a step differ: versioned fields, and inputs that are of another version.

In:  two versions, as records hold them (see `step/version.py`).   Out: fields with both values, and inputs.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

DEPENDENCY = re.compile(r"DEP\[(?P<place>\d+)\](?P<rest>.*)", re.DOTALL)
"""A field of a version that is an input: its place among the inputs, then partitions and path below it."""
ABSENT = "(absent)"
SHOWN_CHARACTERS = 60

Dependency = Mapping[str, Any] | str
"""An input in a version: its whole version, or "name-hash" for one far above the raw data."""


@dataclass(frozen=True, kw_only=True)
class FieldChange:
    """One versioned field, with its values as JSON. A path below an input is "'name'/path"."""

    field: str
    was: Any
    now: Any
    added: bool = False
    removed: bool = False

    def describe(self) -> str:
        """A phrase: "optimizer.lr: 0.003 -> 0.001"."""
        was = ABSENT if self.added else _shown(self.was)
        now = ABSENT if self.removed else _shown(self.now)
        return f"{self.field}: {was} -> {now}"


@dataclass(frozen=True, kw_only=True)
class InputChange:
    """One input that is of another version."""

    name: str
    was: Dependency
    now: Dependency


@dataclass(frozen=True, kw_only=True)
class Differences:
    fields: tuple[FieldChange, ...]
    inputs: tuple[InputChange, ...]
    """Of the same name on both sides; an input that is new or gone is a field that changed."""


def differences(was: Mapping[str, Any], now: Mapping[str, Any]) -> Differences:
    """The differences between two versions of one step: fields by their names, inputs in the order of the config."""
    before, after = _fields(was), _fields(now)
    changed = (_compare(field, before, after) for field in sorted(before.keys() | after.keys()))
    inputs_was, inputs_now = _inputs(was), _inputs(now)
    return Differences(
        fields=tuple(each for each in changed if each is not None),
        inputs=tuple(
            InputChange(name=name, was=inputs_was[name], now=inputs_now[name])
            for name in inputs_now
            if name in inputs_was and path_of(inputs_was[name]) != path_of(inputs_now[name])
        ),
    )


def path_of(dependency: Dependency) -> str:
    """An input's "name-hash", which is its path below a prefix without an override."""
    if isinstance(dependency, str):
        return dependency
    text = json.dumps(dependency, sort_keys=True)
    return f"{dependency['name']}-{hashlib.md5(text.encode()).hexdigest()[:6]}"


def name_of(dependency: Dependency) -> str:
    return dependency.rpartition("-")[0] if isinstance(dependency, str) else str(dependency["name"])


def _compare(field: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> FieldChange | None:
    if field not in before:
        return FieldChange(field=field, was=None, now=after[field], added=True)
    if field not in after:
        return FieldChange(field=field, was=before[field], now=None, removed=True)
    if json.dumps(before[field], sort_keys=True) == json.dumps(after[field], sort_keys=True):  # 1 is not 1.0
        return None
    return FieldChange(field=field, was=before[field], now=after[field])


def _fields(version: Mapping[str, Any]) -> dict[str, Any]:
    """Field -> value; of an input its name and what is read of it, so that another version of it is no change here."""
    fields = {name: _without_place(value, version) for name, value in (version.get("config") or {}).items()}
    if "partitions" in version:
        fields["(partitions)"] = version["partitions"]
    if version.get("pseudo_dependencies"):
        fields["(inputs)"] = sorted(_inputs(version))
    return fields


def _without_place(value: Any, version: Mapping[str, Any]) -> Any:
    """A field of a version that is an input, with the input's name in place of its number.

    Both kinds of inputs count in one row of numbers, and a version lists each kind by itself. So the name is known only
    where all inputs are of the first kind.
    """
    found = DEPENDENCY.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return value
    dependencies, place = version.get("dependencies") or [], int(found["place"])
    if version.get("pseudo_dependencies") or place >= len(dependencies):
        return f"(input){found['rest']}"
    return f"{name_of(dependencies[place])!r}{found['rest']}"


def _inputs(version: Mapping[str, Any]) -> dict[str, Dependency]:
    """Name -> the input. One graph has one version of a name."""
    found = [*(version.get("dependencies") or ()), *(version.get("pseudo_dependencies") or ())]
    return {name_of(dependency): dependency for dependency in found}


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) and value.startswith("'") else json.dumps(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 1]}…"
