"""A step on all hosts of a slice, as a job of a real cluster whose nodes pretend to be TPU hosts."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from job_process import new_job
from placement_groups import placement_groups
from ray_cluster import Cluster
from running import alive, wait_until
from slice_steps import STEPS
from submitted_jobs import Submitted, submit

from marin_resources.hardware import tpu
from marin_resources.output import Status
from marin_resources.ray_tpu.cluster.api.jobs_api import JobStatus
from marin_resources.storage.output.attempts import log_path, read_attempt
from marin_resources.storage.output.record import read_record
from marin_resources.storage.output.status import read_status

KIND = "v4-16"
SLICES = ("a", "b")
DRIVER_CPUS = 0.1
PEERS_END_S = 10

pytestmark = pytest.mark.long


class Pod:
    """A cluster with two slices of two hosts. A host that a test kills is started again for the next test."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.hosts = {name: cluster.add_slice(KIND, name) for name in SLICES}

    def kill(self, name: str, *workers: int) -> None:
        for worker in workers:
            self.cluster.kill_host(self.hosts[name][worker])

    def mend(self) -> None:
        for name in SLICES:
            if not all(alive(host.pid) for host in self.hosts[name]):
                self.kill(name, 0, 1)
                self.hosts[name] = self.cluster.add_slice(KIND, name)


@pytest.fixture(scope="module")
def whole_pod() -> Iterator[Pod]:
    with Cluster(cpus=2) as cluster:
        yield Pod(cluster)


@pytest.fixture
def pod(whole_pod: Pod) -> Pod:
    whole_pod.mend()
    return whole_pod


class Step:
    """A step on a slice, and what its hosts tell."""

    def __init__(self, pod: Pod, prefix: str, folder: Path, fn: str, config: dict[str, Any], **task: Any) -> None:
        self.told = folder / "told"
        self.told.mkdir(parents=True)
        config = {"told": str(self.told), **config}
        job = new_job(prefix, folder / "code", STEPS, fn, resources=tpu(KIND), config=config, **task)
        self.output_path = job.output_path
        self.job = submit(pod.cluster, job, cpus=DRIVER_CPUS)

    def hear(self, name: str) -> dict[str, Any]:
        path = self.told / name
        wait_until(path.exists, name, 120)
        return json.loads(path.read_text())

    def record(self) -> dict[str, Any]:
        record = read_record(self.output_path)
        assert record is not None, self.job.logs()
        return dict(record)

    def log(self) -> str:
        return Path(log_path(self.output_path, 1)).read_text()

    def let_second_try_end(self) -> None:
        (self.told / "again").touch()


@pytest.fixture
def start(pod: Pod, disk_prefix: str, tmp_path: Path) -> Iterator[Callable[..., Step]]:
    steps: list[Step] = []

    def start_step(fn: str, config: dict[str, Any] | None = None, **task: Any) -> Step:
        number = len(steps)
        steps.append(Step(pod, f"{disk_prefix}/{number}", tmp_path / str(number), fn, config or {}, **task))
        return steps[-1]

    yield start_step
    for step in steps:
        if not step.job.info().status.is_terminal:
            step.job.stop()
            step.job.ended()
    wait_until(lambda: placement_groups(pod.cluster) == [], "all slices to be released", 30)


def succeeded(job: Submitted) -> None:
    assert job.ended().status is JobStatus.SUCCEEDED, job.logs()


def test_the_function_is_called_on_all_hosts_of_one_slice_at_once(start: Callable[..., Step]) -> None:
    step = start("report")
    succeeded(step.job)
    hosts = [step.hear(f"here-{index}") for index in (0, 1)]
    assert [host["index"] for host in hosts] == [host["worker"] for host in hosts] == [0, 1]
    assert hosts[0]["count"] == 2
    assert hosts[0]["slice"] == hosts[1]["slice"]
    assert hosts[0]["coordinator"] == hosts[1]["coordinator"]
    assert ":" in hosts[0]["coordinator"]
    assert hosts[0]["pid"] != hosts[1]["pid"]
    record = step.record()
    assert record["result"] == hosts[0]
    (only,) = record["tries"]
    assert (only["slices"], only["cause"], only["number"]) == ([hosts[0]["slice"]], None, 1)
    assert only["ran_s"] > 0
    assert "host 0 is here" in step.log()
    assert "host 1 is here" in step.log()


@pytest.mark.parametrize("resumable", [True, False])
def test_when_a_host_dies_its_peer_is_stopped_and_the_function_is_called_on_another_slice(
    start: Callable[..., Step], pod: Pod, resumable: bool
) -> None:
    step = start("work", resumable=resumable)
    first = [step.hear(f"first-{index}") for index in (0, 1)]
    step.let_second_try_end()
    pod.kill(first[0]["slice"], 1)
    wait_until(lambda: not alive(first[0]["pid"]), "the end of the peer", PEERS_END_S)
    succeeded(step.job)
    record = step.record()
    assert record["attempt"] == 1
    assert record["result"]["found"] == (["part-0", "part-1"] if resumable else [])
    assert record["result"]["slice"] != first[0]["slice"]
    lost, last = record["tries"]
    assert (lost["cause"], lost["host"], lost["error"]) == ("preempted", 1, "its node died")
    assert last["cause"] is None
    aside = Path(step.output_path, ".marin/aside/1-1")
    assert aside.exists() == (not resumable)
    assert read_attempt(step.output_path, 1)["tries"] == record["tries"]


@pytest.mark.parametrize("index", [0, 1])
def test_when_a_hosts_process_is_killed_the_function_is_called_again(start: Callable[..., Step], index: int) -> None:
    step = start("work")
    first = [step.hear(f"first-{index}") for index in (0, 1)]
    step.let_second_try_end()
    os.kill(first[index]["pid"], signal.SIGKILL)
    wait_until(lambda: not alive(first[1 - index]["pid"]), "the end of the peer", PEERS_END_S)
    succeeded(step.job)
    lost, last = step.record()["tries"]
    assert (lost["cause"], lost["host"], last["cause"]) == ("lost worker", index, None)


@pytest.mark.parametrize(
    ("kind", "text", "error"),
    [
        ("ValueError", "the value 3 is not liked", "ValueError: the value 3 is not liked"),
        (
            "MemoryError",
            "no 8 GiB are left",
            "out of memory on host 1, {address} of slice '{slice}': MemoryError: no 8 GiB are left. Use a smaller "
            "batch, more hosts, or hosts with more memory.",
        ),
    ],
)
def test_the_functions_own_error_is_shown_and_not_repeated(
    start: Callable[..., Step], kind: str, text: str, error: str
) -> None:
    step = start("fail_on", {"host": 1, "kind": kind, "text": text})
    assert step.job.ended().status is JobStatus.FAILED
    record = step.record()
    (only,) = record["tries"]
    expected = error.format(address=only["hosts"][1], slice=only["slices"][0])
    assert record["error"] == expected
    assert read_status(step.output_path) is Status.FAILED
    assert f"{kind}: {text}" in read_attempt(step.output_path, 1)["traceback"]
    assert step.job.job.outcome()["error"] == expected


def test_a_host_whose_devices_are_busy_is_avoided(start: Callable[..., Step]) -> None:
    where = start("report")
    succeeded(where.job)
    bad = where.record()["tries"][0]["slices"][0]
    step = start("busy_on", {"bad": bad})
    succeeded(step.job)
    record = step.record()
    assert record["result"]["slice"] != bad
    causes = [each["cause"] for each in record["tries"]]
    assert causes in (["bad host", None], [None])  # Ray chooses the first slice
    after = start("busy_on", {"bad": bad})
    succeeded(after.job)
    if len(causes) == 2:
        assert [each["cause"] for each in after.record()["tries"]] == [None]


@pytest.mark.parametrize("how", ["stopped", "driver killed"])
def test_no_slice_stays_reserved(start: Callable[..., Step], pod: Pod, how: str) -> None:
    step = start("work")
    first = [step.hear(f"first-{index}") for index in (0, 1)]
    assert len(placement_groups(pod.cluster)) == 1
    if how == "stopped":
        step.job.stop()
    else:
        os.kill(read_attempt(step.output_path, 1)["pid"], signal.SIGKILL)
    wait_until(lambda: placement_groups(pod.cluster) == [], "the slice to be released", 30)
    wait_until(lambda: not any(alive(host["pid"]) for host in first), "the end of the hosts' processes", 30)
    step.job.ended()


def test_four_steps_share_two_slices_and_none_holds_a_part_of_one(start: Callable[..., Step]) -> None:
    steps = [start("report") for _ in range(4)]
    for step in steps:
        succeeded(step.job)
        hosts = [step.hear(f"here-{index}") for index in (0, 1)]
        assert hosts[0]["slice"] == hosts[1]["slice"]
