"""Shards run one by one here, or as Ray tasks: a bounded number in flight, a lost worker's shard tried again."""

from __future__ import annotations

import json
import logging
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from marin_resources.hardware import Resources
from marin_resources.ray_tpu.attempt_log import VARIABLE as ATTEMPT_LOG
from marin_resources.ray_tpu.attempt_log import join_output
from marin_resources.ray_tpu.config_json import decode
from marin_resources.ray_tpu.reference import add_import_paths, import_paths, load
from marin_resources.storage.account import Account, charged_to, current_account

LOST_WORKER_RETRIES = 3
STOP_TIMEOUT_S = 4.0
IN_FLIGHT_FOR_EACH_PLACE = 2
"""One that runs and one that is ready to."""

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
    import ray

    from marin_resources.ray_tpu.request import ray_options

    task = ray.remote(_run_elsewhere).options(max_retries=0, **ray_options(resources))
    account = current_account()
    where = (import_paths(), os.environ.get(ATTEMPT_LOG), vars(account) if account else None)
    places = max(1, int(ray.cluster_resources().get("CPU", 1) / resources.cpus))
    waiting, flying = deque(shards), dict[Any, int]()
    lost: Counter[int] = Counter()
    try:
        while waiting or flying:
            while waiting and len(flying) < IN_FLIGHT_FOR_EACH_PLACE * places:
                index = waiting.popleft()
                flying[task.remote(reference, shards[index], *where)] = index
            [ready], _ = ray.wait(list(flying), num_returns=1)
            index = flying.pop(ready)
            try:
                yield index, *ray.get(ready)
            except ray.exceptions.RayTaskError as error:
                raise _failed(reference, index, shards[index], error.cause) from error
            except ray.exceptions.RayError as error:  # its worker or node is gone, or was out of memory
                lost[index] += 1
                if lost[index] > LOST_WORKER_RETRIES:
                    raise _failed(reference, index, shards[index], error) from error
                log.warning("shard %d of %s lost its worker (%s); again", index, reference, type(error).__name__)
                begin_again(index)
                waiting.appendleft(index)
    finally:
        _end(ray, list(flying))


def _end(ray: Any, flying: list[Any]) -> None:
    """Stop what is in flight, so that no writer outlives its stage."""
    for task in flying:
        ray.cancel(task, force=True)
    if flying:
        ray.wait(flying, num_returns=len(flying), timeout=STOP_TIMEOUT_S, fetch_local=False)


def run_shard(reference: str, shard: str) -> tuple[dict[str, int | float], float]:
    started = time.monotonic()
    counts = dict(load(reference)(decode(json.loads(shard))))
    _require_conserved(counts)
    return counts, time.monotonic() - started


def _run_elsewhere(
    reference: str, shard: str, paths: Sequence[str], log_path: str | None, account: Mapping[str, Any] | None
) -> tuple[dict[str, int | float], float]:
    """A shard in another process: it imports what its stage imports, prints into the log of its attempt, and moves
    bytes on the account of its step."""
    add_import_paths(paths)
    charged = charged_to(Account(**account) if account else None)
    with charged, join_output(log_path) if log_path else nullcontext():
        return run_shard(reference, shard)


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
