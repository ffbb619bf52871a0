"""A user without the right to write gets a sentence with the path, the owner and what to do."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from two_people import folder_for_all

from marin_resources.doctor import clock, prefix
from marin_resources.doctor.finding import State
from marin_resources.storage.control import control
from marin_resources.storage.files import write_bytes
from marin_resources.storage.filesystems.rights import NoRightError, why_unwritable
from marin_resources.storage.lease import lease

ADA, BOB, LAB = 12001, 12002, 12000
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")


@pytest.fixture
def folder() -> Iterator[Path]:
    """Ada's, with a lock file and a control file; the process is Bob, of the lab."""
    with folder_for_all() as folder:
        for name in ("out/.executor_status.lock", "private"):
            write_bytes(f"{folder}/{name}", b"x")
            os.chown(folder / name, ADA, ADA)
        (folder / "private").chmod(0o600)
        os.chown(folder, ADA, ADA)
        groups = os.getgroups()
        os.setgroups([LAB])
        os.setegid(BOB)
        os.seteuid(BOB)
        try:
            yield folder
        finally:
            os.seteuid(0)
            os.setegid(0)
            os.setgroups(groups)


def test_whoever_may_not_write_gets_the_folder_the_owner_and_the_mode(folder: Path) -> None:
    for place in (folder, folder / "not/there/yet"):
        assert why_unwritable(str(place)) == (
            f"'{folder}' cannot be written by user {BOB}: it is of user {ADA}, group {ADA}, mode drwxr-xr-x"
        )
    assert why_unwritable("gs://bucket/path") == ""
    assert why_unwritable(f"{folder}/../") == ""  # /tmp


def test_files_and_leases_are_refused_in_a_sentence_that_says_what_to_do(folder: Path) -> None:
    for refused in (
        lambda: write_bytes(f"{folder}/a/file", b"x"),
        lambda: control.write(f"{folder}/control", b"x", expected=None),
        lambda: lease.acquire(f"{folder}/new", None),
        lambda: lease.acquire(f"{folder}/out", None),
    ):
        with pytest.raises(NoRightError, match=rf"cannot be written by user {BOB}: it is of .*\. Set MARIN_PREFIX"):
            refused()
    with pytest.raises(NoRightError, match=rf"private' cannot be read by user {BOB}: it is of user {ADA}"):
        control.read(f"{folder}/private")


def test_the_doctor_tells_who_may_only_read_that_complete_outputs_are_reused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [finding] = prefix.look_at(str(folder))
    assert finding.state is State.WARNING
    assert "Complete outputs are read and reused; nothing can be computed there" in finding.sentence
    monkeypatch.setenv("MARIN_PREFIX", str(folder))
    assert list(clock.look()) == []


def test_the_doctor_knows_a_folder_that_a_group_shares(folder: Path) -> None:
    os.seteuid(0)
    os.chown(folder, BOB, LAB)
    folder.chmod(0o2775)
    for name in ("out", "private"):
        os.chown(folder / name, BOB, LAB)
    os.seteuid(BOB)
    _, half = prefix.look_at(str(folder))
    assert half.state is State.WARNING
    assert f"is shared with the group {LAB}, and 'out' in it is not" in half.sentence
    os.seteuid(0)
    (folder / "out").chmod(0o2775)
    os.seteuid(BOB)
    _, whole = prefix.look_at(str(folder))
    assert (whole.state, whole.sentence) == (
        State.OK,
        f"{folder} is shared with the group {LAB}, with any umask",
    )
    os.seteuid(0)
    folder.chmod(0o775)
    os.seteuid(BOB)
    _, without = prefix.look_at(str(folder))
    assert without.state is State.WARNING
    assert "has no setgid bit" in without.sentence
