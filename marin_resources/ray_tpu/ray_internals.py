"""Ray's private names, which no other file of the product uses: all were last checked with Ray 2.60.0.

The docstring of a function has its private names, the public issue, and the reason that no public way serves. Ray is
imported in the functions, and nothing else: programs that run on the head of a cluster, which has no code of ours,
carry the text of some of them.

As a script, this is the command `ray` for a further node on loopback.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias

LEFT_OUT = ("start_api_server", "start_monitor", "start_log_monitor")
"""Methods of Ray's Node, each of which starts a daemon."""
PYTHON_COMMAND = "_build_python_executable_command_memory_profileable"
"""Ray's function that begins the command of each of its Python processes."""
START_TIMEOUT_S = 30
"""Time limit for the start of Ray's node."""
POLL_S = 0.05
ON_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""Variables of all of Ray's processes, with which 127.0.0.1 is the address of a node, as it is on macOS. Its ports are
then on loopback alone; Ray listens at all addresses of a machine by itself."""
OnWait: TypeAlias = Callable[[Sequence["subprocess.Popen[bytes]"]], None]


def kv_put(key: bytes, value: bytes, namespace: bytes) -> None:
    """Store a value on Ray's head, in place of an earlier one, until the head restarts.

    Relies on `ray.experimental.internal_kv`, as all `kv_` functions. ray-project/ray#18688 requested that it is public,
    #66113 that it is documented. A named actor is public and serves too, but it is a process of 100 MB that ends with
    its node; this store is in the head's memory.
    """
    from ray.experimental import internal_kv  # late, for its weight

    internal_kv._internal_kv_put(key, value, overwrite=True, namespace=namespace)


def kv_get(key: bytes, namespace: bytes) -> bytes | None:
    """Return the value that is stored on Ray's head."""
    from ray.experimental import internal_kv  # late, for its weight

    return internal_kv._internal_kv_get(key, namespace=namespace)


def kv_keys(prefix: bytes, namespace: bytes) -> list[bytes]:
    """Return the keys on Ray's head that begin with the prefix."""
    from ray.experimental import internal_kv  # late, for its weight

    return list(internal_kv._internal_kv_list(prefix, namespace=namespace) or [])


def kv_delete(key: bytes, namespace: bytes, *, by_prefix: bool = False) -> None:
    """Delete the key on Ray's head; `by_prefix`: all keys that begin with it."""
    from ray.experimental import internal_kv  # late, for its weight

    internal_kv._internal_kv_del(key, del_by_prefix=by_prefix, namespace=namespace)


def drain_node(node_id: str, notice_s: float, why: str) -> None:
    """Notify Ray that a node is preempted in `notice_s`: it places nothing there any more. Ray always accepts that.

    Relies on `GcsClient.drain_node` of the connected process, and on the number of the reason. The command `ray
    drain-node` is hidden, and no public API either (ray-project/ray#43189, #62942); it is a process per node, which
    imports Ray for seconds of the 30 that a preempted machine has.
    """
    from ray._private.worker import global_worker  # late, for its weight
    from ray.core.generated import autoscaler_pb2

    reason = autoscaler_pb2.DrainNodeReason.Value("DRAIN_NODE_REASON_PREEMPTION")  # type: ignore[attr-defined]
    deadline_ms = int((time.time() + notice_s) * 1000)
    global_worker.gcs_client.drain_node(node_id, reason, why, deadline_ms)  # type: ignore[attr-defined]


def draining_nodes() -> frozenset[str]:
    """Return the ids of the nodes that are being drained. Raises RayError if the head does not answer.

    Relies on the state of the connected process, as Ray Train does (ray-project/ray#63807). `ray.nodes()` and the state
    API have no field for it; no issue found.
    """
    from ray._private.state import state  # late, for its weight

    return frozenset(state.get_draining_nodes())


def free_resources() -> Mapping[str, Mapping[str, float]]:
    """Return id of each node -> its free resources; a resource without a free part is left out.

    Relies on the function that ray-project/ray#60134 requests as a public one; `ray.available_resources()` is the sum
    over all nodes.
    """
    from ray._private.state import available_resources_per_node  # late, for its weight

    return available_resources_per_node()


def filter_printed_lines(shown: Callable[[str | int | None, Sequence[str]], Sequence[str]]) -> None:
    """Let Ray print in this process the lines that `shown` returns, of a process and its lines. Call it before
    `ray.init`.

    Replaces the function of `ray._private.worker` that prints what Ray's daemons and workers have printed.
    `log_to_driver=False` is public and hides the workers' lines too; no issue found about the daemons' lines alone.
    """
    from ray._private import worker  # late, for its weight

    if getattr(worker.print_to_stdstream, "__module__", "") == __name__:
        return
    show = worker.print_to_stdstream

    def print_shown(data: dict[str, Any], ignore_prefix: bool) -> None:
        lines = shown(data.get("pid"), data.get("lines", []))
        if lines:
            show({**data, "lines": lines}, ignore_prefix)

    worker.print_to_stdstream = print_shown


def start_lean(
    *,
    agent_port: int,
    agent_script: str,
    temp_dir: str,
    system_config: Mapping[str, Any],
    on_wait: OnWait,
    **options: Any,
) -> Any:
    """Start Ray by `ray.init` with the options, without its daemons that serve nobody; return its context.

    `agent_port` is for its agent of runtime environments, `agent_script` runs in the place of the dashboard's agent.
    `on_wait` is called some times a second with the daemons that were started so far, and may raise to end the start:
    Ray waits 30 s for a daemon that has ended, and for one that cannot start.
    Relies on methods of Node and functions of `ray._private.services`, and on two arguments of `ray.init`.
    `include_dashboard=False` is public, and leaves the agent (ray-project/ray#17770), the server and the monitors; a
    start then takes 7.6 s, and 0.9 s so (two cores).
    """
    import ray  # late, for its weight

    with _lean_daemons(agent_port, agent_script, on_wait):
        return ray.init(_temp_dir=temp_dir, _system_config=dict(system_config), **options)


@contextmanager
def _lean_daemons(agent_port: int, agent_script: str, on_wait: OnWait) -> Iterator[None]:
    """Let `ray.init` start no daemon of LEFT_OUT and no agent of the dashboard, and see at once that its node has
    started, or has ended: it has no argument for these, and polls once a second."""
    from ray._private import node, ray_constants, services  # late, for its weight
    from ray._private.node import Node

    daemons: list[subprocess.Popen[bytes]] = []

    def waits() -> None:
        on_wait(daemons)

    replaced = [
        *((Node, name, _start_nothing) for name in LEFT_OUT),
        (ray_constants, "ENABLE_RAY_CLUSTER", False),  # if somebody has imported Ray before ON_LOOPBACK was set
        (services, PYTHON_COMMAND, partial(_python_command, getattr(services, PYTHON_COMMAND), agent_script)),
        (services, "start_raylet", partial(_start_raylet, services.start_raylet, agent_port)),
        (services, "start_ray_process", partial(_start_process, services.start_ray_process, daemons)),
        (services, "get_node", partial(_get_node, services.get_node, waits)),
        (node, "wait_for_persisted_port", partial(_wait_for_port, node.wait_for_persisted_port, waits)),
    ]
    before = [getattr(owner, name) for owner, name, _ in replaced]
    try:
        for owner, name, function in replaced:
            setattr(owner, name, function)
        yield
    finally:
        for (owner, name, _), function in zip(replaced, before, strict=True):
            setattr(owner, name, function)


def _start_nothing(*arguments: Any, **options: Any) -> None:
    """In the place of a method of LEFT_OUT."""


def _start_raylet(start_raylet: Callable[..., Any], agent_port: int, *arguments: Any, **options: Any) -> Any:
    """As Ray's, with the port of the agent of runtime environments: then the raylet does not wait for it."""
    return start_raylet(*arguments, **{**options, "runtime_env_agent_port": agent_port})


def _python_command(
    python_command: Callable[..., list[str]], agent_script: str, component: str, *arguments: Any, **options: Any
) -> list[str]:
    """As Ray's, but `agent_script` for the dashboard's agent, whose script and arguments follow."""
    from ray._private.ray_constants import PROCESS_TYPE_DASHBOARD_AGENT  # late, for its weight

    if component == PROCESS_TYPE_DASHBOARD_AGENT:
        return [sys.executable, "-IS", agent_script]
    return python_command(component, *arguments, **options)


def _start_process(
    start_process: Callable[..., Any], daemons: list[subprocess.Popen[bytes]], *arguments: Any, **options: Any
) -> Any:
    """As Ray's, and add the process to `daemons`."""
    info = start_process(*arguments, **options)
    daemons.append(info.process)
    return info


def _wait_for_port(
    wait_for_port: Callable[..., int], waits: Callable[[], None], *arguments: Any, timeout_ms: int = 30_000
) -> int:
    """As Ray's, which waits for a file with the port of a daemon, and call `waits` at each look. Raises Ray's
    RuntimeError if the file does not exist in time. Ray's own waits in C++, and lets no other thread of Python run."""
    end_s = time.monotonic() + timeout_ms / 1000
    while True:
        waits()
        try:
            return wait_for_port(*arguments, timeout_ms=1, poll_interval_ms=1)
        except RuntimeError:
            if time.monotonic() > end_s:
                raise
        time.sleep(POLL_S)


def _get_node(get_node: Callable[[str, str], Any], waits: Callable[[], None], gcs_address: str, node_id: str) -> Any:
    """As Ray's, which waits a second between its looks; and call `waits` at each look. Raises Ray's RuntimeError if the
    node is not there after 30 s."""
    from ray._private import services, state  # late, for its weight

    cluster = state.GlobalState()
    cluster._initialize_global_state(services._get_gcs_client_options(gcs_address))
    began_s = time.monotonic()
    while not any(node["NodeID"] == node_id and node["Alive"] for node in cluster.node_table()):
        waits()
        if time.monotonic() - began_s > START_TIMEOUT_S:
            break
        time.sleep(POLL_S)
    return get_node(gcs_address, node_id)


def run_on_loopback() -> None:
    """Run the command `ray` for a further node on this machine: its address is 127.0.0.1, as the head's.

    Replaces Ray's function that finds the address of this machine. With the variable of ON_LOOPBACK Ray takes
    127.0.0.1, and refuses a further node, as on macOS; without it, it connects to the machine's other address though
    `--address` and `--node-ip-address` are 127.0.0.1 (ray-project/ray#59110). Here the variable holds for the processes
    of the node, and not for this one.
    """
    from ray._private import ray_constants, services  # late, for its weight

    services.get_node_ip_address = _loopback
    ray_constants.ENABLE_RAY_CLUSTER = True
    from ray.scripts import scripts

    sys.exit(scripts.main())


def _loopback(address: str | None = None) -> str:
    return "127.0.0.1"


if __name__ == "__main__":
    run_on_loopback()
