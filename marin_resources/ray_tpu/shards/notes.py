"""What is known of finished shards, beside the output: `.marin/shards/<function>/<key>.json`.

The key is a digest of all that was asked: the function, its config, and the input files with their sizes and stamps.
So a shard that was finished under another config, or from other bytes, is another shard. A note is written after the
shard's outputs, and counts only while they are there at their sizes. Outputs without a note that counts are removed
before their shard is worked on: its function creates them, and never writes over what is there.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from marin_resources.storage.control.control import delete
from marin_resources.storage.control.protocol import ConflictError
from marin_resources.storage.disk import TEMPORARY_SUFFIX
from marin_resources.storage.files import StoredFile, read_json, remove, size_of, stored_files, write_json
from marin_resources.storage.paths import is_local, join

FORMAT_VERSION = 2
FOLDER = ".marin/shards"

Counts = dict[str, int | float]
log = logging.getLogger(__name__)


class ShardLostError(RuntimeError):
    """The output of a finished shard is gone or another's: one sentence."""


class ShardNotes:
    """The notes of one function below one output, for the shards that are asked now."""

    def __init__(self, output_path: str, reference: str, asked: Sequence[str], shards: Sequence[Any]) -> None:
        self._output_path, self._reference = output_path, reference
        self._folder = f"{FOLDER}/{reference.rpartition(':')[2]}"
        self._notes = [f"{self._folder}/{_key(reference, text)}.json" for text in asked]
        self._outputs = [self._names(shard) for shard in shards]
        self._finished: dict[str, int] = {}
        """Bytes of the outputs of finished shards, by name."""

    def finished(self) -> dict[int, Counts]:
        """Counts of the shards that are finished, by their index.

        What is left of other shards of this function, of shards that were not finished, and of files that a killed
        worker was writing, is removed: data below the output is what is asked now.
        """
        there = self._there()
        self._remove_leftovers(there)
        done: dict[int, Counts] = {}
        for index, name in enumerate(self._notes):
            note = self._read(name) if name in there else None
            if note and _is_whole(note["outputs"], self._outputs[index], there):
                done[index] = note["counts"]
                self._finished |= note["outputs"]
            else:
                self._remove_outputs(index, there)
        return done

    def begin_again(self, index: int) -> None:
        """Remove what a worker that was lost has made of a shard."""
        self._remove_outputs(index, self._there())

    def write(self, index: int, counts: Counts, seconds: float) -> None:
        """Note that a shard is finished. Raises FileNotFoundError if one of its outputs is not there."""
        there = {name: _size(join(self._output_path, name)) for name in self._outputs[index]}
        self._finished |= there
        note = {"format_version": FORMAT_VERSION, "fn": self._reference, "outputs": there, "counts": counts}
        write_json(join(self._output_path, self._notes[index]), {**note, "seconds": round(seconds, 3)})

    def close(self) -> None:
        """Remove what workers that were lost meanwhile had begun to write.

        Raises ShardLostError if an output of a finished shard is not there as its shard left it: an earlier writer that
        woke up late has removed it.
        """
        there = self._there()
        for name, size_bytes in self._finished.items():
            if name not in there or there[name].size_bytes != size_bytes:
                now = f"{there[name].size_bytes} bytes large" if name in there else "gone"
                raise ShardLostError(
                    f"{name!r} below {self._output_path!r} is {now}, and its shard left {size_bytes} bytes. "
                    "Someone else changes this output; run again."
                )
        _remove_temporaries(there)

    def _names(self, shard: Any) -> list[str]:
        """A shard tells its outputs by an attribute of that name, if it has any."""
        return [path.removeprefix(self._output_path.rstrip("/") + "/") for path in getattr(shard, "outputs", ())]

    def _there(self) -> dict[str, StoredFile]:
        """All files below the output, control files too, by name."""
        try:
            return {file.name: file for file in stored_files(self._output_path, hidden=True)}
        except FileNotFoundError:
            return {}

    def _remove_outputs(self, index: int, there: Mapping[str, StoredFile]) -> None:
        for name in self._outputs[index]:
            if name in there:
                _remove(there[name], "whose shard was not finished")

    def _read(self, name: str) -> dict[str, Any] | None:
        note = read_json(join(self._output_path, name))
        return note if note["format_version"] == FORMAT_VERSION else None

    def _remove_leftovers(self, there: Mapping[str, StoredFile]) -> None:
        wanted, asked = {name for names in self._outputs for name in names}, set(self._notes)
        notes = (name for name in there if name.startswith(f"{self._folder}/") and name.endswith(".json"))
        stale = [name for name in notes if name not in asked]
        left = {data for note in stale for data in (self._read(note) or {"outputs": {}})["outputs"]} - wanted
        for name in [*(data for data in sorted(left) if data in there), *stale]:
            _remove(there[name], "which other work left on this output")
        _remove_temporaries(there)


def _remove_temporaries(there: Mapping[str, StoredFile]) -> None:
    for name in filter(_is_temporary, there):
        _remove(there[name], "which a killed worker was writing")


def _remove(file: StoredFile, why: str) -> None:
    """Remove a file as it was when it was looked at: if it is a newer writer's by now, it stays."""
    log.info("removing %s, %s", file.name, why)
    if is_local(file.path):  # there the kernel's lock lets no older writer live
        remove(file.path)
        return
    with suppress(ConflictError):
        delete(file.path, expected=file.stamp)


def _is_whole(noted: Mapping[str, int], wanted: Sequence[str], there: Mapping[str, StoredFile]) -> bool:
    whole = (name in there and there[name].size_bytes == size for name, size in noted.items())
    return set(noted) == set(wanted) and all(whole)


def _is_temporary(name: str) -> bool:
    return name.rpartition("/")[2].startswith(".") and name.endswith(TEMPORARY_SUFFIX)


def _size(path: str) -> int:
    try:
        return size_of(path)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"The shard said that it was done, and {path!r} is not there.") from error


def _key(reference: str, asked: str) -> str:
    return hashlib.sha256(f"{reference}\n{asked}".encode()).hexdigest()[:24]
