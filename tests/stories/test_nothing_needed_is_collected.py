"""Storage is freed while others compute: without any grace time no attempt misses an input, and no root is touched."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import collected_race
import object_stores
import pytest
from running import ROOT

from marin_assets.step.graph import build_graph
from marin_resources.storage.collect.pins import Pin, write_pin
from marin_resources.storage.files import read_bytes
from marin_resources.storage.output.notes.active_attempts import live_attempts
from marin_resources.storage.output.store import Store
from marin_resources.storage.paths import join

MAKERS, COLLECTORS = 2, 2
PATIENCE_S = 120.0
WANTED = {"collected": 10, "purged": 6, "brought back": 1, "computed": 10, "killed": 1}
"""Events, each of which must have happened so often that something is proved."""


def start(verb: str, prefix: str, seconds: float, seed: int, journal: Path) -> subprocess.Popen[bytes]:
    path = os.pathsep.join([str(ROOT / "tests/support"), str(ROOT)])
    env = {**os.environ, "PYTHONPATH": path, "MARIN_LEASE_TTL_S": "3"}
    arguments = [verb, prefix, str(seconds), str(seed), str(journal)]
    return subprocess.Popen([sys.executable, "-m", "collected_race", *arguments], env=env)


def race(prefix: str, seconds: float, seed: int, journal: Path) -> list[dict[str, Any]]:
    """Makers and collectors at once, until enough has happened. A collector is killed in between; another goes on."""
    makers = [start("make", prefix, seconds, seed + i, journal) for i in range(MAKERS)]
    collectors = [start("collect", prefix, seconds, seed + 100 + i, journal) for i in range(COLLECTORS)]
    ends_s = time.monotonic() + seconds + PATIENCE_S
    try:
        while any(maker.poll() is None for maker in makers):
            assert time.monotonic() < ends_s, "a maker did not come to an end"
            events = Counter(line["event"] for line in lines_of(journal))
            if not events["killed"] and events["purged"] >= 3:
                collectors[0].send_signal(signal.SIGKILL)
                collected_race.Journal(str(journal)).note("killed")
                collectors.append(start("collect", prefix, seconds, seed + 200, journal))
            if all(events[event] >= count for event, count in WANTED.items()):
                Path(f"{journal}.stop").touch()
            time.sleep(0.1)
        for collector in collectors:
            collector.wait(PATIENCE_S)
    finally:
        for process in (*makers, *collectors):
            process.kill()
            process.wait()
    assert [maker.returncode for maker in makers] == [0] * MAKERS
    assert [collector.returncode for collector in collectors] == [-signal.SIGKILL, *[0] * COLLECTORS]
    return lines_of(journal)


def lines_of(journal: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in journal.read_text().splitlines(keepends=True) if line.endswith("\n")]


def check(prefix: str, journal: Path, seconds: float) -> None:
    made = asyncio.run(collected_race.run_chain(Store(prefix), "pinned", collected_race.Journal(str(journal))))
    assert made
    pin = Pin(output=collected_race.last_path("pinned"), why="a race", by="tester", at="2026-01-01T00:00:00+00:00")
    write_pin(prefix, pin)
    lines = race(prefix, seconds, seed=random.randrange(10**6), journal=journal)
    events = Counter(line["event"] for line in lines)
    assert [line for line in lines if line["event"] == "violation"] == []
    assert all(events[event] >= count for event, count in WANTED.items()), f"nothing was proved: {events}"
    once = Counter(line["what"] for line in lines if line["event"] == "computed")
    for name in ("kept", "pinned"):
        assert {once[f"{name}/link{place}"] for place in range(collected_race.LENGTH)} == {1}
    store = Store(prefix)
    assert live_attempts(prefix) == []
    for name in ("kept", "pinned"):
        graph = build_graph(collected_race.chain(name))
        looked = store.look(node.output for node in graph)
        assert all(seen.done for seen in looked.values())
        words = read_bytes(join(prefix, collected_race.last_path(name), "words.txt")).decode()
        assert words == "".join(f"{name}{place} " for place in range(collected_race.LENGTH))


@pytest.mark.long
def test_on_a_disk(disk_prefix: str, tmp_path: Path) -> None:
    check(disk_prefix, tmp_path / "journal", seconds=60)


@pytest.mark.long
def test_on_gcs(gcs_prefix: str, tmp_path: Path) -> None:
    check(gcs_prefix, tmp_path / "journal", seconds=240)


@pytest.mark.long
def test_on_s3(tmp_path: Path) -> None:
    check(object_stores.s3_prefix(), tmp_path / "journal", seconds=240)
