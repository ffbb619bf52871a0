"""Steps on one host with devices, as jobs of a cluster with two machines: only the second has a TPU, and a disk of its
own."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import shard_steps
from job_process import Job, X, new_job
from ray_cluster import Cluster
from record_fields import fields_of_record
from running import alive, wait_until
from submitted_jobs import Submitted, submit

from marin_resources.hardware.resources import cpu, tpu
from marin_resources.ray_tpu.cluster.api.jobs_api import JobStatus
from marin_resources.ray_tpu.log.attempt_log import LogFollower
from marin_resources.storage.lease import lease
from marin_resources.storage.output.attempts import log_path, read_attempt
from marin_resources.storage.output.status import read_status
from marin_resources.types.output import Status

KIND = "v4-8"
ENTRY_CPUS = 0.1
STEPS = """
import os, sys, tempfile, time
from pathlib import Path

def make(config):
    print("making in", tempfile.gettempdir(), flush=True)
    return {"on": tempfile.gettempdir(), "key": os.environ.get("DEVICE_KEY")}

def wait(config):
    Path(config["told"]).write_text(str(os.getpid()))
    print("waiting", flush=True)
    while True:
        time.sleep(0.1)

def fail(config):
    raise ValueError("the value 3 is not liked")

def die(config):
    os._exit(9)

def be_killed(config):
    os.kill(os.getpid(), 9)
"""
NO_METADATA_SERVER = "the metadata server cannot be asked for a notice of preemption"
"""A line of the log of a host with a TPU that is in no cloud."""
ON_DEVICE = """
import json, os, sys
from marin_resources.ray_tpu.job.on_hosts import run_on_hosts
from marin_resources.storage.output.notes.job_notes import read_note

os.environ["MARIN_CLUSTER_START_TIMEOUT_S"] = "0.5"
note = read_note(sys.argv[1])
print(run_on_hosts(note).error)
"""

WITHOUT_PAUSES = """
import sys
from marin_resources.ray_tpu.job.on_hosts import run_on_hosts
from marin_resources.ray_tpu.slices import retries as tries
from marin_resources.storage.output.notes.job_notes import read_note

tries.PAUSE_S = {}
run_on_hosts(read_note(sys.argv[1]))
"""


@pytest.fixture(scope="module")
def other_disk() -> Iterator[str]:
    """Where the second machine has its temporary files. Ray has sockets there, whose paths must be short."""
    with tempfile.TemporaryDirectory(prefix="other-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        yield folder


@pytest.fixture(scope="module")
def tpu_cluster(other_disk: str) -> Iterator[Cluster]:
    with Cluster(cpus=2) as cluster, pytest.MonkeyPatch.context() as environ:
        environ.setenv("TMPDIR", other_disk)
        cluster.add_node({f"TPU-{KIND}-head": 1, "TPU": 4}, cpus=1, temp_dir=other_disk)
        yield cluster


@pytest.fixture
def start(tpu_cluster: Cluster, gcs_prefix: str, tmp_path: Path) -> Iterator[Callable[..., Submitted]]:
    """Submits a job for a function of STEPS on the TPU. None of them goes on after the test."""
    submitted: list[Submitted] = []

    def start_job(fn: str, number: int = 0, environ: dict[str, str] | None = None, **task: Any) -> Submitted:
        folder = tmp_path / f"code-{number}"
        job = new_job(f"{gcs_prefix}/{number}", folder, STEPS, fn, **{"resources": tpu(KIND), **task})
        submitted.append(submit(tpu_cluster, job, cpus=ENTRY_CPUS, environ=environ))
        return submitted[-1]

    yield start_job
    for job in submitted:
        if not job.info().status.is_terminal:
            job.stop()
            job.ended()


def log_of(job: Job) -> list[str]:
    lines: list[str] = []
    LogFollower(log_path(job.output_path, 1), lines.append).finish()
    return lines


@pytest.mark.long
def test_a_step_on_a_device_runs_where_that_is(
    start: Callable[..., Submitted], other_disk: str, tmp_path: Path
) -> None:
    (tmp_path / "DEVICE_KEY").write_text("s3cr3t-of-a-device")
    job = start("make", environ={"MARIN_SECRETS_DIR": str(tmp_path)}, env=("DEVICE_KEY",))
    assert job.ended().status is JobStatus.SUCCEEDED, job.logs()
    record = fields_of_record(job.job.output_path)
    assert record is not None
    assert record["result"] == {"on": other_disk, "key": "***"}
    assert record["job"]["id"] == job.job.note().submission_id
    tried, made = (line for line in log_of(job.job) if NO_METADATA_SERVER not in line)
    assert tried.startswith("try 1 runs on ")
    assert made.endswith(f") making in {other_disk}")  # before it the host's name, as Ray writes it
    assert tried in job.logs()
    assert job.job.outcome()["end"] == "success"


@pytest.mark.long
def test_a_step_that_raises_on_a_device_is_reported(start: Callable[..., Submitted]) -> None:
    job = start("fail")
    assert job.ended().status is JobStatus.FAILED
    outcome = job.job.outcome()
    assert (outcome["end"], outcome["error"]) == ("failed", "ValueError: the value 3 is not liked")


@pytest.mark.long
def test_a_step_whose_process_crashes_twice_at_the_same_place_fails(start: Callable[..., Submitted]) -> None:
    job = start("die")
    assert job.ended().status is JobStatus.FAILED
    error = job.job.outcome()["error"]
    place = r"its process died by os\._exit\(9\) in die, \w+\.py line \d+"
    sentence = rf"lost worker on host 0, .*: {place}, in tries 1 and 2 alike\. Its machine was not lost, so .*\."
    assert re.fullmatch(sentence, error), error
    record = fields_of_record(job.job.output_path)
    assert record is not None
    assert [entry["cause"] for entry in record["tries"]] == ["lost worker"] * 2
    assert sum("os._exit(9)" in line for line in log_of(job.job)) >= 2


@pytest.mark.long
def test_a_step_whose_process_is_killed_is_tried_ten_times_more(
    tpu_cluster: Cluster, disk_prefix: str, tmp_path: Path
) -> None:
    job = new_job(disk_prefix, tmp_path / "code", STEPS, "be_killed", resources=tpu(KIND))
    submitted = submit(tpu_cluster, job, cpus=ENTRY_CPUS, code=WITHOUT_PAUSES)
    assert submitted.ended().status is JobStatus.SUCCEEDED, submitted.logs()
    record = fields_of_record(job.output_path)
    assert record is not None
    assert [each["cause"] for each in record["tries"]] == ["lost worker"] * 11
    assert record["error"].startswith("lost worker on host 0, ")
    assert ", for the 11th time." in record["error"]


@pytest.mark.long
def test_a_step_that_takes_too_long_on_a_device_is_reported(start: Callable[..., Submitted], tmp_path: Path) -> None:
    job = start("wait", config={"told": str(tmp_path / "pid")}, timeout_s=0.5)
    assert job.ended().status is JobStatus.FAILED
    outcome = job.job.outcome()
    assert (outcome["end"], outcome["error"]) == ("failed", "the function took longer than its 0.5 s")
    pid = int((tmp_path / "pid").read_text())
    wait_until(lambda: not alive(pid), "the end of the host's process")


@pytest.mark.long
def test_a_step_on_a_device_that_is_stopped_says_so_and_is_gone_and_one_that_waits_for_it_begins_never(
    start: Callable[..., Submitted], tmp_path: Path
) -> None:
    first = start("wait", 1, config={"told": str(tmp_path / "first")})
    pid = int(wait_until(lambda: (tmp_path / "first").exists() and (tmp_path / "first").read_text(), "the step"))
    second = start("wait", 2, config={"told": str(tmp_path / "second")})
    second.await_log(f"waiting for 1 CPU, 1 slice(s) of TPU {KIND} for ")
    assert f"free in the cluster: 0 of 1 TPU-{KIND}-head, 1.8 of 3 CPU, 0 of 4 TPU" in second.logs()
    second.stop()
    assert second.ended().status is JobStatus.STOPPED
    first.stop()
    assert first.ended().status is JobStatus.STOPPED
    assert not alive(pid)
    # as the run does: beside much load, Ray kills the worker before it could record its stop
    first.job.store.mark_stopped(X, 1, "stopped from outside, as its run says")
    assert lease.holder_of(first.job.output_path) is None
    assert read_status(first.job.output_path) is Status.FAILED
    assert "stopped from outside" in read_attempt(first.job.output_path, 1)["error"]
    assert not (tmp_path / "second").exists()
    assert read_status(second.job.output_path) is None


@pytest.mark.long
def test_what_no_node_has_is_refused_when_it_was_waited_for(
    tpu_cluster: Cluster, disk_prefix: str, tmp_path: Path
) -> None:
    job = new_job(disk_prefix, tmp_path / "code", STEPS, resources=tpu("v6e-1"))
    refused = submit(tpu_cluster, job, cpus=ENTRY_CPUS, code=ON_DEVICE)
    assert refused.ended().status is JobStatus.SUCCEEDED
    sentence = (
        "Step 'raw/x' requests 1 CPU, 1 slice(s) of TPU v6e-1, which no node here has: TPU-v6e-1-head 1 requested, 0 at"
    )
    assert sentence in refused.logs()


@pytest.mark.long
def test_what_shards_on_another_machine_print_is_in_the_log_of_the_attempt_once(
    tpu_cluster: Cluster, gcs_prefix: str, tmp_path: Path
) -> None:
    told = tmp_path / "told"
    told.mkdir()
    config = {"maps": "say", "shards": 3, "tpu": KIND, "told": str(told)}
    text = Path(shard_steps.__file__).read_text()
    job = submit(
        tpu_cluster, new_job(gcs_prefix, tmp_path / "code", text, "map_marked", config=config, resources=cpu(1))
    )
    assert job.ended().status is JobStatus.SUCCEEDED, job.logs()
    lines = [line for line in log_of(job.job) if "says something" in line]
    assert len(set(lines)) == len(lines)
    # a shard that is recalled when it has just begun runs again, in another process
    assert {line.rpartition(")")[2] for line in lines} == {f" shard {n} says something" for n in range(3)}
    assert "\x1b" not in "".join(lines)
    assert "\n".join(log_of(job.job)) in job.logs()
