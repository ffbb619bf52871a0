"""Which jobs of the Ray cluster a Dagster run waits for, as tags of the run.

    marin/jobs                 {"tokenized/dclm": "tokenized-dclm-1a2b3c-5d6e7f80-a1"}: step name -> submission id
    marin/jobs-2, -3, …        the rest, where one tag is too small for it
    .dagster/marin_jobs_run    the run that the tags speak of

The run's page shows the first ones. Whoever looks at runs from outside, as a sensor does, sees which jobs are waited
for. Tags are copied to a run that executes this one again, from the UI or by itself; the last of them tells a copy.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping

from dagster import DagsterInstance, DagsterRun

TAG = "marin/jobs"
RUN_TAG = ".dagster/marin_jobs_run"
"""Dagster's UI does not show tags that begin so."""

MAX_VALUE_BYTES = 2000
"""Dagster sets no limit, and its index over tags does: Postgres refuses an entry of more than 2704 bytes."""

_PAGE = re.compile(rf"{TAG}(-\d+)?")
_lock = threading.Lock()
_noted: dict[str, dict[str, str]] = {}
"""Run -> its jobs, as this process has noted them. All that stands in the database is written from here."""


def note_job(instance: DagsterInstance, run_id: str, step: str, submission_id: str) -> None:
    """The run waits for this job from now on, in place of one that the step may have waited for before."""
    with _lock:
        jobs = _noted.setdefault(run_id, {})
        if jobs.get(step) == submission_id:
            return
        jobs[step] = submission_id
        _write(instance, run_id, jobs)


def forget_job(instance: DagsterInstance, run_id: str, step: str) -> None:
    """The run waits for no job of this step any more. Without a note nothing is written."""
    with _lock:
        jobs = _noted.get(run_id, {})
        if jobs.pop(step, None) is None:
            return
        _write(instance, run_id, jobs)
        if not jobs:
            del _noted[run_id]


def jobs_of(run: DagsterRun) -> dict[str, str]:
    """Step name -> submission id, of the jobs that the run waits for (or did, if its process has died)."""
    if run.tags.get(RUN_TAG) != run.run_id:
        return {}
    found: dict[str, str] = {}
    for key in sorted(filter(_PAGE.fullmatch, run.tags)):
        found.update(json.loads(run.tags[key]))
    return found


def _write(instance: DagsterInstance, run_id: str, jobs: Mapping[str, str]) -> None:
    """All tags at once, so that a reader sees all of it or nothing. Dagster can change a tag and not remove it."""
    run = instance.get_run_by_id(run_id)
    emptied = {key: "{}" for key in (run.tags if run else {}) if _PAGE.fullmatch(key)}
    pages = {TAG if n == 1 else f"{TAG}-{n}": page for n, page in enumerate(_pages(jobs), 1)}
    instance.add_run_tags(run_id, {**emptied, **pages, RUN_TAG: run_id})


def _pages(jobs: Mapping[str, str]) -> list[str]:
    """The jobs as JSON objects that each fit into a tag; at least one."""
    pages: list[dict[str, str]] = [{}]
    for step, submission_id in sorted(jobs.items()):
        if pages[-1] and len(json.dumps({**pages[-1], step: submission_id})) > MAX_VALUE_BYTES:
            pages.append({})
        pages[-1][step] = submission_id
    return [json.dumps(page) for page in pages]
