"""A training on a slice whose hosts are killed: it goes on elsewhere, and ends as one that nobody disturbed."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from job_process import Job, new_job
from placement_groups import await_release
from ray_cluster import Cluster
from record_fields import fields_of_record
from running import wait_until
from submitted_jobs import Submitted, submit

from marin_assets.stages.train.metrics.metrics import read_metrics
from marin_assets.stages.train.train_lm import LlamaSpec, TrainLmConfig
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.hardware.resources import tpu
from marin_resources.ray_tpu.cluster.api.jobs_api import JobStatus
from marin_resources.storage.output.store import Store
from marin_resources.types.output import Output
from marin_resources.wire.config_json import encode

KIND = "v4-16"
STEPS = 60
STEP = """
from marin_assets.stages.train.train_lm import train_lm
from marin_resources.wire.config_json import decode

def train(config):
    return train_lm(decode(config["train"]))
"""
X = Output(name="raw/x", version="abc123", identity="a" * 64)
TINY = LlamaSpec(max_seq_len=32, hidden_dim=32, intermediate_dim=64, num_layers=1, num_heads=1)

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("default"), pytest.mark.timeout(1800)]


class Training:
    """A training of STEPS steps on a slice."""

    def __init__(self, cluster: Cluster, inputs: Any, prefix: Path) -> None:
        self.path = Path(Store(str(prefix)).locate(X))
        config = TrainLmConfig(
            components=inputs.components,
            tokenizer_path=inputs.tokenizer_path,
            output_path=str(self.path),
            model=TINY,
            num_train_steps=STEPS,
            train_batch_size=4,
            steps_per_eval=20,
            max_eval_batches=2,
            checkpoint_interval_s=1,
            compilation_cache_dir=f"{inputs.tokenizer_path}/../jax",
        )
        encoded = encode(unwrap_versioned_value(config))
        self.job: Job = new_job(
            str(prefix), prefix / "code", STEP, "train", config={"train": encoded}, resources=tpu(KIND), resumable=True
        )
        self.submitted: Submitted = submit(cluster, self.job, cpus=0.1, environ={"JAX_PLATFORMS": "cpu"})

    def ended(self) -> dict[str, Any]:
        wait_until(lambda: self.submitted.info().status.is_terminal, "the training", 900)
        assert self.submitted.info().status is JobStatus.SUCCEEDED, self.submitted.logs()
        record = fields_of_record(str(self.path))
        assert record is not None
        return dict(record)

    def await_checkpoint(self) -> None:
        wait_until(lambda: list(self.path.glob("checkpoints/step-*/metadata.json")), "a checkpoint", 300)

    def losses(self) -> dict[int, float]:
        rows = read_metrics(str(self.path / "metrics.jsonl"))
        return {row["step"]: row["train/loss"] for row in rows if "train/loss" in row}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(cpus=2) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def undisturbed(cluster: Cluster, inputs: Any, tmp_path_factory: pytest.TempPathFactory) -> Training:
    hosts = cluster.add_slice(KIND, "undisturbed")
    training = Training(cluster, inputs, tmp_path_factory.mktemp("undisturbed"))
    record = training.ended()
    assert [each["cause"] for each in record["tries"]] == [None]
    for host in hosts:
        cluster.kill_host(host)
    return training


def process_of_host(index: int) -> psutil.Process:
    """The process in which a host's function runs, by the name of its task."""
    name = f"#1 host {index}"
    return next(each for each in psutil.process_iter() if name in " ".join(_words(each)))


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return []


def kill_worker(cluster: Cluster, hosts: Any) -> None:
    os.kill(process_of_host(1).pid, signal.SIGKILL)


def kill_host(cluster: Cluster, hosts: Any) -> None:
    cluster.kill_host(hosts[1])


def kill_coordinators_host(cluster: Cluster, hosts: Any) -> None:
    cluster.kill_host(hosts[0])


@pytest.mark.parametrize("kill", [kill_worker, kill_host, kill_coordinators_host])
def test_a_training_goes_on_after_a_kill_as_if_nothing_was(
    cluster: Cluster, undisturbed: Training, inputs: Any, tmp_path: Path, kill: Callable[[Cluster, Any], None]
) -> None:
    name = kill.__name__
    hosts = cluster.add_slice(KIND, name)
    training = Training(cluster, inputs, tmp_path)
    training.await_checkpoint()
    kill(cluster, hosts)
    if kill is not kill_worker:
        more = cluster.add_slice(KIND, f"{name}-again")
    record = training.ended()
    first, last = record["tries"]
    assert first["cause"] == ("lost worker" if kill is kill_worker else "preempted")
    assert last["cause"] is None
    assert record["result"]["resumed_from_step"] is not None
    assert training.losses() == pytest.approx(undisturbed.losses(), abs=1e-5)
    assert record["result"]["loss_end"] == pytest.approx(
        json.loads((undisturbed.path / ".executor_info").read_text())["result"]["loss_end"], abs=1e-5
    )
    await_release(cluster)
    for host in hosts if kill is kill_worker else more:
        cluster.kill_host(host)
