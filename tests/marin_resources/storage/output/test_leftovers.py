"""Leftovers of an earlier attempt below an output, on each kind of store."""

from __future__ import annotations

import signal

import pytest
from one_output import X, claim, make, output, read, snapshot, stale_lease, work, write

from marin_resources.storage.control import control
from marin_resources.storage.control.conditions import NOTE
from marin_resources.storage.files import exists, sizes_below, write_bytes
from marin_resources.storage.lease import lease
from marin_resources.storage.manifest.manifest import read_manifest, take_manifest
from marin_resources.storage.output import attempts
from marin_resources.storage.output.leftovers import find_leftovers, move_aside
from marin_resources.storage.output.store import Store, StoreError
from marin_resources.storage.paths import join
from marin_resources.types.versioned_json import ControlFileError


@pytest.fixture
def store(any_prefix: str) -> Store:
    return Store(any_prefix)


@pytest.fixture
def path(store: Store) -> str:
    return store.locate(X)


def test_a_resumable_step_resumes_its_leftovers(store: Store, path: str) -> None:
    held = claim(store)
    write(path, "checkpoint", "1")
    write(path, ".marin/shards/note.json", "{}")
    held.lease.release()
    held = claim(store, 2, resumable=True)
    assert read(path, "checkpoint") == "1"
    assert exists(join(path, ".marin/shards/note.json"))
    held.lease.release()


def test_leftovers_that_another_step_cannot_resume_are_moved_aside(store: Store, path: str) -> None:
    held = claim(store)
    write(path, "sub/part", "half")
    write(path, ".marin/shards/k.json", "{}")
    held.lease.release()
    held = claim(store, 2)
    assert take_manifest(path).files == ()
    assert not exists(join(path, ".marin/shards/k.json"))
    assert read(path, ".marin/aside/1/sub/part") == "half"
    assert exists(join(path, ".marin/aside/1/shards/k.json"))
    assert exists(join(path, ".marin/attempts/1.json"))
    write(path, "data", "whole")
    store.publish(held, {}, {})
    assert read_manifest(path).files == (("data", 5),)  # type: ignore[union-attr]


def test_a_late_claimant_moves_nothing_of_a_newer_attempt_aside(gcs_prefix: str) -> None:
    """It was paused between its claim and the move; the listed files have been written again since."""
    store = Store(gcs_prefix)
    path = store.locate(X)
    held = claim(store)
    write(path, "part", "1")
    held.lease.release()
    listed = find_leftovers(path, attempted=True)
    newer = claim(store, 2)
    write(path, "part", "2")
    move_aside(path, listed, "1", newer.lease)
    assert read(path, "part") == "2"
    newer.lease.release()


def test_a_control_file_that_a_killed_process_had_half_written_is_removed(disk_prefix: str) -> None:
    store = Store(disk_prefix)
    path = store.locate(X)
    assert work(store, 1, "file written aside@5") == -signal.SIGKILL
    assert [name for name in sizes_below(path) if name.endswith(".tmp")]
    make(store, attempt=attempts.latest_attempt(path) + 1)
    assert [name for name in sizes_below(path) if name.endswith(".tmp")] == []


def test_no_half_written_control_file_is_beside_an_output_that_its_run_has_found_complete(disk_prefix: str) -> None:
    """The worker is killed at each of its writes; its run records that, and computes again if it must."""
    killed_after_commit = 0
    for write_number in range(1, 20):
        store = Store(f"{disk_prefix}/{write_number}")
        path = store.locate(X)
        if work(store, 1, f"file written aside@{write_number}") == 0:
            break
        store.mark_stopped(X, attempts.latest_attempt(path), "its worker died")
        seen = store.look([X])[X]
        if not seen.done:
            make(store, attempt=attempts.latest_attempt(path) + 1)
        killed_after_commit += seen.done
        assert [name for name in sizes_below(path) if name.endswith(".tmp")] == []
    else:
        raise AssertionError("the worker wrote more than 19 files")
    assert killed_after_commit >= 2


def test_leftovers_are_moved_aside_at_each_attempt(store: Store, path: str) -> None:
    for attempt in (1, 2, 3):
        held = claim(store, attempt)
        write(path, "part", str(attempt))
        held.lease.release()
    assert [read(path, f".marin/aside/{n}/part") for n in (1, 2)] == ["1", "2"]


def test_a_resumable_step_resumes_although_the_next_attempt_died_before_it_began(store: Store, path: str) -> None:
    held = claim(store)
    write(path, "checkpoint", "1")
    held.lease.release()
    assert work(store, 2, "commit claimed") == -signal.SIGKILL
    held = claim(store, 3, resumable=True, stale=stale_lease(path))
    assert read(path, "checkpoint") == "1"
    held.lease.release()


def test_a_resumable_step_does_not_resume_another_versions_leftovers(store: Store) -> None:
    first, second = (output(identity * 64, override="one/place") for identity in "ab")
    held = claim(store, what=first)
    write(held.path, "checkpoint", "1")
    held.lease.release()
    held = claim(store, 2, second, resumable=True)
    assert not exists(join(held.path, "checkpoint"))
    held.lease.release()


def test_foreign_files_are_refused_and_untouched(store: Store, path: str) -> None:
    write(path, "thesis.txt", "mine")
    before = snapshot(store.prefix)
    with pytest.raises(StoreError, match=r"holds 'thesis.txt' and no mark of an attempt, so it is not touched"):
        claim(store)
    ours = (lease.NAME, NOTE)  # the lease, and the note that the store keeps conditions
    assert {n: s for n, s in snapshot(store.prefix).items() if not n.endswith(ours)} == before
    assert store.look([X])[X].status is None


def test_a_file_in_the_outputs_place_is_refused_and_untouched(disk_prefix: str) -> None:
    store = Store(disk_prefix)
    path = store.locate(X)
    write_bytes(path, b"mine")
    assert store.look([X])[X].status is None
    with pytest.raises(ControlFileError, match="x-abc123' cannot be created, as a file is in its place"):
        claim(store)
    assert control.read(path).data == b"mine"  # type: ignore[union-attr]


@pytest.mark.parametrize("point", ["commit claimed", "leftovers moved", "manifest taken"])
def test_leftovers_survive_a_kill_while_they_are_moved(disk_prefix: str, point: str) -> None:
    store = Store(disk_prefix)
    path = store.locate(X)
    assert work(store, 1, "function returned") == -signal.SIGKILL
    assert work(store, 2, point) == -signal.SIGKILL
    make(store, attempt=3)
    assert store.look([X])[X].done
    assert read_manifest(path).files == (("data.txt", 4),)  # type: ignore[union-attr]


def test_another_steps_output_inside_is_never_a_leftover(store: Store, path: str) -> None:
    """The override of a step can nest around a hashed path; of two scripts nobody plans both."""
    around = output(identity="b" * 64, override=path.removeprefix(f"{store.prefix}/").rpartition("/")[0])
    held = claim(store, what=around)
    write(held.path, "mine", "half")
    held.lease.release()
    inside = make(store)
    before = snapshot(inside)
    with pytest.raises(StoreError, match="has the output of another step inside"):
        claim(store, 2, what=around)
    assert snapshot(inside) == before
    assert store.look([X])[X].done
