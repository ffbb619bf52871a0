"""Notes of jobs, on each kind of store: a local disk, GCS and S3."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import one_output
import pytest
from one_output import X

from marin_resources.hardware.resources import tpu
from marin_resources.storage.control import control
from marin_resources.storage.output.attempts import begin_attempt
from marin_resources.storage.output.notes.job_notes import (
    JobNote,
    JobNoteError,
    Submitter,
    add_ended,
    add_outcome,
    add_stop,
    create_note,
    first_free_attempt,
    newest_note_above_fence,
    note_path,
    read_note,
    take_over,
    was_lost_before,
)
from marin_resources.storage.output.store import Store
from marin_resources.storage.paths import join
from marin_resources.wire.outcome import End, Outcome
from marin_resources.wire.task import Task

TASK = Task(output=X, prefix="/p", path="/p/x", fn="json:dumps", config={"value": 1})
SUCCESS, FAILED = Outcome(end=End.SUCCESS), Outcome(end=End.FAILED, error="the value 3 is not liked")


def note(attempt: int = 1, run_id: str = "run-1", **fields: Any) -> JobNote:
    who = Submitter.here(run_id)
    given: dict[str, Any] = {"task": TASK, "code": {"mode": "image"}, "submitted_at": "2026-01-01T00:00:00+00:00"}
    given["dashboard"] = "http://head:8265"
    return JobNote(
        attempt=attempt,
        submission_id=f"x-{attempt}",
        session="session_1",
        by=who,
        owner=who,
        **{**given, **fields},
    )


@pytest.fixture
def path(any_prefix: str) -> str:
    return Store(any_prefix).locate(X)


def test_a_note_that_was_created_is_read_as_it_was(path: str) -> None:
    created = create_note(path, note(task=dataclasses.replace(TASK, config={"texts": ["ü" * 1000] * 300})))
    assert read_note(note_path(path, 1)) == created
    assert created.open
    assert created.by == Submitter.here("run-1")


def test_without_a_job_no_note_exists(path: str) -> None:
    assert read_note(note_path(path, 1)) is None
    assert newest_note_above_fence(path) is None
    assert first_free_attempt(path) == 1


def test_of_many_runs_that_reach_a_step_at_once_all_get_one_note(path: str) -> None:
    got: list[JobNote] = []
    at_once(*(lambda n=n: got.append(create_note(path, note(run_id=f"run-{n}"))) for n in range(6)))
    assert len(got) == 6
    assert all(each == read_note(note_path(path, 1)) for each in got)


def test_the_first_outcome_stands(path: str) -> None:
    create_note(path, note())
    add_outcome(note_path(path, 1), SUCCESS)
    stands = add_outcome(note_path(path, 1), FAILED)
    assert stands.outcome == SUCCESS
    assert read_note(note_path(path, 1)) == stands
    assert not stands.open


def test_the_first_stop_stands(path: str) -> None:
    create_note(path, note())
    add_stop(note_path(path, 1), "ann", "the run was terminated")
    stands = add_stop(note_path(path, 1), "bob", "why not")
    assert stands.stop is not None
    assert (stands.stop["by"], stands.stop["reason"]) == ("ann", "the run was terminated")
    assert not stands.open


def test_a_job_that_ended_without_an_outcome_is_not_open(path: str) -> None:
    create_note(path, note())
    assert add_ended(note_path(path, 1), "its node is gone").ended == "its node is gone"
    assert add_ended(note_path(path, 1), "something else").ended == "its node is gone"
    assert not read_note(note_path(path, 1)).open  # type: ignore[union-attr]


def test_concurrent_changes_of_a_note_are_all_kept(path: str) -> None:
    create_note(path, note())
    where, heir = note_path(path, 1), Submitter.here("run-2")
    at_once(
        lambda: add_outcome(where, FAILED),
        lambda: add_stop(where, "ann", "enough"),
        lambda: add_ended(where, "gone"),
        lambda: take_over(where, heir),
    )
    seen = read_note(where)
    assert seen is not None
    assert seen.outcome == FAILED
    assert seen.stop is not None
    assert (seen.ended, seen.owner, seen.by) == ("gone", heir, Submitter.here("run-1"))


def test_a_removed_note_is_an_error_that_names_it(path: str) -> None:
    with pytest.raises(JobNoteError, match="does not exist any more"):
        add_outcome(note_path(path, 1), SUCCESS)


def test_numbers_of_jobs_that_never_began_are_skipped(any_prefix: str, path: str) -> None:
    create_note(path, note(1))
    create_note(path, note(2))
    assert first_free_attempt(path) == 3
    newest = newest_note_above_fence(path)
    assert newest is not None
    assert newest.attempt == 2
    store = Store(any_prefix)
    store.fail(one_output.claim(store, attempt=2), {}, "an error", "")
    assert newest_note_above_fence(path) is None
    assert first_free_attempt(path) == 3
    create_note(path, note(3))
    assert newest_note_above_fence(path).attempt == 3  # type: ignore[union-attr]


def test_attempts_without_jobs_count(disk_prefix: str) -> None:
    store = Store(disk_prefix)
    store.fail(one_output.claim(store, attempt=1), {}, "an error", "")
    assert first_free_attempt(store.locate(X)) == 2


def test_a_step_was_lost_before_if_the_last_attempt_that_began_here_has_no_end_of_its_own(disk_prefix: str) -> None:
    path = Store(disk_prefix).locate(X)
    task = dataclasses.replace(TASK, path=path, resources=tpu("v4-16"))

    def earlier(attempt: int, *, begun: bool, **changed: Any) -> bool:
        """Whether an attempt after this one sees that the step was lost."""
        create_note(path, note(attempt, **{"task": task, **changed}))
        if begun:
            begin_attempt(path, attempt, {})
        return was_lost_before(note(attempt + 1, task=task))

    assert not was_lost_before(note(1, task=task))
    assert not earlier(1, begun=False)
    assert earlier(2, begun=True)
    assert earlier(3, begun=False)  # Ray let it wait for a quarter of an hour, and another was submitted
    assert earlier(4, begun=True, outcome=Outcome(end=End.LOST, error="a late write"))
    assert not earlier(5, begun=True, outcome=FAILED)
    assert not earlier(6, begun=True, stop={"by": "ann", "reason": "a mistake"})
    assert not earlier(7, begun=True, dashboard="http://another:8265")
    assert not earlier(8, begun=True, task=dataclasses.replace(task, resources=tpu("v4-8")))
    assert earlier(9, begun=True)
    Path(note_path(path, 9)).write_text("{")
    assert not was_lost_before(note(10, task=task))


def test_a_note_of_a_newer_format_is_refused(disk_prefix: str) -> None:
    path = join(disk_prefix, "1.json")
    control.write(path, json.dumps({"format_version": 3}).encode(), expected=None)
    with pytest.raises(JobNoteError, match=r"1\.json' has format version 3 and this software knows up to 2"):
        read_note(path)


@pytest.mark.parametrize("text", ["{", "[]", '{"format_version": 1}', '{"format_version": 1, "by": {}, "owner": {}}'])
def test_a_damaged_note_is_one_sentence_with_its_path(text: str, disk_prefix: str) -> None:
    path = join(disk_prefix, "1.json")
    control.write(path, text.encode(), expected=None)
    with pytest.raises(JobNoteError, match=r"1\.json' (is|has) .*Look at the file"):
        read_note(path)


def test_a_submitter_is_gone_when_its_process_is() -> None:
    code = "from marin_resources.storage.output.notes.job_notes import Submitter; print(Submitter.here(None).process)"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    here = Submitter.here("run-1")
    assert dataclasses.replace(here, process=process).is_gone()
    assert not here.is_gone()
    assert here.pid == os.getpid()


def test_a_submitter_on_another_machine_is_never_known_to_be_gone() -> None:
    here = Submitter.here(None)
    assert not dataclasses.replace(here, process=f"elsewhere/{here.pid}/1.00").is_gone()


def at_once(*calls: Callable[[], Any]) -> None:
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
