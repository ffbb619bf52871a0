"""Files on each store: written whole or not at all, created once, moved and removed with everything below."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from marin_resources.storage.files import (
    exists,
    list_files,
    move,
    open_atomic,
    read_bytes,
    read_from,
    read_json,
    remove,
    remove_folder,
    size_of,
    sizes_below,
    stored_files,
    write_bytes,
    write_json,
)
from marin_resources.storage.filesystems.filesystem import filesystem_of
from marin_resources.storage.paths import StoreKind, join, kind_of

ODD_NAMES = [
    "a b=c,d.txt",
    "ü/日本 語.txt",
    "100%25+.txt",
    "a#b?.txt",
    "[1]*/{2}.txt",
    "std::vector.txt",
    "a::b/c.txt",
    "a#12345",
    "~a/b~",
]
LARGE = 33 * 1024**2
"""Larger than a chunk of a resumable upload, and than a part of a multipart upload."""


@pytest.mark.parametrize("size_bytes", [0, 5, 9 * 1024**2, LARGE])
def test_what_is_written_is_there_byte_for_byte_and_can_be_replaced(any_prefix: str, size_bytes: int) -> None:
    path, data = join(any_prefix, "deep/file.bin"), os.urandom(size_bytes)
    write_bytes(path, b"old")
    with open_atomic(path) as file:
        file.write(data)
        assert read_bytes(path) == b"old"
    assert read_bytes(path) == data


def write_and_fail(path: str, size_bytes: int) -> None:
    with open_atomic(path) as file:
        file.write(bytes(size_bytes))
        raise ZeroDivisionError


@pytest.mark.parametrize("size_bytes", [5, LARGE])
def test_a_block_that_raises_leaves_nothing_and_the_old_file_as_it_was(any_prefix: str, size_bytes: int) -> None:
    for path in (join(any_prefix, "new"), join(any_prefix, "old")):
        if path.endswith("old"):
            write_bytes(path, b"old")
        with pytest.raises(ZeroDivisionError):
            write_and_fail(path, size_bytes)
    assert sizes_below(any_prefix) == {"old": 3}


def test_threads_write_at_once_and_those_that_fail_hurt_no_other(any_prefix: str) -> None:
    together = threading.Barrier(8, timeout=60)

    def write(number: int) -> None:
        with open_atomic(join(any_prefix, str(number))) as file:
            file.write(b"%d" % number)
            together.wait()
            if number % 2:
                raise ZeroDivisionError

    with ThreadPoolExecutor(8) as pool:
        done = [pool.submit(write, number) for number in range(8)]
    assert [future.exception() is None for future in done] == [True, False] * 4
    assert {file.name: read_bytes(file.path) for file in stored_files(any_prefix)} == {
        str(n): b"%d" % n for n in range(0, 8, 2)
    }


@pytest.mark.parametrize("size_bytes", [5, LARGE])
def test_an_existing_file_is_not_overwritten_by_a_creation(any_prefix: str, size_bytes: int) -> None:
    path, data = join(any_prefix, "shard"), os.urandom(size_bytes)
    write_bytes(path, data, replace=False)
    with pytest.raises(FileExistsError, match=r"'.*shard' already exists with other bytes"):
        write_bytes(path, data[:-1] + bytes([data[-1] ^ 1]), replace=False)
    assert read_bytes(path) == data
    assert list(sizes_below(any_prefix)) == ["shard"]


def test_the_same_bytes_may_be_created_again(any_prefix: str) -> None:
    for _ in range(2):
        write_json(join(any_prefix, "a.json"), {"n": 1}, replace=False)
    assert read_json(join(any_prefix, "a.json")) == {"n": 1}


def test_of_writers_that_create_one_file_at_once_one_succeeds(any_prefix: str) -> None:
    together = threading.Barrier(8, timeout=60)

    def create(number: int) -> int:
        with open_atomic(join(any_prefix, "one"), replace=False) as file:
            file.write(b"%d" % number)
            together.wait()
        return number

    with ThreadPoolExecutor(8) as pool:
        done = [pool.submit(create, number) for number in range(8)]
    [winner] = [future.result() for future in done if future.exception() is None]
    assert {type(future.exception()) for future in done} == {type(None), FileExistsError}
    assert read_bytes(join(any_prefix, "one")) == b"%d" % winner


def test_names_with_odd_letters_are_found_as_they_were_given(any_prefix: str) -> None:
    folder = join(any_prefix, "x=1, y [2]")
    for name in ODD_NAMES:
        write_bytes(join(folder, name), name.encode())
        assert exists(join(folder, name))
        assert read_bytes(join(folder, name)) == name.encode()
    assert list_files(folder) == sorted(join(folder, name) for name in ODD_NAMES)
    assert sizes_below(folder) == {name: len(name.encode()) for name in ODD_NAMES}
    files = stored_files(folder)
    assert [(file.name, file.path) for file in files] == [(n, join(folder, n)) for n in sorted(ODD_NAMES)]
    move(folder, join(any_prefix, ".aside/1"))
    assert sizes_below(join(any_prefix, ".aside/1")) == {name: len(name.encode()) for name in ODD_NAMES}
    remove(join(any_prefix, ".aside/1", ODD_NAMES[4]))
    assert set(sizes_below(join(any_prefix, ".aside/1"))) == {*ODD_NAMES} - {ODD_NAMES[4]}
    remove_folder(join(any_prefix, ".aside/1"))
    assert sizes_below(any_prefix) == {}


def test_a_stamp_changes_with_the_file_and_only_then(any_prefix: str) -> None:
    path = join(any_prefix, "a")
    write_bytes(path, b"one")
    [first], [same] = stored_files(path), stored_files(any_prefix)
    assert (first.stamp, first.size_bytes, first.name) == (same.stamp, 3, "a")
    write_bytes(path, b"two")
    [second] = stored_files(any_prefix)
    assert second.stamp != first.stamp


def test_control_files_and_marks_of_folders_are_no_data(any_prefix: str) -> None:
    write_bytes(join(any_prefix, "a/b"), b"")
    write_bytes(join(any_prefix, ".marin/c"), b"")
    make_mark(join(any_prefix, "a/marked"))
    assert list_files(any_prefix) == [join(any_prefix, "a/b")]
    assert [file.name for file in stored_files(any_prefix)] == ["a/b"]
    assert sorted(sizes_below(any_prefix)) == [".marin/c", "a/b"]
    move(join(any_prefix, "a"), join(any_prefix, "moved"))
    assert list(sizes_below(join(any_prefix, "moved"))) == ["b"]
    assert not exists(join(any_prefix, "a"))


def make_mark(path: str) -> None:
    """An empty object with which the web pages of stores represent a folder; on a disk, the folder."""
    fs, place = filesystem_of(path)
    bucket, _, key = place.partition("/")
    if kind_of(path) is StoreKind.GCS:
        url = fs.base.replace("/storage/v1/", "/upload/storage/v1/") + f"b/{bucket}/o"
        fs.call("POST", url, uploadType="media", name=f"{key}/", data=b"")
    elif kind_of(path) is StoreKind.S3:
        fs.call_s3("put_object", Bucket=bucket, Key=f"{key}/", Body=b"")
    else:
        fs.makedirs(place)


@pytest.mark.long
def test_a_folder_of_more_files_than_a_page_of_a_listing_is_removed(gcs_prefix: str) -> None:
    names = [f"{i % 7}/{i}" for i in range(1100)]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda name: write_bytes(join(gcs_prefix, "many", name), b"x"), names))
    write_bytes(join(gcs_prefix, "many-others"), b"x")
    assert len(list_files(join(gcs_prefix, "many"))) == 1100
    remove_folder(join(gcs_prefix, "many"))
    assert sizes_below(gcs_prefix) == {"many-others": 1}


def test_a_folder_that_does_not_exist_cannot_be_listed_moved_or_removed(any_prefix: str) -> None:
    write_bytes(join(any_prefix, "ab"), b"")
    for look in (list_files, stored_files, remove_folder, lambda path: move(path, join(any_prefix, "b"))):
        with pytest.raises(FileNotFoundError):
            look(join(any_prefix, "a"))
    remove(join(any_prefix, "a"))
    assert list(sizes_below(any_prefix)) == ["ab"]


def test_a_file_is_moved_and_a_folder_never_onto_another(any_prefix: str, tmp_path: Path) -> None:
    write_bytes(join(any_prefix, "a"), b"1")
    move(join(any_prefix, "a"), join(any_prefix, "deep/er/b"))
    assert sizes_below(any_prefix) == {"deep/er/b": 1}
    for name in ("one/x", "two/x"):
        write_bytes(str(tmp_path / name), b"")
    with pytest.raises(FileExistsError, match=r"one' cannot be moved to .*two', which already exists"):
        move(str(tmp_path / "one"), str(tmp_path / "two"))


def test_a_file_is_read_from_an_offset(any_prefix: str) -> None:
    path = join(any_prefix, "a.log")
    write_bytes(path, b"one\ntwo\n")
    assert size_of(path) == 8
    assert [read_from(path, start) for start in (0, 4, 8, 9)] == [b"one\ntwo\n", b"two\n", b"", b""]
    with pytest.raises(FileNotFoundError):
        read_from(join(any_prefix, "other.log"), 0)
