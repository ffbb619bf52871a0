"""The store on each kind of store: a local disk, GCS and S3."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from bucket_for_tests import BucketForTests
from one_output import X, claim, make, output, snapshot, stale_lease, work, write
from schedule import mostly_on_gcs

from marin_resources.storage import fault_points
from marin_resources.storage.control import control
from marin_resources.storage.files import sizes_below
from marin_resources.storage.lease import lease
from marin_resources.storage.lease.protocol import LeaseHeldError, LeaseLostError
from marin_resources.storage.manifest.manifest import Entry, Manifest, read_manifest, take_manifest
from marin_resources.storage.output import attempts, record, status
from marin_resources.storage.output.store import AlreadyDoneError, Store, StoreError
from marin_resources.storage.paths import is_local, join
from marin_resources.types.output import Match, Output, Status


@pytest.fixture
def store(any_prefix: str) -> Store:
    return Store(any_prefix)


@pytest.fixture
def path(store: Store) -> str:
    return store.locate(X)


def test_an_output_is_stored_below_the_prefix_or_at_its_override() -> None:
    store = Store("/p")
    assert store.locate(X) == "/p/raw/x-abc123"
    assert store.locate(output(partition="2024-01")) == "/p/raw/x-abc123/2024-01"
    assert store.locate(output(override="my/place")) == "/p/my/place"
    assert store.locate(output(override="/abs/place")) == "/abs/place"
    assert store.locate(output(override="gs://b/place")) == "gs://b/place"


def test_a_look_writes_nothing(store: Store) -> None:
    seen = store.look([X, X, output("b" * 64)])
    assert [o.status for o in seen.values()] == [None, None]
    assert not seen[X].done
    assert sizes_below(store.prefix) == {}


def test_what_is_published_is_complete_with_record_manifest_and_attempt(store: Store, path: str) -> None:
    make(store)
    seen = store.look([X])[X]
    assert (seen.status, seen.match, seen.done, seen.holder) == (Status.SUCCESS, Match.SAME, True, None)
    assert seen.result == {"documents": 3}
    assert seen.record.identity == X.identity
    assert seen.record.manifest.to_dict() == read_manifest(path).summary()  # type: ignore[union-attr]
    assert seen.record.duration_s is not None
    assert seen.record.duration_s >= 0
    assert attempts.read_attempt(path, 1)["outcome"] == "success"
    assert lease.holder_of(path) is None


def test_what_is_done_is_seen_without_a_listing(gcs_bucket: BucketForTests) -> None:
    """A listing may be late, and holds no generations: control files are read one by one."""
    store = Store(gcs_bucket.prefix)
    make(store)
    before = len(gcs_bucket.listings())
    assert store.look([X])[X].done
    with pytest.raises(AlreadyDoneError):
        claim(store, 2)
    store.mark_stopped(X, 1, "late")
    assert len(gcs_bucket.listings()) == before


def test_while_it_is_computed_it_is_running_and_has_a_holder(store: Store, path: str) -> None:
    held = claim(store)
    seen = store.look([X])[X]
    assert (seen.status, seen.done) == (Status.RUNNING, False)
    assert seen.holder is not None
    assert (seen.holder.owner, seen.holder.run_id) == (held.lease.holder.owner, "run-1")
    assert attempts.read_attempt(path, 1)["run_id"] == "run-1"
    held.lease.release()


def test_a_second_claim_is_refused_while_the_first_lives(store: Store) -> None:
    held = claim(store)
    with pytest.raises(LeaseHeldError) as caught:
        claim(store, 2)
    assert caught.value.holder.owner == held.lease.holder.owner
    held.lease.release()


def test_a_failure_is_recorded_and_frees_the_output(store: Store, path: str) -> None:
    store.fail(claim(store), {"name": "raw/x"}, "ValueError: no", "Traceback …")
    seen = store.look([X])[X]
    assert (seen.status, seen.done, seen.holder) == (Status.FAILED, False, None)
    assert seen.record.error == "ValueError: no"
    assert attempts.read_attempt(path, 1)["traceback"] == "Traceback …"
    make(store, attempt=2)
    assert store.look([X])[X].done


def test_what_is_complete_is_not_claimed_and_its_record_never_rewritten(store: Store, path: str) -> None:
    make(store)
    before = snapshot(path)
    with pytest.raises(AlreadyDoneError, match="is complete by now"):
        claim(store, 2)
    assert snapshot(path) == before


def test_an_attempts_number_is_claimed_once(store: Store) -> None:
    store.fail(claim(store), {}, "e", "t")
    with pytest.raises(AlreadyDoneError, match="Attempt 1"):
        claim(store, 1)
    claim(store, 2).lease.release()


def test_on_a_disk_a_holder_whose_lease_was_removed_publishes_nothing(disk_prefix: str) -> None:
    store = Store(disk_prefix)
    held = claim(store)
    os.unlink(join(held.path, lease.NAME))
    with pytest.raises(LeaseLostError):
        store.publish(held, {}, {})
    assert store.look([X])[X].status is Status.RUNNING
    with pytest.raises(LeaseLostError):
        store.fail(held, {}, "e", "t")
    held.lease.release()


def test_a_writer_that_was_taken_for_dead_publishes_nothing(store: Store, path: str) -> None:
    """It has not noticed yet: its lease was taken over, and its next heartbeat is far away."""
    late = claim(store)
    write(path, "data.txt", "late")
    if is_local(path):
        os.unlink(join(path, lease.NAME))  # a kernel lock cannot be taken over; without its file it no longer counts
        late.lease.check = lambda: None  # type: ignore[method-assign]
    newer = claim(store, 2, stale=stale_lease(path))
    with pytest.raises(LeaseLostError, match=r"Attempt 1 at .* may not publish: attempt 2 has taken it over"):
        store.publish(late, {}, {})
    with pytest.raises(LeaseLostError, match="was taken over by another"):
        store.fail(late, {}, "ValueError: late", "")
    assert status.read_status(path) is Status.RUNNING
    write(path, "data.txt", "newer")
    store.publish(newer, {}, {"by": 2})
    late.lease.release()
    assert store.look([X])[X].result == {"by": 2}
    assert store.look([X])[X].holder is None


def test_a_late_failure_does_not_overwrite_what_is_complete(store: Store, path: str) -> None:
    late = claim(store)
    store.publish(late, {"name": "raw/x"}, {"documents": 3})
    before = snapshot(path)
    late.lease.check = lambda: None  # type: ignore[method-assign]
    store.fail(late, {}, "ValueError: after the fact", "")
    seen = store.look([X])[X]
    assert seen.done
    assert seen.result == {"documents": 3}
    assert {n: s.data for n, s in snapshot(path).items() if s} == {n: s.data for n, s in before.items() if s}


@pytest.mark.parametrize("override", [None, "one/place"])
def test_another_versions_output_at_the_path_is_refused_and_untouched(store: Store, override: str | None) -> None:
    first, second = (output(identity * 64, override=override) for identity in "ab")
    folder = make(store, first)
    before = snapshot(folder)
    seen = store.look([second])[second]
    assert (seen.match, seen.done) == (Match.OTHER, False)
    why = "the overridden path" if override else "six digits that collide"
    with pytest.raises(StoreError, match=f"another version of 'raw/x' \\({why}\\)"):
        claim(store, 2, second)
    assert snapshot(folder) == before
    assert store.look([first])[first].done


def test_an_output_of_marins_is_reused_as_it_is(store: Store, path: str) -> None:
    write(path, "data.txt", "data")
    write(path, ".executor_status", "SUCCESS")
    seen = store.look([X])[X]
    assert (seen.done, seen.match) == (True, Match.UNVERIFIED)
    with pytest.raises(AlreadyDoneError):
        claim(store)


def test_a_record_that_marin_rewrote_is_read_from_the_commit(store: Store, path: str) -> None:
    """Marin rewrites the records of all steps of its DAG when it starts, also of finished ones."""
    make(store)
    record_path = join(path, record.NAME)
    control.put(record_path, b'{"name": "raw/x", "config": {}, "version": {"name": "raw/x"}}')
    seen = store.look([X])[X]
    assert (seen.done, seen.match, seen.result) == (True, Match.SAME, {"documents": 3})


def test_a_stopped_attempt_records_why(store: Store, path: str) -> None:
    claim(store).lease.release()
    store.mark_stopped(X, 1, "by Ctrl-C")
    assert store.look([X])[X].status is Status.FAILED
    assert attempts.read_attempt(path, 1)["error"] == "by Ctrl-C"


def test_a_dead_workers_lease_is_taken_over_at_once(store: Store, path: str) -> None:
    """Its orchestrator knows that it is dead, so it does not wait for the lease to become stale."""
    assert work(store, 1, "function returned") == -signal.SIGKILL
    store.mark_stopped(X, 1, "its worker died")
    seen = store.look([X])[X]
    assert (seen.status, seen.holder) == (Status.FAILED, None)
    make(store, attempt=2)


def test_a_late_stop_changes_nothing(store: Store, path: str) -> None:
    claim(store).lease.release()
    second = claim(store, 2)
    before = snapshot(path)
    store.mark_stopped(X, 1, "late")
    assert snapshot(path) == before
    assert store.look([X])[X].holder is not None
    second.lease.release()
    store.mark_stopped(output("c" * 64, override="never/begun"), 1, "never begun")


def test_a_commit_of_a_newer_format_is_refused(store: Store, path: str) -> None:
    write(path, ".marin/manifest.json", '{"format_version": 99}')
    with pytest.raises(ValueError, match="has format version 99 and this software knows up to 2"):
        claim(store)


def test_an_output_that_has_a_manifest_of_names_and_sizes_is_complete(store: Store, path: str) -> None:
    """Format 1, as earlier versions wrote it."""
    write(path, "data.txt", "data")
    digest = Manifest(entries=(Entry(name="data.txt", size=4),)).digest
    entries = [{"name": "data.txt", "size": 4}]
    manifest = {"format_version": 1, "files": 1, "bytes": 4, "digest": digest, "entries": entries}
    write(path, ".marin/manifest.json", json.dumps(manifest))
    write(path, ".executor_status", "SUCCESS")
    assert store.look([X])[X].done
    assert read_manifest(path).files == (("data.txt", 4),)  # type: ignore[union-attr]
    with pytest.raises(AlreadyDoneError):
        claim(store)


OF_THE_STORE = [p for p in fault_points.POINTS if not p.startswith(("file", "shard", "leftovers"))]


COMMITTED = OF_THE_STORE[OF_THE_STORE.index("commit published") :]


@mostly_on_gcs
@pytest.mark.parametrize("point", OF_THE_STORE)
def test_a_worker_killed_at_any_point_leaves_an_output_that_the_next_completes(
    store: Store, path: str, point: str
) -> None:
    assert work(store, 1, point) == -signal.SIGKILL
    seen = store.look([X])[X]
    assert seen.done == (point in COMMITTED[2:])  # "commit published" and "record written" come before SUCCESS
    latest = attempts.latest_attempt(path)
    assert latest == (0 if point == "lease taken" else 1)
    if point in COMMITTED:
        with pytest.raises(AlreadyDoneError):  # a missing record or status is written, without any work
            claim(store, latest + 1, stale=stale_lease(path))
    else:
        make(store, attempt=latest + 1, stale=stale_lease(path))
    if point != "status success":  # seen complete, and nothing looks at its history again
        assert attempts.read_attempt(path, attempts.latest_attempt(path))["outcome"] == "success"
    seen = store.look([X])[X]
    assert seen.done
    assert seen.result == {"documents": 3}
    assert read_manifest(path) == take_manifest(path)
    assert seen.record.attempt == attempts.latest_attempt(path)


@mostly_on_gcs
@pytest.mark.parametrize("point", COMMITTED)
def test_a_worker_killed_after_it_has_published_has_succeeded(store: Store, path: str, point: str) -> None:
    assert work(store, 1, point) == -signal.SIGKILL
    store.mark_stopped(X, 1, "its worker died")  # as its orchestrator does
    seen = store.look([X])[X]
    assert seen.done
    mark = attempts.read_attempt(path, 1)
    assert (mark["outcome"], mark["finished_at"]) == ("success", seen.record.finished_at)
    assert "error" not in mark


def test_a_mark_that_was_damaged_does_not_keep_an_output_from_its_publication(store: Store, path: str) -> None:
    held = claim(store)
    write(path, "data.txt", "data")
    write(path, ".marin/attempts/1.json", "not JSON")
    store.publish(held, {"name": X.name}, {"documents": 3})
    assert store.look([X])[X].done


def test_a_failure_after_success_changes_nothing(store: Store, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    held = claim(store)
    write(path, "data.txt", "data")

    def fail_there(point: str) -> None:
        if point == "commit published":
            raise OSError("the store is away")

    monkeypatch.setattr(fault_points, "reach", fail_there)
    with pytest.raises(OSError, match="away"):
        store.publish(held, {"name": X.name}, {"documents": 3})
    monkeypatch.undo()
    assert not store.fail(held, {"name": X.name}, "OSError: the store is away", "")
    seen = store.look([X])[X]
    assert seen.done
    assert seen.result == {"documents": 3}
    assert seen.holder is None


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("{prefix}", "is the prefix itself"),
        ("{prefix}/../prefix/", "is the prefix itself"),
        ("{prefix}/..", "has the prefix .* inside"),
        ("{prefix}/experiments", "is a folder of control files below the prefix"),
        ("{prefix}/.marin/live", "is a folder of control files below the prefix"),
        ("{prefix}/./experiments", "is a folder of control files below the prefix"),
    ],
)
def test_a_folder_with_files_of_all_outputs_is_no_output(disk_prefix: str, override: str, said: str) -> None:
    what = Output(name="raw/x", version="abc123", identity="a" * 64, override=override.format(prefix=disk_prefix))
    with pytest.raises(StoreError, match=said):
        Store(disk_prefix).claim(what, attempt=1, resumable=False, run_id=None)
    assert not Path(disk_prefix).exists()
