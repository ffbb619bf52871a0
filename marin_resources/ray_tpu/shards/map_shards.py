"""Run a function over shards in parallel, each shard once: the only way in which a stage runs in parallel.

In:  an importable function, and shards: `FileShard`s, or other frozen dataclasses that declare their `inputs`.
Out: the functions' counts, added up in the order of the shards; and notes of the finished shards (`notes.py`).

A stage that was killed and runs again skips the shards that have notes, and includes their counts. In a Ray task and in
a job on a cluster the shards are Ray tasks, at most two in flight for each one that the cluster can run at once;
elsewhere they run in this process, one after the other. Outputs and counts are the same either way.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from marin_resources.hardware.resources import Resources, cpu
from marin_resources.ray_tpu.shards.file_shards import Shard
from marin_resources.ray_tpu.shards.input_changes import inputs_of, require_unchanged_folders
from marin_resources.ray_tpu.shards.job_allocation import current_allocation
from marin_resources.ray_tpu.shards.notes import Counts, ShardNotes
from marin_resources.ray_tpu.shards.shard_error import ShardError
from marin_resources.storage import fault_points
from marin_resources.storage.files import StoredFile
from marin_resources.wire.config_json import encode
from marin_resources.wire.reference import reference_to

EVERY_S = 5.0
log = logging.getLogger(__name__)

__all__ = ["Counts", "ShardError", "map_shards"]

S = TypeVar("S", bound=Shard)


def map_shards(
    fn: Callable[[S], Mapping[str, int | float]],
    shards: Sequence[S],
    *,
    output_path: str,
    resources: Resources | None = None,
) -> Counts:
    """Return the counts of `fn(shard)` over all shards, added up by key.

    `output_path` is the output of the step: finished shards are noted below it. A stage may map several functions over
    one output, each once. `resources` are those of one shard, 1 CPU if None.

    A shard's function creates its own outputs, whole or not at all (`replace=False`), so a late worker changes nothing.
    Partial outputs of unfinished shards are removed first. If it counts "documents" and "kept", they must add up with
    "rejected" and each "rejected_<reason>". A shard whose worker is lost is retried three times. Raises ShardError for
    the first shard that fails, also because one of its inputs changed since it was listed; InputChangedError for a
    folder that changed; TypeError for a shard that does not declare its inputs.
    """
    # Late, for their weight: a process that only reads a stage's config, as a dry run does, runs no shard.
    from marin_resources.ray_tpu.shards.tasks import run_here, run_on_ray

    reference = reference_to(fn)
    for shard in shards:
        _require_inputs(reference, shard)
    encoded = [json.dumps(encode(shard, "shard"), sort_keys=True) for shard in shards]
    sizes = [sum(file.size_bytes for file in shard.inputs) for shard in shards]
    notes = ShardNotes(output_path, reference, encoded, shards)
    done = notes.finished()
    progress = Progress(reference.rpartition(":")[2], sizes, list(done))
    largest_first = sorted((i for i in range(len(encoded)) if i not in done), key=lambda i: -sizes[i])
    to_do, requested = {i: encoded[i] for i in largest_first}, resources or cpu()
    run = run_on_ray if _on_ray(len(to_do), requested) else run_here
    if to_do:
        notes.announce()
    for index, counts, seconds in run(reference, to_do, requested, notes.discard):
        fault_points.reach("shard written")
        notes.write(index, counts, seconds)
        fault_points.reach("shard noted")
        done[index] = counts
        progress.advance(index, counts)
    if largest_first:
        notes.close()
    require_unchanged_folders(file for shard in shards for file in inputs_of(shard))
    return _sum(done[index] for index in range(len(encoded)))


def _require_inputs(reference: str, shard: Any) -> None:
    inputs = getattr(shard, "inputs", None)
    if not isinstance(inputs, tuple) or not all(isinstance(file, StoredFile) for file in inputs):
        raise TypeError(
            f"A shard of {reference!r} has inputs={inputs!r:.100}, expected a tuple of the StoredFiles that the "
            "function reads, or () if it reads none. Use file_shards, or add the field."
        )


def _sum(counts: Any) -> Counts:
    total: Counter[str] = Counter()
    for shard_counts in counts:
        total.update(shard_counts)
    return dict(total)


def _on_ray(shards: int, resources: Resources) -> bool:
    """Whether to use Ray: a job does, unless a single shard is left that fits into its own allocation."""
    allocation = current_allocation()
    return _ray_is_up() if allocation is None else shards > 1 or not allocation.covers(resources)


def _ray_is_up() -> bool:
    ray = sys.modules.get("ray")
    return ray is not None and ray.is_initialized()


class Progress:
    """Logs at most one line every five seconds, and one at the end. Time left is estimated by bytes if known."""

    def __init__(self, name: str, sizes: Sequence[int], finished: Sequence[int]) -> None:
        self._name, self._sizes = name, [size or 1 for size in sizes]
        self._bytes_known = any(sizes)
        self._done, self._documents = len(finished), 0.0
        self._total_bytes, self._done_bytes = sum(self._sizes), sum(self._sizes[i] for i in finished)
        self._first_bytes, self._first = self._done_bytes, self._done
        self._started_s = self._logged_at_s = time.monotonic()
        if finished:
            log.info("%s: %d of %d shards were finished before", name, len(finished), len(sizes))

    def advance(self, index: int, counts: Mapping[str, int | float]) -> None:
        """Add a finished shard with its counts."""
        self._done += 1
        self._done_bytes += self._sizes[index]
        self._documents += counts.get("documents") or counts.get("pages") or 0
        now_s = time.monotonic()
        if now_s - self._logged_at_s >= EVERY_S or self._done == len(self._sizes):
            self._logged_at_s = now_s
            log.info("%s", self._line(max(now_s - self._started_s, 1e-9)))

    def _line(self, elapsed_s: float) -> str:
        left_s = elapsed_s * (self._total_bytes - self._done_bytes) / max(self._done_bytes - self._first_bytes, 1)
        parts = [f"{self._name}: {self._done} of {len(self._sizes)} shards"]
        if self._bytes_known:
            parts.append(_of(self._done_bytes, self._total_bytes))
        if self._documents:
            parts.append(f"{self._documents / elapsed_s:,.0f} documents/s")
        else:
            parts.append(f"{(self._done - self._first) / elapsed_s:.2f} shards/s")
        return ", ".join([*parts, f"{left_s:.0f} s left"])


def _of(done: int, total: int) -> str:
    """Return for example "1.2 of 3.4 GB", in the unit of the total."""
    for size, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if total >= size:
            return f"{done / size:,.1f} of {total / size:,.1f} {unit}"
    return f"{done / 1e3:,.1f} of {total / 1e3:,.1f} kB"
