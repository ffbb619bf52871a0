"""Samplers on hosts of their own, which are taken away: the training continues, and ends as an undisturbed one."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import psutil
import pytest
from job_process import ROOT, Job, X, new_job
from placement_groups import await_release
from random_llama import write_random_llama
from ray_cluster import Cluster
from record_fields import fields_of_record
from rl_ledgers import require_exact, require_same_replay
from rl_training import results_of, rl_config
from running import wait_until
from submitted_jobs import Submitted, submit

from marin_assets.stages.train.metrics.metrics import read_metrics
from marin_assets.stages.train.rl.train_rl import train_rl
from marin_resources.hardware.resources import Resources, cpu, tpu
from marin_resources.ray_tpu.cluster.api.jobs_api import JobStatus
from marin_resources.storage.output.attempts import log_path
from marin_resources.storage.output.store import Store
from marin_resources.wire.config_json import encode

KIND = "v4-8"
STEPS = 30
STEP = """
from marin_assets.stages.train.rl.train_rl import train_rl
from marin_resources.ray_tpu.shards import replicas
from marin_resources.wire.config_json import decode

def train(config):
    replicas.PREEMPTIONS = config["preemptions"]
    return train_rl(decode(config["train"]))
"""

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("default"), pytest.mark.timeout(2400)]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("model") / "hf"
    folder.mkdir()
    write_random_llama(folder, list(topics.values())[:50], 64)
    return str(folder)


@pytest.fixture(scope="module")
def undisturbed(model: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    output = tmp_path_factory.mktemp("undisturbed")
    train_rl(rl_config(model, output, num_train_steps=STEPS))
    return results_of(output)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(cpus=2) as cluster:
        yield cluster


class Training:
    """A training as a job of the cluster."""

    def __init__(
        self,
        cluster: Cluster,
        model: str,
        prefix: Path,
        resources: Resources,
        preemptions: int = 10_000,
        **changes: Any,
    ) -> None:
        self.path = Path(Store(str(prefix)).locate(X))
        self.config = rl_config(model, self.path, num_train_steps=STEPS, checkpoint_interval_s=0.5, **changes)
        self.job: Job = new_job(
            str(prefix),
            prefix / "code",
            STEP,
            "train",
            config={"train": encode(self.config), "preemptions": preemptions},
            resources=resources,
            resumable=True,
        )
        environ = {"JAX_PLATFORMS": "cpu", "PYTHONPATH": f"{ROOT}:{ROOT}/tests/support"}
        self.submitted: Submitted = submit(cluster, self.job, cpus=0.1, environ=environ)

    def await_step(self, step: int) -> None:
        def has_come() -> bool:
            path = self.path / "metrics.jsonl"
            return path.exists() and any(row["step"] >= step for row in read_metrics(str(path)))

        wait_until(has_come, f"step {step}", 900)

    def ended(self, status: JobStatus = JobStatus.SUCCEEDED) -> dict[str, Any]:
        wait_until(lambda: self.submitted.info().status.is_terminal, "the training", 900)
        assert self.submitted.info().status is status, self.submitted.logs()
        record = fields_of_record(str(self.path))
        assert record is not None
        return dict(record)

    def log(self) -> str:
        return Path(log_path(str(self.path), 1)).read_text()


def processes_of_samplers() -> list[psutil.Process]:
    return [each for each in psutil.process_iter() if "ray::_Process" in " ".join(_words(each))]


@contextmanager
def stopped(processes: Sequence[psutil.Process]) -> Iterator[None]:
    """Have the processes stand still."""
    alive = [process for process in processes if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]
    for process in alive:
        process.suspend()
    try:
        yield
    finally:
        for process in alive:
            process.resume()


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return []


@pytest.mark.parametrize("weights_by", ["file", "flight"])
def test_a_slice_and_a_process_of_samplers_are_lost_while_the_training_goes_on(
    weights_by: str, cluster: Cluster, model: str, undisturbed: tuple[str, str], tmp_path: Path
) -> None:
    slices = [cluster.add_slice(KIND, f"{weights_by}-{name}") for name in "ab"]
    on_slices = {"samplers": 2, "sampler_resources": tpu(KIND, cpus=0.5), "weights_by": weights_by}
    training = Training(cluster, model, tmp_path, cpu(0.1), **on_slices)
    training.await_step(3)
    wait_until(lambda: training.log().count("is open") == 2, "both samplers", 300)
    cluster.kill_host(slices[0][0])
    with stopped(processes_of_samplers()):  # it would end before Ray's head knows that the node is dead
        wait_until(lambda: "lost its node" in training.log(), "the loss of the node", 300)
    training.await_step(8)
    os.kill(processes_of_samplers()[0].pid, signal.SIGKILL)
    slices.append(cluster.add_slice(KIND, f"{weights_by}-c"))
    record = training.ended()
    assert results_of(training.path) == undisturbed
    assert record["attempt"] == 1
    assert "lost its process" in training.log()
    for host in (slices[1][0], slices[2][0]):
        cluster.kill_host(host)


def kill_host(cluster: Cluster, host: Any) -> None:
    cluster.kill_host(host)


def kill_process(cluster: Cluster, host: Any) -> None:
    next(each for each in psutil.process_iter() if "#1 host 0" in " ".join(_words(each))).kill()


@pytest.mark.parametrize(("kill", "cause"), [(kill_host, "preempted"), (kill_process, "lost worker")])
def test_the_host_of_a_training_is_lost_and_its_samplers_work_for_the_next_try(
    kill: Callable[[Cluster, Any], None],
    cause: str,
    cluster: Cluster,
    model: str,
    undisturbed: tuple[str, str],
    tmp_path: Path,
) -> None:
    [first] = cluster.add_slice(KIND, f"{kill.__name__}-first")
    training = Training(
        cluster, model, tmp_path, tpu(KIND, cpus=0.5), samplers=2, sampler_resources=cpu(0.5), weights_by="flight"
    )
    training.await_step(5)
    kill(cluster, first)
    [second] = cluster.add_slice(KIND, f"{kill.__name__}-second")
    record = training.ended()
    lost, last = record["tries"]
    assert (lost["cause"], last["cause"]) == (cause, None)
    assert record["result"]["resumed_from_step"] is not None
    assert results_of(training.path) == undisturbed
    await_release(cluster)
    for host in (first, second):
        cluster.kill_host(host)


def test_in_the_free_order_a_training_that_lost_its_host_keeps_to_its_ledger(
    cluster: Cluster, model: str, tmp_path: Path
) -> None:
    [first] = cluster.add_slice(KIND, "free-first")
    free: dict[str, Any] = {"order": "free", "staleness": 2, "samplers": 2, "sampler_resources": cpu(0.5)}
    training = Training(cluster, model, tmp_path, tpu(KIND, cpus=0.5), **free)
    training.await_step(5)
    cluster.kill_host(first)
    [second] = cluster.add_slice(KIND, "free-second")
    record = training.ended()
    assert [each["cause"] for each in record["tries"]] == ["preempted", None]
    assert record["result"]["resumed_from_step"] is not None
    require_exact(training.config)
    require_same_replay(training.config, tmp_path / "replay")
    await_release(cluster)
    cluster.kill_host(second)


def test_slices_that_are_lost_too_often_are_a_sentence(cluster: Cluster, model: str, tmp_path: Path) -> None:
    [only] = cluster.add_slice(KIND, "exhausted")
    training = Training(
        cluster, model, tmp_path, cpu(0.1), preemptions=0, samplers=1, sampler_resources=tpu(KIND, cpus=0.5)
    )
    training.await_step(2)
    cluster.kill_host(only)
    record = training.ended(JobStatus.FAILED)
    assert record["error"].startswith("TrainError: A unit could not be sampled: Nodes of copies were lost 1 times")
    assert "\n" not in record["error"]
