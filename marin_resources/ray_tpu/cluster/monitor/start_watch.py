"""Watch a job that has not begun: report what it waits for, and find out whether any node could ever hold it.

A job that some node could hold waits without limit: the cluster is busy, and the report has the job's place in the
queue and for whom the cluster works. The same holds if such a node may come (`nodes.py`), and for a step whose last
worker was lost, as the cluster has had such a node. Another job is given up if no node could hold it for
`start_timeout_s`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.cluster.api.job_info import JobInfo, JobStatus

FIRST_REPORT_S, REPORT_INTERVAL_S = 5.0, 60.0
MIN_INTERVAL_S = 5.0
"""Between two reports of one run about a busy cluster."""
NAMED_USERS = 3


@dataclass(kw_only=True)
class Wait:
    """The wait of one output for its start, over all jobs that are submitted for it. Times are monotonic seconds."""

    began_s: float = field(default_factory=time.monotonic)
    has_run: bool = False
    """Whether the cluster has run the step before, and has lost its worker."""
    short_since_s: float | None = None
    """Since when no node could hold it; None if one could at the last look."""
    reported_s: float | None = None


@dataclass(kw_only=True)
class Reports:
    """The reports of all steps of a run that wait for a busy cluster: of a thousand, a few report for all."""

    last_s: float = float("-inf")


@dataclass(kw_only=True)
class StartWatch:
    """Watches one job until it begins."""

    shortcomings: Callable[[Resources], Awaitable[str]]
    """Returns what no node has or will have, as a phrase; an empty one if some node could hold it."""
    queue: Callable[[str], Awaitable[Sequence[JobInfo]]]
    """Returns what runs and waits on the cluster, for a job of this id."""
    job: str
    resources: Resources
    """The resources that the job's own process requests."""
    start_timeout_s: float
    report: Callable[[str], None]
    """Takes a phrase such as "waits for 2 CPU since 65 s: …"."""
    reports: Reports
    wait: Wait

    async def look(self) -> str | None:
        """Return why the job can never begin here, after `start_timeout_s` without a node for it; else None.

        None for a step that has run here before."""
        now_s, short = time.monotonic(), await self.shortcomings(self.resources)
        if not short:
            self.wait.short_since_s = None
        elif self.wait.short_since_s is None:
            self.wait.short_since_s = now_s
        elif not self.wait.has_run and now_s - self.wait.short_since_s >= self.start_timeout_s:
            return short
        if self._is_due(now_s):
            self.wait.reported_s = now_s
            waited_s, why = now_s - self.wait.began_s, await self._why(now_s, short)
            self.report(f"waits for {self.resources.describe()} since {waited_s:.0f} s: {why}")
        return None

    def _is_due(self, now_s: float) -> bool:
        if self.wait.reported_s is not None and now_s - self.wait.reported_s < REPORT_INTERVAL_S:
            return False
        if self.wait.short_since_s is not None:
            return True
        if now_s - self.wait.began_s < FIRST_REPORT_S or now_s - self.reports.last_s < MIN_INTERVAL_S:
            return False
        self.reports.last_s = now_s
        return True

    async def _why(self, now_s: float, short: str) -> str:
        if self.wait.short_since_s is None:
            return describe_queue(self.job, await self.queue(self.job))
        left_s = self.start_timeout_s - (now_s - self.wait.short_since_s)
        limit = f"is given up in {left_s:.0f} s" if not self.wait.has_run else "has run before, and waits without limit"
        return f"no node has that now ({short}), and it {limit}"


def describe_queue(job: str, jobs: Sequence[JobInfo]) -> str:
    """Return a phrase: the place of a job among those that wait, by the time of submission, and whose jobs run."""
    waiting = sorted(
        (other for other in jobs if other.status is JobStatus.PENDING), key=lambda other: other.submitted_at_s or 0.0
    )
    ids = [other.submission_id for other in waiting]
    place = f"place {ids.index(job) + 1} of {len(ids)} in the queue" if job in ids else "about to begin"
    return f"the cluster is busy, {place}; {_describe_running(jobs)}"


def _describe_running(jobs: Sequence[JobInfo]) -> str:
    """Return whose jobs run, such as "3 jobs run, of alice (2) and bob (1)"."""
    running = [other for other in jobs if other.status is JobStatus.RUNNING]
    if not running:
        return "no job runs"
    users = Counter(other.metadata.get("marin/user") or "someone" for other in running)
    named = [f"{user} ({count})" for user, count in users.most_common(NAMED_USERS)]
    if len(users) > NAMED_USERS:
        named.append(f"{len(users) - NAMED_USERS} others")
    listed = ", ".join(named[:-1]) + (" and " if named[:-1] else "") + named[-1]
    return f"{len(running)} {'job runs' if len(running) == 1 else 'jobs run'}, of {listed}"
