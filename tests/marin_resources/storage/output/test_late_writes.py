"""A writer that was taken for dead writes once more: what it replaced is never published as another attempt's."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from marin_resources.storage.files import read_bytes, write_bytes
from marin_resources.storage.filesystems.filesystem import filesystem_of
from marin_resources.storage.lease import lease
from marin_resources.storage.lease.protocol import LeaseLostError
from marin_resources.storage.output.late_writes import LateWriteError
from marin_resources.storage.output.store import Claim, Store
from marin_resources.storage.paths import join
from marin_resources.storage.upload.writer import VARIABLE, writing_as
from marin_resources.types.output import Output

X = Output(name="raw/x", version="abc123", identity="a" * 64)


@pytest.fixture(params=["gcs", "s3"])
def store(request: pytest.FixtureRequest) -> Store:
    import object_stores

    fresh = {"gcs": object_stores.gcs_prefix, "s3": object_stores.s3_prefix}
    return Store(fresh[request.param]())


def claim(store: Store, attempt: int, *, resumable: bool = False) -> Claim:
    """Claim the output; an earlier claim of it is taken for dead."""
    holder = lease.holder_of(store.locate(X))
    stale = holder.generation if holder else None
    return store.claim(X, attempt=attempt, resumable=resumable, run_id=None, stale_lease=stale)


def write(by: Claim, name: str, data: bytes = b"data") -> None:
    with writing_as(by.writer):
        write_bytes(join(by.path, name), data)


def test_a_file_that_a_stale_attempt_has_replaced_is_not_published(store: Store) -> None:
    stale, newer = claim(store, 1), claim(store, 2)
    for number in range(5):
        write(newer, f"part-{number}", b"newer")
    for number in range(4):
        write(stale, f"part-{number}", b"stale")
    with pytest.raises(LateWriteError) as caught:
        store.publish(newer, {}, {})
    assert str(caught.value) == (
        f"attempt 1 at {newer.path!r}, which was taken for dead, wrote 'part-0', 'part-1', 'part-2' and 1 more after "
        "attempt 2 had begun, so nothing is published"
    )
    assert store.fail(newer, {}, str(caught.value), "")
    last = claim(store, 3)
    for number in range(5):
        write(last, f"part-{number}", b"last!")
    store.publish(last, {}, {})
    assert store.look([X])[X].done
    assert {read_bytes(join(last.path, f"part-{number}")) for number in range(5)} == {b"last!"}


def test_what_the_newer_attempt_writes_again_is_its_own(store: Store) -> None:
    stale, newer = claim(store, 1), claim(store, 2)
    write(stale, "part-0", b"stale")
    write(newer, "part-0", b"newer")
    store.publish(newer, {}, {})
    assert store.look([X])[X].done


def test_a_resumed_attempt_publishes_what_it_found_and_nothing_that_came_later(store: Store) -> None:
    first = claim(store, 1)
    write(first, "found")
    second = claim(store, 2, resumable=True)
    write(first, "came-later")
    with pytest.raises(LateWriteError, match="wrote 'came-later' after attempt 2"):
        store.publish(second, {}, {})
    assert store.fail(second, {}, "late", "")
    third = claim(store, 3, resumable=True)
    store.publish(third, {}, {})
    seen = store.look([X])[X]
    assert seen.done
    assert seen.record.manifest.files == 2


def test_a_file_copied_from_another_output_is_no_late_write(store: Store) -> None:
    other = store.claim(
        Output(name="raw/y", version="abc123", identity="b" * 64), attempt=1, resumable=False, run_id=None
    )
    write(other, "data")
    claim(store, 1)
    newer = claim(store, 2)
    (fs, source), (_, aim) = filesystem_of(join(other.path, "data")), filesystem_of(join(newer.path, "data"))
    fs.cp_file(source, aim)
    store.publish(newer, {}, {})
    assert store.look([X])[X].done


def test_an_upload_without_a_lease_fails_before_its_first_byte(store: Store) -> None:
    stale = claim(store, 1)
    path = join(stale.path, "data")

    def lost() -> None:
        raise LeaseLostError("The lease was lost.")

    with writing_as(stale.writer, lost), pytest.raises(LeaseLostError):
        write_bytes(path, b"late")
    with pytest.raises(FileNotFoundError):
        read_bytes(path)


def test_children_of_an_attempt_write_as_the_attempt(gcs_prefix: str) -> None:
    store = Store(gcs_prefix)
    stale, newer = claim(store, 1), claim(store, 2)
    code = "import sys; from marin_resources.storage.files import write_bytes; write_bytes(sys.argv[1], b'late')"
    with writing_as(stale.writer):
        assert VARIABLE in os.environ
        subprocess.run([sys.executable, "-c", code, join(stale.path, "data")], check=True)
    with pytest.raises(LateWriteError):
        store.publish(newer, {}, {})
    assert VARIABLE not in os.environ
