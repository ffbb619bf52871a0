"""The differences between two versions of a step: versioned fields, and inputs that are of another version.

In:  two versions, as records hold them (see `step/version.py`).   Out: fields with both values, and inputs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from marin_assets.plan.reasons.read_inputs import (
    Dependency,
    ReadInput,
    Waits,
    fields_by_place,
    inputs_read,
    is_certain,
    likely_waits,
    name_of,
    path_of,
)

ABSENT = "(absent)"
WAITED = "(inputs waited for)"
SHOWN_CHARACTERS = 60


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
    """Inputs of the same name on both sides; an input that is new or gone is a field that changed."""


def differences(
    was: Mapping[str, Any],
    now: Mapping[str, Any],
    *,
    was_config: Any = None,
    now_config: Any = None,
    now_waits: Waits | None = None,
) -> Differences:
    """The differences between two versions of one step: fields by their names, inputs in the order of the config.

    `was_config`, `now_config`: the configs of their records. `now_waits`: as the step of the second one has them.
    Versions that differ have at least one difference.
    """
    read_was, read_now = _read(was, now, was_config, now_config, now_waits)
    before, after = _fields(was, read_was, read_now), _fields(now, read_now, read_was)
    changed = [_compare(field, before, after) for field in sorted(before.keys() | after.keys())]
    fields = tuple(change for change in (*changed, _waits_changed(read_was, read_now)) if change is not None)
    inputs_was, inputs_now = _inputs(was), _inputs(now)
    inputs = tuple(
        InputChange(name=name, was=inputs_was[name], now=inputs_now[name])
        for name in inputs_now
        if name in inputs_was and path_of(inputs_was[name]) != path_of(inputs_now[name])
    )
    if not fields and not inputs and path_of(was) != path_of(now):
        fields = (_other_order(was, now),)
    return Differences(fields=fields, inputs=inputs)


Reads = Mapping[str, ReadInput]


def _read(
    was: Mapping[str, Any], now: Mapping[str, Any], was_config: Any, now_config: Any, now_waits: Waits | None
) -> tuple[Reads, Reads]:
    """The inputs that the fields of both versions read."""
    if now_waits is not None:
        read_now = inputs_read(now, now_waits, is_sure=True)
    else:
        read_now = inputs_read(now, likely_waits(now, now_config))
        if not is_certain(now):  # the other version holds more of it
            reads_was = inputs_read(was, likely_waits(was, was_config, read_now))
            read_now = inputs_read(now, likely_waits(now, now_config, reads_was))
    return inputs_read(was, likely_waits(was, was_config, read_now)), read_now


def _waits_changed(was: Reads, now: Reads) -> FieldChange | None:
    """The inputs of which more or fewer fields wait than before, where it is not known which fields do: only if fields
    that stay must have changed."""
    unsure = {source.name for source in (*was.values(), *now.values()) if not source.is_sure}
    changed = [name for name in sorted(unsure) if _waiting(name, was, now).isdisjoint(_waiting(name, now, was))]
    before, after = (
        [source.name for source in read.values() if source.waits and source.name in changed] for read in (was, now)
    )
    return FieldChange(field=WAITED, was=sorted(before), now=sorted(after)) if changed else None


def _waiting(name: str, reads: Reads, others: Reads) -> set[int]:
    """The possible numbers of fields that read the input in both versions and wait for it in the first one."""
    fields = [field for field, source in reads.items() if source.name == name]
    both = [field for field in fields if field in others and others[field].name == name]
    total = sum(reads[field].waits for field in fields)
    if all(reads[field].is_sure for field in fields):
        return {sum(reads[field].waits for field in both)}
    return set(range(max(0, total - len(fields) + len(both)), min(len(both), total) + 1))


def _other_order(was: Mapping[str, Any], now: Mapping[str, Any]) -> FieldChange:
    """The change of order between versions with the same fields: a config that lists them in another order reads its
    inputs in another order."""
    before, after = _order(was), _order(now)
    if before != after:
        return FieldChange(field="(order of inputs)", was=before, now=after)
    # fields that read one step have exchanged which of them waits for it
    return FieldChange(field=WAITED, was=_both_rows(was), now=_both_rows(now))


def _both_rows(version: Mapping[str, Any]) -> dict[str, list[str]]:
    rows = {"waited for": "dependencies", "not waited for": "pseudo_dependencies"}
    return {kind: [name_of(dependency) for dependency in version.get(row) or ()] for kind, row in rows.items()}


def _order(version: Mapping[str, Any]) -> list[str]:
    return [field for fields in fields_by_place(version) for field, _ in fields]


def _compare(field: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> FieldChange | None:
    if field not in before:
        return FieldChange(field=field, was=None, now=after[field], added=True)
    if field not in after:
        return FieldChange(field=field, was=before[field], now=None, removed=True)
    if json.dumps(before[field], sort_keys=True) == json.dumps(after[field], sort_keys=True):  # 1 is not 1.0
        return None
    return FieldChange(field=field, was=before[field], now=after[field])


def _fields(version: Mapping[str, Any], read: Reads, other: Reads) -> dict[str, Any]:
    """Field -> value; of an input its name and the part that is read, so another version of it is no change here."""
    config = version.get("config") or {}
    fields = {
        field: read[field].describe(other.get(field)) if field in read else value for field, value in config.items()
    }
    if "partitions" in version:
        fields["(partitions)"] = version["partitions"]
    return fields


def _inputs(version: Mapping[str, Any]) -> dict[str, Dependency]:
    """Name -> the input. One graph has one version of a name."""
    dependencies = [*(version.get("dependencies") or ()), *(version.get("pseudo_dependencies") or ())]
    return {name_of(dependency): dependency for dependency in dependencies}


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) and value.startswith("'") else json.dumps(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 1]}…"
