"""`marin dev` that a shell's script has put into the background, where the shell lets it ignore Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from running import wait_until

pytestmark = pytest.mark.long  # it starts Dagster's services

SCRIPT = "nohup {python} -m marin_assets.cli dev --port {port} > {log} 2>&1 & echo $!"


@pytest.fixture
def dev(dagster_home: Path, prefix: Path, tmp_path: Path) -> Iterator[psutil.Process]:
    """It, with its services."""
    log = tmp_path / "dev.log"
    script = SCRIPT.format(python=sys.executable, port=_free_port(), log=log)
    shell = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True, env=dict(os.environ))
    process = psutil.Process(int(shell.stdout))
    try:
        wait_until(lambda: "Serving dagster-webserver" in log.read_text(), "the services", timeout_s=240)
        yield process
    finally:
        for each in services_of(process, log):
            each.kill()
        if process.is_running():
            process.kill()


def services_of(dev: psutil.Process, log: Path) -> list[psutil.Process]:
    """All processes that it has started, and that are left: those with its log as their output."""
    found = []
    for each in psutil.process_iter():
        try:
            if each != dev and os.readlink(f"/proc/{each.pid}/fd/2") == str(log):
                found.append(each)
        except (OSError, psutil.NoSuchProcess):
            continue
    return found


def test_sigterm_ends_it_and_its_services(dev: psutil.Process, tmp_path: Path) -> None:
    assert len(services_of(dev, tmp_path / "dev.log")) >= 3
    dev.terminate()
    wait_until(lambda: not _runs(dev), "the end", timeout_s=90)
    wait_until(lambda: not services_of(dev, tmp_path / "dev.log"), "the end of its services", timeout_s=90)
    assert "Dagster services shut down." in (tmp_path / "dev.log").read_text()


def test_killed_it_leaves_no_services(dev: psutil.Process, tmp_path: Path) -> None:
    dev.send_signal(signal.SIGKILL)
    wait_until(lambda: not services_of(dev, tmp_path / "dev.log"), "the end of its services", timeout_s=90)


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
