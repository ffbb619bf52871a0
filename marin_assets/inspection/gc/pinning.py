"""Pin outputs: the paths that a name stands for, and what a new pin needs that was collected."""

from __future__ import annotations

from collections.abc import Sequence

from marin_assets.catalog.code_location import select_nodes
from marin_assets.inspection.gc.ancestors import made_from
from marin_assets.inspection.gc.stored_outputs import StoredOutputs
from marin_assets.step.values import ConfigError
from marin_resources.storage.collect.pins import Pin
from marin_resources.storage.output.notes.collection import Collected
from marin_resources.storage.output.status import read_status
from marin_resources.storage.paths import join, name_below
from marin_resources.types.output import Status

SHOWN = 8


def outputs_of(name: str, stored: StoredOutputs) -> list[str]:
    """The paths below the prefix that a name stands for: that of a stored output or of a version with partitions, a
    path or a label; or those of the steps of this code location that it selects. All of them are complete or collected.

    Raises ConfigError.
    """
    given = name_below(name, stored.prefix)
    stored_paths = _known(stored)
    if given in stored_paths or _is_complete(stored, given):
        return [given]
    labels = {stored_output.label: stored_output.relative for stored_output in stored.all if stored_output.partition}
    if given in labels:
        return [labels[given]]
    try:
        _, nodes = select_nodes([name], None)
    except ConfigError:
        return [_only_version(given, stored_paths, stored.prefix)]
    paths = [node.output.relative() for node in nodes]
    missing = [path for path in paths if path not in stored_paths and not _is_complete(stored, path)]
    if missing:
        raise ConfigError(
            f"{name!r} selects {_listed(missing)}, which {'is' if len(missing) == 1 else 'are'} not complete at "
            f"{stored.prefix!r}. Materialize it first, or give the path of a stored output."
        )
    return paths


def collected_inputs(pin: Pin, stored: StoredOutputs, prefixes: Sequence[str]) -> list[Collected]:
    """The collected ones of the outputs that the pin keeps."""
    retained = {pin.output, *([] if pin.alone else made_from(pin.output, stored, prefixes))}
    return [note for note in stored.collected if retained.intersection((note.relative, f"{note.name}-{note.version}"))]


def _known(stored: StoredOutputs) -> set[str]:
    notes = stored.collected
    whole = {f"{note.name}-{note.version}" for note in notes}
    return {*stored.by_path, *stored.partitions_of, *(note.relative for note in notes), *whole}


def _is_complete(stored: StoredOutputs, relative: str) -> bool:
    """Whether an output without a marker is complete: one of Marin's, or one at a path of its own."""
    return read_status(join(stored.prefix, relative)) is Status.SUCCESS


def _only_version(name: str, stored_paths: set[str], prefix: str) -> str:
    """The stored version of a step that this code location does not have."""
    versions = sorted(path for path in stored_paths if path.rpartition("-")[0] == name)
    if len(versions) == 1:
        return versions[0]
    if versions:
        raise ConfigError(
            f"{name!r} has {len(versions)} stored versions: {_listed(versions)}. Give one of these paths."
        )
    raise ConfigError(
        f"{name!r} is neither an output below {prefix!r} nor a step of this code location. Give a path below the "
        "prefix, such as 'tokenized/web-3f2a1c', or part of a step's name."
    )


def _listed(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - SHOWN} more" if len(paths) > SHOWN else ""
    return f"{', '.join(map(repr, paths[:SHOWN]))}{more}"
