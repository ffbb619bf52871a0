"""The input that each field of a version reads, and whether the step waits for it.

A field holds DEP[i]: inputs that are waited for and others count in one row, and a version lists each kind by itself.
The step itself has the order, and the config in a record has the paths. Without both, that order is taken which
explains the other version with the fewest differences.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from marin_assets.step.step import Step
from marin_assets.step.version import read_inputs
from marin_resources.drift.config import fields_of

DEPENDENCY = re.compile(r"DEP\[(?P<place>\d+)\](?P<rest>.*)", re.DOTALL)
"""A field of a version that is an input: its place among the inputs, then partitions and path below it."""
FOLDER = "@/"
"""The rest of a field that reads the folder of all partitions, for which no step waits."""
BY_PATH, BY_NAME, BY_WAIT = 1000, 2, 1
"""Scores of an order: a path in the config; the input of this name in the other version, that waits likewise."""

Dependency = Mapping[str, Any] | str
"""An input in a version: its whole version, or "name-hash" for one far above the raw data."""
Waits = tuple[bool, ...]
"""For each place whether the step waits for the input there."""


@dataclass(frozen=True, kw_only=True)
class ReadInput:
    """An input as one field reads it."""

    name: str
    rest: str
    waits: bool
    is_sure: bool = True
    """Whether `waits` is known of this field. No record holds which of the fields that read one step waits for it."""

    def describe(self, other: ReadInput | None = None) -> str:
        """ "'raw/a'/en"; "'raw/a' (not waited for)" for an input that need not be complete. `other`: the input of the
        same field in the other version."""
        is_sure = self.is_sure and (other is None or other.is_sure or other.name != self.name)
        how = "" if self.waits or not is_sure or self.rest.startswith(FOLDER) else " (not waited for)"
        return f"{self.name!r}{self.rest}{how}"


def path_of(dependency: Dependency) -> str:
    """An input's "name-hash", which is its path below a prefix without an override."""
    if isinstance(dependency, str):
        return dependency
    text = json.dumps(dependency, sort_keys=True)
    return f"{dependency['name']}-{hashlib.md5(text.encode()).hexdigest()[:6]}"


def name_of(dependency: Dependency) -> str:
    return dependency.rpartition("-")[0] if isinstance(dependency, str) else str(dependency["name"])


def waits_of(step: Step) -> Waits:
    """The waits of the step itself."""
    inputs = read_inputs(step)
    count = len(inputs.dependencies) + len(inputs.pseudo_dependencies)
    return tuple(place not in inputs.pseudo_places for place in range(count))


def is_certain(version: Mapping[str, Any]) -> bool:
    """Whether the version alone determines which input each field reads."""
    return not (version.get("dependencies") and version.get("pseudo_dependencies"))


def inputs_read(version: Mapping[str, Any], waits: Waits, *, is_sure: bool = False) -> dict[str, ReadInput]:
    """Field -> the input that it reads. `is_sure`: whether `waits` are those of the step itself."""
    rows = {True: iter(_row(version, True)), False: iter(_row(version, False))}
    names = [name_of(next(rows[waited])) for waited in waits]
    both = set(map(name_of, _row(version, True))) & set(map(name_of, _row(version, False)))
    return {
        field: ReadInput(name=names[place], waits=waits[place], rest=rest, is_sure=is_sure or names[place] not in both)
        for place, fields in enumerate(fields_by_place(version))
        for field, rest in fields
    }


def likely_waits(version: Mapping[str, Any], config: Any = None, other: Mapping[str, ReadInput] | None = None) -> Waits:
    """The likeliest order of the two kinds. `config`: the function's config, by the record; `other`: the inputs that
    another version of the step reads."""
    waited, unwaited = _row(version, True), _row(version, False)
    if is_certain(version):
        return (True,) * len(waited) + (False,) * len(unwaited)
    score = _scores(version, fields_of(config), other or {})
    best: list[dict[int, tuple[int, int]]] = [{0: (0, 0)}]
    for place in range(len(waited) + len(unwaited)):
        following: dict[int, tuple[int, int]] = {}
        for used, (sum_of, _) in best[-1].items():
            for waits, row, at in ((True, waited, place - used), (False, unwaited, used)):
                if at < len(row):
                    now = sum_of + score(place, row[at], waits)
                    after = used + (not waits)
                    if after not in following or now > following[after][0]:
                        following[after] = (now, used)
        best.append(following)
    return _way_back(best, len(unwaited))


def _way_back(best: Sequence[Mapping[int, tuple[int, int]]], used: int) -> Waits:
    waits = []
    for states in reversed(best[1:]):
        before = states[used][1]
        waits.append(before == used)
        used = before
    return tuple(reversed(waits))


def _scores(
    version: Mapping[str, Any], config: Mapping[str, Any], other: Mapping[str, ReadInput]
) -> Callable[[int, Dependency, bool], int]:
    by_place = fields_by_place(version)
    texts = [[text for field, _ in fields for text in _texts(config, field)] for fields in by_place]
    paths = {id(dependency): path_of(dependency) for waits in (True, False) for dependency in _row(version, waits)}

    def score(place: int, dependency: Dependency, waits: bool) -> int:
        path, name, points = f"/{paths[id(dependency)]}/", name_of(dependency), 0
        for field, rest in by_place[place]:
            same = other.get(field)
            points += -10 * BY_PATH * (waits and rest.startswith(FOLDER))
            points += BY_NAME * (same is not None and same.name == name)
            points += BY_WAIT * (same is not None and same.waits == waits)
        return points + BY_PATH * any(path in f"{text}/" for text in texts[place])

    return score


def _texts(config: Mapping[str, Any], field: str) -> list[str]:
    """The paths of the field in a config: one, or a list of those of partitions."""
    values = (value for name, value in config.items() if name == field or name.startswith(f"{field}.["))
    return [value for value in values if isinstance(value, str)]


def fields_by_place(version: Mapping[str, Any]) -> list[list[tuple[str, str]]]:
    """For each place the fields that read it, each with the rest of its value."""
    places: list[list[tuple[str, str]]] = [[] for waits in (True, False) for _ in _row(version, waits)]
    for field, value in (version.get("config") or {}).items():
        match = DEPENDENCY.fullmatch(value) if isinstance(value, str) else None
        if match is not None and int(match["place"]) < len(places):
            places[int(match["place"])].append((field, match["rest"]))
    return places


def _row(version: Mapping[str, Any], waits: bool) -> Sequence[Dependency]:
    return version.get("dependencies" if waits else "pseudo_dependencies") or ()
