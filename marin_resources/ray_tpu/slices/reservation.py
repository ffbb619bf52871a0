"""Reserve all hosts of a step, or none, for as long as a block runs.

    with reserve(ray, tpu("v4-16"), on_wait=...) as hosts:
        ...

The reservation belongs to the job: Ray releases it when the job's process ends, however it ends, or its node does.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.slices.bundles import SLICE, Group, group_of

NAME_END = "/"
"""After the name of the step's job, in the name of a group."""
POLL_S = 0.5
"""Signals are handled between two polls."""
HOLD_S = (10.0, 20.0)
"""Time limit for holding some of several slices while the others are awaited; drawn, so that two steps that wait for
each other's slices do not meet again."""
FREE_S = 2.0
"""Ray places a group in milliseconds if its hosts are free. A host that is not reserved after this time is taken."""
PAUSE_S = (1.0, 10.0)
"""Seconds for which they are then left to others."""
AVOID_EVERY_S = 10.0
"""Interval of updates of the hosts that a waiting step avoids: a bad host is taken after half an hour, or if it is the
last."""


Avoid = Callable[[], Collection[str]]
"""Returns the ids of the nodes that a step avoids now."""


@dataclass(frozen=True, kw_only=True)
class Host:
    """A host that is reserved."""

    index: int
    """Among all hosts of the step."""
    slice_index: int
    slice_name: str | None
    """None for a host that is no TPU's."""
    node_id: str
    address: str
    group: Any
    """Ray's placement group."""
    bundle: int
    """Index of the host's bundle in the group."""

    def scheduling(self) -> Any:
        """Ray's strategy that places a task on the host."""
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy  # late, for its weight

        return PlacementGroupSchedulingStrategy(
            placement_group=self.group,
            placement_group_bundle_index=self.bundle,
            placement_group_capture_child_tasks=False,
        )

    def describe(self) -> str:
        """A phrase for the log: "10.0.0.2 of slice 'a'"."""
        return f"{self.address} of slice {self.slice_name!r}" if self.slice_name else self.address


@contextmanager
def reserve(
    ray: Any,
    resources: Resources,
    *,
    avoid: Avoid = frozenset,
    on_wait: Callable[[], None] = lambda: None,
    name: str = "",
) -> Iterator[tuple[Host, ...]]:
    """Wait for all hosts of the step, on none of the nodes `avoid`; release them at the end of the block.

    `avoid` is called again while it waits. Of a step with `more_slices`: the most slices that are free now, or wait for
    the fewest.
    `on_wait` is called twice a second while it waits, and may raise. `name`: by which others see that it waits.
    """
    groups: list[Any] = []
    try:
        _acquire(resources, avoid, on_wait, groups, name)
        yield _hosts(ray, groups)
    finally:
        release(groups)


def _acquire(resources: Resources, avoid: Avoid, on_wait: Callable[[], None], groups: list[Any], name: str) -> None:
    """Request a group for each slice until all are placed at once. `groups` always holds the requested ones."""
    for count in sorted(resources.more_slices, reverse=True):
        groups.extend(request(group_of(resources, avoid()), count, name))
        if _all_there(groups, FREE_S):
            return
        release(groups)
    while not _acquire_fewest(resources, avoid, on_wait, groups, name):
        release(groups)


def _acquire_fewest(
    resources: Resources, avoid: Avoid, on_wait: Callable[[], None], groups: list[Any], name: str
) -> bool:
    """Request the fewest slices. Return True when all are placed; False if they are to be requested again, as only some
    of them were placed for long, or as other hosts are to be avoided now."""
    avoided = frozenset(avoid())
    groups.extend(request(group_of(resources, avoided), resources.slices, name))
    hold_s, held_since_s, looked_s = random.uniform(*HOLD_S), None, time.monotonic()
    pauses = _growing_pauses()
    while held_since_s is None or time.monotonic() - held_since_s < hold_s:
        placed = sum(map(is_there, groups))
        if placed == len(groups):
            return True
        pause_s = next(pauses)
        time.sleep(pause_s)
        if pause_s == POLL_S:
            on_wait()
        if held_since_s is None and placed:
            held_since_s = time.monotonic()
        if time.monotonic() - looked_s >= AVOID_EVERY_S:
            looked_s = time.monotonic()
            if frozenset(avoid()) != avoided:
                return False
    release(groups)
    _pause(random.uniform(*PAUSE_S), on_wait)
    return False


def _pause(seconds: float, on_wait: Callable[[], None]) -> None:
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        time.sleep(POLL_S)
        on_wait()


def request(group: Group, count: int, name: str = "") -> list[Any]:
    """Request `count` groups of Ray. They belong to the job. No two of a cluster may have one name."""
    from ray.util import placement_group  # late, for its weight

    names = [f"{name}{NAME_END}{uuid.uuid4().hex[:8]}" if name else "" for _ in range(count)]
    return [placement_group(**group.options(), name=group_name) for group_name in names]


def is_there(group: Any) -> bool:
    """Whether Ray has placed the group.

    By its table, not by `group.wait()`: until the group is placed, Ray's head (2.60) keeps every request of that kind
    in its memory, and checks each of them again, so that a step that waits for minutes costs it gigabytes.
    """
    from ray.util import placement_group_table  # late, for its weight

    return bool(placement_group_table(group).get("state") == "CREATED")


def _all_there(groups: list[Any], timeout_s: float) -> bool:
    until_s, pauses = time.monotonic() + timeout_s, _growing_pauses()
    while not all(map(is_there, groups)):
        if time.monotonic() >= until_s:
            return False
        time.sleep(next(pauses))
    return True


def _growing_pauses() -> Iterator[float]:
    """Pauses from 10 ms to POLL_S: a group that can be placed is, in milliseconds."""
    pause_s = 0.01
    while True:
        yield min(pause_s, POLL_S)
        pause_s *= 2


def release(groups: list[Any]) -> None:
    """Return the hosts to Ray, which ends what still runs in the groups."""
    from ray.util import remove_placement_group  # late, for its weight

    while groups:
        remove_placement_group(groups[-1])
        groups.pop()


def _hosts(ray: Any, groups: list[Any]) -> tuple[Host, ...]:
    from ray.util import placement_group_table  # late, for its weight

    nodes = {node["NodeID"]: node for node in ray.nodes()}
    hosts: list[Host] = []
    for slice_index, group in enumerate(groups):
        placed = placement_group_table(group)["bundles_to_node_id"]
        for bundle in sorted(placed):
            node = nodes.get(placed[bundle], {"NodeManagerAddress": "", "Labels": {}})
            hosts.append(
                Host(
                    index=len(hosts),
                    slice_index=slice_index,
                    slice_name=node["Labels"].get(SLICE),
                    node_id=placed[bundle],
                    address=node["NodeManagerAddress"],
                    group=group,
                    bundle=bundle,
                )
            )
    return tuple(hosts)
