"""The Ray of a process: it starts in the background or when it is first needed, and ends with the process.

Its authentication is disabled explicitly, so an existing token file has no effect; it listens on loopback alone, and no
other user may enter the folder of its files. Of Ray's daemons it has those that
run tasks. The dashboard's server, the autoscaler's monitor and the reader of the workers' logs are left out: nobody
reads what they offer. So is the dashboard's agent of its node: lean_agent.py takes its place. The node waits for no
agent, as it is told where that of runtime environments will listen. A start takes 7.6 s as Ray does it, and 0.9 s so
(two cores).
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

from marin_resources.ray_tpu import lean_agent
from marin_resources.ray_tpu.companion import start_companion
from marin_resources.ray_tpu.private_ray import ON_LOOPBACK, NotPrivateError, private_folder
from marin_resources.ray_tpu.ray_options import RayGoneError, UnmeetableError

OBJECT_STORE_BYTES = 80_000_000
"""Ray's minimum. Data passes through the filesystem, never through Ray."""
LEFT_OUT = ("start_api_server", "start_monitor", "start_log_monitor")
"""Methods of Ray's Node, each of which starts a daemon."""

PYTHON_COMMAND = "_build_python_executable_command_memory_profileable"
"""Ray's function that begins the command of each of its Python processes."""

STARTS, BUSY_STARTS = 4, 20
"""Of Ray, 30 s each: usually, and while the machine is busy, which ends by itself."""
BUSY_LOAD = 4
"""Processes that want to run, for each CPU."""
SYSTEM_CONFIG = {
    "prestart_worker_first_driver": False,  # or `ray.init` waits for workers to be idle
    "gcs_rpc_server_reconnect_timeout_s": 3600,  # Ray's own is 60, and then it ends this process with exit code 1
}
START_TIMEOUT_S = 30
"""Of Ray, for its node to be there."""
POLL_S = 0.05
TIMED_OUT = "timed out during startup"
"""In the message of Ray's error."""

RAYLET, GCS = "raylet", "gcs_server"
"""Ray's names of its daemons."""

log = logging.getLogger(__name__)


class OwnRay:
    """A Ray that this process starts when it is first needed, and again if its raylet or its GCS has died."""

    def __init__(self, cpus: int) -> None:
        self.cpus = cpus
        self._lock = threading.Lock()
        self._starting: Future[Any] | None = None
        self._started_here = False
        self.number = 0
        """How often it has been started again. What was submitted to an earlier one has no end."""
        self._companion: subprocess.Popen[bytes] | None = None
        self._agent_port: socket.socket | None = None
        """Reserved as long as Ray runs: its agent listens a second after the start, or much later."""
        # Ray's daemons die with the thread that started them, so that thread must live as long as they do.
        self._owner = ThreadPoolExecutor(1, thread_name_prefix="ray-owner")

    def begin(self) -> Future[Any]:
        """Start Ray in the background, if it is not started. The result is the module `ray`. Blocks for Ray's import,
        so that its daemons start before what the caller does next."""
        _import_ray()
        with self._lock:
            if self._starting is None or (self._starting.done() and self._starting.exception() is not None):
                self._starting = self._owner.submit(self._start)
            return self._starting

    def started(self) -> Any:
        """The module `ray`, started. Blocks. Raises RayGoneError if it does not start on this machine."""
        return self.begin().result()

    def is_dead(self) -> bool:
        """Whether it was started here, and its raylet or its GCS has died. The raylet dies with its agents too.

        A worker that computes does not notice it, so Ray (2.60) reports no end of its task.
        """
        if not self._started_here:
            return False
        node = _import_ray()._private.worker.global_worker.node
        return node is not None and any(kind in (RAYLET, GCS) for kind, _ in node.dead_processes())

    def start_again(self, number: int) -> None:
        """Kill what is left of the Ray of this number, and start another one, unless that has been done. Blocks.

        Raises RayGoneError if it does not start on this machine.
        """
        with self._lock:
            if number == self.number:
                log.warning("Ray's raylet or GCS has died. Ray is started again; the tasks of this process are lost")
                self.number += 1
                self._starting = self._owner.submit(self._restart)
            starting = self._starting
        if starting is not None:
            starting.result()

    def _restart(self) -> Any:
        import psutil  # late, for their weight
        import ray

        from marin_resources.ray_tpu.leftovers_of_ray import rays_processes

        node = ray._private.worker.global_worker.node
        session = node.get_session_dir_path() if node is not None else ""
        # a worker may still write, and the next attempt is about to
        for process in rays_processes(session, os.getpid()) if session else ():
            if process.name() != GCS:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
        self._stop()
        return self._start()

    def shutdown(self) -> None:
        """End Ray if it was started here. Blocks until a start in the background is over."""
        self._owner.submit(self._stop).result()
        self._owner.shutdown()

    def _start(self) -> Any:
        ray = _import_ray()
        if not ray.is_initialized():
            self._agent_port = self._agent_port or _reserved_port()
            context = _start_ray(ray, self.cpus, self._agent_port.getsockname()[1])
            self._started_here = True
            self._companion = start_companion(
                "marin_resources.ray_tpu.leftovers_of_ray",
                (os.getpid(), context.address_info["session_dir"]),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        return ray

    def _stop(self) -> None:
        if not self._started_here:
            return
        import ray  # late, for its weight

        ray.shutdown()
        self._started_here = False
        if self._agent_port is not None:
            self._agent_port.close()
            self._agent_port = None
        if self._companion is not None and self._companion.stdin is not None:
            self._companion.stdin.close()


_ahead: list[OwnRay] = []
"""The Ray that is started ahead and that no back end has taken yet; at most one."""


def ray_of_process(cpus: int) -> OwnRay:
    """The Ray that was started ahead, for its first caller with that number of CPUs; else one that is not started."""
    if _ahead and _ahead[0].cpus == cpus:
        return _ahead.pop()
    return OwnRay(cpus)


@contextlib.contextmanager
def ray_started_ahead() -> Iterator[None]:
    """Start a Ray with all CPUs in the background, for the first back end of the block; if there is none, end it."""
    _ahead[:] = [OwnRay(os.cpu_count() or 1)]
    _ahead[0].begin()
    try:
        yield
    finally:
        while _ahead:
            _ahead.pop().shutdown()


def _start_ray(ray: Any, cpus: int, agent_port: int) -> Any:
    """Start Ray; return its context. `agent_port` is for its agent of runtime environments.

    Ray gives its daemons 30 s, which a busy machine may take longer for: then it is started again. Raises
    RayGoneError after STARTS; while the machine is busy, after BUSY_STARTS.
    """
    import psutil  # late, for its weight

    start = 0
    while True:
        start += 1
        before = set(psutil.Process().children(recursive=True))
        try:
            with _started_lean(agent_port):
                return ray.init(
                    address="local",
                    num_cpus=cpus,
                    include_dashboard=False,
                    object_store_memory=OBJECT_STORE_BYTES,
                    log_to_driver=False,
                    _system_config=SYSTEM_CONFIG,
                    logging_level=logging.ERROR,
                    _temp_dir=_temp_dir(),
                    namespace="marin",
                )
        except Exception as error:  # Ray raises no class of its own
            if TIMED_OUT not in str(error):
                raise
            load, allowed = _load_and_starts()
            what = "Ray did not start in its 30 s (start %d of %d), with a load of %.0f on %d CPUs"
            log.warning(what, start, allowed, load, _cpus())
            _kill_ray(set(psutil.Process().children(recursive=True)) - before)
            if start >= allowed:
                raise RayGoneError(
                    f"Ray did not start on this machine in {start} starts of 30 s, with a load of {load:.0f} on "
                    f"{_cpus()} CPUs. Run again when it is less busy; complete outputs are reused."
                ) from None


def _temp_dir() -> str:
    """The folder of Ray's files. Raises UnmeetableError if another user has its name."""
    parent = os.environ.get("RAY_TMPDIR") or ("/tmp" if os.path.isdir("/tmp") else tempfile.gettempdir())
    try:
        return str(private_folder(os.path.join(parent, f"marin-ray-{os.geteuid()}")))  # short, for its sockets
    except NotPrivateError as error:
        raise UnmeetableError(f"{error} Or set RAY_TMPDIR to a folder of your own.") from None


def _load_and_starts() -> tuple[float, int]:
    """The load of this machine, and how many starts are worth trying with it."""
    load = os.getloadavg()[0]
    return load, BUSY_STARTS if load > BUSY_LOAD * _cpus() else STARTS


def _cpus() -> int:
    return os.cpu_count() or 1


def _kill_ray(processes: Iterable[Any]) -> None:
    """Kill Ray's daemons among these processes: a start that failed leaves them until this process ends."""
    import psutil  # late, for its weight

    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            if any("/ray/" in word for word in process.cmdline()):
                process.kill()


def _import_ray() -> Any:
    os.environ["RAY_AUTH_MODE"] = "disabled"
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.update(ON_LOOPBACK)
    import ray  # late, for its weight, and after the variables

    return ray


def _reserved_port() -> socket.socket:
    """A port that nobody is given while this is open. Who asks for this very one may listen on it (SO_REUSEADDR)."""
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("127.0.0.1", 0))
    return reserved


@contextlib.contextmanager
def _started_lean(agent_port: int) -> Iterator[None]:
    """Let `ray.init` start no daemon of LEFT_OUT and no agent of the dashboard, and see at once that its node is there:
    it has no argument for these, and asks once a second."""
    from ray._private import ray_constants, services  # late, for its weight
    from ray._private.node import Node

    replaced = [
        *((Node, name, _start_nothing) for name in LEFT_OUT),
        (ray_constants, "ENABLE_RAY_CLUSTER", False),  # if somebody has imported Ray before ON_LOOPBACK was set
        (services, PYTHON_COMMAND, partial(_lean_agent, getattr(services, PYTHON_COMMAND))),
        (services, "start_raylet", partial(_start_raylet, services.start_raylet, agent_port)),
        (services, "get_node", partial(_get_node, services.get_node)),
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
    """As Ray's, with the port of the agent of runtime environments."""
    return start_raylet(*arguments, **{**options, "runtime_env_agent_port": agent_port})


def _lean_agent(python_command: Callable[..., list[str]], component: str, *arguments: Any, **options: Any) -> list[str]:
    """As Ray's, but lean_agent.py for the dashboard's agent, whose script and arguments follow."""
    from ray._private.ray_constants import PROCESS_TYPE_DASHBOARD_AGENT  # late, for its weight

    if component == PROCESS_TYPE_DASHBOARD_AGENT:
        return [sys.executable, "-IS", lean_agent.__file__]
    return python_command(component, *arguments, **options)


def _get_node(get_node: Callable[[str, str], Any], gcs_address: str, node_id: str) -> Any:
    """As Ray's, which waits a second between its looks. Raises its RuntimeError if the node is not there after 30 s."""
    from ray._private import services, state  # late, for its weight

    cluster = state.GlobalState()
    cluster._initialize_global_state(services._get_gcs_client_options(gcs_address))
    began_s = time.monotonic()
    while not any(node["NodeID"] == node_id and node["Alive"] for node in cluster.node_table()):
        if time.monotonic() - began_s > START_TIMEOUT_S:
            break
        time.sleep(POLL_S)
    return get_node(gcs_address, node_id)
