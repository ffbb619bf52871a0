"""Checksums are computed once, in a thread that outlives a tick."""

from __future__ import annotations

import hashlib
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from marin_resources.storage.files import open_to_read, stored_file
from marin_sensors.deliveries.checksums import Checksums, Wanted


def wanted(path: Path, algorithm: str = "sha256") -> Wanted:
    found = stored_file(str(path))
    return Wanted(path=str(path), size_bytes=found.size_bytes, stamp=found.stamp, algorithm=algorithm)


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"{number}.gz" for number in range(300)]
    for path in paths:
        path.write_bytes(path.name.encode())
    return paths


def test_each_file_is_read_once_while_it_stays_as_it_is(files: list[Path]) -> None:
    checksums, some = Checksums(), [wanted(path) for path in files]
    assert checksums.of(some, 60) == {one: hashlib.sha256(Path(one.path).read_bytes()).hexdigest() for one in some}
    for path in files:
        path.unlink()
    assert len(checksums.of(some, 0)) == len(files)
    checksums.forget({one.path for one in some})
    assert all(isinstance(found, OSError) for found in checksums.of(some, 60).values())


@pytest.mark.timeout(60)
def test_a_tick_waits_no_longer_than_it_may_and_a_later_one_finds_the_rest(
    files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    may_read = threading.Event()

    def open_later(path: str) -> Any:
        may_read.wait()
        return open_to_read(path)

    monkeypatch.setattr("marin_sensors.deliveries.checksums.open_to_read", open_later)
    checksums, some = Checksums(), [wanted(path, "md5") for path in files]
    assert checksums.of(some, 0) == {}
    may_read.set()
    assert len(checksums.of(some, 60)) == len(some)


def test_a_failure_is_returned_once_and_the_file_is_read_again(tmp_path: Path, files: list[Path]) -> None:
    checksums, one = Checksums(), wanted(files[0])
    moved = files[0].rename(tmp_path / "moved")
    assert isinstance(checksums.of([one], 60)[one], FileNotFoundError)
    moved.rename(files[0])
    assert checksums.of([one], 60) == {one: hashlib.sha256(b"0.gz").hexdigest()}


def test_a_file_that_has_changed_since_it_was_listed_has_no_checksum(files: list[Path]) -> None:
    one = wanted(files[0])
    files[0].write_bytes(b"more than before")
    assert str(Checksums().of([one], 60)[one]) == "it changed since it was listed"
    os.remove(files[0])
