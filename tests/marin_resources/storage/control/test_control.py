"""Control files: compare-and-swap on every store."""

from __future__ import annotations

import os
import socket
import threading
import time
import uuid
from pathlib import Path

import object_stores
import pytest
from one_sentence import one_sentence

from marin_resources.configuration.settings import SettingError
from marin_resources.storage.control import control
from marin_resources.storage.control.disk import open_regular
from marin_resources.storage.control.protocol import ConflictError, UnavailableError
from marin_resources.types.versioned_json import ControlFileError


def test_a_file_that_is_not_there_reads_as_none(any_prefix: str) -> None:
    assert control.read(f"{any_prefix}/a/b") is None


def test_what_was_written_is_read_with_its_generation(any_prefix: str) -> None:
    path = f"{any_prefix}/a/b"
    generation = control.write(path, b"one", expected=None)
    assert control.read(path) == control.Snapshot(b"one", generation)
    second = control.write(path, b"two", expected=generation)
    assert control.read(path) == control.Snapshot(b"two", second)
    assert second != generation


def test_a_file_is_created_once(any_prefix: str) -> None:
    path = f"{any_prefix}/a/b"
    control.write(path, b"one", expected=None)
    with pytest.raises(ConflictError, match="changed by another process"):
        control.write(path, b"two", expected=None)
    assert control.read(path).data == b"one"  # type: ignore[union-attr]


def test_an_old_generation_is_not_replaced(any_prefix: str) -> None:
    path = f"{any_prefix}/a/b"
    first = control.write(path, b"one", expected=None)
    control.write(path, b"two", expected=first)
    with pytest.raises(ConflictError):
        control.write(path, b"three", expected=first)
    with pytest.raises(ConflictError):
        control.write(f"{any_prefix}/a/c", b"three", expected=first)
    assert control.read(path).data == b"two"  # type: ignore[union-attr]


def test_only_the_generation_that_was_seen_is_removed(any_prefix: str) -> None:
    path = f"{any_prefix}/a/b"
    first = control.write(path, b"one", expected=None)
    second = control.write(path, b"two", expected=first)
    with pytest.raises(ConflictError):
        control.delete(path, expected=first)
    control.delete(path, expected=second)
    assert control.read(path) is None
    with pytest.raises(ConflictError):
        control.delete(path, expected=second)


def test_of_many_that_race_one_wins(any_prefix: str) -> None:
    """Each thread increments a counter under compare-and-swap until it has done so ten times: no increment is lost."""
    path = f"{any_prefix}/counter"
    control.write(path, b"0 start", expected=None)

    def increment() -> None:
        done = 0
        while done < 10:
            seen = control.read(path)
            assert seen is not None
            number = int(seen.data.split()[0]) + 1
            try:
                control.write(path, f"{number} {uuid.uuid4()}".encode(), expected=seen.generation)
                done += 1
            except ConflictError:
                continue

    threads = [threading.Thread(target=increment) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert control.read(path).data.split()[0] == b"40"  # type: ignore[union-attr]


def test_a_store_without_conditional_writes_is_refused() -> None:
    with pytest.raises(SettingError, match="'memory://x' is on a store without conditional writes"):
        control.refuse_store_without_conditions("memory://x")


def test_an_endpoint_that_cannot_be_connected_to_is_one_sentence_within_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen: a connection is refused
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", address)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        began_s = time.monotonic()
        with pytest.raises(UnavailableError, match=rf"{address} cannot be connected to \(Connection refused\)\. Check"):
            control.require_reachable("gs://no-such-bucket/x")
        assert time.monotonic() - began_s < 10
    control.require_reachable("/a/folder")


def test_a_proxy_that_cannot_be_connected_to_is_one_sentence_within_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        proxy = f"127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.setenv("https_proxy", f"http://me:s3cret@{proxy}")
        began_s = time.monotonic()
        with pytest.raises(
            UnavailableError, match=rf"the proxy {proxy} of HTTPS_PROXY cannot be connected to"
        ) as raised:
            control.require_reachable("gs://no-such-bucket/x")
        assert "s3cret" not in str(raised.value)
        assert time.monotonic() - began_s < 10


@pytest.mark.parametrize("scheme", ["gs", "s3"])
def test_a_bucket_that_does_not_exist_is_one_sentence(scheme: str) -> None:
    _ = object_stores.gcs_prefix(), object_stores.s3_prefix()
    began_s = time.monotonic()
    assert control.read(f"{scheme}://no-such-bucket-1/x/a") is None
    with pytest.raises(UnavailableError, match=r"no-such-bucket-1/x/a.* cannot be written.* bucket .*does not exist"):
        control.write(f"{scheme}://no-such-bucket-1/x/a", b"data", expected=None)
    assert time.monotonic() - began_s < 10


def test_what_is_not_a_file_is_one_sentence_with_its_path_and_blocks_nobody(tmp_path: Path) -> None:
    path = tmp_path / ".executor_status"
    for make, phrase in ((Path.mkdir, "a folder"), (os.mkfifo, "a FIFO (a named pipe)")):
        make(path)  # type: ignore[operator]
        for act in (control.read, lambda place: control.put(place, b"x")):
            with pytest.raises(ControlFileError) as raised:
                act(str(path))
            assert (
                one_sentence(raised) == f"The control file {str(path)!r} is {phrase}, expected a file. Move it aside."
            )
        path.rename(tmp_path / phrase.split()[1])


def test_a_file_in_the_place_of_their_folder_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / ".marin").write_text("")
    assert control.read(str(tmp_path / ".marin/manifest.json")) is None
    with pytest.raises(ControlFileError) as raised:
        control.write(str(tmp_path / ".marin/manifest.json"), b"x", expected=None)
    assert one_sentence(raised).startswith(
        f"The folder '{tmp_path}/.marin' of control files cannot be created, as a file"
    )


def test_a_control_file_that_is_removed_while_it_is_opened_is_no_other_kind_of_file(tmp_path: Path) -> None:
    path, stop = tmp_path / "lock", threading.Event()

    def write_and_remove() -> None:
        while not stop.is_set():
            path.touch()
            path.unlink(missing_ok=True)

    other = threading.Thread(target=write_and_remove)
    other.start()
    try:
        for _ in range(5000):
            os.close(open_regular(str(path), os.O_RDWR | os.O_CREAT))
    finally:
        stop.set()
        other.join()
