"""Run a function over shards in parallel, each shard once: the only way in which a stage runs in parallel.

In:  an importable function, and shards: `FileShard`s, or frozen dataclasses that hold all that the function needs.
Out: the functions' counts, added up in the order of the shards; and notes of the finished shards (`shard_notes.py`).

A stage that was killed and is run again skips the shards whose notes are there, and counts them all the same. Inside a
Ray task and inside a job on a cluster the shards are Ray tasks, at most two for each place that the resources leave;
elsewhere they run here, one after the other. Neither outputs nor counts depend on which.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from marin_resources.hardware import Resources, cpu
from marin_resources.ray_tpu.shards.file_shards import FileShard
from marin_resources.ray_tpu.shards.job_allocation import held
from marin_resources.ray_tpu.shards.notes import Counts, ShardNotes
from marin_resources.ray_tpu.shards.progress import Progress
from marin_resources.ray_tpu.shards.tasks import ShardError, run_here, run_on_ray
from marin_resources.storage import fault_points
from marin_resources.wire.config_json import encode
from marin_resources.wire.reference import reference_to

__all__ = ["Counts", "ShardError", "map_shards"]

S = TypeVar("S")


def map_shards(
    fn: Callable[[S], Mapping[str, int | float]],
    shards: Sequence[S],
    *,
    output_path: str,
    resources: Resources | None = None,
) -> Counts:
    """Counts of `fn(shard)` over all shards, added up by key.

    `output_path` is the output of the step that the stage runs in: finished shards are noted below it. A stage may map
    several functions over one output, each of them once.

    A shard's function creates its own outputs, whole or not at all (`replace=False`), so that a worker that comes too
    late changes nothing; what lies there of a shard that is not finished is removed before. If it counts "documents"
    and "kept", they must add up with "rejected" and each "rejected_<reason>". A shard whose worker is lost is tried
    three times more. Raises ShardError for the first shard that fails.
    """
    reference = reference_to(fn)
    asked = [json.dumps(encode(shard, "shard"), sort_keys=True) for shard in shards]
    sizes = [shard.size_bytes if isinstance(shard, FileShard) else 0 for shard in shards]
    notes = ShardNotes(output_path, reference, asked, shards)
    done = notes.finished()
    progress = Progress(reference.rpartition(":")[2], sizes, list(done))
    largest_first = sorted((i for i in range(len(asked)) if i not in done), key=lambda i: -sizes[i])
    to_do, needed = {i: asked[i] for i in largest_first}, resources or cpu()
    run = run_on_ray if _on_ray(len(to_do), needed) else run_here
    for index, counts, seconds in run(reference, to_do, needed, notes.begin_again):
        fault_points.reach("shard written")
        notes.write(index, counts, seconds)
        fault_points.reach("shard noted")
        done[index] = counts
        progress.advance(index, counts)
    if largest_first:
        notes.close()
    return _added_up(done[index] for index in range(len(asked)))


def _added_up(counts: Any) -> Counts:
    total: Counter[str] = Counter()
    for one in counts:
        total.update(one)
    return dict(total)


def _on_ray(shards: int, resources: Resources) -> bool:
    """A job on a cluster asks Ray for help if it has more to do than one shard that it can do itself."""
    step = held()
    return _ray_is_up() if step is None else shards > 1 or not step.covers(resources)


def _ray_is_up() -> bool:
    ray = sys.modules.get("ray")
    return ray is not None and ray.is_initialized()
