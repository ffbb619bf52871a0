from __future__ import annotations

import pytest
from ray.exceptions import NodeDiedError, OutOfMemoryError, WorkerCrashedError

from marin_resources.ray_tpu.slices.causes import Cause, failure_of
from marin_resources.ray_tpu.slices.host_exit import Cancelled, Hung, Lost, Raised, Returned
from marin_resources.ray_tpu.slices.host_faults import HostFault
from marin_resources.ray_tpu.slices.reservation import Host

HOSTS = [
    Host(index=i, slice_index=0, slice_name="a", node_id=f"node-{i}", address=f"10.0.0.{i}", group=None, bundle=i)
    for i in range(3)
]
GLOO = Raised(host=HOSTS[0], error="XlaRuntimeError: Gloo all-reduce failed: Connection closed by peer", traceback="T0")


def raised(index: int, error: str, fault: HostFault | None = None) -> Raised:
    return Raised(host=HOSTS[index], error=error, traceback=f"traceback of {index}", fault=fault)


def cause_of(*ends: Returned | Raised | Lost | Cancelled, dead: str | None = None) -> tuple[Cause, int]:
    failure = failure_of(ends, lambda node: node != dead)
    assert failure is not None
    return failure.cause, failure.host.index


def test_what_has_returned_everywhere_has_not_failed() -> None:
    assert failure_of([Returned(host=host, result=1) for host in HOSTS], lambda node: False) is None


def test_a_lost_host_explains_the_errors_of_its_peers() -> None:
    assert cause_of(GLOO, Lost(host=HOSTS[1], error=WorkerCrashedError())) == (Cause.LOST_WORKER, 1)
    assert cause_of(GLOO, Lost(host=HOSTS[2], error=NodeDiedError("gone"))) == (Cause.PREEMPTED, 2)
    assert cause_of(GLOO, Cancelled(host=HOSTS[1]), dead="node-1") == (Cause.PREEMPTED, 1)


def hung(index: int, step: int | None) -> Hung:
    return Hung(host=HOSTS[index], error=f"host {index} hangs", step=step)


def test_of_hosts_that_hang_those_that_are_behind_are_avoided_or_all() -> None:
    behind = failure_of([hung(0, 7), hung(1, 7), hung(2, 6)], lambda node: True)
    assert behind is not None
    assert (behind.cause, behind.host, behind.avoid) == (Cause.HANG, HOSTS[2], (HOSTS[2],))
    equal = failure_of([hung(0, 7), hung(1, 7), Cancelled(host=HOSTS[2])], lambda node: True)
    assert equal is not None
    assert equal.avoid == (HOSTS[0], HOSTS[1])
    first_step = failure_of([hung(0, 1), hung(1, None)], lambda node: True)
    assert first_step is not None
    assert first_step.host == HOSTS[1]


def test_a_hang_explains_the_errors_of_the_peers_and_a_dead_node_explains_a_hang() -> None:
    assert cause_of(GLOO, hung(1, 3), Lost(host=HOSTS[2], error=WorkerCrashedError())) == (Cause.HANG, 1)
    assert cause_of(hung(0, 3), Cancelled(host=HOSTS[1]), dead="node-1") == (Cause.PREEMPTED, 1)


def test_a_dead_node_comes_before_a_dead_process() -> None:
    crashed = [Lost(host=host, error=WorkerCrashedError()) for host in HOSTS]
    assert cause_of(*crashed, dead="node-2") == (Cause.PREEMPTED, 2)


def test_of_errors_the_first_counts() -> None:
    assert cause_of(raised(1, "ValueError: no"), GLOO) == (Cause.ERROR, 1)


@pytest.mark.parametrize(
    ("fault", "cause"), [(HostFault.DEVICES, Cause.BAD_HOST), (HostFault.MEMORY, Cause.OUT_OF_MEMORY)]
)
def test_what_the_error_of_any_host_says_of_that_host_is_the_cause(fault: HostFault, cause: Cause) -> None:
    assert cause_of(GLOO, raised(1, "no", fault)) == (cause, 1)
    assert cause_of(raised(2, "no", fault)) == (cause, 2)
    failure = failure_of([raised(1, "no", fault)], lambda node: True)
    assert failure is not None
    assert failure.avoid == ((HOSTS[1],) if cause is Cause.BAD_HOST else ())


def test_the_text_of_an_error_is_no_cause() -> None:
    assert cause_of(GLOO, raised(1, "OSError: RESOURCE_EXHAUSTED: Device or resource busy")) == (Cause.ERROR, 0)


def test_a_process_that_ray_has_killed_for_its_memory_was_not_preempted() -> None:
    assert cause_of(GLOO, Lost(host=HOSTS[1], error=OutOfMemoryError("the node"))) == (Cause.OUT_OF_MEMORY, 1)
