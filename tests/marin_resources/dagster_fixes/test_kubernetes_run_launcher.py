"""When a run on Kubernetes has failed: its job is gone, and not when Kubernetes is silent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import kubernetes
import pytest
from dagster._core.launcher import WorkerStatus
from dagster_k8s import K8sRunLauncher
from kubernetes.client.rest import ApiException
from kubernetes_files import launcher_of_runs, new_run

from marin_resources.dagster_fixes.kubernetes_run_launcher import KubernetesRunLauncher
from marin_resources.dagster_fixes.run_launcher import terminal_tag

RUNNING, FAILED, UNKNOWN = WorkerStatus.RUNNING, WorkerStatus.FAILED, WorkerStatus.UNKNOWN


@pytest.fixture(scope="module")
def launcher() -> Iterator[KubernetesRunLauncher]:
    with launcher_of_runs() as launcher:
        yield launcher


def health(
    launcher: KubernetesRunLauncher, answer: object, *, in_terminal: bool = False
) -> tuple[WorkerStatus, WorkerStatus]:
    """The health of a run by our launcher and by Dagster's own, when Kubernetes answers like that."""
    run = new_run(launcher)
    if in_terminal:
        run = run.with_tags({**run.tags, **terminal_tag(run.run_id)})
    request = launcher._api_client.batch_api.read_namespaced_job_status
    request.side_effect = answer if isinstance(answer, Exception) else None
    request.return_value = answer
    ours = launcher.check_run_worker_health(run).status
    return ours, K8sRunLauncher.check_run_worker_health(launcher, run).status


def job(**counts: int) -> Any:
    return kubernetes.client.V1Job(status=kubernetes.client.V1JobStatus(**counts))


@pytest.mark.parametrize(("answer", "status"), [(job(active=1), RUNNING), (job(failed=1), FAILED)])
def test_the_status_of_a_job_is_that_of_dagsters_launcher(
    launcher: KubernetesRunLauncher, answer: object, status: WorkerStatus
) -> None:
    assert health(launcher, answer) == (status, status)


def test_a_run_whose_job_is_gone_has_failed(launcher: KubernetesRunLauncher) -> None:
    assert health(launcher, ApiException(status=404)) == (FAILED, UNKNOWN)


@pytest.mark.parametrize(
    "answer",
    [ApiException(status=403), ApiException(status=503), ConnectionRefusedError("away")],
    ids=["forbidden", "unavailable", "refused"],
)
def test_a_run_is_running_while_kubernetes_is_silent(launcher: KubernetesRunLauncher, answer: Exception) -> None:
    """Dagster's monitoring marks a run as failed whose status is unknown."""
    assert health(launcher, answer) == (RUNNING, UNKNOWN)


def test_a_run_in_a_terminal_has_no_job(launcher: KubernetesRunLauncher) -> None:
    assert health(launcher, ApiException(status=404), in_terminal=True) == (RUNNING, UNKNOWN)
