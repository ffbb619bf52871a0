"""Dagster's default run launcher with a health check of the run's process.

A `kill -9` or a machine failure leaves a run STARTED in Dagster's database, and a queue of one run at a time would wait
for it for ever. The executor tags each run with its process. Dagster's run monitoring calls the health check here and
marks a run as failed whose process has died. Runs of other machines are not checked.
"""

from __future__ import annotations

from dagster import DagsterRun
from dagster._core.launcher import CheckRunHealthResult, DefaultRunLauncher, WorkerStatus

from marin_resources.process import process_is_gone, this_process

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

    @property
    def supports_check_run_worker_health(self) -> bool:
        return True

    def check_run_worker_health(self, run: DagsterRun) -> CheckRunHealthResult:
        if _has_died(run):
            return CheckRunHealthResult(
                WorkerStatus.FAILED,
                "The process of this run is gone. Complete outputs stay; materialize the same again to continue.",
            )
        return CheckRunHealthResult(WorkerStatus.RUNNING)


def _has_died(run: DagsterRun) -> bool:
    process = process_of(run)
    return process is not None and process_is_gone(process)
