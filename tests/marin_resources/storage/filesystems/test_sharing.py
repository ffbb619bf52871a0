"""What is created in a folder that a group shares can be changed by the group, whatever the umask."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from marin_resources.ray_tpu.shards.worker_context import activate, worker_context
from marin_resources.storage.control import control
from marin_resources.storage.files import move, write_bytes
from marin_resources.storage.filesystems.sharing import group_may_write, is_shared, make_folders
from marin_resources.storage.lease import lease
from marin_resources.storage.output.store import Store
from marin_resources.types.output import Output


@pytest.fixture(params=[0o022, 0o077, 0o002])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o2775)
    return folder


def mode(path: str | Path) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def modes_below(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): mode(path) for path in folder.rglob("*")}


def test_new_folders_and_files_get_the_rights_of_the_group_and_others_those_of_the_umask(
    shared: Path, umask: int
) -> None:
    write_bytes(f"{shared}/a/b/file", b"x")
    control.write(f"{shared}/c/control", b"x", expected=None)
    others = 0o007 & ~umask
    assert modes_below(shared) == {
        "a": 0o2770 | others,
        "a/b": 0o2770 | others,
        "a/b/file": 0o660 | (others & 0o6),
        "c": 0o2770 | others,
        "c/control": 0o660 | (others & 0o6),
    }


def test_elsewhere_the_umask_alone_decides(tmp_path: Path, umask: int) -> None:
    write_bytes(f"{tmp_path}/a/file", b"x")
    held = lease.acquire(f"{tmp_path}/b", None)
    assert modes_below(tmp_path) == {
        "a": 0o777 & ~umask,
        "a/file": 0o666 & ~umask,
        "b": 0o777 & ~umask,
        "b/.executor_status.lock": 0o644 & ~umask,
    }
    held.release()


def test_a_lease_and_what_an_attempt_leaves_is_the_groups(shared: Path, umask: int) -> None:
    store = Store(str(shared / "outputs"))
    claim = store.claim(Output(name="a/b", version="0" * 6, identity="0" * 64), attempt=1, resumable=False, run_id=None)
    move(f"{claim.path}/.marin/attempts/1.json", f"{claim.path}/.marin/moved/1.json")
    assert {name: bits for name, bits in modes_below(shared).items() if bits & 0o060 != 0o060} == {}
    store.fail(claim, {}, "over", "")


def test_what_a_library_creates_in_an_attempt_and_its_shards_is_the_groups(shared: Path, umask: int) -> None:
    def create(name: str) -> int:
        (shared / name).mkdir()
        (shared / name / "file").write_text("x")
        return mode(shared / name / "file") & 0o060 | mode(shared / name) & 0o070

    with group_may_write(is_shared(str(shared))):
        context = worker_context()
        assert create("in the attempt") == 0o070
    assert create("after it") == 0o070 & ~umask
    with activate(context):
        assert create("in a shard") == 0o070
    with group_may_write(is_shared("/")):
        assert create("of an output elsewhere") == 0o070 & ~umask


def test_a_file_or_a_link_to_nothing_in_the_place_of_a_folder_is_an_error(shared: Path) -> None:
    (shared / "file").touch()
    (shared / "link").symlink_to("nowhere")
    for name in ("file", "link"):
        with pytest.raises(FileExistsError):
            make_folders(f"{shared}/{name}")
    with pytest.raises(NotADirectoryError):
        make_folders(f"{shared}/file/below")
