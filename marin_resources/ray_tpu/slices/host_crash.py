"""Whether the process of a host that was lost has crashed by its own fault, by the note that it left on its machine.

In:  the hosts of a try, while they are reserved.   Out: the crash, or None: also if any of their machines may be lost.
A host whose peer is gone may abort too, so one that is not known to live explains the crash.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from marin_resources.ray_tpu import ray_internals
from marin_resources.ray_tpu.crash_note import Crash, take_crash
from marin_resources.ray_tpu.slices.reservation import Host

ANSWER_S = 30.0
"""Time limit for the answers of all hosts: each starts a process for it, and a dead one answers never."""

log = logging.getLogger(__name__)


def crash_name(notes: str, host: int) -> str:
    """The name of the note of a host's crash. `notes`: the name of the notes of the try's progress."""
    return f"{notes}#{host}"


def crash_of(ray: Any, hosts: Sequence[Host], lost: Host, notes: str) -> Crash | None:
    """The crash of the host `lost`. Waits up to ANSWER_S. None if it noted none, or if a host of the try does not
    answer or is being drained."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy  # late, for its weight

    if draining_nodes() & {host.node_id for host in hosts}:
        return None
    take = ray.remote(num_cpus=0, max_retries=0)(take_crash)
    answers = {
        host.index: take.options(
            scheduling_strategy=NodeAffinitySchedulingStrategy(host.node_id, soft=False), name=f"crash of {notes}"
        ).remote(crash_name(notes, host.index))
        for host in hosts
    }
    try:
        crashes = dict(zip(answers, ray.get(list(answers.values()), timeout=ANSWER_S), strict=True))
    except ray.exceptions.RayError as error:  # also when the time is over
        log.warning("not all hosts of the try answer (%s), so it is not known to have crashed", type(error).__name__)
        return None
    crash: Crash | None = crashes[lost.index]
    return crash


def draining_nodes() -> frozenset[str]:
    """The ids of the nodes that Ray drains; none, and a line in the log, if its head does not answer."""
    from ray.exceptions import RayError  # late, for its weight

    try:
        return ray_internals.draining_nodes()
    except RayError as error:
        log.warning("Ray's head does not say which nodes are drained: %s", error)
        return frozenset()
