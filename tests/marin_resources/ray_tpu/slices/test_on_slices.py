"""A step on all hosts of a slice, as a job of a real cluster whose nodes pretend to be TPU hosts."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from job_process import new_job
from metadata_server import MetadataServer
from placement_groups import await_release, placement_groups
from ray_cluster import Cluster
from record_fields import fields_of_record
from running import alive, wait_until
from slice_steps import STEPS
from submitted_jobs import Submitted, submit

from marin_assets.cli.main import main
from marin_resources.hardware.resources import tpu
from marin_resources.ray_tpu.cluster.api.jobs_api import JobStatus
from marin_resources.ray_tpu.cluster.local import fake_slices
from marin_resources.ray_tpu.cluster.local.processes import with_children
from marin_resources.ray_tpu.cluster.on_head.bad_hosts import bad_hosts_of
from marin_resources.ray_tpu.cluster.on_head.drain import drain_slices
from marin_resources.storage.output.attempts import log_path, read_attempt
from marin_resources.storage.output.status import read_status
from marin_resources.types.output import Status

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

    @contextmanager
    def frozen(self, name: str) -> Iterator[None]:
        """All processes of the slice stand still in the block, as if its network was cut."""
        found = with_children([psutil.Process(host.pid) for host in self.hosts[name]])
        for process in found:
            process.suspend()
        try:
            yield
        finally:
            for process in found:
                with suppress(psutil.NoSuchProcess):
                    process.resume()

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

    def __init__(
        self,
        pod: Pod,
        prefix: str,
        folder: Path,
        fn: str,
        config: dict[str, Any],
        *,
        driver_cpus: float = DRIVER_CPUS,
        environ: dict[str, str] | None = None,
        **task: Any,
    ) -> None:
        self.told = folder / "told"
        self.told.mkdir(parents=True)
        task = {"resources": tpu(KIND), "config": {"told": str(self.told), **config}, **task}
        job = new_job(prefix, folder / "code", STEPS, fn, **task)
        self.output_path = job.output_path
        self.job = submit(pod.cluster, job, cpus=driver_cpus, environ=environ)

    def hear(self, name: str) -> dict[str, Any]:
        path = self.told / name
        wait_until(path.exists, name, 120)
        return json.loads(path.read_text())

    def record(self) -> dict[str, Any]:
        record = fields_of_record(self.output_path)
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
    await_release(pod.cluster)


@pytest.fixture
def drained(pod: Pod) -> Callable[[str], None]:
    """Tells Ray that the hosts of a slice are about to go."""

    def drain_slice(name: str) -> None:
        fake_slices.drain_slice(pod.cluster.local, pod.hosts[name], notice_s=30)

    return drain_slice


def lift_bad_hosts(step: Step) -> None:
    hosts = [bad.host for bad in step.job.ask(bad_hosts_of)]
    left = step.job.ask(lambda api: bad_hosts_of(api, lift=hosts))
    assert left == []


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
    assert_no_word_of_daemons(step.log())
    aside = Path(step.output_path, ".marin/aside/1-1")
    assert aside.exists() == (not resumable)
    assert read_attempt(step.output_path, 1)["tries"] == record["tries"]


@pytest.mark.timeout(1200)
def test_a_step_whose_slices_are_all_taken_away_waits_for_one_beyond_the_limit_for_a_first_one(
    start: Callable[..., Step], pod: Pod
) -> None:
    step = start("work", resumable=True, environ={"MARIN_CLUSTER_START_TIMEOUT_S": "1"})
    taken = step.hear("first-0")["slice"]
    step.let_second_try_end()
    for name in sorted(SLICES, key=lambda name: name == taken):
        pod.kill(name, 0, 1)
    said = step.job.await_log("no node has all of it now")
    assert "trying again (1 of 10000)" in said
    assert "it has run before, and waits without limit" in said
    pod.hosts[taken] = pod.cluster.add_slice(KIND, taken)
    succeeded(step.job)
    *lost, last = step.record()["tries"]
    assert {each["cause"] for each in lost} == {"preempted"}
    assert last["cause"] is None
    assert last["waited_s"] > 5  # the line says so after 5 s


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


@pytest.mark.parametrize("index", [0, 1])
def test_a_host_that_crashes_twice_at_the_same_place_is_the_failure_of_the_step(
    start: Callable[..., Step], index: int
) -> None:
    step = start("crash_on", {"host": index})
    assert step.job.ended().status is JobStatus.FAILED, step.job.logs()
    record = step.record()
    place = r"its process died by signal 6 \(SIGABRT\) in crash_on, \w+\.py line \d+, after step 2"
    sentence = rf"lost worker on host {index}, .*: {place}, in tries 1 and 2 alike\. Its machine was not lost, .*"
    assert re.fullmatch(sentence, record["error"]), record["error"]
    assert [(entry["cause"], entry["host"]) for entry in record["tries"]] == [("lost worker", index)] * 2
    assert "Fatal Python error: Aborted" in step.log()


def test_a_host_that_aborts_as_its_peers_machine_is_lost_does_not_fail_the_step(
    start: Callable[..., Step], pod: Pod
) -> None:
    step = start("abort_with_peer", environ={"MARIN_CLUSTER_START_TIMEOUT_S": "1"})
    for number in (1, 2):
        taken = step.hear(f"try-{number}-0")["slice"]
        step.hear(f"try-{number}-1")
        if number == 2:
            step.let_second_try_end()
        pod.kill(taken, 1)
        (step.told / f"abort-{number}").touch()
    pod.mend()
    succeeded(step.job)
    *lost, last = step.record()["tries"]
    assert len(lost) >= 2
    assert last["cause"] is None


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
    lift_bad_hosts(after)  # the cluster remembers them for half an hour, also when their slice is started again


@pytest.mark.parametrize("index", [0, 1])
def test_a_function_that_hangs_is_called_elsewhere_and_its_stacks_are_in_the_log(
    start: Callable[..., Step], index: int
) -> None:
    step = start("hang_on", {"host": index}, progress_timeout_s=3)
    for each in (0, 1):
        step.hear(f"first-{each}")
    step.let_second_try_end()
    succeeded(step.job)
    record = step.record()
    lost, last = record["tries"]
    assert (lost["cause"], lost["host"], lost["error"]) == ("hang", index, "no step was reported for 3 s after step 1")
    assert last["cause"] is None
    assert last["slices"] != lost["slices"]
    assert (lost["kept_s"], lost["resumed_from"]) == (0, None)
    assert lost["lost_s"] > 3
    log = step.log()
    assert log.count("no progress for 3 s; the stacks of all threads:") == 2
    assert log.count("in wait_for") == 2
    lift_bad_hosts(step)


def test_a_slice_that_was_frozen_and_wakes_up_after_the_publication_publishes_nothing(
    start: Callable[..., Step], pod: Pod
) -> None:
    step = start("wake_late")
    first = [step.hear(f"first-{index}") for index in (0, 1)]
    taken = first[0]["slice"]
    step.let_second_try_end()
    with pod.frozen(taken):
        succeeded(step.job)
        record = step.record()
        assert [each["cause"] for each in record["tries"]] == ["preempted", None]
        assert record["result"]["slice"] != taken
        assert_no_word_of_daemons(step.log())
        before = files_of(step.output_path)
        (step.told / "awake").touch()
    wait_until(lambda: not any(alive(host["pid"]) for host in first), "the end of the hosts' processes", 60)
    assert files_of(step.output_path) == before
    assert read_status(step.output_path) is Status.SUCCESS
    assert step.record() == record
    pod.kill(taken, 0, 1)


def assert_no_word_of_daemons(log: str) -> None:
    """The job says what became of its hosts; the stacks of Ray's daemons say nothing more."""
    assert "its node died; trying again" in log
    for word in ("gcs_server", "StackTrace", "Raylet is terminated"):
        assert word not in log, log


def files_of(path: str) -> dict[str, bytes]:
    """Name -> content of all files of an output, its control files too."""
    return {str(each.relative_to(path)): each.read_bytes() for each in Path(path).rglob("*") if each.is_file()}


def test_a_step_that_waits_for_a_slice_costs_the_head_no_memory(start: Callable[..., Step], pod: Pod) -> None:
    waiting = start("report", resources=tpu(KIND, slices=3))
    waiting.job.await_log("waiting for")
    head = psutil.Process(pod.cluster.head_pid)
    (gcs,) = (each for each in head.children(recursive=True) if each.name() == "gcs_server")
    before = gcs.memory_info().rss
    time.sleep(20)  # it grew by 5 MB a second when it was asked to wait
    assert gcs.memory_info().rss - before < 30e6
    waiting.job.stop()


def test_a_function_saves_before_its_hosts_are_taken_away_and_goes_on_elsewhere(
    start: Callable[..., Step], pod: Pod, drained: Callable[[str], None]
) -> None:
    step = start("save_when_asked", resumable=True)
    first = step.hear("first-0")
    drained(first["slice"])
    succeeded(step.job)
    record = step.record()
    lost, last = record["tries"]
    assert (lost["cause"], lost["error"]) == ("preempted", "its node is being drained")
    assert last["slices"] != lost["slices"]
    assert record["result"]["found"] == lost["saved_step"] == last["resumed_from"]
    assert lost["kept_s"] > 0
    assert lost["lost_s"] < 5
    pod.kill(first["slice"], 0, 1)


def test_the_notice_of_a_metadata_server_is_one_too(start: Callable[..., Step], pod: Pod) -> None:
    with MetadataServer() as server:
        step = start("save_when_asked", resumable=True, environ={"GCE_METADATA_HOST": server.address})
        first = step.hear("first-0")
        server.preempt()
        succeeded(step.job)
    record = step.record()
    assert [each["error"] for each in record["tries"]] == ["its node is being drained", None]
    assert record["result"]["found"] == record["tries"][0]["saved_step"]
    pod.kill(first["slice"], 0, 1)


def test_several_slices_are_told_how_to_find_each_other(start: Callable[..., Step]) -> None:
    step = start("report", resources=tpu(KIND, slices=2))
    succeeded(step.job)
    hosts = [step.hear(f"here-{index}") for index in range(4)]
    assert [(host["index"], host["count"], host["worker"]) for host in hosts] == [
        (0, 4, 0),
        (1, 4, 1),
        (2, 4, 0),
        (3, 4, 1),
    ]
    assert [host["of"] for host in hosts] == [0, 0, 1, 1]
    assert {host["slice"] for host in hosts} == set(SLICES)
    assert len({host["coordinator"] for host in hosts}) == 1
    address = hosts[0]["coordinator"].rpartition(":")[0]
    for host in hosts:
        assert host["megascale"] == {
            "MEGASCALE_COORDINATOR_ADDRESS": address,
            "MEGASCALE_PORT": "8081",
            "MEGASCALE_NUM_SLICES": "2",
            "MEGASCALE_SLICE_ID": str(host["of"]),
        }


def test_a_step_takes_what_is_there_and_more_at_its_next_checkpoint(start: Callable[..., Step], pod: Pod) -> None:
    other = start("work")
    taken = other.hear("first-0")["slice"]
    step = start("take_more", resources=tpu(KIND, slices=(1, 2)), resumable=True)
    step.hear("saved-0")
    other.job.stop()
    succeeded(step.job)
    record = step.record()
    smaller, bigger = record["tries"]
    assert (smaller["cause"], smaller["error"]) == ("more slices", "2 slices are there now")
    assert taken not in smaller["slices"]
    assert sorted(bigger["slices"]) == sorted(SLICES)
    assert record["result"]["found"] == smaller["saved_step"] == bigger["resumed_from"]
    assert record["result"]["count"] == 4


def test_a_step_that_needs_two_slices_holds_none_while_one_is_missing(start: Callable[..., Step], pod: Pod) -> None:
    first = start("work")
    where = first.hear("first-0")["slice"]
    both = start("report", resources=tpu(KIND, slices=2))
    both.job.await_log("waiting for")
    other = start("report")  # takes the one that is left, when the step that waits for both has given it back
    succeeded(other.job)
    assert other.record()["tries"][0]["slices"] != [where]
    first.let_second_try_end()
    pod.kill(where, 0)
    pod.mend()
    succeeded(first.job)
    succeeded(both.job)


@pytest.mark.parametrize("how", ["stopped", "driver killed"])
def test_no_slice_stays_reserved(start: Callable[..., Step], pod: Pod, how: str) -> None:
    step = start("work")
    first = [step.hear(f"first-{index}") for index in (0, 1)]
    assert len(placement_groups(pod.cluster)) == 1
    if how == "stopped":
        step.job.stop()
    else:
        os.kill(read_attempt(step.output_path, 1)["pid"], signal.SIGKILL)
    await_release(pod.cluster)
    wait_until(lambda: not any(alive(host["pid"]) for host in first), "the end of the hosts' processes", 30)
    step.job.ended()


@pytest.mark.timeout(1200)
def test_the_slice_is_released_when_the_node_of_the_driver_dies(start: Callable[..., Step], pod: Pod) -> None:
    node = pod.cluster.add_node(cpus=4)
    step = start("work", driver_cpus=3)  # more than the other nodes have
    first = [step.hear(f"first-{index}") for index in (0, 1)]
    assert len(placement_groups(pod.cluster)) == 1
    pod.cluster.kill_node(node)
    wait_until(lambda: placement_groups(pod.cluster) == [], "the slice to be released", 120)
    wait_until(lambda: not any(alive(host["pid"]) for host in first), "the end of the hosts' processes", 30)
    after = start("report")
    succeeded(after.job)
    assert step.job.ended().status is JobStatus.FAILED


@pytest.mark.timeout(1200)
def test_twenty_steps_share_two_slices_and_none_holds_a_part_of_one(start: Callable[..., Step]) -> None:
    steps = [start("report") for _ in range(20)]
    for step in steps:
        succeeded(step.job)
        hosts = [step.hear(f"here-{index}") for index in (0, 1)]
        assert hosts[0]["slice"] == hosts[1]["slice"]


@pytest.mark.timeout(1200)
def test_a_slice_that_is_drained_is_in_use_until_its_step_has_left(start: Callable[..., Step], pod: Pod) -> None:
    step = start("save_when_asked", resumable=True)
    taken = step.hear("first-0")["slice"]

    def used() -> frozenset[str]:
        return step.job.ask(lambda api: drain_slices(api, [taken], 600)).used

    assert taken in used()
    succeeded(step.job)
    assert [each["error"] for each in step.record()["tries"]] == ["its node is being drained", None]
    wait_until(lambda: taken not in used(), "the slice to be free", 120)
    pod.kill(taken, 0, 1)


def test_a_slice_of_a_cluster_that_is_named_twice_is_drained(
    start: Callable[..., Step], pod: Pod, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", pod.cluster.token_path)
    step = start("save_when_asked", resumable=True)
    taken = step.hear("first-0")["slice"]
    address = pod.cluster.address
    assert main(["cluster", "preempt", taken, "--cluster", address]) == 2
    assert f"name the cluster a second time: --really {address}" in capsys.readouterr().err
    assert main(["cluster", "preempt", "c", "--cluster", address, "--really", address]) == 1
    assert "The cluster has no slice 'c' that is up. It has ['a', 'b']." in capsys.readouterr().err
    assert main(["cluster", "preempt", taken, "--cluster", address, "--really", address, "--notice", "30"]) == 0
    assert f"The slice '{taken}' is drained" in capsys.readouterr().out
    succeeded(step.job)
    assert [each["error"] for each in step.record()["tries"]] == ["its node is being drained", None]
    pod.kill(taken, 0, 1)
