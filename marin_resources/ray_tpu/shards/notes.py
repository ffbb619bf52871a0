"""Notes of finished shards, beside the output: `.marin/shards/<function>/<key>.json`.

The key is a digest of the function, its config, and the input files with their sizes and stamps. So a shard that was
finished under another config, or from other bytes, is another shard. A note is written after the shard's outputs, and
is valid only while they exist with their sizes. Outputs without a valid note are removed before their shard runs: its
function creates them and never overwrites a file.

`.marin/shards/<function>/<key>.outputs` names all outputs of a run's shards, and is written before they run. By it a
later run, whose inputs have changed, finds what a killed run has written under names that are none of its own.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from marin_resources.storage.control.control import delete
from marin_resources.storage.control.protocol import ConflictError
from marin_resources.storage.files import StoredFile, read_bytes, remove, size_of, stored_files, write_json
from marin_resources.storage.filesystems.disk import TEMPORARY_SUFFIX
from marin_resources.storage.paths import is_local, join
from marin_resources.types.errors import MarinError
from marin_resources.types.versioned_json import ANY, ControlFileError, Required, VersionedJson, misfit

FORMAT_VERSION = 2
FOLDER = ".marin/shards"
ANNOUNCED = ".outputs"
ANNOUNCEMENT = {"outputs": Required([str])}
SHAPE = {"outputs": Required({ANY: Required(int)}), "counts": Required(dict)}

Counts = dict[str, int | float]
log = logging.getLogger(__name__)


class ShardNoteError(ControlFileError):
    """A note that cannot be read: one sentence with its path."""


FORMAT = VersionedJson(kind="note of a shard", newest=FORMAT_VERSION, error=ShardNoteError)
ANNOUNCEMENT_FORMAT = VersionedJson(kind="list of shards' outputs", newest=FORMAT_VERSION, error=ShardNoteError)


class ShardLostError(MarinError):
    """The output of a finished shard is missing or another writer's: one sentence."""


class ShardNotes:
    """The notes of one function below one output, for the shards of this run."""

    def __init__(self, output_path: str, reference: str, encoded: Sequence[str], shards: Sequence[Any]) -> None:
        self._output_path, self._reference = output_path, reference
        self._folder = f"{FOLDER}/{reference.rpartition(':')[2]}"
        keys = (_key(reference, text, shard.inputs) for text, shard in zip(encoded, shards, strict=True))
        self._notes = [f"{self._folder}/{key}.json" for key in keys]
        self._outputs = [self._names(shard) for shard in shards]
        self._declared = {name for names in self._outputs for name in names}
        digest = hashlib.sha256(json.dumps(sorted(self._declared)).encode()).hexdigest()[:24]
        self._announcement = f"{self._folder}/{digest}{ANNOUNCED}"
        self._leftovers: set[str] = set()
        """Names of outputs of earlier runs that are none of this run's."""
        self._finished: dict[str, int] = {}
        """Sizes in bytes of the outputs of finished shards, by name."""

    def finished(self) -> dict[int, Counts]:
        """Return the counts of the finished shards, by their index.

        Remove outputs of unfinished shards and of other shards of this function, and temporary files of killed workers:
        the output then holds data of this run's shards alone.
        """
        existing = self._existing()
        self._remove_leftovers(existing)
        self._announced = self._announcement in existing
        done: dict[int, Counts] = {}
        for index, name in enumerate(self._notes):
            note = self._read(name) if name in existing else None
            if note and _is_whole(note["outputs"], self._outputs[index], existing):
                done[index] = note["counts"]
                self._finished |= note["outputs"]
            else:
                self._remove_outputs(index, existing)
        return done

    def announce(self) -> None:
        """Write the names of all outputs of this run, before its first shard runs."""
        if self._declared and not self._announced:
            names = {"format_version": FORMAT_VERSION, "fn": self._reference, "outputs": sorted(self._declared)}
            write_json(join(self._output_path, self._announcement), names)

    def discard(self, index: int) -> None:
        """Remove the partial outputs of a shard whose worker was lost."""
        self._remove_outputs(index, self._existing())

    def write(self, index: int, counts: Counts, seconds: float) -> None:
        """Note that a shard is finished. Raises FileNotFoundError if one of its outputs does not exist."""
        sizes = {name: _size(join(self._output_path, name)) for name in self._outputs[index]}
        self._finished |= sizes
        note = {"format_version": FORMAT_VERSION, "fn": self._reference, "outputs": sizes, "counts": counts}
        write_json(join(self._output_path, self._notes[index]), {**note, "seconds": round(seconds, 3)})

    def close(self) -> None:
        """Remove temporary files of workers that were lost during the run.

        Raises ShardLostError if an output of a finished shard is missing or has another size: a late earlier writer
        changed it.
        """
        existing = self._existing()
        for name, size_bytes in self._finished.items():
            if name not in existing or existing[name].size_bytes != size_bytes:
                now = f"{existing[name].size_bytes} bytes large" if name in existing else "missing"
                raise ShardLostError(
                    f"{name!r} below {self._output_path!r} is {now}, and its shard wrote {size_bytes} bytes. "
                    "Another writer changes this output; run again."
                )
        self._remove_named(self._leftovers, existing)  # a worker of an earlier run may have been late
        _remove_temporaries(existing)

    def _names(self, shard: Any) -> list[str]:
        """Return the names of a shard's outputs, from its attribute `outputs` if it has one."""
        return [path.removeprefix(self._output_path.rstrip("/") + "/") for path in getattr(shard, "outputs", ())]

    def _existing(self) -> dict[str, StoredFile]:
        """Return all files below the output by name, control files too."""
        try:
            return {file.name: file for file in stored_files(self._output_path, hidden=True)}
        except FileNotFoundError:
            return {}

    def _remove_outputs(self, index: int, existing: Mapping[str, StoredFile]) -> None:
        for name in self._outputs[index]:
            if name in existing:
                _remove(existing[name], "its shard was not finished")

    def _read(self, name: str) -> dict[str, Any] | None:
        path = join(self._output_path, name)
        note = FORMAT.parse(read_bytes(path), path)
        if note["format_version"] != FORMAT_VERSION:
            return None
        if wrong := misfit(note, SHAPE):
            raise FORMAT.damaged(path, f"has {wrong}")
        return note

    def _remove_leftovers(self, existing: Mapping[str, StoredFile]) -> None:
        current = {*self._notes, self._announcement}
        stale = [name for name in existing if name.startswith(f"{self._folder}/") and name not in current]
        for name in stale:
            if name.endswith(".json"):
                self._leftovers |= set((self._read(name) or {"outputs": {}})["outputs"])
            elif name.endswith(ANNOUNCED):
                self._leftovers |= set(self._read_announcement(name))
        self._leftovers -= self._declared
        self._remove_named(self._leftovers, existing)
        self._remove_named([name for name in stale if name.endswith((".json", ANNOUNCED))], existing)
        _remove_temporaries(existing)

    def _read_announcement(self, name: str) -> Sequence[str]:
        path = join(self._output_path, name)
        announcement = ANNOUNCEMENT_FORMAT.parse(read_bytes(path), path)
        if wrong := misfit(announcement, ANNOUNCEMENT):
            raise ANNOUNCEMENT_FORMAT.damaged(path, f"has {wrong}")
        return announcement["outputs"]

    def _remove_named(self, names: Iterable[str], existing: Mapping[str, StoredFile]) -> None:
        for name in sorted(names):
            if name in existing:
                _remove(existing[name], "it belongs to a shard that is not in this run")


def _remove_temporaries(existing: Mapping[str, StoredFile]) -> None:
    for name in filter(_is_temporary, existing):
        _remove(existing[name], "a killed worker did not finish it")


def _remove(file: StoredFile, reason: str) -> None:
    """Remove a file in the listed generation: a newer writer's file stays."""
    log.info("removing %s: %s", file.name, reason)
    if is_local(file.path):  # on a disk the kernel's lock excludes an older writer
        remove(file.path)
        return
    with suppress(ConflictError):
        delete(file.path, expected=file.stamp)


def _is_whole(noted: Mapping[str, int], declared: Sequence[str], existing: Mapping[str, StoredFile]) -> bool:
    whole = (name in existing and existing[name].size_bytes == size for name, size in noted.items())
    return set(noted) == set(declared) and all(whole)


def _is_temporary(name: str) -> bool:
    return name.rpartition("/")[2].startswith(".") and name.endswith(TEMPORARY_SUFFIX)


def _size(path: str) -> int:
    try:
        return size_of(path)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"The shard returned, but its output {path!r} does not exist.") from error


def _key(reference: str, encoded: str, inputs: Sequence[StoredFile]) -> str:
    state = [(file.path, file.size_bytes, file.stamp) for file in inputs]
    return hashlib.sha256(f"{reference}\n{encoded}\n{state!r}".encode()).hexdigest()[:24]
