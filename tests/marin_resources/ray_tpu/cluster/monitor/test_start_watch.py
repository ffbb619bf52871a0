"""A job that has not begun: what is reported about it, and when it is given up."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from marin_resources.hardware.resources import cpu
from marin_resources.ray_tpu.cluster.api.job_info import JobInfo, JobStatus
from marin_resources.ray_tpu.cluster.monitor import start_watch
from marin_resources.ray_tpu.cluster.monitor.nodes import Nodes
from marin_resources.ray_tpu.cluster.monitor.start_watch import Reports, StartWatch, Wait, describe_queue
from marin_resources.ray_tpu.cluster.retry import RetryWhileUnreachable
from marin_resources.ray_tpu.cluster.settings import ClusterSettings


def job(name: str, status: JobStatus, at_s: float = 0.0, user: str | None = None) -> JobInfo:
    return JobInfo(
        submission_id=name,
        status=status,
        message="",
        error_type=None,
        exit_code=None,
        submitted_at_s=at_s,
        ended_at_s=None,
        metadata={"marin/user": user} if user else {},
        entrypoint="x",
        node_id=None,
    )


class ClusterThere:
    """Answers as a dashboard; the test changes what there is."""

    def __init__(self, nodes: list[Mapping[str, float]], jobs: list[JobInfo]) -> None:
        self.nodes, self.jobs, self.coming = nodes, jobs, dict[str, float]()

    async def __aenter__(self) -> ClusterThere:
        return self

    async def __aexit__(self, *error: object) -> None:
        return None

    async def node_resources(self) -> list[Mapping[str, float]]:
        return self.nodes

    async def coming_resources(self) -> Mapping[str, float]:
        return self.coming

    async def queue(self, asks: str) -> list[JobInfo]:
        return self.jobs


class Watched:
    """A job that requests 2 CPUs, and a clock that stands still until the test moves it."""

    def __init__(
        self,
        there: ClusterThere,
        monkeypatch: pytest.MonkeyPatch,
        wait: Wait | None = None,
        *,
        node_types: tuple[Mapping[str, float], ...] = (),
        reports: Reports | None = None,
    ) -> None:
        self.now_s, self.said = 1000.0, list[str]()
        monkeypatch.setattr(start_watch.time, "monotonic", lambda: self.now_s)
        settings = ClusterSettings(address="http://head:8265", node_types=node_types)
        nodes = Nodes(settings, RetryWhileUnreachable("http://head", 1.0, self.said.append))
        monkeypatch.setattr("marin_resources.ray_tpu.cluster.monitor.nodes.connect", lambda settings: there)
        self.watch = StartWatch(
            shortcomings=nodes.shortcomings,
            queue=there.queue,
            job="mine",
            resources=cpu(2),
            start_timeout_s=30.0,
            report=self.said.append,
            reports=reports or Reports(),
            wait=wait or Wait(began_s=1000.0),
        )

    def after(self, seconds: float) -> str | None:
        self.now_s += seconds
        return asyncio.run(self.watch.look())


WAITING = [job("first", JobStatus.PENDING, 1.0), job("mine", JobStatus.PENDING, 2.0), job("x", JobStatus.RUNNING, 0.0)]


def test_a_job_that_some_node_could_hold_waits_for_days_and_says_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(ClusterThere([{"CPU": 2}], WAITING), monkeypatch)
    assert [watched.after(seconds) for seconds in (0, 4, 2, 50, 9, 2)] == [None] * 6
    assert watched.said == [
        f"waits for 2 CPU since {seconds} s: the cluster is busy, place 2 of 2 in the queue; 1 job runs, of someone (1)"
        for seconds in (6, 67)
    ]
    assert watched.after(3 * 86400) is None


def test_what_no_node_could_hold_is_reported_at_once_and_given_up_after_the_limit_that_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watched = Watched(ClusterThere([{"CPU": 1}, {"CPU": 1}], WAITING), monkeypatch)
    assert watched.after(0) is None
    assert watched.said == [
        "waits for 2 CPU since 0 s: no node has that now (CPU 2 requested, 1 at most), and it is given up in 30 s"
    ]
    assert watched.after(29.9) is None
    assert watched.after(0.2) == "CPU 2 requested, 1 at most"


def test_a_node_that_comes_begins_the_limit_again(monkeypatch: pytest.MonkeyPatch) -> None:
    there = ClusterThere([], WAITING)
    watched = Watched(there, monkeypatch)
    assert watched.after(0) is None
    there.nodes = [{"CPU": 2}]
    assert watched.after(29) is None
    there.nodes = []
    assert watched.after(29) is None
    assert watched.after(29) is None
    assert watched.after(2) == "CPU 2 requested, 0 at most"


def test_what_the_autoscaler_may_add_is_awaited_without_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    node_types = ({"CPU": 1.0, "GPU": 8.0}, {"CPU": 96.0})
    watched = Watched(ClusterThere([{"CPU": 1}], WAITING), monkeypatch, node_types=node_types)
    assert watched.after(0) is None
    assert watched.after(3 * 86400) is None
    assert "the cluster is busy, place 2 of 2 in the queue" in watched.said[-1]


def test_while_the_autoscaler_starts_a_node_for_it_the_limit_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    there = ClusterThere([{"CPU": 1}], WAITING)
    watched = Watched(there, monkeypatch)
    assert watched.after(0) is None
    there.coming = {"CPU": 4}
    assert watched.after(29) is None
    assert watched.after(600) is None
    there.coming = {"CPU": 1}
    assert watched.after(29) is None
    assert watched.after(29) is None
    assert watched.after(2) == "CPU 2 requested, 1 at most"


def test_a_step_whose_worker_was_lost_waits_without_limit_for_a_node_like_it(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(ClusterThere([], WAITING), monkeypatch, Wait(began_s=1000.0, has_run=True))
    assert [watched.after(seconds) for seconds in (0, 31, 3 * 86400)] == [None] * 3
    assert watched.said[-1] == (
        "waits for 2 CPU since 259231 s: no node has that now (CPU 2 requested, 0 at most), and it has run before, and "
        "waits without limit"
    )


def test_a_wait_goes_on_over_jobs_that_are_submitted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The head ends a job that waits for long, and the next job takes its place: the limit counts from the first."""
    there, wait = ClusterThere([], WAITING), Wait(began_s=1000.0)
    assert Watched(there, monkeypatch, wait).after(0) is None
    assert Watched(there, monkeypatch, wait).after(31) == "CPU 2 requested, 0 at most"


def test_of_a_thousand_steps_of_a_run_that_wait_a_few_report(monkeypatch: pytest.MonkeyPatch) -> None:
    there, reports = ClusterThere([{"CPU": 2}], WAITING), Reports()
    steps = [Watched(there, monkeypatch, reports=reports) for _ in range(1000)]
    steps[-1].now_s += 20  # the clock of all
    assert [asyncio.run(step.watch.look()) for step in steps] == [None] * 1000
    assert sum(len(step.said) for step in steps) == 1


def test_the_queue_names_for_whom_the_cluster_works() -> None:
    users = ["ann", "bob", "bob", "cy", "dee"]
    jobs = [job(f"r{n}", JobStatus.RUNNING, user=user) for n, user in enumerate(users)]
    assert describe_queue("mine", [*WAITING[:2], *jobs]) == (
        "the cluster is busy, place 2 of 2 in the queue; 5 jobs run, of bob (2), ann (1), cy (1) and 1 others"
    )
    assert describe_queue("gone", []) == "the cluster is busy, about to begin; no job runs"
