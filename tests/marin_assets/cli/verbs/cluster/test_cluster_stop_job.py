"""Stop a job from the command line; runs that wait for it learn who did."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from jobs_there import JobsThere

from marin_assets.cli.verbs.cluster.support.connection import user_at_host
from marin_resources.ray_tpu.cluster.api.jobs_api import JobStatus
from marin_resources.storage.output.notes.job_notes import JobNote, Submitter, create_note, note_path, read_note
from marin_resources.types.output import Output
from marin_resources.wire.task import Task

Marin = Callable[..., tuple[int, str, str]]
TOY = Output(name="toy", version="abc123", identity="a" * 64)
SLEEP = "import time; print('up'); time.sleep(100)"


@pytest.fixture
def noted(tmp_path: Path, jobs_there: JobsThere) -> dict[str, str]:
    """The metadata of a job that has a note."""
    me = Submitter.here(run_id="a-run")
    note = JobNote(
        attempt=2,
        submission_id="x",
        dashboard=jobs_there.address,
        session="s",
        task=Task(output=TOY, prefix=str(tmp_path.parent), path=str(tmp_path), fn="toy_steps:make", config={}),
        code={},
        submitted_at="2026-01-01T00:00:00+00:00",
        by=me,
        owner=me,
    )
    create_note(str(tmp_path), note)
    return {"marin/output": str(tmp_path), "marin/attempt": "2", "marin/step": "toy"}


def test_a_job_ends_and_its_note_says_who_did_it_and_why(
    marin: Marin, jobs_there: JobsThere, noted: dict[str, str], tmp_path: Path
) -> None:
    job = jobs_there.run(SLEEP, metadata=noted)
    jobs_there.until_it_says(job, "up")
    assert marin("cluster", "stop-job", job, "--reason", "wrong data") == (0, f"Job {job} has ended: STOPPED.\n", "")
    assert jobs_there.info(job).status is JobStatus.STOPPED
    note = read_note(note_path(str(tmp_path), 2))
    assert note is not None
    assert note.stop is not None
    assert (note.stop["by"], note.stop["reason"]) == (user_at_host(), "wrong data")
    assert marin("cluster", "stop-job", job) == (0, f"Job {job} had already ended: STOPPED.\n", "")


@pytest.mark.long
def test_a_job_that_waits_for_a_node_leaves_when_it_begins(
    marin: Marin, jobs_there: JobsThere, noted: dict[str, str], tmp_path: Path
) -> None:
    job = jobs_there.run("print('nothing')", metadata=noted, cpus=100)
    code, out, _ = marin("cluster", "stop-job", job)
    assert code == 0
    assert out == f"Job {job} waits for a node, where Ray cannot stop it; it will exit as soon as it begins.\n"
    note = read_note(note_path(str(tmp_path), 2))
    assert note is not None
    assert not note.open


@pytest.mark.long
def test_a_job_without_a_note_is_ended_all_the_same(marin: Marin, jobs_there: JobsThere) -> None:
    job = jobs_there.run(SLEEP)
    jobs_there.until_it_says(job, "up")
    assert marin("cluster", "stop-job", job)[:2] == (0, f"Job {job} has ended: STOPPED.\n")


@pytest.mark.long
def test_a_note_that_is_not_to_be_found_from_here_is_reported(
    marin: Marin, jobs_there: JobsThere, tmp_path: Path
) -> None:
    metadata = {"marin/output": str(tmp_path / "of another machine"), "marin/attempt": "1"}
    job = jobs_there.run(SLEEP, metadata=metadata)
    jobs_there.until_it_says(job, "up")
    code, out, err = marin("cluster", "stop-job", job)
    assert (code, out) == (0, f"Job {job} has ended: STOPPED.\n")
    assert "the runs that wait for it cannot show who stopped it" in err


@pytest.mark.long
def test_a_note_that_cannot_be_read_stops_nothing(
    marin: Marin, jobs_there: JobsThere, noted: dict[str, str], tmp_path: Path
) -> None:
    job = jobs_there.run(SLEEP, metadata=noted)
    jobs_there.until_it_says(job, "up")
    Path(note_path(str(tmp_path), 2)).write_text(json.dumps({"format_version": 99}))
    code, out, err = marin("cluster", "stop-job", job)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "has format version 99" in err
    assert err.endswith("The job was not stopped.\n")
    assert jobs_there.info(job).status is JobStatus.RUNNING
    jobs_there.end(job)
