"""The partitions of an input that a step reads: fixed by the step's own key, or by keys that enter its version.

    the input and the reader have one set       the reader's own key
    the reader's windows are longer             the windows within the reader's own: a list
    the reader has a product, the input one of  the key of that dimension
      its dimensions
    partition="K", partitions_of(step, […])     the named keys

So the inputs of a path never change. A step that would read "all" of a set that grows is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from marin_assets.step.partitions.products import ProductPartitions
from marin_assets.step.partitions.sets import DynamicPartitions, Partitions, StaticPartitions, listed
from marin_assets.step.partitions.windows import TimePartitions
from marin_assets.step.values import ConfigError, InputName, InputPartitions, PartitionsFolder, StepMarker
from marin_resources.types.partition_key import segment_of

Keys = tuple[str | None, ...]
WINDOW = "@*"


@dataclass(frozen=True)
class Read:
    """The partitions that one reference in a config reads of its input."""

    mark: str
    """Suffix of "DEP[i]" in the version. Empty for an input without partitions, and for the reader's own key."""
    is_list: bool
    keys: Callable[[str | None], Keys]
    """Return the keys of the input for the reader's key; (None,) for an input without partitions."""
    named: tuple[str, ...] = ()
    """The keys, if the config names them."""
    dimension: str | None = None
    """The dimension of the reader's product whose key is read."""


WHOLE = Read(mark="", is_list=False, keys=lambda key: (None,))
SAME = Read(mark="", is_list=False, keys=lambda key: (key,))


def partitions_of(step: StepMarker, keys: Sequence[str] | None = None, name: str | None = None) -> list[str]:
    """The paths of these partitions of `step`, or of `name` below each, as a list in their order.

    Without `keys`: of all partitions of a fixed set. The keys enter the version of the step that reads them. Raises
    ConfigError for a set that grows.
    """
    if not isinstance(step, StepMarker) or step.partitions is None:
        raise ConfigError(f"partitions_of({step!r}) needs a step with partitions=. Use output_path_of() for others.")
    if isinstance(keys, str):
        raise ConfigError(f"partitions_of() has the text {keys!r} for keys, expected a list such as [{keys!r}].")
    named = step.partitions.fixed_keys if keys is None else tuple(keys)
    if named is None:
        raise ConfigError(
            f"partitions_of({step.name!r}) has no keys, and {step.partitions} grows. {_two_ways(step.name)}"
        )
    if not named:
        raise ConfigError(f"partitions_of({step.name!r}, []) names no key. Name those to read.")
    return InputPartitions(step, named, name)  # type: ignore[return-value]


def partitions_folder(step: StepMarker) -> str:
    """The folder of all partitions of `step`, for the function that takes a snapshot of it.

    Its content changes, so an output that is computed from it must hold the list of the partitions read. Raises
    ConfigError for a step without partitions.
    """
    if not isinstance(step, StepMarker) or step.partitions is None:
        raise ConfigError(
            f"partitions_folder({step!r}) needs a step with partitions=. Use output_path_of() for others."
        )
    return PartitionsFolder(step)


def read_of(reader: Partitions | None, leaf: InputName | InputPartitions, where: str) -> Read:
    """Return the Read of an input for a step with the partitions `reader`. Raises ConfigError, which begins with
    `where`."""
    step = leaf.step
    assert step is not None
    source: Partitions | None = step.partitions
    named = leaf.keys if isinstance(leaf, InputPartitions) else () if leaf.key is None else (leaf.key,)
    if source is None:
        if named:
            raise ConfigError(f"{where} names the partition {named[0]!r} of {step.name!r}, which has no partitions=.")
        return WHOLE
    if named:
        return _named(named, source, isinstance(leaf, InputPartitions), where)
    if reader is None:
        raise ConfigError(f"{where} reads {step.name!r}, which has partitions, and has none itself. {_ways(step.name)}")
    if isinstance(reader, ProductPartitions) and not isinstance(source, ProductPartitions):
        return _of_dimension(reader, source, step.name, where)
    related = _related(reader, source)
    if isinstance(related, str):
        raise ConfigError(f"{where} reads {step.name!r} {related} {_ways(step.name)}")
    return related


def _named(keys: tuple[str, ...], source: Partitions, is_list: bool, where: str) -> Read:
    for key in keys:
        try:
            source.require(key)
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from None
    segments = ",".join(map(segment_of, keys))
    mark = f"@[{segments}]" if is_list else f"@{segments}"
    return Read(mark=mark, is_list=is_list, keys=lambda key: keys, named=keys)


def _of_dimension(reader: ProductPartitions, source: Partitions, name: str, where: str) -> Read:
    fitting = [dimension for dimension, own in reader.dimensions.items() if _related(own, source) is SAME]
    if len(fitting) != 1:
        which = "both" if fitting else "neither"
        raise ConfigError(
            f"{where} reads {name!r}, and {which} of the dimensions of {reader} fit {source}. {_ways(name)}"
        )
    [dimension] = fitting
    return Read(
        mark=f"@{{{dimension}}}",
        is_list=False,
        keys=lambda key: (reader.split(str(key))[dimension],),
        dimension=dimension,
    )


def _related(reader: Partitions, source: Partitions) -> Read | str:
    """Return the Read of partitions of `source` by those of `reader`, or, if none exists, a phrase that follows the
    input's name."""
    if isinstance(reader, StaticPartitions) and isinstance(source, StaticPartitions):
        source_keys = frozenset(source.keys)
        absent = [key for key in reader.keys if key not in source_keys]
        return f"at its own keys, and that lacks {listed(absent)}." if absent else SAME
    if isinstance(reader, DynamicPartitions) and reader == source:
        return SAME
    if isinstance(reader, TimePartitions) and isinstance(source, TimePartitions):
        return _related_in_time(reader, source)
    if isinstance(reader, ProductPartitions) and isinstance(source, ProductPartitions):
        pairs = [(own, source.dimensions.get(name)) for name, own in reader.dimensions.items()]
        if all(other is not None and _related(own, other) is SAME for own, other in pairs):
            return SAME
    return f"at its own keys, which are those of {reader}, and that has {source}."


def _related_in_time(reader: TimePartitions, source: TimePartitions) -> Read | str:
    if source.start > reader.start:
        return f"from {reader.key_at(reader.start)!r} on, and that begins with {source.key_at(source.start)!r}."
    if reader.cadence is source.cadence:
        return SAME
    if not source.cadence.divides(reader.cadence):
        return f"for windows of {reader}, which do not consist of windows of {source}."
    return Read(mark=WINDOW, is_list=True, keys=lambda key: tuple(source.keys_between(*reader.window(str(key)))))


def _ways(name: str) -> str:
    return (
        f"Name what it reads: output_path_of(step, partition='…') or partitions_of(step, […]) of {name!r}. Or give it "
        "the same partitions."
    )


def _two_ways(name: str) -> str:
    return (
        f"What is read must not change behind a version. Name the keys: partitions_of(step, […]). Or read a snapshot "
        f"of {name!r}, which is made once for each of its own keys: default_snapshot()."
    )
