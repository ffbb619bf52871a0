"""An output is collected, comes back, or is removed for good; killed anywhere, the next process ends it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import timedelta
from typing import Any

import one_output
import pytest
from one_output import X, claim, make, output, read, stale_lease, write

from marin_resources.storage import fault_points
from marin_resources.storage.collect.errors import KeptError
from marin_resources.storage.collect.purge import purge
from marin_resources.storage.collect.withdraw import Terms, withdraw
from marin_resources.storage.completion.markers import list_marks
from marin_resources.storage.files import exists, names_below, read_json, remove, sizes_below
from marin_resources.storage.output import attempts, status
from marin_resources.storage.output.notes.collection import FOLDER, list_collected
from marin_resources.storage.output.notes.history import FOLDER as HISTORY
from marin_resources.storage.output.restore import restore_output
from marin_resources.storage.output.store import AlreadyDoneError, Store
from marin_resources.storage.paths import is_local, join
from marin_resources.types.output import Output, Status

TERMS = Terms(by="tester", grace=timedelta(0), why="a test")
COLLECT = """
import sys
from datetime import timedelta
from typing import Any
from marin_resources.types.output import Output
from marin_resources.storage.collect.purge import purge
from marin_resources.storage.collect.withdraw import Terms, withdraw
from marin_resources.storage.output.notes.collection import list_collected
from marin_resources.storage.output.store import Store
store = Store(sys.argv[1])
output = Output(name="raw/x", version="abc123", identity="a" * 64)
if sys.argv[2] == "withdraw":
    withdraw(store, output, Terms(by="tester", grace=timedelta(0)))
else:
    purge(store, list_collected(store.prefix)[0])
"""


def die_in(verb: str, store: Store, point: str) -> None:
    env = {**os.environ, fault_points.VARIABLE: point, "MARIN_LEASE_TTL_S": "1"}
    ended = subprocess.run([sys.executable, "-c", COLLECT, store.prefix, verb], check=False, env=env)
    assert ended.returncode == -9, f"{point!r} was not reached"


def made(prefix: str, what: Output = X) -> Store:
    store = Store(prefix)
    make(store, what)
    return store


@pytest.mark.parametrize("what", [X, X.at("2026-01")], ids=["whole", "partition"])
def test_a_collected_output_is_incomplete_until_it_is_brought_back(any_prefix: str, what: Output) -> None:
    store = made(any_prefix, what)
    before = store.look([what])[what]
    note = withdraw(store, what, TERMS)
    seen = store.look([what])[what]
    assert (seen.done, seen.status) == (False, None)
    assert read(before.path, "data.txt") == "data"
    assert list_collected(store.prefix) == [note]
    assert (note.by, note.why, note.bytes) == ("tester", "a test", 4)
    assert list_marks(store.prefix) == []
    assert store.done_partitions(output()) == {}
    assert restore_output(store, before.path)
    assert store.look([what])[what] == before
    assert list_collected(store.prefix) == []
    assert len(list_marks(store.prefix)) + len(store.done_partitions(output())) == 1


def test_a_claim_of_a_collected_output_completes_it_and_computes_nothing(disk_or_gcs_prefix: str) -> None:
    store = made(disk_or_gcs_prefix)
    withdraw(store, X, TERMS)
    with pytest.raises(AlreadyDoneError):
        claim(store, attempt=2)
    assert store.look([X])[X].done
    assert attempts.latest_attempt(store.locate(X)) == 1


def test_what_is_computed_now_is_not_collected(any_prefix: str) -> None:
    store = Store(any_prefix)
    held = claim(store)
    with pytest.raises(KeptError, match="not complete"):
        withdraw(store, X, TERMS)
    store.publish(held, {"name": X.name}, {})


def test_a_purge_removes_everything_but_the_record(any_prefix: str) -> None:
    store = made(any_prefix)
    path, record = store.locate(X), store.look([X])[X].record.to_dict()
    write(path, "shards/a/b.txt", "more")
    note = withdraw(store, X, TERMS)
    assert purge(store, note) > 8
    assert sizes_below(path) == {}
    assert not exists(path)
    assert list_collected(store.prefix) == []
    [kept] = names_below(join(store.prefix, HISTORY))
    assert kept.startswith("raw/x-abc123/")
    assert read_json(join(store.prefix, HISTORY, kept)) == record
    assert not restore_output(store, path)
    make(store)  # computed anew, from attempt 1
    assert store.look([X])[X].done


def test_what_is_complete_again_is_not_purged(disk_or_gcs_prefix: str) -> None:
    store = made(disk_or_gcs_prefix)
    note = withdraw(store, X, TERMS)
    status.write_status(store.locate(X), Status.SUCCESS)
    with pytest.raises(KeptError, match="complete again"):
        purge(store, note)
    assert read(store.locate(X), "data.txt") == "data"
    assert list_collected(store.prefix) == []


def test_an_output_with_another_one_inside_is_not_purged(disk_or_gcs_prefix: str) -> None:
    store = made(disk_or_gcs_prefix)
    path = store.locate(X)
    write(path, "kept/.executor_status", "SUCCESS")
    note = withdraw(store, X, TERMS)
    with pytest.raises(KeptError, match="is inside"):
        purge(store, note)
    assert read(path, "data.txt") == "data"
    remove(join(path, "kept/.executor_status"))
    assert restore_output(store, path)


def on_stores(points: tuple[str, ...], quick: tuple[str, ...]) -> list[Any]:
    """Each point on a disk and on GCS; those of `quick` on a disk in the quick tests."""
    every = [(store, point) for store in ("disk", "gcs") for point in points]
    is_quick = [store == "disk" and point in quick for store, point in every]
    marks = [() if each else (pytest.mark.long,) for each in is_quick]
    return [
        pytest.param(f"{store}_prefix", point, id=f"{store}, {point}", marks=mark)
        for (store, point), mark in zip(every, marks, strict=True)
    ]


@pytest.mark.parametrize(
    ("store_of", "point"), on_stores(fault_points.OF_A_COLLECTION, ("collection noted", "status removed"))
)
def test_killed_while_it_collects_it_has_lost_nothing(
    request: pytest.FixtureRequest, store_of: str, point: str
) -> None:
    store = made(request.getfixturevalue(store_of))
    die_in("withdraw", store, point)
    done = store.look([X])[X].done
    assert done == (point != "status removed")
    if done:
        withdraw(store, X, TERMS)
    assert restore_output(store, store.locate(X))
    assert store.look([X])[X].done
    assert list_collected(store.prefix) == []


@pytest.mark.parametrize(
    ("store_of", "point"), on_stores(fault_points.OF_A_PURGE, ("data half removed", "commit removed"))
)
def test_a_purge_that_was_killed_is_ended_by_the_next(
    request: pytest.FixtureRequest, store_of: str, point: str
) -> None:
    store = made(request.getfixturevalue(store_of))
    path = store.locate(X)
    withdraw(store, X, TERMS)
    die_in("purge", store, point)
    [note] = list_collected(store.prefix)
    purge(store, note)
    assert not exists(path)
    assert list_collected(store.prefix) == []


@pytest.mark.parametrize("resumable", [pytest.param(False, marks=pytest.mark.long), True])
@pytest.mark.parametrize("point", fault_points.OF_A_PURGE)
def test_after_a_purge_that_was_killed_a_run_has_the_whole_output(
    disk_prefix: str, point: str, resumable: bool
) -> None:
    store = made(disk_prefix)
    path = store.locate(X)
    withdraw(store, X, TERMS)
    die_in("purge", store, point)
    back = restore_output(store, path)
    assert back == (point == "purge noted")
    if not back:
        held = claim(store, attempts.latest_attempt(path) + 1, resumable=resumable, stale=stale_lease(path))
        resumed = exists(join(path, "data.txt"))
        assert resumed == (resumable and point == "purge claimed"), "it goes on with half an output"
        write(path, "data.txt", "data")
        store.publish(held, {"name": X.name}, {"documents": 3})
    for note in list_collected(store.prefix):
        with pytest.raises(KeptError):
            purge(store, note)
    assert store.look([X])[X].done
    assert read(path, "data.txt") == "data"
    assert list_collected(store.prefix) == []


def test_data_in_another_region_are_collected_and_removed_there(disk_or_gcs_prefix: str) -> None:
    home, region = join(disk_or_gcs_prefix, "home"), join(disk_or_gcs_prefix, "region")
    store = Store(home, [region])
    held = store.claim(X, attempt=1, resumable=False, run_id=None, data_prefix=region)
    write(held.data_path, "data.txt", "data")
    store.publish(held, {"name": X.name}, {})
    note = withdraw(store, X, TERMS)
    assert not store.look([X])[X].done
    assert restore_output(store, held.path)
    assert Store(region).look([X])[X].done
    note = withdraw(store, X, TERMS)
    purge(store, note)
    assert sizes_below(held.data_path) == {}
    assert sizes_below(held.path) == {}


def test_an_output_of_marin_comes_back_as_it_was(disk_or_gcs_prefix: str) -> None:
    """It has no commit object, and its record no format."""
    store = Store(disk_or_gcs_prefix)
    path = store.locate(X)
    record = {"name": "raw/x", "config": {}, "version": {"name": "raw/x", "config": {}, "dependencies": []}}
    theirs = Output(name="raw/x", version="abc123", identity="")
    write(path, ".executor_info", json.dumps(record))
    write(path, ".executor_status", "SUCCESS")
    write(path, "data.txt", "data")
    note = withdraw(store, one_output.output(_identity(record)), TERMS)
    assert status.read_status(path) is None
    assert restore_output(store, path)
    assert json.loads(read(path, ".executor_info")) == record
    note = withdraw(store, one_output.output(_identity(record)), TERMS)
    purge(store, note)
    assert not exists(path)
    assert theirs.name == note.name


def _identity(record: dict[str, object]) -> str:
    from marin_resources.types.output import identity_of

    return identity_of(record["version"])  # type: ignore[arg-type]


def test_a_damaged_note_is_one_sentence(disk_prefix: str) -> None:
    store = made(disk_prefix)
    withdraw(store, X, TERMS)
    write(store.prefix, f"{FOLDER}/raw/x-abc123.json", "{")
    with pytest.raises(ValueError, match="is not JSON"):
        list_collected(store.prefix)
    assert is_local(store.prefix)


def test_what_was_restored_and_collected_again_is_not_purged_by_an_earlier_look(disk_or_gcs_prefix: str) -> None:
    """A reader may have begun in between, which that look has not seen."""
    store = made(disk_or_gcs_prefix)
    looked = withdraw(store, X, TERMS)
    assert restore_output(store, store.locate(X))
    again = withdraw(store, X, TERMS)
    with pytest.raises(KeptError, match="it was restored and collected again"):
        purge(store, looked)
    assert read(store.locate(X), "data.txt") == "data"
    assert purge(store, again) > 0
