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
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from marin_resources.ray_tpu.local.machine_check import refuse_process_limit
from marin_resources.ray_tpu.local.start import import_ray, start_ray
from marin_resources.ray_tpu.sidecar import start_sidecar

RAYLET, GCS = "raylet", "gcs_server"
"""Ray's names of its daemons."""

log = logging.getLogger(__name__)


class OwnRay:
    """A Ray that this process starts when it is first needed, and again if its raylet or its GCS has died."""

    def __init__(self, cpus: int) -> None:
        self.cpus = cpus
        self._lock = threading.Lock()
        self._starting: Future[Any] | None = None
        self._stopped = threading.Event()
        """Ends the start that is under way."""
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
        so that its daemons start before the caller continues. Raises UnmeetableError if it cannot be imported, and
        RayGoneError if this user may start too few threads."""
        if self._has_to_start():  # a Ray that runs has its threads already
            refuse_process_limit()
        import_ray()
        with self._lock:
            starting = self._starting
            if starting is None or self._has_to_start():
                self._stopped.clear()
                starting = self._starting = self._owner.submit(self._start)
            return starting

    def _has_to_start(self) -> bool:
        starting = self._starting
        return starting is None or (starting.done() and starting.exception() is not None)

    def started(self) -> Any:
        """The module `ray`, started. Blocks. Raises RayGoneError if it does not start on this machine."""
        return self.begin().result()

    def stop_starting(self) -> None:
        """End a start that is under way, soon: whoever waits for it gets a RayGoneError. Else nothing."""
        self._stopped.set()

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
                self._stopped.clear()
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
        """End Ray if it was started here, and a start in the background. Blocks until both have ended."""
        self.stop_starting()
        self._owner.submit(self._stop).result()
        self._owner.shutdown()

    def _start(self) -> Any:
        ray = import_ray()
        if not ray.is_initialized():
            self._agent_port = self._agent_port or _reserved_port()
            context = start_ray(self.cpus, self._agent_port.getsockname()[1], self._stopped)
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


def _reserved_port() -> socket.socket:
    """A port that nobody is given while this is open. A process that requests this very port may listen on
    it (SO_REUSEADDR)."""
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("127.0.0.1", 0))
    return reserved
