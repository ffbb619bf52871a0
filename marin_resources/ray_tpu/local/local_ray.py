"""The Ray of a process: it starts in the background or when it is first needed, and ends with the process.

Its authentication is disabled explicitly, so an existing token file has no effect; it listens on loopback alone, and no
other user may enter the folder of its files. Of Ray's daemons it has those that run tasks. The dashboard's server, the
autoscaler's monitor and the reader of the workers' logs are left out: nobody reads their results. So is the dashboard's
agent of its node: agent_stub.py takes its place. The node waits for no agent, as it knows the port of the one for
runtime environments. A start takes 7.6 s as Ray does it, and 0.9 s so (two cores).
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from marin_resources.ray_tpu.local import agent_stub
from marin_resources.ray_tpu.private_ray import ON_LOOPBACK, NotPrivateError, private_folder
from marin_resources.ray_tpu.ray_internals import start_lean
from marin_resources.ray_tpu.ray_options import RayGoneError, UnmeetableError
from marin_resources.ray_tpu.sidecar import start_sidecar

OBJECT_STORE_BYTES = 80_000_000
"""Ray's minimum. Data passes through the filesystem, never through Ray."""
STARTS, BUSY_STARTS = 4, 20
"""Limits of the starts of Ray, 30 s each: usually, and while the machine is busy, which ends by itself."""
BUSY_LOAD = 4
"""Processes that want to run, for each CPU."""
SYSTEM_CONFIG = {
    "prestart_worker_first_driver": False,  # or `ray.init` waits for workers to be idle
    "gcs_rpc_server_reconnect_timeout_s": 3600,  # Ray's own is 60, and then it ends this process with exit code 1
}
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
        """Number of restarts. A task that was submitted to an earlier Ray has no end."""
        self._session = ""
        """The folder of its files."""
        self._daemons: Sequence[Any] = ()
        """The processes, of psutil, without which it runs no task."""
        self._companion: subprocess.Popen[bytes] | None = None
        self._agent_port: socket.socket | None = None
        """Reserved as long as Ray runs: its agent listens a second after the start, or much later."""
        # Ray's daemons die with the thread that started them, so that thread must live as long as they do.
        self._owner = ThreadPoolExecutor(1, thread_name_prefix="ray-owner")

    def begin(self) -> Future[Any]:
        """Start Ray in the background, if it is not started. The result is the module `ray`. Blocks for Ray's import,
        so that its daemons start before the caller continues."""
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
        return any(_has_ended(daemon) for daemon in self._daemons)

    def start_again(self, number: int) -> None:
        """Kill the rest of the Ray of this number, and start another one, unless that has been done. Blocks.

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
        import psutil  # late, for its weight

        from marin_resources.ray_tpu.local.orphan_reaper import rays_processes

        # a worker may still write, and the next attempt is about to
        for process in rays_processes(self._session, os.getpid()) if self._session else ():
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
            context = _start_ray(self.cpus, self._agent_port.getsockname()[1])
            self._session = context.address_info["session_dir"]
            self._daemons = _daemons_of(self._session)
            self._started_here = True
            self._companion = start_sidecar(
                "marin_resources.ray_tpu.local.orphan_reaper",
                (os.getpid(), self._session),
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
    """Start a Ray with all CPUs in the background, for the first back end of the block. If none takes it,
    end it."""
    _ahead[:] = [OwnRay(os.cpu_count() or 1)]
    _ahead[0].begin()
    try:
        yield
    finally:
        while _ahead:
            _ahead.pop().shutdown()


def _start_ray(cpus: int, agent_port: int) -> Any:
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
            return start_lean(
                agent_port=agent_port,
                agent_script=agent_stub.__file__,
                temp_dir=_temp_dir(),
                system_config=SYSTEM_CONFIG,
                address="local",
                num_cpus=cpus,
                include_dashboard=False,
                object_store_memory=OBJECT_STORE_BYTES,
                log_to_driver=False,
                logging_level=logging.ERROR,
                namespace="marin",
            )
        except Exception as error:  # Ray raises no class of its own
            if TIMED_OUT not in str(error):
                raise
            load, allowed = _load_and_starts()
            message = "Ray did not start in its 30 s (start %d of %d), with a load of %.0f on %d CPUs"
            log.warning(message, start, allowed, load, _cpus())
            _kill_ray(set(psutil.Process().children(recursive=True)) - before)
            if start >= allowed:
                raise RayGoneError(
                    f"Ray did not start on this machine in {start} starts of 30 s, with a load of {load:.0f} on "
                    f"{_cpus()} CPUs. Run again when it is less busy; complete outputs are reused."
                ) from None


def _daemons_of(session: str) -> list[Any]:
    """The raylet and the GCS of the session, which are children of this process."""
    import psutil  # late, for its weight

    daemons = []
    for process in psutil.Process().children():
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.name() in (RAYLET, GCS) and any(session in word for word in process.cmdline()):
                daemons.append(process)
    return daemons


def _has_ended(process: Any) -> bool:
    """Whether it has ended: Ray, whose child it is, may not have noticed it."""
    import psutil  # late, for its weight

    try:
        return process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return True


def _temp_dir() -> str:
    """The folder of Ray's files. Raises UnmeetableError if another user has its name."""
    parent = os.environ.get("RAY_TMPDIR") or ("/tmp" if os.path.isdir("/tmp") else tempfile.gettempdir())
    try:
        return str(private_folder(os.path.join(parent, f"marin-ray-{os.geteuid()}")))  # short, for its sockets
    except NotPrivateError as error:
        raise UnmeetableError(f"{error} Or set RAY_TMPDIR to a folder of your own.") from None


def _load_and_starts() -> tuple[float, int]:
    """The load of this machine, and the number of starts that are worth trying with it."""
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
    """A port that nobody is given while this is open. A process that requests this very port may listen on
    it (SO_REUSEADDR)."""
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("127.0.0.1", 0))
    return reserved
