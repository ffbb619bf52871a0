"""The parent of an experiment's process: a companion of the run, which ends the experiment when the run ends or dies.

In:  stdin, which ends with the run, or when the experiment is to stop.
Out: the experiment's exit code; no process that it started is left, nor its Dagster home.

The experiment first gets SIGINT, as by Ctrl-C: it stops its jobs on a cluster, and shuts its Ray down. What is left
after a while is killed. None escapes, as this process adopts those whose own parent has ended.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

from marin_resources.ray_tpu.sidecar import BLOCKED_SIGNALS
from marin_resources.ray_tpu.worker.process_tree import adopt_orphans, children, kill_descendants

POLL_S = 0.1
KILLED_S = 10.0
"""Seconds for which it keeps killing: some processes fork meanwhile."""


def main(home: str, folder: str, grace_s: str, *command: str) -> None:
    """Run the command in a folder. What it has started has so many seconds to end by itself."""
    try:
        code = _run(folder, float(grace_s), command)
    finally:
        shutil.rmtree(home)
    sys.exit(code if code >= 0 else 128 - code)


def _run(folder: str, grace_s: float, command: Sequence[str]) -> int:
    """The exit code; negative for a signal."""
    run = os.getppid()
    adopt_orphans()
    experiment = subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=_take_signals
    )
    while experiment.poll() is None and not _is_over(run):
        _reap(experiment)
    if experiment.poll() is None:
        experiment.send_signal(signal.SIGINT)
    return _end(experiment, grace_s)


def _take_signals() -> None:
    """In the new process: a companion blocks signals, and whoever started the run may have ignored them."""
    for number in BLOCKED_SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, BLOCKED_SIGNALS)


def _is_over(run: int) -> bool:
    """Whether the run has closed the pipe, or is gone: a process that it forked may hold the pipe."""
    return bool(select.select([0], [], [], POLL_S)[0]) or os.getppid() != run


def _end(experiment: subprocess.Popen[bytes], grace_s: float) -> int:
    """Wait until nothing is left, and kill what is left then. Returns the exit code of the experiment."""
    until_s = time.monotonic() + grace_s
    while (experiment.poll() is None or children()) and time.monotonic() < until_s:
        time.sleep(POLL_S)
        _reap(experiment)
    until_s = time.monotonic() + KILLED_S
    while children() and time.monotonic() < until_s:
        kill_descendants()
        _reap(experiment)
    return experiment.wait()


def _reap(experiment: subprocess.Popen[bytes]) -> None:
    """Take note of adopted processes that have ended."""
    for pid in children() - {experiment.pid}:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
