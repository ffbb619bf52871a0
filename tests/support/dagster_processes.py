"""Code server, daemon and webserver as processes of one instance, each of which a test can kill and start again."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from dagster_dev import DagsterDev
from running import wait_until

WORKSPACE = "load_from: [{{grpc_server: {{host: 127.0.0.1, port: {port}, location_name: marin}}}}]"
CODE, DAEMON, WEBSERVER = "code", "daemon", "webserver"


class DagsterProcesses:
    """The processes of one deployment. `ui` asks its webserver, as the UI does.

    `killed_once`: while this file exists, the daemon kills itself before it keeps the cursor of a sensor's tick; while
    it exists with the suffix ".launch", before a run has a process. With the suffix ".code" and the code server's pid
    in it, the daemon kills that one there.
    """

    def __init__(self, location: Path, folder: Path, env: Mapping[str, str], killed_once: Path | None = None) -> None:
        code_port, ui_port = _free_ports(2)
        self._code_port = code_port
        workspace = folder / "grpc_workspace.yaml"
        workspace.write_text(WORKSPACE.format(port=code_port))
        self._env, self._folder = env, folder
        local = ["-h", "127.0.0.1", "-p"]
        self._commands = {
            CODE: ["dagster", "api", "grpc", *local, str(code_port), "-f", str(location), "--location-name", "marin"],
            DAEMON: [*_daemon(killed_once), "run", "-w", str(workspace)],
            WEBSERVER: ["dagster-webserver", *local, str(ui_port), "-w", str(workspace)],
        }
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self.ui = DagsterDev(ui_port)

    def start(self, *names: str) -> None:
        for name in names:
            program, *arguments = self._commands[name]
            with (self._folder / f"{name}.log").open("ab") as out:
                self._running[name] = subprocess.Popen(
                    [str(Path(sys.executable).with_name(program)), *arguments],
                    env={**os.environ, **self._env},
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        if CODE in names:
            wait_until(lambda: self._code_is_up() or self.has_ended(CODE), "the code server", timeout_s=120)
            assert not self.has_ended(CODE), self.log()
        if WEBSERVER in names:
            wait_until(self.ui.is_up, "the webserver", timeout_s=120)

    def _code_is_up(self) -> bool:
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", self._code_port)) == 0

    def kill(self, *names: str) -> None:
        """kill -9 of these processes alone: what they have started lives on."""
        for name in names:
            process = self._running.pop(name)
            process.kill()
            process.wait()

    def pid(self, name: str) -> int:
        return self._running[name].pid

    def has_ended(self, name: str) -> bool:
        """Whether a process that was started has ended by itself."""
        return self._running[name].poll() is not None

    def end(self) -> None:
        """kill -9 of all, and of the runs that the code server has started."""
        for process in self._running.values():
            with suppress(ProcessLookupError):  # it ended by itself, with all that it had started
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def log(self) -> str:
        """What the processes have printed."""
        return "".join(file.read_text(errors="replace") for file in sorted(self._folder.glob("*.log")))


@contextmanager
def dagster_processes(
    location: Path, folder: Path, env: Mapping[str, str], killed_once: Path | None = None
) -> Iterator[DagsterProcesses]:
    """All three, until the block ends."""
    processes = DagsterProcesses(location, folder, env, killed_once)
    try:
        processes.start(CODE)
        processes.start(WEBSERVER, DAEMON)
        yield processes
    finally:
        processes.end()


def _daemon(killed_once: Path | None) -> list[str]:
    if killed_once is None:
        return ["dagster-daemon"]
    return ["python", str(Path(__file__).with_name("daemon_killed_once.py")), str(killed_once)]


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
