"""The comparison of the cluster's jobs with the deployment's runs."""

from __future__ import annotations

import pytest

from marin_resources.ray_tpu.cluster.api.jobs_api import JobInfo, JobStatus
from marin_sensors.queries.orphans import STOPPING_S, Findings, Run, compare

NOW_S = 1_800_000_000.0
RUN, OTHER = "1234abcd-0000", "5678efab-0000"


def job(id: str = "a-1-a1", run_id: str = RUN, status: JobStatus = JobStatus.RUNNING, **metadata: str) -> JobInfo:
    """A job of step "a"."""
    told = {"marin/step": "a", "marin/output": "/outputs/a-1", "marin/attempt": "1", "marin/run_id": run_id}
    return JobInfo(
        submission_id=id,
        status=status,
        message="",
        error_type=None,
        exit_code=None,
        submitted_at_s=NOW_S - 100,
        ended_at_s=None,
        metadata={**told, **metadata},
        entrypoint="true",
        node_id=None,
    )


def found(jobs: list[JobInfo], *runs: Run) -> Findings:
    return compare(jobs, {run.run_id: run for run in runs}, NOW_S)


def ended(run_id: str = RUN, ago_s: float = 3600.0, **fields: object) -> Run:
    return Run(run_id=run_id, ended_at_s=NOW_S - ago_s, **fields)  # type: ignore[arg-type]


def test_a_job_whose_run_waits_for_it_is_well() -> None:
    findings = found([job()], Run(run_id=RUN, jobs={"a": "a-1-a1"}))
    assert findings == Findings(ours=1)
    assert findings.summary() == "1 unfinished cluster job, none without a waiting run."


def test_a_job_whose_run_has_ended_is_an_orphan_with_a_way_out() -> None:
    [orphan] = found([job()], ended()).orphans
    assert orphan.sentence == (
        "Cluster job 'a-1-a1' of step 'a' is still running, and its run 1234abcd has ended: materialize 'a' again to "
        "attach, "
        "or stop it with `marin cluster stop-job a-1-a1`."
    )


def test_a_job_of_small_steps_whose_run_has_ended_is_an_orphan_too() -> None:
    batch_job = job("small-steps-1", **{"marin/step": "small steps", "marin/carrier": "/outputs/.marin/carriers/x"})
    [orphan] = found([batch_job], ended()).orphans
    assert orphan.sentence == (
        "Cluster job 'small-steps-1' of small steps is still running, and its run 1234abcd has ended: "
        "materialize these "
        "(`marin cluster jobs` lists them) again to attach, or stop it with `marin cluster stop-job small-steps-1`."
    )
    assert found([batch_job], Run(run_id=RUN)).orphans == ()


def test_a_job_whose_runs_process_is_gone_is_an_orphan() -> None:
    [orphan] = found([job()], Run(run_id=RUN, is_gone=True, jobs={"a": "a-1-a1"})).orphans
    assert "the process of its run 1234abcd is gone" in orphan.sentence


def test_a_job_that_waits_for_a_machine_is_an_orphan_as_one_that_runs() -> None:
    assert found([job(status=JobStatus.PENDING)], ended()).orphans


@pytest.mark.parametrize("status", [JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.STOPPED])
def test_a_job_that_has_ended_is_none(status: JobStatus) -> None:
    assert found([job(status=status)], ended()) == Findings()


def test_a_job_that_another_run_attached_to_is_none() -> None:
    assert found([job()], ended(), Run(run_id=OTHER, jobs={"a": "a-1-a1"})) == Findings(ours=1)


def test_another_run_that_is_over_too_does_not_help() -> None:
    over = ended(OTHER, jobs={"a": "a-1-a1"}), Run(run_id=OTHER, is_gone=True, jobs={"a": "a-1-a1"})
    assert all(found([job()], ended(), run).orphans for run in over)


def test_a_job_has_a_minute_to_end_after_its_run() -> None:
    assert found([job()], ended(ago_s=STOPPING_S - 1)) == Findings(ours=1)
    assert found([job()], ended(ago_s=STOPPING_S)).orphans


def test_another_deployments_jobs_are_counted_and_not_accused() -> None:
    findings = found([job(), job("b", run_id=OTHER), job("c", run_id=OTHER)], Run(run_id=RUN, jobs={"a": "a-1-a1"}))
    assert findings == Findings(ours=1, foreign=2)
    assert findings.summary().endswith("none without a waiting run; another deployment has 2.")


def test_another_deployments_job_that_a_run_of_ours_waits_for_is_ours() -> None:
    assert found([job(run_id=OTHER)], Run(run_id=RUN, jobs={"a": "a-1-a1"})) == Findings(ours=1)


def test_what_else_runs_on_the_cluster_is_nobodys_business() -> None:
    assert found([job(**{"marin/attempt": ""})], ended()) == Findings()


def test_a_run_that_waits_for_what_is_not_there_is_reported_with_a_way_out() -> None:
    [waiting] = found([], Run(run_id=RUN, jobs={"a": "a-1-a1"})).waiting
    assert waiting.sentence == (
        "Run 1234abcd waits for cluster job 'a-1-a1' of step 'a', which the cluster does not know: if the "
        "run does not submit "
        "it again by itself, terminate it and materialize 'a' again."
    )


def test_a_run_that_has_not_heard_yet_that_its_job_ended_waits_for_nothing_lost() -> None:
    assert found([job(status=JobStatus.SUCCEEDED)], Run(run_id=RUN, jobs={"a": "a-1-a1"})) == Findings()


def test_a_run_that_is_over_waits_for_nothing() -> None:
    assert found([], ended(jobs={"a": "a-1-a1"}), Run(run_id=OTHER, is_gone=True, jobs={"a": "x"})) == Findings()


def test_what_changed_between_two_looks_is_left_out() -> None:
    first = found([job(), job("b-1-a1")], ended())
    second = found([job(), job("c-1-a1")], ended())
    assert [finding.submission_id for finding in second.also_in(first).all] == ["a-1-a1"]


def test_many_findings_are_one_sentence_with_their_number() -> None:
    runs = ended(), Run(run_id=OTHER, jobs={"b": "b-1-a1"})
    summary = found([job(), job("c-1-a1")], *runs).summary()
    assert summary.startswith(
        "2 cluster jobs have no run and 1 run waits for a cluster job that is gone; the tick's log names them"
    )
    assert "the first is: Cluster job 'a-1-a1' of step 'a'" in summary


def test_a_job_that_waits_long_for_its_machine_is_starved() -> None:
    jobs = [job("a-1-a1", status=JobStatus.PENDING), job("b", run_id=OTHER, status=JobStatus.PENDING)]
    runs = {RUN: Run(run_id=RUN, jobs={"a": "a-1-a1"}), OTHER: ended(OTHER)}
    assert compare(jobs, runs, NOW_S, 101).starved == ()
    findings = compare(jobs, runs, NOW_S + 3500, 3600)
    [starved] = findings.starved
    assert starved.sentence == (
        "Cluster job 'a-1-a1' of step 'a' has waited 1.0 h for a machine. It keeps waiting; `marin cluster "
        "jobs` lists what "
        "runs before it."
    )
    assert findings.summary().startswith(
        "1 cluster job has no run and 1 cluster job waits too long for a machine; the tick's log"
    )
    running = [job("a-1-a1")]
    assert compare(running, runs, NOW_S + 3500, 3600).starved == ()


def test_a_job_that_follows_a_lost_one_says_so() -> None:
    run = Run(run_id=RUN, jobs={"a": "a-1-a2"})
    second = job("a-1-a2", **{"marin/attempt": "2"})
    findings = found([job(status=JobStatus.FAILED), second], run)
    [preempted] = findings.preempted
    assert preempted.sentence == (
        "Cluster job 'a-1-a1' of step 'a' has lost its worker, as on a machine that is preempted. Cluster "
        "job 'a-1-a2' continues, as "
        "attempt 2."
    )
    assert findings.summary() == preempted.sentence
    assert findings.also_in(findings) == findings


def test_the_first_job_of_a_run_follows_none() -> None:
    run = Run(run_id=RUN, jobs={"a": "a-1-a2"})
    second = job("a-1-a2", **{"marin/attempt": "2"})
    of_another_run = job(run_id=OTHER, status=JobStatus.FAILED)
    of_another_output = job(status=JobStatus.FAILED, **{"marin/output": "/outputs/b-1"})
    assert found([of_another_run, of_another_output, second], run, ended(OTHER)).preempted == ()
    assert found([job(status=JobStatus.FAILED)], ended()).preempted == (), "its run has ended with it"
