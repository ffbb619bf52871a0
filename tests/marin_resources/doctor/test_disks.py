"""The disks that are written to."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from marin_resources.doctor.disks import Disk, assess, disks
from marin_resources.doctor.finding import State

GIB = 2**30


def disk(**fields: object) -> Disk:
    usual = {
        "uses": ("prefix", "Ray"),
        "folder": "/data",
        "free_bytes": 100 * GIB,
        "total_bytes": 1000 * GIB,
        "free_inodes": 10**6,
        "writable": True,
        "for_ray": True,
    }
    return Disk(**{**usual, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("one", "state", "part"),
    [
        (disk(), State.OK, "/data (prefix, Ray): 107"),
        (disk(free_bytes=GIB // 2), State.WRONG, "is full"),
        (disk(free_bytes=5 * GIB, total_bytes=50 * GIB), State.WARNING, "before a large step"),
        (disk(free_bytes=40 * GIB), State.WRONG, "is 96% full, 42.9 GB free: Ray creates no objects above 95%"),
        (disk(free_bytes=40 * GIB, for_ray=False), State.OK, "42.9 GB free"),
        (disk(free_inodes=3), State.WRONG, "has room for 3 more files"),
        (disk(writable=False), State.WRONG, "cannot be written by this user"),
    ],
)
def test_disks(one: Disk, state: State, part: str) -> None:
    finding = assess(one)
    assert finding.state is state
    assert part in finding.sentence


def test_the_disks_of_this_machine_are_read(prefix: Path, dagster_home: Path) -> None:
    usage = shutil.disk_usage(dagster_home)
    [own] = [one for one in disks() if "prefix" in one.uses]
    assert own.total_bytes == pytest.approx(usage.total, rel=0.01)
    assert own.writable


def test_a_disk_that_refuses_is_seen_by_trying(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGSTER_HOME", "/proc/1")  # where root, too, creates nothing
    [refusing] = [one for one in disks() if "DAGSTER_HOME" in one.uses]
    assert assess(refusing).state is State.WRONG
