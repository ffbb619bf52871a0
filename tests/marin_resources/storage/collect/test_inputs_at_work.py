"""What an attempt at work reads is there: who withdraws it sees the attempt, or the attempt sees that it is gone."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
import toy_steps
from one_output import X, claim, make, output

from marin_assets.step.values import unwrap_versioned_value
from marin_resources.ray_tpu.worker import run_task
from marin_resources.storage.collect.errors import KeptError
from marin_resources.storage.collect.invalidate import invalidate_output
from marin_resources.storage.collect.purge import purge
from marin_resources.storage.collect.withdraw import Terms, withdraw
from marin_resources.storage.files import exists, names_in
from marin_resources.storage.output.attempts import latest_attempt
from marin_resources.storage.output.notes.active_attempts import FOLDER, live_attempts
from marin_resources.storage.output.restore import InputGoneError, require_inputs
from marin_resources.storage.output.store import Store
from marin_resources.storage.paths import join
from marin_resources.types.output import Output
from marin_resources.wire.config_json import encode
from marin_resources.wire.outcome import End
from marin_resources.wire.reference import reference_to
from marin_resources.wire.task import Task, paths_read

TERMS = Terms(by="tester", grace=timedelta(0))
READER = Output(name="raw/reader", version="def456", identity="b" * 64)


def test_an_attempt_is_listed_with_what_it_reads_until_it_ends(any_prefix: str) -> None:
    store = Store(any_prefix)
    held = store.claim(READER, attempt=1, resumable=False, run_id=None, reads=["a", "b"])
    [live] = live_attempts(store.prefix)
    assert (live.path, live.attempt, live.reads) == (held.path, 1, ("a", "b"))
    store.publish(held, {}, {})
    assert live_attempts(store.prefix) == []
    assert names_in(join(store.prefix, FOLDER)) == []


def test_the_entry_of_an_attempt_without_its_lease_does_not_count(disk_or_gcs_prefix: str) -> None:
    store = Store(disk_or_gcs_prefix)
    held = store.claim(READER, attempt=1, resumable=False, run_id=None, reads=["a"])
    held.lease.release()  # as if its process had died
    assert names_in(join(store.prefix, FOLDER)) != []
    assert live_attempts(store.prefix) == []
    assert names_in(join(store.prefix, FOLDER)) == []


def test_an_attempt_whose_input_was_collected_brings_it_back(any_prefix: str) -> None:
    store = Store(any_prefix)
    path = make(store)
    withdraw(store, X, TERMS)
    check = partial(require_inputs, store, [path])
    held = store.claim(READER, attempt=1, resumable=False, run_id=None, reads=[path], check_inputs=check)
    assert store.look([X])[X].done
    store.publish(held, {}, {})


def test_an_attempt_whose_input_is_gone_does_not_begin(disk_or_gcs_prefix: str) -> None:
    store = Store(disk_or_gcs_prefix)
    path = make(store)
    purge(store, withdraw(store, X, TERMS))
    check = partial(require_inputs, store, [path])
    with pytest.raises(InputGoneError, match=r"has been removed since"):
        store.claim(READER, attempt=1, resumable=False, run_id=None, reads=[path], check_inputs=check)
    assert live_attempts(store.prefix) == []
    assert store.look([READER])[READER].holder is None
    assert latest_attempt(store.locate(READER)) == 0


def task_of(store: Store, input_path: str, attempt: int = 1) -> Task:
    config = toy_steps.ToyConfig(input_path=input_path, output_path=store.locate(READER))
    return Task(
        output=READER,
        prefix=store.prefix,
        path=store.locate(READER),
        inputs=(input_path,),
        fn=reference_to(toy_steps.write_value),
        config=encode(unwrap_versioned_value(config)),
        attempt=attempt,
        facts={"name": READER.name},
    )


def test_a_worker_calls_no_function_without_its_input(disk_prefix: str) -> None:
    store = Store(disk_prefix)
    path = make(store)
    purge(store, withdraw(store, X, TERMS))
    outcome = run_task.run(task_of(store, path), run_task.Placement())
    assert outcome.end is End.NOT_BEGUN
    assert path in outcome.error
    assert not exists(join(store.locate(READER), "value.txt"))


def test_a_worker_brings_a_collected_input_back_and_works(disk_prefix: str) -> None:
    store = Store(disk_prefix)
    path = make(store)
    withdraw(store, X, TERMS)
    assert run_task.run(task_of(store, path), run_task.Placement()).end is End.SUCCESS
    assert store.look([X])[X].done


def test_a_task_reads_its_inputs_and_the_paths_in_its_config_but_not_its_own() -> None:
    store = Store("gs://bucket/home")
    task = task_of(store, "gs://bucket/home/raw/x-abc123")
    more = {"$tuple": ["gs://bucket/home/raw/other-012345/file", "gs://elsewhere/x", "mirror://raw/far-abcdef", "word"]}
    task = dataclasses.replace(task, config={**task.config, "note": more})
    assert paths_read(task) == (
        "gs://bucket/home/raw/other-012345/file",
        "gs://bucket/home/raw/x-abc123",
        "mirror://raw/far-abcdef",
    )
    assert Task.from_dict(task.to_dict()) == task


def test_a_task_reads_what_its_config_names_by_another_spelling_of_the_prefix(
    disk_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, link = Store(disk_prefix), tmp_path / "link"
    link.symlink_to(disk_prefix)
    monkeypatch.chdir(tmp_path)
    task = task_of(store, f"{store.prefix}/raw/x-abc123")
    named = [f"{link}/raw/y-abc123/f", "link/raw/z-abc123", f"{link}/{READER.relative()}/own", "link", "and/or"]
    task = dataclasses.replace(task, config={**task.config, "note": named})
    assert paths_read(task) == tuple(
        sorted([f"{link}/raw/y-abc123/f", f"{link}/raw/z-abc123", f"{store.prefix}/raw/x-abc123"])
    )


def test_an_attempt_counts_though_its_machine_has_the_prefix_at_another_place(disk_prefix: str, tmp_path: Path) -> None:
    link, gone = tmp_path / "here" / "outputs", tmp_path / "there" / "outputs"
    for folder in (Path(disk_prefix), gone.parent):
        folder.mkdir()
    gone.symlink_to(disk_prefix)
    theirs = Store(str(gone))
    held = theirs.claim(READER, attempt=1, resumable=False, run_id=None, reads=[f"{gone}/raw/x-abc123", "/other/x"])
    gone.unlink()
    link.parent.mkdir()
    link.symlink_to(disk_prefix)
    [live] = live_attempts(str(link))
    assert live.path == str(link / READER.relative())
    assert live.reads == (str(link / "raw/x-abc123"), "/other/x")
    gone.symlink_to(disk_prefix)
    held.lease.release()


def test_what_an_attempt_reads_through_a_link_is_not_withdrawn(disk_prefix: str, tmp_path: Path) -> None:
    store, link = Store(disk_prefix), tmp_path / "link"
    path = make(store)
    link.symlink_to(disk_prefix)
    held = Store(str(link)).claim(
        READER, attempt=1, resumable=False, run_id=None, reads=[path.replace(store.prefix, str(link))]
    )
    with pytest.raises(KeptError, match="reads it"):
        invalidate_output(store, X, by="me", why="to see")
    assert store.look([X])[X].done
    held.lease.release()


def test_what_is_being_computed_holds_its_lease(disk_prefix: str) -> None:
    store = Store(disk_prefix)
    held = claim(store, what=output())
    [live] = live_attempts(store.prefix)
    assert live.holder.owner == held.lease.holder.owner
    store.publish(held, {}, {})
