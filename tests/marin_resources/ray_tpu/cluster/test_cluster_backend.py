"""One output computed as a job of a real cluster: its outcomes, and the messages about it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import toy_steps
from orchestrator import Orchestrator, note_of
from ray_cluster import Cluster
from running import alive, logged, wait_until
from toy_steps import calls

from marin_assets import Step, cpu
from marin_assets.assets.body.request import build_request
from marin_assets.step.graph import build_graph
from marin_resources.orchestrator.produce import (
    DetachedError,
    Produced,
    ProduceError,
)
from marin_resources.ray_tpu.cluster.api.jobs_api import ApiError, JobInfo, JobsApi, connect
from marin_resources.ray_tpu.cluster.backend import ClusterBackend
from marin_resources.ray_tpu.environment.extras import MissingRequirementError
from marin_resources.storage.output.notes import job_notes
from marin_resources.storage.output.status import Status, read_status


@pytest.fixture(params=[pytest.param(True, id="own job"), pytest.param(False, id="small step", marks=pytest.mark.long)])
def toy(request: pytest.FixtureRequest) -> Callable[..., Step]:
    """Creates steps that are jobs of their own, and steps that a batch job runs."""
    return partial(toy_steps.toy, own_job=request.param)


own = partial(toy_steps.toy, own_job=True)


@pytest.fixture
def orchestrate(prefix: Path, cluster: Cluster) -> Callable[..., Orchestrator]:
    return lambda **settings: Orchestrator(prefix, cluster, **settings)


@pytest.fixture
def orchestrator(orchestrate: Callable[..., Orchestrator]) -> Orchestrator:
    return orchestrate()


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Path]:
    gate = tmp_path / "gate"
    gate.touch()
    yield gate
    gate.unlink(missing_ok=True)


def test_the_record_names_the_job_and_its_times(
    orchestrator: Orchestrator, cluster: Cluster, toy: Callable[..., Step]
) -> None:
    produced = orchestrator.produce(toy("a"))
    record = produced.observed.record.to_dict()
    note = note_of(produced.observed.path)
    assert record["job"]["id"] == note.submission_id
    assert orchestrator.jobs[0] == note.job == record["job"].get("carrier", note.submission_id)
    assert record["job"]["dashboard"] == cluster.address
    assert record["job"]["code"]["mode"] == "image"
    assert set(record["timing"]) == {"queue_s", "setup_s", "compute_s"}
    assert orchestrator.jobs[-1] is None
    assert note.outcome is not None
    assert note.task.fn == "toy_steps:make", "the task can be read beside the output"


def test_a_failing_step_reports_its_own_traceback_and_is_a_new_job_the_next_time(
    orchestrator: Orchestrator, prefix: Path, toy: Callable[..., Step]
) -> None:
    error = orchestrator.failure(toy("a", toy_steps.fail, value=7))
    assert "ValueError: the value 7 is not liked" in str(error)
    assert error.traceback.startswith("Traceback")
    assert 'toy_steps.py", line' in error.traceback.splitlines()[1]
    orchestrator.failure(toy("a", toy_steps.fail, value=7))
    assert len(calls(prefix)) == 2
    [path] = prefix.glob("toy/a-*")
    first, second = note_of(str(path), 1), note_of(str(path), 2)
    assert (first.job, second.job) == tuple(dict.fromkeys(job for job in orchestrator.jobs if job is not None))
    assert first.job != second.job


@pytest.mark.long
def test_a_worker_that_dies_is_tried_again(
    orchestrator: Orchestrator, prefix: Path, tmp_path: Path, toy: Callable[..., Step]
) -> None:
    produced = orchestrator.produce(toy("a", toy_steps.die_once, gate=str(tmp_path / "marker")))
    assert produced.lost_workers == 1
    assert len(calls(prefix)) == 2
    words = ("ended with code 9 without reporting an outcome", "its process died by os._exit(9)")
    assert any(word in said for said in orchestrator.said for word in words)


def test_what_no_node_has_is_waited_for_and_then_given_up_with_what_there_is(
    orchestrate: Callable[..., Orchestrator], prefix: Path, toy: Callable[..., Step]
) -> None:
    orchestrator = orchestrate(start_timeout_s=2.0)
    error = orchestrator.failure(toy("a", resources=cpu(64)))
    assert "did not begin within 2 s" in str(error)
    assert "CPU 64 requested, 2 at most" in str(error)
    waits = "toy/a: it waits for 64 CPU since "
    assert any(
        said.startswith(waits) and "no node has that now (CPU 64 requested" in said for said in orchestrator.said
    )
    [path] = prefix.glob("toy/a-*")
    assert note_of(str(path)).stop is not None, "should it begin after all, it does nothing"


@pytest.mark.long
def test_an_environment_that_is_not_there_is_reported_in_the_shells_words(
    orchestrate: Callable[..., Orchestrator], toy: Callable[..., Step]
) -> None:
    error = orchestrate(environments={"/nowhere/python": ("train",)}).failure(toy("a", extras=("train",)))
    assert "ended with code 127 before the step. Its log: `marin cluster logs " in str(error)
    assert "/nowhere/python: not found" in error.traceback


def test_extras_that_no_environment_has_are_reported_before_anything_is_submitted(
    orchestrate: Callable[..., Orchestrator], prefix: Path, toy: Callable[..., Step]
) -> None:
    orchestrator = orchestrate(environments={"/opt/train/bin/python": ("train",)})
    for extra, words in (("nonsense", "requests the extra 'nonsense'"), ("vllm", "no environment of the cluster")):
        with pytest.raises(MissingRequirementError, match=words):
            orchestrator.produce(toy("a", extras=(extra,)))
    assert not list(prefix.glob("toy/a-*/.marin/jobs/*"))


@pytest.mark.long
def test_a_secret_that_the_node_does_not_have_is_one_sentence(
    orchestrator: Orchestrator, prefix: Path, toy: Callable[..., Step]
) -> None:
    error = orchestrator.failure(toy("a", env=("NO_SUCH_SECRET_HERE",)))
    assert "The variable 'NO_SUCH_SECRET_HERE' is not set on this node" in str(error)
    assert not error.traceback
    assert calls(prefix) == []


@pytest.mark.long
def test_a_step_that_takes_longer_than_it_may_has_failed_and_says_where_it_hung(
    orchestrator: Orchestrator, gate: Path, toy: Callable[..., Step]
) -> None:
    error = orchestrator.failure(toy("a", toy_steps.wait_at_gate, gate=str(gate), timeout_s=1.0))
    assert "longer than its 1 s" in str(error)
    assert "wait_at_gate" in error.traceback


@pytest.mark.long
def test_other_code_than_the_submitters_is_refused_by_name(
    orchestrator: Orchestrator, monkeypatch: Any, toy: Callable[..., Step]
) -> None:
    from marin_assets.plan.record_facts import facts

    read = facts.read_source

    def read_before_an_edit(references: Sequence[str], counts: Callable[..., bool]) -> dict[str, Any]:
        source = read(references, counts)
        assert source is not None
        return {**source, "files_digest": "before", "modules": {**source["modules"], "toy_steps": "0" * 64}}

    monkeypatch.setattr(facts, "read_source", read_before_an_edit)
    assert "'toy_steps' was 00000000 at the submitter" in str(orchestrator.failure(toy("a")))


@pytest.mark.long
def test_a_job_that_somebody_stops_is_not_begun_again_and_reports_who_it_was(
    orchestrator: Orchestrator, prefix: Path, gate: Path
) -> None:
    raised: list[ProduceError] = []
    step = own("a", toy_steps.wait_at_gate, gate=str(gate))
    thread = threading.Thread(target=lambda: raised.append(orchestrator.failure(step)))
    thread.start()
    wait_until(logged(prefix, "toy/a", "waiting in process"), "the step")
    [path] = prefix.glob("toy/a-*")
    job_notes.add_stop(job_notes.note_path(str(path), 1), "alice on a laptop", "wrong data")
    worker = int(logged(prefix, "toy/a", "waiting in process")().split()[-1])  # type: ignore[union-attr]
    os.kill(worker, signal.SIGTERM)
    thread.join(60)
    assert "was stopped by alice on a laptop: wrong data" in str(raised[0])
    assert read_status(str(path)) is Status.FAILED
    assert len(calls(prefix)) == 1


@pytest.mark.long
def test_a_note_whose_job_was_never_submitted_is_passed_over(orchestrator: Orchestrator, prefix: Path) -> None:
    step = own("a")

    submit_first_attempt(orchestrator, step, on_job=kill_this_run)
    [path] = prefix.glob("toy/a-*")
    abandon(str(path))
    produced = orchestrator.produce(step)
    assert note_of(str(path)).ended == "never submitted"
    assert produced.observed.record.attempt == 2
    assert len(calls(prefix)) == 1


class Killed(BaseException):
    """Stands for the end of the run's process."""


def kill_this_run(job: str) -> None:
    raise Killed


def submit_first_attempt(orchestrator: Orchestrator, step: Step, on_job: Callable[[str], None]) -> None:
    """Submit the step's job as another run, which is killed between the note and the job."""
    graph = build_graph([step])
    task = build_request(graph[step], graph, orchestrator.store, "run-0").task(1, {}, None)
    backend = ClusterBackend(orchestrator.settings, run_id="run-0", is_over=lambda run: True)
    with pytest.raises(Killed):
        asyncio.run(backend.submit(task, on_job))


def test_the_run_knows_its_job_before_the_cluster_does_and_a_run_cancelled_then_leaves_none(
    orchestrator: Orchestrator, prefix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit = JobsApi.submit

    async def cancelled_after_its_arrival(api: JobsApi, **job: Any) -> None:
        known_jobs.extend(orchestrator.jobs)
        await submit(api, **job)
        raise asyncio.CancelledError

    known_jobs: list[str | None] = []
    monkeypatch.setattr(JobsApi, "submit", cancelled_after_its_arrival)
    with pytest.raises(asyncio.CancelledError):
        orchestrator.produce(own("a"))
    [path] = prefix.glob("toy/a-*")
    note = note_of(str(path))
    assert known_jobs == [note.submission_id]
    assert note.stop is not None
    wait_until(lambda: asyncio.run(info_of(orchestrator, note.submission_id)).status.is_terminal, "the job to end")
    assert calls(prefix) == []


def test_a_job_that_the_cluster_rejects_fails_its_step_with_the_clusters_sentence(
    orchestrator: Orchestrator, prefix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def reject(api: JobsApi, **job: Any) -> None:
        raise ApiError("Submitting the job 'x': the cluster answered 400 (no).")

    monkeypatch.setattr(JobsApi, "submit", reject)
    error = orchestrator.failure(own("a"))
    assert f"the cluster {orchestrator.settings.address} did not take its job: Submitting the job 'x'" in str(error)
    [path] = prefix.glob("toy/a-*")
    assert note_of(str(path)).ended == "Submitting the job 'x': the cluster answered 400 (no)."
    assert orchestrator.jobs[-1] is None


async def info_of(orchestrator: Orchestrator, job: str) -> JobInfo:
    async with connect(orchestrator.settings) as api:
        return await api.info(job)


def abandon(path: str) -> None:
    """As if the run that created the note had died."""
    file = Path(job_notes.note_path(path, 1))
    fields = json.loads(file.read_text())
    for who in ("by", "owner"):
        fields[who]["process"] = f"{os.uname().nodename}/999999999/0"
    file.write_text(json.dumps(fields))


@pytest.mark.long
def test_a_run_that_only_shares_a_job_leaves_it_to_the_one_that_submitted_it(
    orchestrate: Callable[..., Orchestrator], prefix: Path, gate: Path, toy: Callable[..., Step]
) -> None:
    step = toy("a", toy_steps.wait_at_gate, gate=str(gate))
    first, second = orchestrate(), orchestrate()

    async def share() -> tuple[Produced, BaseException]:
        making = asyncio.create_task(first.produce_async(step))
        await asyncio.to_thread(wait_until, logged(prefix, "toy/a", "waiting in process"), "the step")
        sharing = asyncio.create_task(second.produce_async(step))
        joined = lambda: any("attached to cluster job" in said for said in second.said)  # noqa: E731
        await asyncio.to_thread(wait_until, joined, "both")
        sharing.cancel()
        [ended] = await asyncio.gather(sharing, return_exceptions=True)
        worker = int(logged(prefix, "toy/a", "waiting in process")().split()[-1])  # type: ignore[union-attr]
        assert alive(worker)
        gate.unlink()
        return await making, ended  # type: ignore[return-value]

    produced, ended = asyncio.run(share())
    assert isinstance(ended, DetachedError)
    assert "keeps running" in str(ended)
    assert f"marin cluster stop-job {note_of(produced.observed.path).submission_id}" in str(ended)
    assert produced.observed.done
    assert len(calls(prefix)) == 1
