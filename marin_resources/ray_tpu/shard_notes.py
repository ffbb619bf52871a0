"""What is known of finished shards, beside the output: `.marin/shards/<function>/<key>.json`.

The key is a digest of all that was asked: the function, its config, and the input files with their sizes and stamps.
So a shard that was finished under another config, or from other bytes, is another shard. A note is written after the
shard's outputs, and counts only while they are there at their sizes.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Sequence
from typing import Any

from marin_resources.ray_tpu.file_shards import FileShard
from marin_resources.storage.files import TEMPORARY_SUFFIX, join, read_json, remove, sizes_below, write_json

FORMAT_VERSION = 2
FOLDER = ".marin/shards"

Counts = dict[str, int | float]
log = logging.getLogger(__name__)


class ShardNotes:
    """The notes of one function below one output, for the shards that are asked now."""

    def __init__(self, output_path: str, reference: str, asked: Sequence[str], shards: Sequence[Any]) -> None:
        self._output_path, self._reference = output_path, reference
        self._folder = f"{FOLDER}/{reference.rpartition(':')[2]}"
        self._notes = [f"{self._folder}/{_key(reference, text)}.json" for text in asked]
        self._outputs = [self._names(shard) for shard in shards]

    def finished(self) -> dict[int, Counts]:
        """Counts of the shards that are finished, by their index.

        What is left of other shards of this function, and of files that a killed worker was writing, is removed: data
        below the output is what is asked now.
        """
        there = sizes_below(self._output_path)
        self._remove_leftovers(there)
        done: dict[int, Counts] = {}
        for index, name in enumerate(self._notes):
            note = self._read(name) if name in there else None
            if note and _is_whole(note["outputs"], self._outputs[index], there):
                done[index] = note["counts"]
        return done

    def write(self, index: int, counts: Counts, seconds: float) -> None:
        """Note that a shard is finished. Raises FileNotFoundError if one of its outputs is not there."""
        there = {name: _size(join(self._output_path, name)) for name in self._outputs[index]}
        note = {"format_version": FORMAT_VERSION, "fn": self._reference, "outputs": there, "counts": counts}
        write_json(join(self._output_path, self._notes[index]), {**note, "seconds": round(seconds, 3)})

    def tidy(self) -> None:
        """Remove what workers that were lost meanwhile had begun to write."""
        self._remove_temporaries(sizes_below(self._output_path))

    def _names(self, shard: Any) -> list[str]:
        outputs = shard.outputs if isinstance(shard, FileShard) else ()
        return [path.removeprefix(self._output_path.rstrip("/") + "/") for path in outputs]

    def _read(self, name: str) -> dict[str, Any] | None:
        note = read_json(join(self._output_path, name))
        return note if note["format_version"] == FORMAT_VERSION else None

    def _remove_leftovers(self, there: dict[str, int]) -> None:
        wanted, asked = {name for names in self._outputs for name in names}, set(self._notes)
        notes = (name for name in there if name.startswith(f"{self._folder}/") and name.endswith(".json"))
        stale = [name for name in notes if name not in asked]
        left = {data for note in stale for data in (self._read(note) or {"outputs": {}})["outputs"]} - wanted
        for name in [*(data for data in sorted(left) if data in there), *stale]:
            log.info("removing %s, which other work left on this output", name)
            remove(join(self._output_path, name))
        self._remove_temporaries(there)

    def _remove_temporaries(self, there: Iterable[str]) -> None:
        for name in filter(_is_temporary, there):
            log.info("removing %s, which a killed worker was writing", name)
            remove(join(self._output_path, name))


def _is_whole(noted: dict[str, int], wanted: Sequence[str], there: dict[str, int]) -> bool:
    return set(noted) == set(wanted) and all(there.get(name) == size for name, size in noted.items())


def _is_temporary(name: str) -> bool:
    return name.rpartition("/")[2].startswith(".") and name.endswith(TEMPORARY_SUFFIX)


def _size(path: str) -> int:
    sizes = list(sizes_below(path).values())
    if not sizes:
        raise FileNotFoundError(f"The shard said that it was done, and {path!r} is not there.")
    return sizes[0]


def _key(reference: str, asked: str) -> str:
    return hashlib.sha256(f"{reference}\n{asked}".encode()).hexdigest()[:24]
