"""Start one Ray on this machine, or report in one sentence why it cannot start, within seconds.

In:  the number of CPUs, and an event that ends a start under way.
Out: Ray's context. After an error, none of Ray's processes is left.

Ray gives its daemons 30 s, and does not look whether they live. Here a daemon that has ended ends the start, after a
second try, as its port may have been taken at that moment. A machine that is only busy gets more starts of 30 s.
"""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any

from marin_resources.configuration.command import make_or
from marin_resources.configuration.settings import DISTRIBUTION
from marin_resources.host.private_folder import NotPrivateError, private_folder
from marin_resources.ray_tpu.local import agent_stub
from marin_resources.ray_tpu.local.machine_check import refuse_folder, refuse_machine
from marin_resources.ray_tpu.ray_internals import ON_LOOPBACK, start_lean
from marin_resources.ray_tpu.ray_options import RayGoneError, UnmeetableError

OBJECT_STORE_BYTES = 80_000_000
"""Ray's minimum. Data passes through the filesystem, never through Ray."""
STARTS, BUSY_STARTS, DEAD_STARTS = 4, 20, 2
"""Limits of the starts of Ray: of 30 s each usually, and while the machine is busy, which ends by itself; and of those
whose daemons end."""
BUSY_LOAD = 4
"""Processes that want to run, for each CPU."""
SLOW_S = 5.0
"""A start takes 0.9 s; one that takes longer is logged once."""
SYSTEM_CONFIG = {
    "prestart_worker_first_driver": False,  # or `ray.init` waits for workers to be idle
    "gcs_rpc_server_reconnect_timeout_s": 3600,  # Ray's own is 60, and then it ends this process with exit code 1
}
TIMED_OUT = ("timed out during startup", "Timed out waiting for file")
"""In the messages of Ray's errors."""
EXEC_S, EXEC_POLL_S = 1.0, 0.001
"""The kernel takes microseconds, on a busy machine longer, to give a process that begins its command."""
LOG_OPTION = "--stderr_filepath="
"""An option of the commands of Ray's daemons."""
LOG_LEVELS = (" C ", " E ")
"""Marks of lines in the logs of Ray's daemons: critical, error."""
MOST_CHARACTERS = 300
"""Limit for a line of Ray's logs in a sentence."""

log = logging.getLogger(__name__)


class StartStoppedError(RayGoneError):
    """The run was stopped while its Ray started."""


class _DaemonEndedError(Exception):
    """A daemon of Ray ended during the start: a phrase."""


def import_ray() -> Any:
    """The module `ray`, with the variables of a local one set. Raises UnmeetableError if it cannot be imported."""
    os.environ["RAY_AUTH_MODE"] = "disabled"
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.update(ON_LOOPBACK)
    try:
        import ray  # late, for its weight, and after the variables
    except (ImportError, OSError, AttributeError, SyntaxError) as error:  # a broken installation has many
        raise UnmeetableError(
            f"Ray cannot be imported by {sys.executable!r} ({type(error).__name__}: {_first_line(error)}). "
            f"{_how_to_install()}"
        ) from error
    return ray


def start_ray(cpus: int, agent_port: int, stopped: threading.Event) -> Any:
    """Start Ray; return its context. `agent_port` is for its agent of runtime environments. Blocks.

    Raises UnmeetableError for a folder that Ray cannot use, and RayGoneError if Ray does not start: after STARTS, while
    the machine is busy after BUSY_STARTS, and soon after `stopped` is set.
    """
    import psutil  # late, for its weight

    folder = ray_folder()
    start = ended = 0
    while True:
        refuse_machine(os.path.dirname(folder))
        start += 1
        before = set(psutil.Process().children(recursive=True))
        try:
            return _start(cpus, agent_port, folder, stopped)
        except Exception as error:  # Ray raises no class of its own
            _kill_ray(set(psutil.Process().children(recursive=True)) - before)
            if isinstance(error, StartStoppedError):
                raise
            ended += isinstance(error, _DaemonEndedError)
            if isinstance(error, _DaemonEndedError) and ended < DEAD_STARTS:
                log.warning("Ray is started once more: %s", error)
                continue
            if not any(text in str(error) for text in TIMED_OUT):
                raise RayGoneError(_failed_sentence(error)) from error
            load, allowed = _load_and_starts()
            message = "Ray did not start in its 30 s (start %d of %d), with a load of %.0f on %d CPUs"
            log.warning(message, start, allowed, load, _cpus())
            if start >= allowed:
                raise RayGoneError(
                    f"Ray did not start on this machine in {start} starts of 30 s, with a load of {load:.0f} on "
                    f"{_cpus()} CPUs. Run again when it is less busy; complete outputs are reused."
                ) from None


def ray_folder() -> str:
    """The folder of Ray's files. Raises UnmeetableError if Ray cannot use it, or another user has its name."""
    given = os.environ.get("RAY_TMPDIR")
    parent = given or ("/tmp" if os.path.isdir("/tmp") else tempfile.gettempdir())
    own = os.path.join(parent, f"marin-ray-{os.geteuid()}")  # short, for its sockets
    refuse_folder(os.path.join(own, "r"))
    try:
        return str(private_folder(own))
    except NotPrivateError as error:
        raise UnmeetableError(f"{error} Or set RAY_TMPDIR to a folder of your own.") from None
    except OSError as error:
        raise UnmeetableError(
            f"Ray's files would be in {own!r}, and that cannot be created or changed ({error.strerror}). Set "
            "RAY_TMPDIR to a folder of your own with a short absolute path."
        ) from None


def _start(cpus: int, agent_port: int, folder: str, stopped: threading.Event) -> Any:
    """One start. Raises Ray's errors, _DaemonEndedError and StartStoppedError."""
    slow_s = time.monotonic() + SLOW_S

    def check(daemons: Sequence[subprocess.Popen[bytes]]) -> None:
        nonlocal slow_s
        if stopped.is_set():
            raise StartStoppedError("Ray was not started, as the run was stopped. Run again to continue.")
        for daemon in daemons:
            if daemon.poll() is not None:
                raise _DaemonEndedError(_end_of(daemon))
        if time.monotonic() > slow_s:
            slow_s = float("inf")
            message = "Ray takes longer than %g s to start, with a load of %.0f on %d CPUs; it gets 30 s"
            log.warning(message, SLOW_S, _load_and_starts()[0], _cpus())

    return start_lean(
        agent_port=agent_port,
        agent_script=agent_stub.__file__,
        temp_dir=folder,
        system_config=SYSTEM_CONFIG,
        on_wait=check,
        address="local",
        num_cpus=cpus,
        include_dashboard=False,
        object_store_memory=OBJECT_STORE_BYTES,
        log_to_driver=False,
        logging_level=logging.ERROR,
        namespace="marin",
    )


def _end_of(daemon: subprocess.Popen[bytes]) -> str:
    """A phrase with the name of a daemon, its exit code or signal, and the last error in its log."""
    words = [str(word) for word in daemon.args] if isinstance(daemon.args, list | tuple) else [str(daemon.args)]
    code = daemon.returncode
    how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
    path = next((word.removeprefix(LOG_OPTION) for word in words if word.startswith(LOG_OPTION)), None)
    line = _logged_error(path) if path else None
    return f"its daemon {os.path.basename(words[0])} {how}{f', and logged: {line}' if line else ''}"


def _logged_error(path: str) -> str | None:
    """The last critical line, or else the last error, without its prefix "[time C 1 1] (raylet)"."""
    with contextlib.suppress(OSError), open(path, errors="replace") as file:
        lines = file.read().splitlines()
        for level in LOG_LEVELS:
            for line in reversed(lines):
                if line.startswith("[") and level in line.partition("]")[0]:
                    text = line.partition("] ")[2]
                    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"
    return None


def _failed_sentence(error: Exception) -> str:
    cause = str(error) if isinstance(error, _DaemonEndedError) else f"{type(error).__name__}: {_first_line(error)}"
    problem = _missing_version()
    return f"Ray did not start on this machine: {cause.rstrip('.')}. " + (
        f"{problem} {_how_to_install()}" if problem else "Correct that and run again; complete outputs are reused."
    )


def _missing_version() -> str | None:
    """A sentence if the environment has another Ray than Marin requires."""
    from importlib import metadata  # late: after a failure alone

    from packaging.requirements import Requirement

    with contextlib.suppress(metadata.PackageNotFoundError):
        version = metadata.version("ray")
        for required in map(Requirement, metadata.requires(DISTRIBUTION) or []):
            if required.name == "ray" and version not in required.specifier:
                return f"This is Ray {version}, expected {required.specifier}."
    return None


def _how_to_install() -> str:
    install = make_or("clean init", f"{sys.executable} -m pip install --force-reinstall {DISTRIBUTION}")
    return f"Install it again: {install}"


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


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
            if any("/ray/" in word for word in _command_of(process)):
                process.kill()


def _command_of(process: Any) -> list[str]:
    """The words of its command. For an instant of its start a process has none, as a zombie has none for ever."""
    import psutil  # late, for its weight

    end_s = time.monotonic() + EXEC_S
    while not (words := process.cmdline()):
        if process.status() == psutil.STATUS_ZOMBIE or time.monotonic() > end_s:
            break
        time.sleep(EXEC_POLL_S)
    return list(words)
