"""The jobs of the Ray cluster that a Dagster run waits for, as tags of the run.

    marin/jobs                 {"tokenized/dclm": "tokenized-dclm-1a2b3c-5d6e7f80-a1"}: step name -> submission id
    marin/jobs-2, -3, …        the rest, if one tag is too small
    .dagster/marin_jobs_run    the run that the tags belong to

The run's page shows the first ones, and a sensor reads them all. Dagster copies the tags of a run to its re-execution;
the last tag holds the original run id, so copied tags are recognised.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping

from dagster import DagsterInstance, DagsterRun

TAG = "marin/jobs"
RUN_TAG = ".dagster/marin_jobs_run"
"""Dagster's UI hides tags with this prefix."""

MAX_VALUE_BYTES = 2000
"""Dagster sets no limit, but Postgres refuses an index entry of more than 2704 bytes."""

_PAGE = re.compile(rf"{TAG}(-\d+)?")


class RunJobs:
    """The jobs that one run waits for. Threads may share it; each change writes the run's tags."""

    def __init__(self, instance: DagsterInstance, run_id: str) -> None:
        self._instance, self._run_id = instance, run_id
        self._lock = threading.Lock()
        self._jobs: dict[str, str] = {}

    def set(self, step: str, submission_id: str | None) -> None:
        """Record the job that the run waits for on behalf of `step`; None if it waits for none any more."""
        with self._lock:
            if self._jobs.get(step) == submission_id:
                return
            if submission_id is None:
                del self._jobs[step]
            else:
                self._jobs[step] = submission_id
            self._write()

    def _write(self) -> None:
        """All tags at once, so that a reader sees a whole state. Dagster can change a tag but not remove it."""
        run = self._instance.get_run_by_id(self._run_id)
        emptied = {key: "{}" for key in (run.tags if run else {}) if _PAGE.fullmatch(key)}
        pages = {TAG if n == 1 else f"{TAG}-{n}": page for n, page in enumerate(_pages(self._jobs), 1)}
        self._instance.add_run_tags(self._run_id, {**emptied, **pages, RUN_TAG: self._run_id})


def jobs_of(run: DagsterRun) -> dict[str, str]:
    """Step name -> submission id of each job that the run waits for, or waited for when its process died."""
    if run.tags.get(RUN_TAG) != run.run_id:
        return {}
    found: dict[str, str] = {}
    for key in sorted(filter(_PAGE.fullmatch, run.tags)):
        found.update(json.loads(run.tags[key]))
    return found


def _pages(jobs: Mapping[str, str]) -> list[str]:
    """The jobs as JSON objects, each small enough for a tag; at least one."""
    pages: list[dict[str, str]] = [{}]
    for step, submission_id in sorted(jobs.items()):
        if pages[-1] and len(json.dumps({**pages[-1], step: submission_id})) > MAX_VALUE_BYTES:
            pages.append({})
        pages[-1][step] = submission_id
    return [json.dumps(page) for page in pages]
