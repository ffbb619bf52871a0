"""Dagster's own run launcher, which can also tell that the process of a run is gone.

A machine that goes down, or a `kill -9`, leaves runs STARTED in Dagster's database, and a queue of one run at a time
would wait for them for ever. The executor tags each run with its process; run monitoring asks here, and marks a run
as failed whose process has died. Runs of other machines are left alone.
"""

from __future__ import annotations

import os

from dagster import DagsterRun
from dagster._core.launcher import CheckRunHealthResult, DefaultRunLauncher, WorkerStatus

TAG = ".dagster/marin_process"
"""Dagster's UI does not show tags that begin so."""


def process_tag() -> dict[str, str]:
    """This process, so that it can be told from a later one of the same number: "host/pid/seconds since 1970"."""
    return {TAG: f"{os.uname().nodename}/{os.getpid()}/{_started(os.getpid())}"}


def process_is_gone(tag: str) -> bool:
    """Whether the process that made the tag has ended. False for a process of another machine: that cannot be seen."""
    host, pid, started = tag.split("/")
    return host == os.uname().nodename and _started(int(pid)) != started


class LocalRunLauncher(DefaultRunLauncher):
    """Starts runs as DefaultRunLauncher does."""

    @property
    def supports_check_run_worker_health(self) -> bool:
        return True

    def check_run_worker_health(self, run: DagsterRun) -> CheckRunHealthResult:
        tag = run.tags.get(TAG)
        if tag is not None and process_is_gone(tag):
            return CheckRunHealthResult(
                WorkerStatus.FAILED,
                "The process of this run is gone. What is complete stays; materialize the same again to go on.",
            )
        return CheckRunHealthResult(WorkerStatus.RUNNING)


def _started(pid: int) -> str | None:
    """When the process began; None if there is none, or only its zombie."""
    import psutil

    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else f"{process.create_time():.2f}"
    except psutil.NoSuchProcess:
        return None
