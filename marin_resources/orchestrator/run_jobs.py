"""The jobs of the Ray cluster that a Dagster run waits for, as tags of the run.

    marin/jobs                 {"tokenized/dclm": "tokenized-dclm-1a2b3c-5d6e7f80-a1"}: step name -> submission id;
                               of several steps that wait for one job, such as a batch job, the first
    marin/jobs-2, -3, …        the rest, if one tag is too small
    .dagster/marin_jobs_run    the run that the tags belong to

The run's page shows the first ones, and a sensor reads them all. Dagster copies the tags of a run to its re-execution;
the last tag holds the original run id, so copied tags are recognised.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Mapping

from dagster import DagsterInstance, DagsterRun

TAG = "marin/jobs"
RUN_TAG = ".dagster/marin_jobs_run"
"""Dagster's UI hides tags with this prefix."""

MAX_VALUE_BYTES = 2000
"""Dagster sets no limit, but Postgres refuses an index entry of more than 2704 bytes."""

_PAGE = re.compile(rf"{TAG}(-\d+)?")


class RunJobs:
    """The jobs that one run waits for. Threads may share it; a change of the jobs writes the run's tags."""

    def __init__(self, instance: DagsterInstance, run_id: str) -> None:
        self._instance, self._run_id = instance, run_id
        self._lock = threading.Lock()
        self._jobs: dict[str, str] = {}
        self._waiting: Counter[str] = Counter()
        """Job -> number of steps that wait for it."""
        self._named: dict[str, str] = {}
        """Job -> its name in the tags: the first step that waited for it."""

    def set(self, step: str, submission_id: str | None) -> None:
        """Record the job that the run waits for on behalf of `step`; None if it no longer waits."""
        with self._lock:
            before, named = self._jobs.pop(step, None), dict(self._named)
            if before is not None:
                self._waiting[before] -= 1
                if not self._waiting[before]:
                    del self._waiting[before], self._named[before]
            if submission_id is not None:
                self._jobs[step] = submission_id
                self._waiting[submission_id] += 1
                taken = step in self._named.values()  # it names a job that it has left and others wait for
                self._named.setdefault(submission_id, submission_id if taken else step)
            if self._named != named:
                self._write()

    def _write(self) -> None:
        """All tags at once, so that a reader sees a whole state. Dagster can change a tag but not remove it."""
        run = self._instance.get_run_by_id(self._run_id)
        emptied = {key: "{}" for key in (run.tags if run else {}) if _PAGE.fullmatch(key)}
        pages = {
            TAG if n == 1 else f"{TAG}-{n}": page
            for n, page in enumerate(_pages({name: job for job, name in self._named.items()}), 1)
        }
        self._instance.add_run_tags(self._run_id, {**emptied, **pages, RUN_TAG: self._run_id})


def jobs_of(run: DagsterRun) -> dict[str, str]:
    """Step name -> submission id of each job that the run waits for, or waited for when its process died."""
    if run.tags.get(RUN_TAG) != run.run_id:
        return {}
    jobs: dict[str, str] = {}
    for key in sorted(filter(_PAGE.fullmatch, run.tags)):
        jobs.update(json.loads(run.tags[key]))
    return jobs


def _pages(jobs: Mapping[str, str]) -> list[str]:
    """The jobs as JSON objects, each small enough for a tag; at least one."""
    pages, size = [dict[str, str]()], 0
    for step, submission_id in sorted(jobs.items()):
        size += len(json.dumps({step: submission_id}))  # the length of the entry and its separator
        if pages[-1] and size > MAX_VALUE_BYTES:
            pages.append({})
            size = len(json.dumps({step: submission_id}))
        pages[-1][step] = submission_id
    return [json.dumps(page) for page in pages]
