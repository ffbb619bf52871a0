"""A listing of a folder on a disk has every file below it, also through symlinks; what is no file is an error."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from marin_resources.storage.files import list_files, read_bytes, stored_file, stored_files
from marin_resources.storage.filesystems.disk_listing import SpecialFileError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("in/a", "in/deep/b", "in/.hidden/c", "in/deep/.d", "elsewhere/er/e"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path / "in"


def names(folder: Path) -> list[str]:
    return [file.name for file in stored_files(str(folder))]


def test_files_behind_symlinks_are_listed_with_their_own_size_and_state(folder: Path, tmp_path: Path) -> None:
    (folder / "link").symlink_to(tmp_path / "elsewhere")
    (folder / "file").symlink_to(tmp_path / "elsewhere/er/e")
    assert names(folder) == ["a", "deep/b", "file", "link/er/e"]
    _, _, file, linked = stored_files(str(folder))
    target = stored_file(str(tmp_path / "elsewhere/er/e"))
    assert (file.size_bytes, file.stamp) == (linked.size_bytes, linked.stamp) == (target.size_bytes, target.stamp)
    assert list_files(f"file://{folder}", "e") == [f"file://{folder}/file", f"file://{folder}/link/er/e"]
    assert [file.name for file in stored_files(str(folder / "link"))] == ["er/e"]


def test_a_link_to_a_folder_that_contains_it_lists_no_file_twice(folder: Path, tmp_path: Path) -> None:
    (folder / "deep/again").symlink_to(folder)
    (folder / "deep/here").symlink_to(".")
    assert names(folder) == ["a", "deep/b"]
    (folder / "up").symlink_to("..")
    assert names(folder) == ["a", "deep/b", "up/elsewhere/er/e"]


def test_a_link_to_nothing_is_an_error(folder: Path) -> None:
    (folder / "gone").symlink_to("/no/such")
    with pytest.raises(FileNotFoundError, match=r"gone' is a symlink to '/no/such', which does not exist"):
        stored_files(str(folder))


@pytest.mark.timeout(10)
def test_a_fifo_and_a_socket_are_errors_and_no_hang(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    for look in (stored_files, list_files):
        for path in (folder, folder / "pipe"):
            with pytest.raises(SpecialFileError, match=r"pipe' is a FIFO, expected a file\. Move it out of the input"):
                look(str(path))
    with pytest.raises(SpecialFileError, match="is a FIFO"):
        read_bytes(str(folder / "pipe"))
    os.remove(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "s"))
        with pytest.raises(SpecialFileError, match="s' is a socket, expected a file"):
            stored_files(str(folder))


def test_a_fifo_below_a_name_that_begins_with_a_dot_is_no_input(folder: Path) -> None:
    os.mkfifo(folder / ".hidden/pipe")
    assert names(folder) == ["a", "deep/b"]
