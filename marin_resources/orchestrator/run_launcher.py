"""Dagster's own run launcher, which can also tell that the process of a run is gone.

A machine that goes down, or a `kill -9`, leaves runs STARTED in Dagster's database, and a queue of one run at a time
would wait for them for ever. The executor tags each run with its process; run monitoring asks here, and marks a run
as failed whose process has died. Runs of other machines are left alone.
"""

from __future__ import annotations

from dagster import DagsterRun
from dagster._core.launcher import CheckRunHealthResult, DefaultRunLauncher, WorkerStatus

from marin_resources.process import process_is_gone, this_process

TAG = ".dagster/marin_process"
"""Dagster's UI does not show tags that begin so."""


def process_tag(run_id: str, process: str | None = None) -> dict[str, str]:
    """This process, or that one, as a tag of its run. Dagster copies a run's tags to one that tries it again, so the
    run is named in it."""
    return {TAG: f"{run_id} {process or this_process()}"}


def process_of(run: DagsterRun) -> str | None:
    """The process that executes the run, as `this_process` tells it; None if it has not begun."""
    run_id, _, process = run.tags.get(TAG, "").partition(" ")
    return process if run_id == run.run_id else None


def is_over(run: DagsterRun) -> bool:
    """Whether a run has ended, or its process has without saying so."""
    return run.is_finished or _has_died(run)


class LocalRunLauncher(DefaultRunLauncher):
    """Starts runs as DefaultRunLauncher does."""

    @property
    def supports_check_run_worker_health(self) -> bool:
        return True

    def check_run_worker_health(self, run: DagsterRun) -> CheckRunHealthResult:
        if _has_died(run):
            return CheckRunHealthResult(
                WorkerStatus.FAILED,
                "The process of this run is gone. What is complete stays; materialize the same again to go on.",
            )
        return CheckRunHealthResult(WorkerStatus.RUNNING)


def _has_died(run: DagsterRun) -> bool:
    process = process_of(run)
    return process is not None and process_is_gone(process)
