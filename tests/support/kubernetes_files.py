"""What deploy/kubernetes has: the manifests, the chart's values, dagster.yaml, and the job that a run would be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any
from unittest.mock import MagicMock

import dagster as dg
import kubernetes
import kubernetes_validate.utils
import pytest
import yaml
from dagster._config import process_config, resolve_to_config_type
from dagster._core.code_pointer import ModuleCodePointer
from dagster._core.origin import JobPythonOrigin, RepositoryPythonOrigin
from dagster._core.storage.dagster_run import DagsterRunStatus
from running import ROOT

from marin_resources.dagster_fixes.kubernetes_run_launcher import KubernetesRunLauncher

FOLDER = ROOT / "deploy/kubernetes"
VERSIONS = ("1.30", "1.37")
"""Of Kubernetes: the oldest that the page names, and the newest that has a schema."""
KUSTOMIZATION: dict[str, Any] = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
VALUES: dict[str, Any] = yaml.safe_load((FOLDER / "values.yaml").read_text())
DAGSTER_YAML: dict[str, Any] = yaml.safe_load((FOLDER / "dagster.yaml").read_text())
MANIFESTS: list[dict[str, Any]] = [
    document for name in KUSTOMIZATION["resources"] for document in yaml.safe_load_all((FOLDER / name).read_text())
]
CODE = VALUES["dagster-user-deployments"]["deployments"][0]
DAEMON = VALUES["dagsterDaemon"]
IMAGE = "{repository}:{tag}".format(**DAEMON["image"])
WORKLOADS = {one["metadata"]["name"]: one for one in MANIFESTS if one["kind"] in ("Deployment", "StatefulSet")}


# It reads the 2 MB of definitions for each manifest.
setattr(kubernetes_validate.utils, "schema_contents", cache(kubernetes_validate.utils.schema_contents))  # noqa: B010


def pod_of(workload: Mapping[str, Any]) -> dict[str, Any]:
    return workload["spec"]["template"]["spec"]


def container_of(workload: str) -> dict[str, Any]:
    [container] = pod_of(WORKLOADS[workload])["containers"]
    return container


def closed(pod: Mapping[str, Any]) -> list[str]:
    """What of a pod is open: an empty list for one that Pod Security's `restricted` admits, and that cannot write."""
    its = pod["securityContext"]
    found = [
        *(["may be root"] if not (its.get("runAsNonRoot") and its.get("runAsUser")) else []),
        *(["any system call"] if its.get("seccompProfile") != {"type": "RuntimeDefault"} else []),
        *(["the host's"] if {"hostNetwork", "hostPID", "hostIPC"} & pod.keys() else []),
        *(["a folder of the host"] if any("hostPath" in volume for volume in pod.get("volumes", [])) else []),
    ]
    for container in [*pod["containers"], *pod.get("initContainers", [])]:
        wanted = {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        found += ["rights"] if container.get("securityContext") != wanted else []
        found += ["memory without an end"] if "memory" not in container["resources"]["limits"] else []
        found += ["no /tmp"] if "/tmp" not in [mount["mountPath"] for mount in container["volumeMounts"]] else []
    return found


def chart_pod(values: Mapping[str, Any]) -> dict[str, Any]:
    """What of a pod of the chart comes from its values."""
    container = {name: values[name] for name in ("securityContext", "resources", "volumeMounts")}
    return {
        "securityContext": values["podSecurityContext"],
        "containers": [container],
        "volumes": values["volumes"],
    }


@contextmanager
def launcher_of_runs() -> Iterator[KubernetesRunLauncher]:
    """The one of dagster.yaml, with a Kubernetes that answers what a test says."""
    given = {"MARIN_PREFIX": "gs://b/p", "DAGSTER_PG_PASSWORD": "s"}
    with pytest.MonkeyPatch.context() as patch, dg.DagsterInstance.ephemeral() as instance:
        for name, value in given.items():
            patch.setenv(name, value)
        patch.setattr("dagster_k8s.launcher.load_kubernetes_config", lambda **_: None)
        patch.setattr("time.sleep", lambda _: None)
        config = process(KubernetesRunLauncher, DAGSTER_YAML["run_launcher"]["config"])
        launcher = KubernetesRunLauncher(**config, k8s_client_batch_api=MagicMock(), k8s_client_core_api=MagicMock())
        launcher.register_instance(instance)
        yield launcher


def process(configurable: Any, config: object) -> dict[str, Any]:
    """The config as Dagster gives it to the class; an assertion if the class would refuse it."""
    processed = process_config(resolve_to_config_type(configurable.config_type()), config)
    assert processed.success, processed.errors
    return dict(processed.value)


def new_run(launcher: KubernetesRunLauncher, tags: Mapping[str, str] | None = None) -> dg.DagsterRun:
    pointer = ModuleCodePointer("marin_assets.definitions", "defs")
    code = RepositoryPythonOrigin("python", pointer, container_image=IMAGE, entry_point=["dagster"])
    run = dg.DagsterRun(
        "hello_world", status=DagsterRunStatus.STARTED, tags=tags, job_code_origin=JobPythonOrigin("hello_world", code)
    )
    launcher._instance.add_run(run)
    return run


def job_of(launcher: KubernetesRunLauncher, tags: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The Kubernetes job that a run would be."""
    run = new_run(launcher, tags)
    launcher._launch_k8s_job_with_args(f"dagster-run-{run.run_id}", ["dagster", "api", "execute_run"], run)
    body = launcher._api_client.batch_api.create_namespaced_job.call_args.kwargs["body"]
    return kubernetes.client.ApiClient().sanitize_for_serialization(body)
