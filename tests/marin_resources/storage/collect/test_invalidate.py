"""A complete output is withdrawn to be computed again; killed anywhere, it is whole or computed anew."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from one_output import X, claim, make, read, stale_lease, write

from marin_resources.storage import fault_points
from marin_resources.storage.collect.errors import KeptError
from marin_resources.storage.collect.invalidate import invalidate_output
from marin_resources.storage.completion.markers import list_marks
from marin_resources.storage.files import exists, names_in
from marin_resources.storage.output import attempts
from marin_resources.storage.output.store import AlreadyDoneError, Store
from marin_resources.storage.paths import join
from marin_resources.types.output import Output, Status

WITHDRAW = """
import sys
from marin_resources.types.output import Output
from marin_resources.storage.collect.invalidate import invalidate_output
from marin_resources.storage.output.store import Store
output = Output(name="raw/x", version="abc123", identity="a" * 64)
invalidate_output(Store(sys.argv[1]), output, by="tester", why="forced")
"""


def withdraw(store: Store, what: Output = X) -> None:
    invalidate_output(store, what, by="tester", why="forced")


@pytest.mark.parametrize("resumable", [False, True])
@pytest.mark.parametrize("what", [X, X.at("2026-01")], ids=["whole", "partition"])
def test_it_is_computed_again_into_an_empty_folder_and_the_old_one_is_aside(
    disk_or_gcs_prefix: str, what: Output, resumable: bool
) -> None:
    store = Store(disk_or_gcs_prefix)
    path = make(store, what)
    withdraw(store, what)
    seen = store.look([what])[what]
    assert (seen.done, seen.status) == (False, None)
    assert list_marks(store.prefix) == []
    assert store.done_partitions(X) == {}
    held = claim(store, attempts.latest_attempt(path) + 1, what, resumable=resumable)
    assert not exists(join(path, "data.txt"))
    write(path, "data.txt", "new")
    store.publish(held, {"name": what.name}, {})
    assert store.look([what])[what].done
    assert read(path, "data.txt") == "new"
    [aside] = names_in(join(path, ".marin/aside"))
    assert read(path, f".marin/aside/{aside}/data.txt") == "data"
    assert len(names_in(join(store.prefix, ".marin/history", what.relative()))) == 1


def test_what_is_not_complete_or_is_computed_is_kept(disk_prefix: str) -> None:
    store = Store(disk_prefix)
    with pytest.raises(KeptError, match="it is not complete any more"):
        withdraw(store)
    held = claim(store)
    with pytest.raises(KeptError, match="its lease is held by process"):
        withdraw(store)
    held.lease.release()


def test_what_an_attempt_at_work_reads_is_kept(disk_or_gcs_prefix: str) -> None:
    store = Store(disk_or_gcs_prefix)
    path = make(store)
    reader = Output(name="raw/y", version="abc124", identity="b" * 64)
    held = store.claim(reader, attempt=1, resumable=False, run_id=None, reads=[join(path, "data.txt")])
    with pytest.raises(KeptError, match=r"attempt 1 at '.*raw/y-abc124' reads it, process"):
        withdraw(store)
    assert store.look([X])[X].status is Status.SUCCESS
    store.publish(held, {"name": reader.name}, {})
    withdraw(store)
    assert not store.look([X])[X].done


def test_a_writer_that_was_late_cannot_publish_over_it(disk_prefix: str) -> None:
    store = Store(disk_prefix)
    make(store)
    withdraw(store)
    with pytest.raises(AlreadyDoneError):
        claim(store, attempt=2)


@pytest.mark.parametrize("resumable", [False, True])
@pytest.mark.parametrize("point", fault_points.OF_A_FORCED_RUN)
def test_killed_anywhere_the_output_is_whole_or_computed_anew(disk_prefix: str, point: str, resumable: bool) -> None:
    store = Store(disk_prefix)
    path = make(store)
    env = {**os.environ, fault_points.VARIABLE: point, "MARIN_LEASE_TTL_S": "1"}
    assert subprocess.run([sys.executable, "-c", WITHDRAW, disk_prefix], check=False, env=env).returncode == -9
    attempt = attempts.latest_attempt(path) + 2
    if point == "commit taken back":
        held = claim(store, attempt, resumable=resumable, stale=stale_lease(path))
        assert not exists(join(path, "data.txt"))
        write(path, "data.txt", "data")
        store.publish(held, {"name": X.name}, {})
    else:
        with pytest.raises(AlreadyDoneError):
            claim(store, attempt, resumable=resumable, stale=stale_lease(path))
    assert store.look([X])[X].status is Status.SUCCESS
    assert read(path, "data.txt") == "data"
