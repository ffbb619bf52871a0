"""Shards run one by one here, or as Ray tasks: a bounded number in flight, a lost worker's shard tried again."""

from __future__ import annotations

import json
import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from marin_resources.hardware import Resources
from marin_resources.ray_tpu.shards.flights import Flights
from marin_resources.ray_tpu.shards.job_allocation import held
from marin_resources.ray_tpu.shards.process import LastLines, entered, prints_far_away, surroundings
from marin_resources.wire.config_json import decode
from marin_resources.wire.reference import load

LOST_WORKER_RETRIES = 3

Finished = tuple[int, dict[str, int | float], float]
"""Index of a shard, its counts, its seconds."""
log = logging.getLogger(__name__)


class ShardError(RuntimeError):
    """A shard failed: one sentence with which, of what, and why."""


def run_here(
    reference: str, shards: Mapping[int, str], resources: Resources, begin_again: Callable[[int], None]
) -> Iterator[Finished]:
    for index, shard in shards.items():
        try:
            yield index, *run_shard(reference, shard)
        except Exception as error:  # the shard's own error, told with which shard it was
            raise _failed(reference, index, shard, error) from error


def run_on_ray(
    reference: str, shards: Mapping[int, str], resources: Resources, begin_again: Callable[[int], None]
) -> Iterator[Finished]:
    """Ray tasks with the stage's resources, started in the order of `shards`. Ray itself retries nothing: a shard whose
    worker was lost is tried again after `begin_again`."""
    from ray.exceptions import RayError, RayTaskError

    from marin_resources.ray_tpu.shards.connection import connect

    ray, where = connect(), surroundings()
    flights = Flights(ray, _run_elsewhere, resources, held())
    waiting, lost = deque(shards), Counter[int]()
    try:
        with LastLines(len(ray.nodes())) as last_lines:
            while waiting or flights:
                flights.send(waiting, lambda index: (reference, shards[index], where), begin_again)
                ended = flights.await_one()
                if ended is None:
                    continue
                index, result = ended
                try:
                    counts, seconds, far_away = ray.get(result)
                    last_lines.come |= far_away
                    yield index, counts, seconds
                except RayTaskError as error:
                    raise _failed(reference, index, shards[index], error.cause) from error
                except RayError as error:  # its worker or node is gone, or was out of memory
                    lost[index] += 1
                    if lost[index] > LOST_WORKER_RETRIES:
                        raise _failed(reference, index, shards[index], error) from error
                    log.warning("shard %d of %s lost its worker (%s); again", index, reference, type(error).__name__)
                    begin_again(index)
                    waiting.appendleft(index)
    finally:
        flights.end()


def run_shard(reference: str, shard: str) -> tuple[dict[str, int | float], float]:
    started = time.monotonic()
    counts = dict(load(reference)(decode(json.loads(shard))))
    _require_conserved(counts)
    return counts, time.monotonic() - started


def _run_elsewhere(reference: str, shard: str, where: Mapping[str, Any]) -> tuple[dict[str, int | float], float, bool]:
    """In another process. Also whether what it prints comes by Ray."""
    with entered(where):
        return *run_shard(reference, shard), prints_far_away(where)


def _require_conserved(counts: Mapping[str, int | float]) -> None:
    """Nothing is lost: what a shard read, it kept or rejected, and it says for which reason."""
    if "kept" not in counts or "documents" not in counts:
        return
    rejected = sum(count for name, count in counts.items() if name.startswith("rejected_"))
    if counts["documents"] != counts["kept"] + counts.get("rejected", 0) or rejected != counts.get("rejected", 0):
        raise ValueError(
            f"{counts['documents']} documents came in, {counts['kept']} were kept and {counts.get('rejected', 0)} "
            f"rejected ({rejected} with a reason): they do not add up, which is a fault of the stage"
        )


def _failed(reference: str, index: int, shard: str, error: BaseException) -> ShardError:
    what = f"{type(error).__name__}: {str(error).rstrip(chr(46))}"
    return ShardError(f"Shard {index} of {reference!r} failed: {what}. It was asked {shard[:300]}")
