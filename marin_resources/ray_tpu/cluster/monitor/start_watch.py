"""Watch a job that has not begun: report what it waits for, and find out whether any node could ever hold it.

A job that some node could hold waits without limit: the cluster is busy, and the report has the job's place in the
queue and for whom the cluster works. The same holds if the autoscaler may add such a node, by the settings, or starts
it now. If no node could hold the job for `start_timeout_s`, it is given up.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from marin_resources.hardware import Resources
from marin_resources.ray_tpu.cluster.api.job_info import JobInfo, JobStatus
from marin_resources.ray_tpu.cluster.api.jobs_api import JobsApi
from marin_resources.ray_tpu.cluster.retry import RetryWhileUnreachable
from marin_resources.ray_tpu.ray_options import shortcomings

FIRST_REPORT_S, REPORT_INTERVAL_S = 5.0, 60.0
MAX_NODE_AGE_S = 2.0
"""How long a list of nodes is used: each is a request to the head."""
NAMED_USERS = 3


@dataclass(kw_only=True)
class Wait:
    """The wait of one output for its start, over all jobs that are submitted for it. Times are monotonic seconds."""

    began_s: float = field(default_factory=time.monotonic)
    short_since_s: float | None = None
    """Since when no node could hold it; None if one could at the last look."""
    reported_s: float | None = None


@dataclass(kw_only=True)
class StartWatch:
    """Watches one job until it begins."""

    api: JobsApi
    retry: RetryWhileUnreachable
    queue: Callable[[str], Awaitable[Sequence[JobInfo]]]
    """Returns what runs and waits on the cluster, for a job of this id."""
    job: str
    resources: Resources
    """What the job's own process requests."""
    start_timeout_s: float
    node_types: Sequence[Mapping[str, float]] = ()
    """The resources of nodes that the autoscaler may add."""
    report: Callable[[str], None]
    """Takes a phrase such as "waits for 2 CPU since 65 s: …"."""
    wait: Wait
    _looked_s: float | None = None
    _short: str = ""

    async def look(self) -> str | None:
        """Return why the job can never begin here, after `start_timeout_s` without a node for it; else None."""
        now_s = time.monotonic()
        if self._looked_s is None or now_s - self._looked_s >= MAX_NODE_AGE_S:
            self._looked_s = now_s
            self._short = await self._shortcomings()
            if not self._short:
                self.wait.short_since_s = None
            elif self.wait.short_since_s is None:
                self.wait.short_since_s = now_s
        if self.wait.short_since_s is not None and now_s - self.wait.short_since_s >= self.start_timeout_s:
            return self._short
        if self._is_due(now_s):
            self.wait.reported_s = now_s
            waited_s, why = now_s - self.wait.began_s, await self._why(now_s)
            self.report(f"waits for {self.resources.describe()} since {waited_s:.0f} s: {why}")
        return None

    async def _shortcomings(self) -> str:
        nodes = [*await self.retry.call(self.api.node_resources), *self.node_types]
        short = shortcomings(self.resources, nodes)
        if short and not shortcomings(self.resources, [await self.retry.call(self.api.coming_resources)]):
            return ""
        return short

    def _is_due(self, now_s: float) -> bool:
        if self.wait.reported_s is not None:
            return now_s - self.wait.reported_s >= REPORT_INTERVAL_S
        return self.wait.short_since_s is not None or now_s - self.wait.began_s >= FIRST_REPORT_S

    async def _why(self, now_s: float) -> str:
        if self.wait.short_since_s is None:
            return describe_queue(self.job, await self.retry.call(lambda: self.queue(self.job)))
        left_s = self.start_timeout_s - (now_s - self.wait.short_since_s)
        return f"no node has that now ({self._short}), and it is given up in {left_s:.0f} s"


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
