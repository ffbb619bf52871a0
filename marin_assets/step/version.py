"""A step's version: Marin's hash of its name, its versioned config fields and the versions of its inputs.

    version  = {"name": …, "config": {"a.b.[0]": <versioned value | "DEP[i]/sub" | hardcoded path>},
                "dependencies": [<version of input i>, …], "pseudo_dependencies": […] if any,
                "partitions": <kind of its set of partitions> if it has one}
    text     = json.dumps(version, sort_keys=True)
    hash     = md5(text)[:6]                             the path is <name>-<hash>
    identity = sha256(version)                           compared in full before a reuse: six digits can collide

An input up to four levels above the raw data enters as its whole version, a deeper one as "name-hash", so texts stay
short. The algorithm is Marin's to the letter (marin-community/marin, lib/marin/src/marin/execution/executor.py), and
the golden table in tests/ may never change. Where Marin hashes the `str()` of a value it does not know, which
differs between processes, this raises.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import PurePath
from typing import Any

from marin_assets.step.partitions.reads import Read, read_of
from marin_assets.step.partitions.this_partition import mark_of, require_key_in
from marin_assets.step.step import Step
from marin_assets.step.values import (
    SCALARS,
    ConfigError,
    InputName,
    InputPartitions,
    MirroredValue,
    PartitionName,
    PartitionsFolder,
    Placeholder,
    VersionedValue,
    WindowName,
    field_names,
    require_shallow,
)
from marin_resources.types.output import identity_of

MAX_INLINE_DEPTH = 4
"""Inputs deeper than this enter a version by hash. Marin's _MAX_INLINE_DEPTH."""


@dataclass(frozen=True)
class Inputs:
    """The identity in a config: versioned fields by their path in the config, and the steps that it reads."""

    fields: Mapping[str, Any]
    dependencies: tuple[Step, ...]
    pseudo_dependencies: tuple[Step, ...]
    reads: tuple[tuple[Step, Read], ...]
    """Each dependency with the partitions that are read of it; a step may be read in several ways."""
    partitions: Any = None
    """The mark of the step's own set of partitions."""
    pseudo_places: frozenset[int] = frozenset()
    """The numbers i of those DEP[i] in `fields` that are pseudo-dependencies."""


@dataclass(frozen=True)
class Version:
    """The identity of a step. `text` is all of it; the other fields are derived from `text`."""

    name: str
    hash: str
    text: str
    depth: int

    @property
    def path(self) -> str:
        """The output's path below a prefix: "<name>-<hash>"."""
        return f"{self.name}-{self.hash}"

    @cached_property
    def identity(self) -> str:
        return identity_of(self.as_dict())

    def as_dict(self) -> dict[str, Any]:
        """The version as Marin's records hold it."""
        return json.loads(self.text)


def read_inputs(step: Step) -> Inputs:
    """Walk the step's config, dataclass fields in order. Raises ConfigError that names the step and the field."""
    require_shallow(step.config, f"Step {step.name!r} config")
    fields: dict[str, Any] = {}
    dependencies: list[Step] = []
    pseudo: list[Step] = []
    reads: list[tuple[Step, Read]] = []
    pseudo_places: set[int] = set()
    for place, leaf in _leaves(step.config, "", step):
        where = f"Step {step.name!r} config.{place}"
        if isinstance(leaf, VersionedValue):
            fields[place] = stable_json(leaf.value, where)
        elif isinstance(leaf, PartitionName | WindowName):
            fields[place] = mark_of(leaf, step.partitions, where)
        elif isinstance(leaf, PartitionsFolder):
            fields[place] = f"DEP[{len(dependencies) + len(pseudo)}]@/"
            pseudo_places.add(len(dependencies) + len(pseudo))
            pseudo.append(leaf.step)  # type: ignore[arg-type]
        elif isinstance(leaf, InputName) and leaf.step is None:
            fields[place] = leaf.name
        elif isinstance(leaf, InputName | InputPartitions):
            source: Step = leaf.step  # type: ignore[assignment]
            read = read_of(step.partitions, leaf, where)
            require_key_in(leaf.name, step.partitions, where)
            below = f"/{leaf.name}" if leaf.name else ""
            fields[place] = f"DEP[{len(dependencies) + len(pseudo)}]{read.mark}{below}"
            blocking = isinstance(leaf, InputPartitions) or leaf.block_on_step
            if not blocking:
                pseudo_places.add(len(dependencies) + len(pseudo))
            (dependencies if blocking else pseudo).append(source)
            if blocking:
                reads.append((source, read))
    mark = None if step.partitions is None else step.partitions.mark
    return Inputs(fields, tuple(dependencies), tuple(pseudo), tuple(reads), mark, frozenset(pseudo_places))


def compute_version(name: str, inputs: Inputs, versions: Mapping[Step, Version]) -> Version:
    """The version of a step of this name, given the versions of its inputs."""
    deps = [versions[step] for step in inputs.dependencies]
    pseudo = [versions[step] for step in inputs.pseudo_dependencies]
    text = _text(name, inputs.fields, deps, pseudo, inputs.partitions)
    depth = 1 + max((version.depth for version in deps), default=-1)  # as in Marin, pseudo-dependencies do not count
    return Version(name=name, hash=hashlib.md5(text.encode()).hexdigest()[:6], text=text, depth=depth)


def stable_json(value: Any, where: str) -> Any:
    """The JSON form of a versioned value, the same in every process.

    Marin's encoder: Path and float types as text, Enum by value, timedelta as a dict, dataclasses as dicts.
    Raises ConfigError for NaN, sets, callables, and every other value of which Marin would hash the `str()`.
    """
    if value is None or (isinstance(value, bool | int | str) and not isinstance(value, enum.Enum)):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ConfigError(f"{where} is {value!r}, which is not a number that JSON has. Use a finite one or None.")
        return value
    if isinstance(value, enum.Enum):
        return stable_json(value.value, where)
    if isinstance(value, timedelta):
        return {"days": value.days, "seconds": value.seconds, "microseconds": value.microseconds}
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, VersionedValue | Placeholder | Step):
        raise ConfigError(
            f"{where} has {value!r} inside versioned(). Put versioned() on plain values only, and paths beside them."
        )
    if isinstance(value, list | tuple):
        return [stable_json(item, f"{where}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, dict):
        _refuse_mixed_keys(value, where)
        return {key: stable_json(item, f"{where}[{key!r}]") for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: stable_json(getattr(value, f.name), f"{where}.{f.name}") for f in dataclasses.fields(value)}
    if _is_jax_float_type(value):
        return str(value)
    raise ConfigError(
        f"{where} is {value!r} of type {type(value).__name__}, which has no stable JSON form to make a version of. "
        "Use None, bool, int, float, str, list, dict, Enum, Path, timedelta or a dataclass of these."
    )


def plain_leaves(config: Any) -> Iterator[tuple[str, Any]]:
    """The leaves that do not enter the version, by their path in the config."""
    for place, leaf in _leaves(config, "", None):
        if not isinstance(leaf, VersionedValue | Placeholder):
            yield place, leaf


def _leaves(value: Any, place: str, step: Step | None) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Step):
        yield place, InputName(value)
    elif isinstance(value, MirroredValue):
        yield from _leaves(value.value, place, step)
    elif isinstance(value, VersionedValue | Placeholder):
        yield place, value
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for name in field_names(type(value)):
            inner, path = getattr(value, name), f"{place}.{name}" if place else name
            if type(inner) in SCALARS:
                yield path, inner
            else:
                yield from _leaves(inner, path, step)
    elif isinstance(value, list | tuple):
        for i, item in enumerate(value):
            yield from _leaves(item, f"{place}.[{i}]" if place else f"[{i}]", step)
    elif isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise ConfigError(
                    f"Step {_named(step)} config.{place} has the key {key!r}, expected a text. Use texts as keys."
                )
            yield from _leaves(item, f"{place}.{key}" if place else key, step)
    elif isinstance(value, set | frozenset):
        raise ConfigError(f"Step {_named(step)} config.{place} is a set, which has no order. Use a sorted tuple.")
    else:
        yield place, value


def _text(
    name: str, fields: Mapping[str, Any], deps: Iterable[Version], pseudo: Iterable[Version], partitions: Any
) -> str:
    """json.dumps(version, sort_keys=True), joined from the texts of the inputs, which have this form."""
    parts = [
        f'"config": {json.dumps(fields, sort_keys=True)}',
        f'"dependencies": [{", ".join(map(_inline, deps))}]',
        f'"name": {json.dumps(name)}',
    ]
    if partitions is not None:
        parts.append(f'"partitions": {json.dumps(partitions, sort_keys=True)}')
    if inlined := ", ".join(map(_inline, pseudo)):
        parts.append(f'"pseudo_dependencies": [{inlined}]')
    return "{" + ", ".join(parts) + "}"


def _inline(version: Version) -> str:
    return version.text if version.depth <= MAX_INLINE_DEPTH else json.dumps(version.path)


def _named(step: Step | None) -> str:
    return repr(step.name) if step is not None else "?"


def _refuse_mixed_keys(value: Mapping[Any, Any], where: str) -> None:
    """JSON sorts keys, so they must have one type."""
    for kind in (str, int, type(None)):
        if all(isinstance(key, kind) for key in value):
            return
    raise ConfigError(f"{where} has the keys {list(value)[:5]!r}, which have no stable JSON form. Use texts.")


def _is_jax_float_type(value: Any) -> bool:
    jnp = sys.modules.get("jax.numpy")
    return jnp is not None and any(value is float_type for float_type in (jnp.float32, jnp.bfloat16))
