"""Dagster's launcher of Kubernetes jobs (dagster-k8s), with a health check that does not take silence for death.

Dagster's run monitoring marks a run as failed whose launcher reports anything but "it runs". Dagster's own launcher
reports "unknown" in two cases in which the run may well live:

* Kubernetes' API does not answer, as while its control plane is upgraded. The run continues, and its job with it. The
  next poll repeats the request.
* No job has the run's name, as a command in a terminal executes it (`marin materialize`). It is not Dagster's.

A run whose job is gone has failed: somebody has deleted it, or it ended a day ago.

Seen with dagster-k8s 0.29.27; no issue is known. Without this, an upgrade of the control plane fails all runs.
"""

from __future__ import annotations

from dagster import DagsterRun
from dagster_k8s import K8sRunLauncher

from marin_resources.dagster_fixes.run_launcher import CheckRunHealthResult, WorkerStatus, is_in_terminal

GONE = "could not be found"
"""End of the sentence of Dagster's launcher (dagster-k8s 0.29.27) about a job that Kubernetes does not have."""


class KubernetesRunLauncher(K8sRunLauncher):  # type: ignore[misc]
    """Launches runs as K8sRunLauncher does, with its config."""

    def check_run_worker_health(self, run: DagsterRun) -> CheckRunHealthResult:
        if is_in_terminal(run):
            return CheckRunHealthResult(WorkerStatus.RUNNING, "A command in a terminal executes it.")
        looked = super().check_run_worker_health(run)
        if looked.status != WorkerStatus.UNKNOWN:
            return looked
        if (looked.msg or "").endswith(GONE):
            return CheckRunHealthResult(
                WorkerStatus.FAILED,
                "The job of this run is gone. Complete outputs stay; materialize the same again to continue.",
            )
        return CheckRunHealthResult(WorkerStatus.RUNNING, f"Kubernetes cannot be asked: {looked.msg}")
