"""Copies of the mirror: concurrent ones, failing ones, and between buckets."""

from __future__ import annotations

import fcntl
import os
import random
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Any

import fsspec
import mirrors
import pytest
from mirrors import Mirror
from object_stores import gcs_bucket_of

from marin_resources.storage.filesystems.filesystem import filesystem_of
from marin_resources.storage.mirror import MirrorError, local_path_of, mirror_filesystem
from marin_resources.storage.mirror.disk import DiskStore, note_path
from marin_resources.storage.paths import is_local
from marin_resources.storage.transfer.account import charged_to
from marin_resources.storage.transfer.budget import spent

DATA = random.Random(0).randbytes(300_000)


def read(path: str) -> bytes:
    with fsspec.open(f"mirror://{path}", "rb") as file:
        return file.read()


def test_threads_that_read_one_file_at_once_copy_it_once(mirror: Mirror) -> None:
    mirror.put("near", "raw/x", DATA)
    account = mirrors.account(mirror, len(DATA))
    found: list[bytes] = []
    with charged_to(account):
        threads = [threading.Thread(target=lambda: found.append(mirror_filesystem().cat_file("raw/x"))) for _ in "1234"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [DATA] * 4
    assert spent(account.output_path)["bytes"] == len(DATA)


def test_two_that_copy_without_a_common_account_both_read_the_right_bytes(mirror: Mirror) -> None:
    mirror.put("near", "raw/x", DATA)
    start, found = threading.Barrier(4), []

    def copy_once(number: int) -> None:
        from marin_resources.storage.mirror.choose import choose
        from marin_resources.storage.mirror.protocol import ChangedError, FileCopy
        from marin_resources.storage.mirror.stores import store_of
        from marin_resources.storage.transfer.regions import declared_regions

        regions = declared_regions()
        chosen = choose("raw/x", regions)
        start.wait()
        assert chosen is not None
        assert chosen.origin is not None
        target = regions.local.place("raw/x")
        try:
            source_store = store_of(chosen.stored.path)
            copy = FileCopy(source=chosen.stored, source_store=source_store, target=target, origin=chosen.origin)
            store_of(target).write_copy(copy)
            found.append(number)
        except (FileExistsError, ChangedError):
            pass

    threads = [threading.Thread(target=copy_once, args=[n]) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 1
    assert mirror.get("here", "raw/x") == DATA
    assert list(mirror.files("here")) == ["raw/x"]


def test_a_copy_that_fails_leaves_nothing_behind_and_costs_nothing(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copying fails with an error of the network."""
    mirror.put("near", "raw/x", DATA)
    account = mirrors.account(mirror, 10**6)

    def changed(*args: Any, **kwargs: Any) -> None:
        raise OSError("the network is gone")

    store = "disk.DiskStore.write_copy" if is_local(mirror.here) else "gcs.GcsStore.write_copy"
    with charged_to(account):
        with monkeypatch.context() as broken:
            broken.setattr(f"marin_resources.storage.mirror.{store}", changed)
            with pytest.raises(OSError, match="the network is gone"):
                mirror_filesystem().cat_file("raw/x")
            with pytest.raises(OSError, match="the network is gone"):
                local_path_of("mirror://raw")
        assert spent(account.output_path) == {"bytes": 0, "dollars": 0, "transfers": []}
        assert "raw/x" not in mirror.files("here")
        assert mirror_filesystem().cat_file("raw/x") == DATA


def test_a_kill_between_note_and_copy_leaves_no_copy_without_its_note(folders: Mirror) -> None:
    folders.put("near", "raw/x", b"one")
    read("raw/x")
    copied = DiskStore().find(f"{folders.here}/raw/x")
    assert copied is not None
    assert copied.origin is not None
    os.remove(f"{folders.here}/raw/x")  # as if killed before the copy appeared: the note alone is there
    assert os.path.exists(note_path(f"{folders.here}/raw/x"))
    assert mirror_filesystem().ls("raw", detail=False) == ["raw/x"]
    folders.put("near", "raw/x", b"two")
    assert read("raw/x") == b"two"


HALF_WRITTEN = """
import sys
from marin_resources.storage.filesystems.disk import temporary_beside
with temporary_beside(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    print(file.name, flush=True)
    sys.stdin.read()
"""


def test_what_a_killed_copy_has_left_is_removed_by_the_next_one_in_its_folder(folders: Mirror) -> None:
    folders.put("near", "raw/x", b"one")
    copies = [
        subprocess.Popen(
            [sys.executable, "-c", HALF_WRITTEN, f"{folders.here}/raw/{name}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("killed", "running")
    ]
    left = [str(copy.stdout.readline()).strip() for copy in copies if copy.stdout is not None]
    copies[0].kill()
    copies[0].communicate()
    assert [os.path.exists(path) for path in left] == [True, True]
    assert read("raw/x") == b"one"
    assert [os.path.exists(path) for path in left] == [False, True]
    copies[1].communicate()
    assert folders.files("here").keys() == {"raw/x"}


def test_a_copy_begins_while_another_one_looks_at_its_new_temporary(
    folders: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders.put("near", "raw/x", b"one")
    lock = fcntl.flock
    looked_at: list[str] = []

    def flock_after_a_look(file: IO[bytes], operation: int) -> None:
        if not looked_at:
            looked_at.append(file.name)
            other = os.open(file.name, os.O_RDWR)
            lock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            threading.Timer(0.1, os.close, [other]).start()
        lock(file, operation)

    monkeypatch.setattr("marin_resources.storage.filesystems.disk.fcntl.flock", flock_after_a_look)
    assert read("raw/x") == b"one"
    assert looked_at


def test_what_a_killed_copy_has_left_in_a_bucket_is_used_and_removed_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = mirrors.declare(mirrors.fresh("upward", tmp_path), monkeypatch)
    mirror.put("near", "raw/x", DATA)
    with monkeypatch.context() as killed:
        killed.setattr("marin_resources.storage.mirror.gcs._rewrite", _die)
        killed.setattr("marin_resources.storage.mirror.gcs._remove", lambda path, generation=None: None)
        with pytest.raises(KeyboardInterrupt):
            read("raw/x")
    assert sum(mirror.files("here").values()) == len(DATA)
    assert read("raw/x") == DATA
    assert mirror.files("here") == {"raw/x": len(DATA)}


def _die(copy: object) -> None:
    raise KeyboardInterrupt


def test_a_note_of_a_newer_format_is_refused(folders: Mirror) -> None:
    folders.put("here", "raw/x", b"one")
    with open(note_path(f"{folders.here}/raw/x"), "w") as file:
        file.write('{"format_version": 2}')
    with pytest.raises(MirrorError, match=r"\.x\.mirror' has format version 2 and this software knows up to 1"):
        read("raw/x")


@pytest.fixture
def buckets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mirror:
    return mirrors.declare(mirrors.fresh("gcs", tmp_path), monkeypatch)


def test_between_buckets_the_store_itself_copies_and_no_body_comes_here(buckets: Mirror) -> None:
    for number in range(3):
        buckets.put("near", f"raw/x/{number}", DATA)
    local_path_of("mirror://raw/x/0")
    mirror_filesystem().get_file("raw/x/1", os.devnull)
    local_path_of("mirror://raw/x")
    asked = gcs_bucket_of(buckets.near).requests()
    assert len([line for line in asked if "/rewriteTo/" in line]) == 3
    assert not [line for line in asked if "alt=media" in line]
    assert not [line for line in gcs_bucket_of(buckets.here).requests() if "/upload/" in line]


def test_one_file_is_found_without_a_listing(buckets: Mirror) -> None:
    buckets.put("near", "raw/x", DATA)
    buckets.put("near", "raw/y", DATA)
    for _ in range(2):
        assert read("raw/x") == DATA
        assert local_path_of("mirror://raw/y") == f"{buckets.here}/raw/y"
    assert not gcs_bucket_of(buckets.far).listings()


def test_a_copy_keeps_the_metadata_of_its_object(buckets: Mirror) -> None:
    fs, place = filesystem_of(f"{buckets.near}/raw/x.html")
    fs.pipe_file(place, b"<p>", content_type="text/html")
    fs.setxattrs(place, project="fineweb")
    local_path_of("mirror://raw/x.html")
    info = filesystem_of(buckets.here)[0].info(f"{buckets.here}/raw/x.html")
    assert (info["contentType"], info["metadata"]["project"]) == ("text/html", "fineweb")


@pytest.mark.parametrize("after", [False, True], ids=["before its effect", "after its effect"])
def test_a_copy_whose_response_is_lost_is_recognised_as_our_own_and_charged_once(buckets: Mirror, after: bool) -> None:
    buckets.put("near", "raw/x", DATA)
    gcs_bucket_of(buckets.near).fail(method="POST", match="rewriteTo", status=503, after=after)
    account = mirrors.account(buckets, 10**6)
    with charged_to(account):
        assert mirror_filesystem().cat_file("raw/x") == DATA
    assert gcs_bucket_of(buckets.near).strikes_left() == 0
    assert spent(account.output_path)["bytes"] == len(DATA)


def test_a_copy_is_not_trusted_while_its_source_cannot_be_read(buckets: Mirror) -> None:
    buckets.put("near", "raw/x", DATA)
    read("raw/x")
    gcs_bucket_of(buckets.near).fail(status=403, times=None)
    with pytest.raises(OSError, match="Forbidden"):
        read("raw/x")
    with pytest.raises(OSError, match="Forbidden"):
        mirror_filesystem().exists("raw/nowhere")


def test_a_damaged_copy_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between a bucket and a disk; elsewhere the store itself compares checksums."""
    from marin_resources.storage.mirror.gcs import GcsStore

    mirror = mirrors.declare(mirrors.fresh("mixed", tmp_path), monkeypatch)
    mirror.put("near", "raw/x", DATA)
    sound = GcsStore.read
    with monkeypatch.context() as broken:
        broken.setattr(GcsStore, "read", lambda *args: b"\0" + sound(*args)[1:])
        with pytest.raises(MirrorError, match=r"has .* and was removed"):
            read("raw/x")
    assert mirror.files("here") == {}
    assert read("raw/x") == DATA
