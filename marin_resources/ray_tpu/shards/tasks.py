"""Run shards one by one in this process, or as Ray tasks: a bounded number in flight, retried if a worker is lost."""

from __future__ import annotations

import json
import logging
import math
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from marin_resources.hardware.resources import Resources
from marin_resources.host.process import cpu_seconds
from marin_resources.ray_tpu.shards.connection import connect
from marin_resources.ray_tpu.shards.cpu_elsewhere import add_cpu_elsewhere
from marin_resources.ray_tpu.shards.in_flight import InFlight
from marin_resources.ray_tpu.shards.input_changes import InputChangedError, inputs_of, require_unchanged
from marin_resources.ray_tpu.shards.job_allocation import current_allocation
from marin_resources.ray_tpu.shards.shard_error import ShardError
from marin_resources.ray_tpu.shards.worker_context import (
    AwaitRemoteOutput,
    activate,
    prints_through_ray,
    worker_context,
)
from marin_resources.types.errors import MarinError
from marin_resources.wire.config_json import decode
from marin_resources.wire.number import number_of
from marin_resources.wire.reference import load

LOST_WORKER_RETRIES = 3

Finished = tuple[int, dict[str, int | float], float]
"""Index of a shard, its counts, its seconds."""
log = logging.getLogger(__name__)


def run_here(
    reference: str, shards: Mapping[int, str], resources: Resources, discard: Callable[[int], None]
) -> Iterator[Finished]:
    """Run the shards, encoded as JSON by index, in this process in their order. Raises ShardError."""
    for index, shard in shards.items():
        try:
            yield index, *run_shard(reference, shard)
        except Exception as error:  # the shard's own error, reported with its index
            raise _shard_error(reference, index, shard, error) from error


def run_on_ray(
    reference: str, shards: Mapping[int, str], resources: Resources, discard: Callable[[int], None]
) -> Iterator[Finished]:
    """Run the shards as Ray tasks with the stage's resources, started in their order. Raises ShardError.

    Ray itself retries nothing: after a lost worker, `discard` removes the shard's partial output, and it is retried.
    """
    from ray.exceptions import RayError, RayTaskError  # late, for its weight

    ray, context = connect(), worker_context()
    in_flight = InFlight(ray, _run_in_worker, resources, current_allocation())
    waiting, lost = deque(shards), Counter[int]()
    try:
        with AwaitRemoteOutput(len(ray.nodes())) as remote_output:
            while waiting or in_flight:
                in_flight.submit(waiting, lambda index: (reference, shards[index], context), discard)
                ended = in_flight.wait_for_event()
                if ended is None:
                    continue
                index, result = ended
                try:
                    counts, seconds, through_ray, cpu_s = ray.get(result)
                    add_cpu_elsewhere(cpu_s)
                    remote_output.expected |= through_ray
                    yield index, counts, seconds
                except RayTaskError as error:
                    raise _shard_error(reference, index, shards[index], error.cause) from error
                except RayError as error:  # its worker or node is gone, or ran out of memory
                    lost[index] += 1
                    if lost[index] > LOST_WORKER_RETRIES:
                        raise _shard_error(reference, index, shards[index], error) from error
                    log.warning("shard %d of %s lost its worker (%s); retry", index, reference, type(error).__name__)
                    discard(index)
                    waiting.appendleft(index)
    finally:
        in_flight.cancel_all()


def run_shard(reference: str, shard: str) -> tuple[dict[str, int | float], float]:
    """Return the counts of one encoded shard, and its seconds. Raises InputChangedError if an input changed meanwhile.

    A function that fails may have failed because of the change.
    """
    started_s, decoded = time.monotonic(), decode(json.loads(shard))
    inputs = list(inputs_of(decoded))
    try:
        counts = {name: number_of(count) for name, count in dict(load(reference)(decoded)).items()}
    except Exception as error:
        try:
            require_unchanged(inputs)
        except InputChangedError as changed:
            raise changed from error
        raise
    require_unchanged(inputs)
    _require_numbers(counts)
    _require_conserved(counts)
    return counts, time.monotonic() - started_s


def _run_in_worker(
    reference: str, shard: str, context: Mapping[str, Any]
) -> tuple[dict[str, int | float], float, bool, float]:
    """Run in another process. Return also whether its output is forwarded by Ray, and the CPU seconds."""
    before_s = cpu_seconds()
    with activate(context):
        counts, seconds = run_shard(reference, shard)
        return counts, seconds, prints_through_ray(context), cpu_seconds() - before_s


def _require_numbers(counts: Mapping[str, Any]) -> None:
    for name, count in counts.items():
        if not isinstance(count, int | float) or not math.isfinite(count):
            raise ValueError(
                f"the count {name!r} is {count!r:.100}, expected a finite number, as counts of all shards are added up"
            )


def _require_conserved(counts: Mapping[str, int | float]) -> None:
    """Check that no document is lost: each is kept, or rejected with a reason."""
    if "kept" not in counts or "documents" not in counts:
        return
    rejected = sum(count for name, count in counts.items() if name.startswith("rejected_"))
    if counts["documents"] != counts["kept"] + counts.get("rejected", 0) or rejected != counts.get("rejected", 0):
        raise ValueError(
            f"{counts['documents']} documents came in, {counts['kept']} were kept and {counts.get('rejected', 0)} "
            f"rejected ({rejected} with a reason): they do not add up, which is a fault of the stage"
        )


def _shard_error(reference: str, index: int, shard: str, error: BaseException) -> ShardError:
    if isinstance(error, MarinError):  # a sentence for a person, who has no use for the shard's config
        return ShardError(str(error))
    reason = f"{type(error).__name__}: {str(error).rstrip(chr(46))}"
    return ShardError(f"Shard {index} of {reference!r} failed: {reason}. It was given {shard[:300]}")
