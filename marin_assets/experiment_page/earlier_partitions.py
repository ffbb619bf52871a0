"""The changes of steps with partitions since the newest earlier version of each, by the markers of complete partitions.

In:  versions with partitions, and the store.   Out: why they are of another version.   Written: nothing.

All partitions of a version have one version, so the record of any of them has its fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from marin_assets.plan.reasons.causes import Cause, Why
from marin_assets.plan.reasons.differences import differences
from marin_assets.plan.reasons.read_inputs import Waits
from marin_resources.storage.completion.markers import Mark
from marin_resources.storage.completion.partition_markers import list_files, output_path_in
from marin_resources.storage.output.record import read_record
from marin_resources.storage.output.store import Store
from marin_resources.storage.paths import join
from marin_resources.types.errors import MarinError
from marin_resources.types.record import Record


@dataclass(frozen=True, kw_only=True)
class VersionOfNow:
    """The version of a step, with what is known of its inputs."""

    name: str
    hash: str
    fields: Mapping[str, Any]
    waits: Waits | None = None
    """As the step itself has them; None if it is not in the code."""


@dataclass(frozen=True, kw_only=True)
class _Newest:
    """The newest marker of a version's partitions."""

    version: str
    finished_s: int
    file: str


def why_of_partitions(store: Store, versions: Iterable[VersionOfNow]) -> dict[str, Why]:
    """Name of a step -> the changes since its newest earlier version. Raises UnavailableError."""
    requested = {version.name: version for version in versions}
    if not requested:
        return {}
    newest = _newest(list_files(store.prefix), requested)
    earlier = {name: chosen for name, several in newest.items() if (chosen := _earlier(several, requested[name].hash))}
    return {name: _why(store, requested[name], mark) for name, mark in earlier.items()}


def _newest(files: Iterable[str], names: Mapping[str, Any]) -> dict[str, dict[str, _Newest]]:
    """Name -> version -> its newest marker."""
    newest: dict[str, dict[str, _Newest]] = {}
    for file in files:
        name, dash, version = file.rpartition("/")[0].rpartition("-")
        seconds = file.rpartition(".")[2]
        if not dash or name not in names or not seconds.isdecimal():
            continue
        versions = newest.setdefault(name, {})
        if version not in versions or versions[version].finished_s < int(seconds):
            versions[version] = _Newest(version=version, finished_s=int(seconds), file=file)
    return newest


def _earlier(versions: Mapping[str, _Newest], own: str) -> _Newest | None:
    """The newest other version, before this one if this one has partitions."""
    end = versions[own].finished_s if own in versions else None
    others = [newest for version, newest in versions.items() if version != own]
    before = [newest for newest in others if end is None or newest.finished_s <= end]
    return max(before, key=lambda newest: (newest.finished_s, newest.version), default=None)


def _why(store: Store, now: VersionOfNow, earlier: _Newest) -> Why:
    mark = Mark(
        name=now.name, version=earlier.version, digest="", attempt=0, files=0, bytes=0, finished_s=earlier.finished_s
    )
    try:
        record = read_record(join(store.prefix, output_path_in(earlier.file)))
    except MarinError:  # its fields are not known then, and the page reports that
        record = None
    return why_since(now.fields, mark, record, now.waits)


def why_since(version: Mapping[str, Any], earlier: Mark, record: Record | None, waits: Waits | None = None) -> Why:
    """The changes of a version since the earlier output with this record; none are known without its version."""
    unknown = Why(earlier=earlier, own=(), inputs=(), causes=())
    if record is None or not record.version:
        return unknown
    try:
        changed = differences(record.version, version, was_config=record.config, now_waits=waits)
    except (TypeError, KeyError, AttributeError, ValueError):  # a version of another shape
        return unknown
    causes = tuple(Cause(step=str(version.get("name", "")), change=change) for change in changed.fields)
    inputs = tuple(change.name for change in changed.inputs)
    return Why(earlier=earlier, own=changed.fields, inputs=inputs, causes=causes)
