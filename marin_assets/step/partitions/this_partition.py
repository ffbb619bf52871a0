"""The key that is computed: `this_partition()`, its window of time, and `{partition}` in the path of an input."""

from __future__ import annotations

import glob
from typing import Any

from marin_assets.step.partitions.products import ProductPartitions
from marin_assets.step.partitions.sets import Partitions
from marin_assets.step.partitions.windows import TimePartitions
from marin_assets.step.values import DELIVERY, KEY, PREFIX, ConfigError, PartitionName, WindowName
from marin_resources.types.partition_key import revision_of, segment_of


def mark_of(leaf: PartitionName | WindowName, partitions: Partitions | None, where: str) -> str:
    """The placeholder's text in the version. Raises ConfigError, which begins with `where`, if it has no value."""
    _set_of(leaf, partitions, where)
    placeholder = "PARTITION" if isinstance(leaf, PartitionName) else "WINDOW"
    named = placeholder if leaf.dimension is None else f"{placeholder}[{leaf.dimension}]"
    return f"{named} {leaf.form}" if isinstance(leaf, PartitionName) and leaf.form != KEY else named


def require_key_in(name: str | None, partitions: Partitions | None, where: str) -> None:
    """Raise ConfigError, which begins with `where`, for a path with {partition} in it that is read without a key."""
    if partitions is None and name is not None and (KEY in name or DELIVERY in name):
        raise ConfigError(f"{where} reads {name!r}, and the step has no partitions. Pass partitions= to the step.")


def at_key(name: str | None, key: str | None) -> str | None:
    """A path below an input, with the key of the reader in it. A key is one folder, as in the store."""
    if name is None or key is None:
        return name
    return name.replace(DELIVERY, segment_of(revision_of(key)[0])).replace(KEY, segment_of(key))


def value_of(leaf: PartitionName | WindowName, partitions: Partitions | None, key: str, prefix: str) -> Any:
    """The key, or the start and the end of its window in ISO 8601. `prefix`: of the outputs."""
    own_set = _set_of(leaf, partitions, "The config")
    if leaf.dimension is not None:
        assert isinstance(partitions, ProductPartitions)
        key = partitions.split(key)[leaf.dimension]
    if isinstance(leaf, PartitionName):
        return _filled(leaf, key, prefix)
    assert isinstance(own_set, TimePartitions)
    start, end = own_set.window(key)
    return start.isoformat(), end.isoformat()


def _filled(leaf: PartitionName, key: str, prefix: str) -> str:
    """The form with the key in it. Raises ConfigError for a key that leaves the place that the form gives it."""
    if leaf.form != KEY and not {".", ".."}.isdisjoint(key.split("/")):
        raise ConfigError(
            f"The partition key {key!r} has a folder '.' or '..' in it, so {leaf.form!r} would be the place of another "
            "partition. Rename the key."
        )
    delivery, form = revision_of(key)[0], leaf.form
    if leaf.is_glob:
        delivery, key, prefix = glob.escape(delivery), glob.escape(key), glob.escape(prefix)
    place = prefix.rstrip("/") if form.startswith(PREFIX) else ""
    return place + key.join(part.replace(DELIVERY, delivery) for part in form.removeprefix(PREFIX).split(KEY))


def _set_of(leaf: PartitionName | WindowName, partitions: Partitions | None, where: str) -> Partitions:
    """The set that the placeholder is about."""
    function = "this_partition" if isinstance(leaf, PartitionName) else "this_window"
    call = f"{function}({leaf.dimension!r})" if leaf.dimension is not None else f"{function}()"
    if partitions is None:
        raise ConfigError(f"{where} is {call}, and the step has no partitions. Pass partitions= to the step.")
    if leaf.dimension is not None:
        dimensions = partitions.dimensions if isinstance(partitions, ProductPartitions) else {}
        if leaf.dimension not in dimensions:
            has = f"the dimensions {' and '.join(dimensions)}" if dimensions else "no dimensions"
            raise ConfigError(f"{where} is {call}, and {partitions} has {has}. Correct the name, or leave it out.")
        partitions = dimensions[leaf.dimension]
    if isinstance(leaf, WindowName) and not isinstance(partitions, TimePartitions):
        raise ConfigError(
            f"{where} is {call}, and {partitions} has no windows of time. Use this_partition(), or hourly(), daily(), "
            "weekly() or monthly()."
        )
    return partitions
