"""Compare the jobs of a cluster with the runs: orphaned jobs, lost jobs, starved jobs, preempted jobs.

In:  the jobs of a cluster; this deployment's runs that submitted them, and its runs in progress.
Out: findings, each with a sentence that names the next action.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from marin_resources.ray_tpu.cluster.api.jobs_api import JobInfo

OURS = ("marin/step", "marin/output", "marin/attempt", "marin/run_id")
"""Metadata keys of every job of a step."""

BATCH_JOB = "marin/carrier"
"""Metadata key of a job that runs the small steps of a run."""

STOPPING_S = 60.0
"""Seconds for which a job may outlive its run: a terminated run ends first, and its job soon after."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run of this deployment."""

    run_id: str
    ended_at_s: float | None = None
    """Seconds since 1970; None while it is in progress."""
    is_gone: bool = False
    """Whether its process has died without recording an end."""
    jobs: Mapping[str, str] = field(default_factory=dict)
    """Step -> submission id of the jobs that it waits for."""

    @property
    def is_alive(self) -> bool:
        return self.ended_at_s is None and not self.is_gone


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A problem of a job or of a run."""

    title: str
    """A few words."""
    run_id: str
    submission_id: str
    sentence: str

    @property
    def key(self) -> str:
        return f"{self.run_id}/{self.submission_id}"


@dataclass(frozen=True, kw_only=True)
class Findings:
    orphans: tuple[Finding, ...] = ()
    """Jobs that no run waits for."""
    waiting: tuple[Finding, ...] = ()
    """Runs that wait for a job that does not exist."""
    starved: tuple[Finding, ...] = ()
    """Jobs that wait for a machine longer than they should."""
    preempted: tuple[Finding, ...] = ()
    """Jobs that continue a step whose last job has lost its worker."""
    ours: int = 0
    """Unfinished jobs of this deployment."""
    foreign: int = 0
    """Unfinished jobs of other deployments."""

    @property
    def all(self) -> tuple[Finding, ...]:
        return (*self.orphans, *self.waiting, *self.starved, *self.preempted)

    def also_in(self, earlier: Findings) -> Findings:
        """The findings that the earlier ones have too."""
        keys = {finding.key for finding in earlier.all}
        return Findings(
            orphans=tuple(finding for finding in self.orphans if finding.key in keys),
            waiting=tuple(finding for finding in self.waiting if finding.key in keys),
            starved=tuple(finding for finding in self.starved if finding.key in keys),
            preempted=tuple(finding for finding in self.preempted if finding.key in keys),
            ours=self.ours,
            foreign=self.foreign,
        )

    def summary(self) -> str:
        """One sentence for the sensor's page."""
        if len(self.all) == 1:
            return self.all[0].sentence
        if self.all:
            counted = {
                f"{_jobs(len(self.orphans), 'has', 'have')} no run": self.orphans,
                f"{_count(len(self.waiting), 'run waits', 'runs wait')} for a cluster job that is gone": self.waiting,
                f"{_jobs(len(self.starved), 'waits', 'wait')} too long for a machine": self.starved,
                f"{_count(len(self.preempted), 'step has', 'steps have')} lost a worker": self.preempted,
            }
            phrases = [text for text, findings in counted.items() if findings]
            return f"{' and '.join(phrases)}; the tick's log names them all, the first is: {self.all[0].sentence}"
        others = f"; another deployment has {self.foreign}" if self.foreign else ""
        unfinished = _count(self.ours, "unfinished cluster job", "unfinished cluster jobs")
        return f"{unfinished}, none without a waiting run{others}."


def is_a_step(job: JobInfo) -> bool:
    """Whether the job computes a step and has not ended."""
    return not job.status.is_terminal and all(job.metadata.get(key) for key in OURS)


def compare(jobs: Iterable[JobInfo], runs: Mapping[str, Run], now_s: float, starved_s: float = math.inf) -> Findings:
    """Compare all jobs of the cluster, ended ones too, with the runs by run id.

    `starved_s`: seconds that a job that a run waits for may wait for its machine.
    """
    jobs = list(jobs)
    unfinished = [job for job in jobs if is_a_step(job)]
    waited_for = {id for run in runs.values() if run.is_alive for id in run.jobs.values()}
    ours = [job for job in unfinished if job.metadata["marin/run_id"] in runs or job.submission_id in waited_for]
    submitted = {job.submission_id for job in jobs}
    return Findings(
        orphans=tuple(
            _orphan(job, run)
            for job in ours
            if job.submission_id not in waited_for
            and ((run := runs[job.metadata["marin/run_id"]]).is_gone or _has_ended(run, now_s))
        ),
        waiting=tuple(
            _waiting(run, step, submission_id)
            for run in runs.values()
            for step, submission_id in run.jobs.items()
            if run.is_alive and submission_id not in submitted
        ),
        starved=tuple(
            _starved(job, now_s)
            for job in ours
            if job.submission_id in waited_for
            and job.status.is_waiting
            and job.submitted_at_s is not None
            and now_s - job.submitted_at_s >= starved_s
        ),
        preempted=tuple(
            _preempted(job, before)
            for job in ours
            if job.submission_id in waited_for and (before := _job_before(job, jobs)) is not None
        ),
        ours=len(ours),
        foreign=len(unfinished) - len(ours),
    )


def _job_before(job: JobInfo, jobs: Iterable[JobInfo]) -> JobInfo | None:
    """The last job of the same run for the same output; None for the first one. A run submits another one only if the
    worker of the last was lost."""

    def attempt(candidate: JobInfo) -> int:
        return int(candidate.metadata["marin/attempt"])

    same = ("marin/run_id", "marin/output")
    if BATCH_JOB in job.metadata:
        return None
    earlier = [
        other
        for other in jobs
        if other.status.is_terminal
        and all(other.metadata.get(key) == job.metadata[key] for key in same)
        and other.metadata.get("marin/attempt", "").isdecimal()
        and attempt(other) < attempt(job)
    ]
    return max(earlier, key=attempt, default=None)


def _preempted(job: JobInfo, before: JobInfo) -> Finding:
    step = job.metadata["marin/step"]
    return Finding(
        title=f"A step has lost its worker: {step}",
        run_id=job.metadata["marin/run_id"],
        submission_id=job.submission_id,
        sentence=(
            f"Cluster job {before.submission_id!r} of step {step!r} has lost its worker, as on a machine that is "
            f"preempted. Cluster job {job.submission_id!r} continues, as attempt {job.metadata['marin/attempt']}."
        ),
    )


def _starved(job: JobInfo, now_s: float) -> Finding:
    assert job.submitted_at_s is not None
    step, hours = job.metadata["marin/step"], (now_s - job.submitted_at_s) / 3600
    return Finding(
        title=f"A cluster job is starved: {step}",
        run_id=job.metadata["marin/run_id"],
        submission_id=job.submission_id,
        sentence=(
            f"Cluster job {job.submission_id!r} of step {step!r} has waited {hours:.1f} h for a machine. It keeps "
            "waiting; `marin cluster jobs` lists what runs before it."
        ),
    )


def _has_ended(run: Run, now_s: float) -> bool:
    return run.ended_at_s is not None and now_s - run.ended_at_s >= STOPPING_S


def _orphan(job: JobInfo, run: Run) -> Finding:
    step, name = job.metadata["marin/step"], _short(run.run_id)
    why = f"its run {name} has ended" if run.ended_at_s is not None else f"the process of its run {name} is gone"
    of, again = f"of step {step!r}", repr(step)
    if BATCH_JOB in job.metadata:
        of, again = "of small steps", "these (`marin cluster jobs` lists them)"
    return Finding(
        title=f"A cluster job has no run: {step}",
        run_id=run.run_id,
        submission_id=job.submission_id,
        sentence=(
            f"Cluster job {job.submission_id!r} {of} is still running, and {why}: materialize {again} again to attach, "
            f"or stop it with `marin cluster stop-job {job.submission_id}`."
        ),
    )


def _waiting(run: Run, step: str, submission_id: str) -> Finding:
    return Finding(
        title=f"A run waits for a cluster job that is gone: {step}",
        run_id=run.run_id,
        submission_id=submission_id,
        sentence=(
            f"Run {_short(run.run_id)} waits for cluster job {submission_id!r} of step {step!r}, which the "
            "cluster does "
            "not know: if the run does not submit it again by itself, terminate it and materialize "
            f"{step!r} again."
        ),
    )


def _short(run_id: str) -> str:
    """The first 8 characters, as in Dagster's UI."""
    return run_id[:8]


def _jobs(number: int, singular: str, plural: str) -> str:
    return _count(number, f"cluster job {singular}", f"cluster jobs {plural}")


def _count(number: int, singular: str, plural: str) -> str:
    return f"{number} {singular if number == 1 else plural}"
