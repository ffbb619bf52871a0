"""One training on all hosts of a slice: one process each, one `jax.distributed` job. Importing this imports jax.

Every host runs the same code. Host 0 alone writes the metrics, and removes what a killed run has left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import jax
import levanter.eval
from jax.experimental import multihost_utils
from levanter.utils.jax_utils import local_cpu_mesh

from marin_assets.stages.train.errors import TrainError
from marin_resources.step_api.hosts import coordinator_address, host_count, host_index, missing_accelerator

START_TIMEOUT_S = 300
"""Time limit of host 0's wait for the others: they import jax on busy machines."""
T = TypeVar("T")


def join_hosts() -> None:
    """Connect this process with those of the other hosts, before jax is used. Does nothing on one host."""
    if host_count() > 1 and not jax.distributed.is_initialized():
        jax.distributed.initialize(
            coordinator_address(),
            host_count(),
            host_index(),
            cluster_detection_method="deactivate",  # jax would query the metadata server, which knows one slice only
            initialization_timeout=START_TIMEOUT_S,
            coordinator_bind_address=coordinator_address(),  # not all addresses of the machine: it requires no token
        )
    if (missing := missing_accelerator(jax.default_backend(), jax.devices()[0].device_kind)) is not None:
        raise TrainError(missing)


def on_host_0(work: Callable[[], T]) -> T | None:
    """Return the result of `work` on host 0; None on the others, which wait until it is done there."""
    result = work() if host_index() == 0 else None
    if host_count() > 1:
        multihost_utils.sync_global_devices(f"{work.__module__}.{work.__qualname__}")
    return result


@contextmanager
def evaluation_on_many_devices() -> Iterator[None]:
    """Let Levanter's evaluation run on more than one device, while the block runs.

    Its dataset makes the arrays of its tags on the mesh of all devices, and the loader stacks them on this host's CPU,
    which jax refuses. Here they are made there too.
    """
    dataset: Any = levanter.eval.DomainTaggedDataset
    compute = dataset._compute_tag_arrays

    def compute_locally(self: Any) -> Any:
        with local_cpu_mesh():
            return compute(self)

    dataset._compute_tag_arrays = compute_locally
    try:
        yield
    finally:
        dataset._compute_tag_arrays = compute
