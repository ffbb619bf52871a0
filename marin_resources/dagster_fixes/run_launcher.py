"""Dagster's default run launcher with a health check of the run's process.

A `kill -9` or a machine failure leaves a run STARTED in Dagster's database, and a queue of one run at a time would wait
for it for ever. The executor tags each run with its process. Dagster's run monitoring calls the health check here and
marks a run as failed whose process has died. Runs of other machines are not checked.

Dagster launches such a run again once, at once, and gives it up if its code server does not answer. After the start of
a machine, daemon and code server come up together. So a run of a code server that is kept up by others is marked only
when that server has answered for a while.

A run outlives the code server that launched it, as in a redeployment. Then Dagster's way to terminate it, through that
server, ends nothing; the run's process is interrupted here.

Seen with Dagster 1.13.27: dagster-io/dagster#4319. Without this, a killed run holds its place in the queue.
"""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from dagster import DagsterError, DagsterRun, DefaultRunLauncher
from dagster._core.launcher import CheckRunHealthResult, WorkerStatus
from dagster._core.remote_origin import GrpcServerCodeLocationOrigin

from marin_resources.host.process import pid_here, process_is_gone, this_process

SETTLED_S = 15.0
"""Time for which a code server has answered when the daemon has its definitions too."""
PATIENCE_S = 900.0
"""Time limit of the wait for a code server."""

TAG, TERMINAL = ".dagster/marin_process", ".dagster/marin_terminal"
"""Dagster's UI hides tags with this prefix."""
NOT_AGAIN = {"dagster/max_retries": "0"}
"""The tag of a run that Dagster's daemon does not launch again by itself, also where `run_retries` allow it."""


def process_tag(run_id: str, process: str | None = None) -> dict[str, str]:
    """The tag that names the process of a run, by default this one. It holds the run id, as Dagster copies the tags of
    a run to its re-execution."""
    return {TAG: f"{run_id} {process or this_process()}"}


def process_of(run: DagsterRun) -> str | None:
    """The process of the run, in the form of `this_process`; None if the run has not started."""
    run_id, _, process = run.tags.get(TAG, "").partition(" ")
    return process if run_id == run.run_id else None


def terminal_tag(run_id: str) -> dict[str, str]:
    """The tags of a run that a command in a terminal executes. One holds the run id for the same reason."""
    return {TERMINAL: run_id, **NOT_AGAIN}


def is_in_terminal(run: DagsterRun) -> bool:
    """Whether a command in a terminal executes the run, and not Dagster's run launcher."""
    return run.tags.get(TERMINAL) == run.run_id


def is_over(run: DagsterRun) -> bool:
    """Whether the run has ended, or its process has died."""
    return run.is_finished or _has_died(run)


class LocalRunLauncher(DefaultRunLauncher):
    """Launches runs as DefaultRunLauncher does."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._dead_since_s: dict[str, float] = {}
        """Run -> time at which its process was first found to be gone."""
        self._answers_since_s: dict[GrpcServerCodeLocationOrigin, float] = {}

    @property
    def supports_check_run_worker_health(self) -> bool:
        return True

    def check_run_worker_health(self, run: DagsterRun) -> CheckRunHealthResult:
        if not _has_died(run):
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        if not self._can_be_launched_again(run):
            return CheckRunHealthResult(WorkerStatus.RUNNING, "Its process is gone; its code server is waited for.")
        return CheckRunHealthResult(
            WorkerStatus.FAILED,
            "The process of this run is gone. Complete outputs stay; materialize the same again to continue.",
        )

    def terminate(self, run_id: str) -> bool:
        try:
            if super().terminate(run_id):
                return True
        except DagsterError:  # DagsterUserCodeUnreachableError, which has no public name
            if not self._interrupt(run_id):
                raise
            return True
        return self._interrupt(run_id)

    def _can_be_launched_again(self, run: DagsterRun) -> bool:
        """Whether Dagster can, or whether that has been waited for long enough."""
        origin = run.remote_job_origin.repository_origin.code_location_origin if run.remote_job_origin else None
        if not isinstance(origin, GrpcServerCodeLocationOrigin) or origin.additional_metadata:
            return True  # `dagster dev` starts it before its daemon, each time at another socket; it notes the target
        now_s = time.monotonic()
        dead_since_s = self._dead_since_s.setdefault(run.run_id, now_s)
        if _answers(origin):
            settled = now_s - self._answers_since_s.setdefault(origin, now_s) >= SETTLED_S
        else:
            settled = False
            self._answers_since_s.pop(origin, None)
        if not settled and now_s - dead_since_s < PATIENCE_S:
            return False
        del self._dead_since_s[run.run_id]
        return True

    def _interrupt(self, run_id: str) -> bool:
        """Interrupt a run's process, as its code server does. False if it is not here, or gone, or a terminal's."""
        run = self._instance.get_run_by_id(run_id) if self.has_instance else None
        launched = run is not None and not run.is_finished and not is_in_terminal(run)
        process = process_of(run) if run is not None and launched else None
        pid = pid_here(process) if process is not None else None
        if pid is None:
            return False
        os.kill(pid, signal.SIGINT)
        return True


def _answers(origin: GrpcServerCodeLocationOrigin) -> bool:
    try:
        origin.create_client().ping("")
    except DagsterError:  # DagsterUserCodeUnreachableError, which has no public name
        return False
    return True


def _has_died(run: DagsterRun) -> bool:
    process = process_of(run)
    return process is not None and process_is_gone(process)
