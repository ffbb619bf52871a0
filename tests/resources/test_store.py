from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from marin_resources.output import Match, Output, Status
from marin_resources.storage import attempts
from marin_resources.storage.lease import NAME as LOCK
from marin_resources.storage.lease import LeaseHeldError, LeaseLostError
from marin_resources.storage.manifest import read_manifest, take_manifest
from marin_resources.storage.store import AlreadyDoneError, Claim, Store, StoreError


def output(identity: str = "a" * 64, override: str | None = None, partition: str | None = None) -> Output:
    return Output(name="raw/x", version="abc123", identity=identity, override=override, partition=partition)


X = output()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "prefix"))


@pytest.fixture
def path(store: Store) -> Path:
    return Path(store.locate(X))


def claim(store: Store, attempt: int = 1, what: Output = X, resumable: bool = False) -> Claim:
    return store.claim(what, attempt=attempt, resumable=resumable, run_id="run-1")


def make(store: Store, what: Output = X, attempt: int = 1) -> Path:
    held = claim(store, attempt, what)
    Path(held.path, "data.txt").write_text("data")
    store.publish(held, {"name": what.name}, {"documents": 3})
    return Path(held.path)


def snapshot(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {str(p): (p.read_bytes(), p.stat().st_mtime_ns) for p in sorted(folder.rglob("*")) if p.is_file()}


def test_an_output_lies_below_the_prefix_or_where_it_is_overridden(store: Store) -> None:
    assert store.locate(X) == f"{store.prefix}/raw/x-abc123"
    assert store.locate(output(partition="2024-01")) == f"{store.prefix}/raw/x-abc123/2024-01"
    assert store.locate(output(override="my/place")) == f"{store.prefix}/my/place"
    assert store.locate(output(override="/abs/place")) == "/abs/place"
    assert store.locate(output(override="gs://b/place")) == "gs://b/place"


def test_a_look_writes_nothing(store: Store) -> None:
    seen = store.look([X, X, output("b" * 64)])
    assert [o.status for o in seen.values()] == [None, None]
    assert not seen[X].done
    assert not Path(store.prefix).exists()


def test_what_is_published_is_complete_with_record_manifest_and_attempt(store: Store, path: Path) -> None:
    make(store)
    seen = store.look([X])[X]
    assert (seen.status, seen.match, seen.done, seen.holder) == (Status.SUCCESS, Match.SAME, True, None)
    assert seen.result == {"documents": 3}
    assert seen.record is not None
    assert seen.record["identity"] == X.identity
    assert seen.record["manifest"] == read_manifest(str(path)).summary()  # type: ignore[union-attr]
    assert seen.record["duration_s"] >= 0
    assert attempts.read_attempt(str(path), 1)["outcome"] == "success"
    assert not (path / LOCK).exists()


def test_while_it_is_made_it_is_running_and_has_a_holder(store: Store, path: Path) -> None:
    held = claim(store)
    seen = store.look([X])[X]
    assert (seen.status, seen.done) == (Status.RUNNING, False)
    assert seen.holder == held.lease.holder
    assert attempts.read_attempt(str(path), 1)["run_id"] == "run-1"
    held.lease.release()


def test_a_second_claim_is_refused_while_the_first_lives(store: Store) -> None:
    held = claim(store)
    with pytest.raises(LeaseHeldError) as caught:
        claim(store, 2)
    assert caught.value.holder == held.lease.holder
    held.lease.release()


def test_a_failure_is_recorded_and_frees_the_output(store: Store, path: Path) -> None:
    store.fail(claim(store), {"name": "raw/x"}, "ValueError: no", "Traceback …")
    seen = store.look([X])[X]
    assert (seen.status, seen.done, seen.holder) == (Status.FAILED, False, None)
    assert seen.record is not None
    assert seen.record["error"] == "ValueError: no"
    assert attempts.read_attempt(str(path), 1)["traceback"] == "Traceback …"
    make(store, attempt=2)
    assert store.look([X])[X].done


def test_what_is_complete_is_not_claimed_and_its_record_never_rewritten(store: Store, path: Path) -> None:
    make(store)
    before = snapshot(path)
    with pytest.raises(AlreadyDoneError, match="is complete by now"):
        claim(store, 2)
    assert snapshot(path) == before


def test_an_attempts_number_is_given_once(store: Store) -> None:
    store.fail(claim(store), {}, "e", "t")
    with pytest.raises(AlreadyDoneError, match="Attempt 1"):
        claim(store, 1)
    claim(store, 2).lease.release()


def test_a_lost_lease_publishes_nothing(store: Store, path: Path) -> None:
    held = claim(store)
    (path / LOCK).unlink()
    with pytest.raises(LeaseLostError):
        store.publish(held, {}, {})
    assert store.look([X])[X].status is Status.RUNNING
    with pytest.raises(LeaseLostError):
        store.fail(held, {}, "e", "t")


def test_a_resumable_step_goes_on_with_what_is_there(store: Store, path: Path) -> None:
    held = claim(store)
    (path / "checkpoint").write_text("1")
    (path / ".marin/shards").mkdir()
    held.lease.release()
    held = claim(store, 2, resumable=True)
    assert (path / "checkpoint").read_text() == "1"
    assert (path / ".marin/shards").exists()
    held.lease.release()


def test_what_another_step_cannot_go_on_with_is_moved_aside(store: Store, path: Path) -> None:
    held = claim(store)
    (path / "sub").mkdir()
    (path / "sub/part").write_text("half")
    (path / ".marin/shards").mkdir()
    (path / ".marin/shards/k.json").write_text("{}")
    held.lease.release()
    held = claim(store, 2)
    assert take_manifest(str(path)).files == ()
    assert not (path / ".marin/shards").exists()
    assert (path / ".marin/aside/1/sub/part").read_text() == "half"
    assert (path / ".marin/aside/1/shards/k.json").exists()
    assert (path / ".marin/attempts/1.json").exists()
    (path / "data").write_text("whole")
    store.publish(held, {}, {})
    assert read_manifest(str(path)).files == (("data", 5),)  # type: ignore[union-attr]


def test_leftovers_are_moved_aside_time_after_time(store: Store, path: Path) -> None:
    for attempt in (1, 2, 3):
        held = claim(store, attempt)
        (path / "part").write_text(str(attempt))
        held.lease.release()
    assert {p.parent.name: p.read_text() for p in (path / ".marin/aside").rglob("part")} == {"1": "1", "2": "2"}


def test_a_resumable_step_does_not_go_on_with_another_versions_leftovers(store: Store) -> None:
    first, second = (output(identity * 64, override="one/place") for identity in "ab")
    held = claim(store, what=first)
    Path(held.path, "checkpoint").write_text("1")
    held.lease.release()
    held = claim(store, 2, second, resumable=True)
    assert not Path(held.path, "checkpoint").exists()
    held.lease.release()


def test_foreign_files_are_refused_and_untouched(store: Store, path: Path) -> None:
    path.mkdir(parents=True)
    (path / "thesis.txt").write_text("mine")
    before = snapshot(Path(store.prefix))
    with pytest.raises(StoreError, match=r"holds 'thesis.txt' and no mark of an attempt of ours, so it is not touched"):
        claim(store)
    assert snapshot(Path(store.prefix)) == before
    assert store.look([X])[X].status is None


def test_a_file_in_the_outputs_place_is_refused_and_untouched(store: Store, path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    assert store.look([X])[X].status is None
    with pytest.raises((StoreError, OSError), match="x-abc123"):
        claim(store)
    assert path.read_text() == "mine"


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


def test_an_output_of_marins_is_reused_as_it_is(store: Store, path: Path) -> None:
    path.mkdir(parents=True)
    (path / "data.txt").write_text("data")
    (path / ".executor_status").write_text("SUCCESS")
    seen = store.look([X])[X]
    assert (seen.done, seen.match) == (True, Match.UNVERIFIED)
    with pytest.raises(AlreadyDoneError):
        claim(store)


def test_a_stopped_attempt_says_why(store: Store, path: Path) -> None:
    claim(store).lease.release()
    store.mark_stopped(X, 1, "by Ctrl-C")
    assert store.look([X])[X].status is Status.FAILED
    assert attempts.read_attempt(str(path), 1)["error"] == "by Ctrl-C"


def test_a_stop_that_comes_late_changes_nothing(store: Store, path: Path) -> None:
    claim(store).lease.release()
    second = claim(store, 2)
    before = snapshot(path)
    store.mark_stopped(X, 1, "late")
    store.mark_stopped(X, 2, "while it works")
    assert snapshot(path) == before
    second.lease.release()
    store.mark_stopped(output("c" * 64, override="never/begun"), 1, "never begun")


DIE = """
import os, sys
from marin_resources.output import Output
from marin_resources.storage.store import Store
prefix, when, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
replace, calls = os.replace, 0
def dying(source, target):
    global calls
    calls += 1
    if calls == number and when == "before":
        os._exit(9)
    replace(source, target)
    if calls == number:
        os._exit(9)
os.replace = dying
store = Store(prefix)
claim = store.claim(Output(name="raw/x", version="abc123", identity="a" * 64), attempt=1, resumable=False, run_id=None)
with open(claim.path + "/data.txt", "w") as file:
    file.write("data")
store.publish(claim, {"name": "raw/x"}, {"documents": 3})
os._exit(0)
"""
WRITES = ("status RUNNING", "manifest", "record", "status SUCCESS", "end of attempt")


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("number", range(1, len(WRITES) + 1), ids=WRITES)
def test_a_worker_that_dies_while_writing_leaves_nothing_half_that_is_called_complete(
    store: Store, path: Path, number: int, when: str
) -> None:
    died = subprocess.run([sys.executable, "-c", DIE, store.prefix, when, str(number)], check=False)
    assert died.returncode == 9
    seen = store.look([X])[X]
    assert seen.holder is None
    if number > 4 or (number == 4 and when == "after"):
        assert seen.done
        assert seen.result == {"documents": 3}
        assert read_manifest(str(path)) == take_manifest(str(path))
        with pytest.raises(AlreadyDoneError):
            claim(store, 2)
    else:
        assert seen.status is (None if (number, when) == (1, "before") else Status.RUNNING)
        make(store, attempt=2)
        assert json.loads((path / ".executor_info").read_text())["attempt"] == 2
        assert read_manifest(str(path)).files == (("data.txt", 4),)  # type: ignore[union-attr]
        assert store.look([X])[X].done


def test_all_writes_of_a_publication_are_hit(store: Store) -> None:
    done = subprocess.run([sys.executable, "-c", DIE, store.prefix, "before", str(len(WRITES) + 1)], check=False)
    assert done.returncode == 0


def test_a_failure_after_success_changes_nothing(store: Store, path: Path) -> None:
    held = claim(store)
    Path(held.path, "data.txt").write_text("data")
    (path / ".marin/attempts/1.json").write_text("not JSON")  # what comes after SUCCESS cannot be noted
    with pytest.raises(ValueError, match="is not JSON"):
        store.publish(held, {"name": X.name}, {"documents": 3})
    store.fail(held, {"name": X.name}, "ValueError: is not JSON", "")
    seen = store.look([X])[X]
    assert seen.done
    assert seen.result == {"documents": 3}
    assert seen.holder is None
