"""A daemon's startup objects take no part in Python's garbage collections, which are frequent then."""

import json
import os
import subprocess
import sys
from pathlib import Path

from dagster_homes import laptop_home

SCRIPT = """
import collections, gc, json
import dagster as dg
import dagster._daemon.daemon

at_start = [[] for _ in range(500_000)]  # a daemon with its code locations has as many

def full_collections() -> int:
    generations = []
    gc.callbacks.append(note := lambda phase, info: generations.append((phase, info["generation"])))
    alive = collections.deque(maxlen=20_000)
    for _ in range(300_000):
        node = []
        node.append(node)
        alive.append(node)
    gc.callbacks.remove(note)
    return generations.count(("start", 2))

gc.collect()
before = full_collections()
with dg.DagsterInstance.get():
    print(json.dumps([before, gc.get_freeze_count(), full_collections()]))
"""


def test_a_daemon_collects_its_garbage_often_when_it_has_opened_the_instance(tmp_path: Path) -> None:
    environment = {**os.environ, "DAGSTER_HOME": str(laptop_home(tmp_path / "home"))}
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    before, frozen, after = json.loads(ended.stdout)
    assert frozen > 500_000
    assert before <= 1
    assert after >= 3
