"""The variables with the place of a host's process: those of `marin_resources.step_api.hosts`, and libtpu's.

MEGASCALE_*   libtpu joins several slices by them, over the network of the data center. They are Google's names; Ray's
              `ray.util.tpu.get_tpu_coordinator_env_vars` sets the same four. The coordinator is host 0 of slice 0.
"""

from __future__ import annotations

from collections.abc import Mapping

from marin_resources.ray_tpu.slices.reservation import Host
from marin_resources.step_api import hosts

MEGASCALE_PORT = "8081"
"""Ray's default. A host runs one step on its TPU, so the port is free."""


def place_of(host: Host, count: int, slices: int, coordinator: str | None) -> dict[str, str]:
    """The variables of a host. `coordinator`: address and port of host 0's process; host 0 knows its own."""
    coordinator_variable = {} if coordinator is None else {hosts.COORDINATOR: coordinator}
    return {
        hosts.INDEX: str(host.index),
        hosts.COUNT: str(count),
        hosts.SLICE_INDEX: str(host.slice_index),
        hosts.SLICE_COUNT: str(slices),
        **coordinator_variable,
    }


def megascale(place: Mapping[str, str]) -> dict[str, str]:
    """The variables by which libtpu joins several slices; none for one. `place`: the host's, with the coordinator."""
    if int(place[hosts.SLICE_COUNT]) < 2:
        return {}
    return {
        "MEGASCALE_COORDINATOR_ADDRESS": place[hosts.COORDINATOR].rpartition(":")[0],
        "MEGASCALE_PORT": MEGASCALE_PORT,
        "MEGASCALE_NUM_SLICES": place[hosts.SLICE_COUNT],
        "MEGASCALE_SLICE_ID": place[hosts.SLICE_INDEX],
    }
