"""What a process does for its TPU on its machine, and that nothing of it stops a step."""

from __future__ import annotations

import logging
import resource
from pathlib import Path

import pytest

from marin_resources.ray_tpu.slices.tpu_machine import prepare_for_tpu


@pytest.fixture(autouse=True)
def _limits_restored() -> object:
    before = {limit: resource.getrlimit(limit) for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_MEMLOCK)}
    yield
    for limit, values in before.items():
        resource.setrlimit(limit, values)


def test_huge_pages_and_open_files_are_raised_and_an_own_lock_file_stays(tmp_path: Path) -> None:
    lock, pages = tmp_path / "libtpu_lockfile", tmp_path / "enabled"
    lock.touch()
    pages.write_text("always [madvise] never\n")
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    prepare_for_tpu(lock, pages)
    assert pages.read_text() == "always"
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
    assert lock.exists()


def test_the_lock_file_of_another_user_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock, pages = tmp_path / "libtpu_lockfile", tmp_path / "enabled"
    lock.touch()
    pages.write_text("[always] madvise never\n")
    monkeypatch.setattr("os.getuid", lambda: lock.stat().st_uid + 1)
    prepare_for_tpu(lock, pages)
    assert not lock.exists()
    assert pages.read_text() == "[always] madvise never\n"


def test_what_is_not_allowed_is_said_and_the_step_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        prepare_for_tpu(tmp_path / "none", tmp_path / "no-such-folder/enabled")
    assert "transparent huge pages stay off" in caplog.text
