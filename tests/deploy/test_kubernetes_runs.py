"""Runs on Kubernetes: dagster.yaml, and the job that Dagster's own launcher makes of a run."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import kubernetes_validate
import pytest
import yaml
from dagster._core.instance.config import dagster_instance_config
from kubernetes_files import (
    CODE,
    DAGSTER_YAML,
    FOLDER,
    IMAGE,
    VERSIONS,
    closed,
    job_of,
    launcher_of_runs,
    pod_of,
    process,
)
from running import ROOT

from marin_resources.dagster_fixes.kubernetes_run_launcher import KubernetesRunLauncher


@pytest.fixture(scope="module")
def launcher() -> Iterator[KubernetesRunLauncher]:
    with launcher_of_runs() as launcher:
        yield launcher


@pytest.mark.parametrize("version", VERSIONS)
def test_the_job_of_a_run_is_valid_and_has_what_a_run_needs(launcher: KubernetesRunLauncher, version: str) -> None:
    job = job_of(launcher)
    kubernetes_validate.validate(job, version, strict=True)
    pod = pod_of(job)
    [container] = pod["containers"]
    assert container["image"] == IMAGE
    assert pod["serviceAccountName"] == "marin-code"
    assert pod["automountServiceAccountToken"] is False
    assert closed(pod) == []
    environment = {one["name"]: one.get("value") for one in container["env"]}
    wanted = {"DAGSTER_HOME": "/var/lib/marin", **{one["name"]: one["value"] for one in CODE["env"]}}
    assert wanted.items() <= environment.items()


def test_a_tag_of_a_run_may_ask_for_memory_and_for_no_right(launcher: KubernetesRunLauncher) -> None:
    def tagged(**config: object) -> dict[str, str]:
        return {"dagster-k8s/config": json.dumps(config)}

    more = {"limits": {"memory": "8Gi"}}
    [container] = pod_of(job_of(launcher, tagged(container_config={"resources": more})))["containers"]
    assert container["resources"]["limits"]["memory"] == "8Gi"
    for asked in (
        {"pod_spec_config": {"service_account_name": "marin-orchestrator"}},
        {"container_config": {"image": "registry.example.org/other:1"}},
        {"container_config": {"security_context": {"privileged": True}}},
        {"pod_spec_config": {"volumes": [{"name": "host", "host_path": {"path": "/"}}]}},
    ):
        with pytest.raises(Exception, match="violated the allowed list"):
            job_of(launcher, tagged(**asked))


# dagster.yaml


def test_dagster_takes_dagster_yaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MARIN_PREFIX", "DAGSTER_PG_PASSWORD"):
        monkeypatch.setenv(name, "given")
    (tmp_path / "dagster.yaml").write_text((FOLDER / "dagster.yaml").read_text())
    dagster_instance_config(str(tmp_path))
    for section in DAGSTER_YAML.values():
        if "module" in section:
            made = getattr(importlib.import_module(section["module"]), section["class"])
            process(made, section["config"])
    with pytest.raises(AssertionError, match="job_namespaces"):
        process(KubernetesRunLauncher, {**DAGSTER_YAML["run_launcher"]["config"], "job_namespaces": "marin"})
    (tmp_path / "dagster.yaml").write_text("run_monitoring: {enabled: true, polls: 1}")
    with pytest.raises(dg.DagsterInvalidConfigError):
        dagster_instance_config(str(tmp_path))


def test_all_but_launcher_monitoring_and_address_is_that_of_one_machine() -> None:
    of_one_machine = yaml.safe_load((ROOT / "deploy/vm/dagster.yaml").read_text())
    assert DAGSTER_YAML.keys() == of_one_machine.keys()
    different = {name for name in DAGSTER_YAML if DAGSTER_YAML[name] != of_one_machine[name]}
    storages = {"run_storage", "event_log_storage", "schedule_storage"}
    assert different == {*storages, "run_launcher", "run_monitoring"}
    for name in storages:
        assert DAGSTER_YAML[name]["class"] == of_one_machine[name]["class"]
    grace = DAGSTER_YAML["run_launcher"]["config"]["run_k8s_config"]["pod_spec_config"]["terminationGracePeriodSeconds"]
    assert DAGSTER_YAML["run_monitoring"]["cancel_timeout_seconds"] > grace
