"""Run a function over shards in parallel, each shard once: the only way in which a stage runs in parallel.

In:  an importable function, and shards: frozen dataclasses that hold all that the function needs.
Out: the functions' counts, added up. Beside the output, for each finished shard, a file
`.marin/shards/<key>.json` with its counts, where the key is a digest of the function and the shard.

A stage that was killed and is run again skips the shards whose file is there, and counts them all the same.
A shard asked with other values has another key. Inside a Ray task the shards are Ray tasks, at most twice as many
in flight as there are CPUs; elsewhere they run here, one after the other.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, TypeVar

from marin_resources.hardware import Resources, cpu
from marin_resources.ray_tpu.attempt_log import VARIABLE as ATTEMPT_LOG
from marin_resources.ray_tpu.attempt_log import redirect_output
from marin_resources.ray_tpu.config_json import decode, encode
from marin_resources.ray_tpu.reference import add_import_paths, import_paths, load, reference_to
from marin_resources.storage.files import exists, join, read_json, write_json

S = TypeVar("S")
Counts = dict[str, int | float]
FORMAT_VERSION = 1
LOST_WORKER_RETRIES = 3

log = logging.getLogger(__name__)


class ShardError(RuntimeError):
    """A shard failed: one sentence with which, of what, and why."""


def map_shards(
    fn: Callable[[S], Mapping[str, int | float]],
    shards: Sequence[S],
    *,
    output_path: str,
    resources: Resources | None = None,
) -> Counts:
    """Counts of `fn(shard)` over all shards, added up by key.

    `output_path` is the output of the step that the stage runs in: finished shards are noted below it. A shard's
    function must write its own output whole or not at all. Raises ShardError for the first shard that fails.
    """
    reference = reference_to(fn)
    asked = [json.dumps(encode(shard, "shard"), sort_keys=True) for shard in shards]
    notes = [join(output_path, ".marin/shards", f"{_key(reference, shard)}.json") for shard in asked]
    done: dict[int, Counts] = {i: read_json(note)["counts"] for i, note in enumerate(notes) if exists(note)}
    progress = _Progress(reference.rpartition(":")[2], len(asked), len(done))
    runner = _run_on_ray if _ray_is_up() else _run_here
    todo = [i for i in range(len(asked)) if i not in done]
    for index, counts in runner(reference, {i: asked[i] for i in todo}, resources or cpu()):
        write_json(notes[index], {"format_version": FORMAT_VERSION, "fn": reference, "counts": counts})
        done[index] = counts
        progress.advance()
    total: Counter[str] = Counter()
    for index in range(len(asked)):
        total.update(done[index])
    return dict(total)


def _run_here(reference: str, shards: dict[int, str], resources: Resources) -> Any:
    for index, shard in shards.items():
        try:
            yield index, _run_shard(reference, shard)
        except Exception as error:  # the shard's own error, told with which shard it was
            raise _failed(reference, index, shard, error) from error


def _run_on_ray(reference: str, shards: dict[int, str], resources: Resources) -> Any:
    import ray

    from marin_resources.ray_tpu.request import ray_options

    task = ray.remote(_run_shard_elsewhere).options(max_retries=LOST_WORKER_RETRIES, **ray_options(resources))
    where = (import_paths(), os.environ.get(ATTEMPT_LOG))
    limit = max(2, 2 * int(ray.cluster_resources().get("CPU", 1)))
    waiting = list(shards)
    flying: dict[Any, int] = {}
    try:
        while waiting or flying:
            while waiting and len(flying) < limit:
                index = waiting.pop(0)
                flying[task.remote(reference, shards[index], *where)] = index
            [ready], _ = ray.wait(list(flying), num_returns=1)
            index = flying.pop(ready)
            try:
                counts = ray.get(ready)
            except ray.exceptions.RayError as error:
                cause = error.cause if isinstance(error, ray.exceptions.RayTaskError) else error
                raise _failed(reference, index, shards[index], cause) from error
            yield index, counts
    finally:
        for reference_in_flight in flying:
            ray.cancel(reference_in_flight, force=True)


def _run_shard_elsewhere(reference: str, shard: str, paths: list[str], log_path: str | None) -> Counts:
    """A shard in another process: it imports what its stage imports, and prints into the log of its attempt."""
    add_import_paths(paths)
    with redirect_output(log_path) if log_path else nullcontext():
        return _run_shard(reference, shard)


def _run_shard(reference: str, shard: str) -> Counts:
    return dict(load(reference)(decode(json.loads(shard))))


def _failed(reference: str, index: int, shard: str, error: BaseException) -> ShardError:
    what = f"{type(error).__name__}: {error}"
    return ShardError(f"Shard {index} of {reference!r} failed: {what}. It was asked {shard[:300]}")


def _key(reference: str, shard: str) -> str:
    return hashlib.sha256(f"{reference}\n{shard}".encode()).hexdigest()[:24]


def _ray_is_up() -> bool:
    ray = sys.modules.get("ray")
    return ray is not None and ray.is_initialized()


class _Progress:
    """Log lines with rate and time left, at most one every five seconds, and one at the end."""

    def __init__(self, what: str, total: int, done: int) -> None:
        self.what, self.total, self.done, self.skipped = what, total, done, done
        self.started = self.told = time.monotonic()
        if done:
            log.info("%s: %d of %d shards were finished before", what, done, total)

    def advance(self) -> None:
        self.done += 1
        now = time.monotonic()
        if now - self.told < 5 and self.done < self.total:
            return
        self.told = now
        rate = (self.done - self.skipped) / max(now - self.started, 1e-9)
        left_s = (self.total - self.done) / rate
        log.info("%s: %d of %d shards, %.2f shards/s, %.0f s left", self.what, self.done, self.total, rate, left_s)
