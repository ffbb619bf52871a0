"""`kill -9` of the daemon and of the webserver in the middle of a backfill: it goes on, and computes nothing twice."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from dagster_processes import DAEMON, WEBSERVER, dagster_processes
from partition_steps import called
from running import ROOT, wait_until

KEYS = [f"k{number}" for number in range(6)]
LOCATION = """
import sys
sys.path.insert(0, {support!r})
from pathlib import Path
from partition_steps import part
from running import definitions_of
from marin_assets import static

more = dict(gate={gate!r}, waiting=("k3",))
one_run = part("one_run", static(*{keys!r}), Path({calls!r}), **more)
own_runs = part("own_runs", static(*{keys!r}), Path({calls!r}), per_run=2, **more)
defs = definitions_of([one_run, own_runs])
"""


@pytest.mark.long
@pytest.mark.parametrize("step", ["one_run", "own_runs"])
def test_it_goes_on_and_no_partition_is_computed_twice(step: str, tmp_path: Path, prefix: Path) -> None:
    home, gate, calls = tmp_path / "home", tmp_path / "gate", tmp_path / "calls.txt"
    home.mkdir()
    gate.touch()
    settings = (ROOT / ".dagster/dagster.yaml").read_text()
    (home / "dagster.yaml").write_text(settings.replace("start_timeout_seconds: 180", "start_timeout_seconds: 60"))
    location = tmp_path / "location.py"
    support = str(ROOT / "tests" / "support")
    location.write_text(LOCATION.format(support=support, gate=str(gate), calls=str(calls), keys=KEYS))
    env = {"MARIN_PREFIX": str(prefix), "DAGSTER_HOME": str(home)}
    moments = random.Random(step)
    flag = tmp_path / "kill"
    flag.with_suffix(".launch").touch()
    with dagster_processes(location, tmp_path, env, killed_once=flag) as dagster:
        backfill = dagster.ui.backfill(f"parts/{step}", KEYS)
        wait_until(lambda: dagster.has_ended(DAEMON), "the kill before a run has a process", timeout_s=120)
        dagster.start(DAEMON)
        for killed in ([DAEMON], [DAEMON, WEBSERVER], [DAEMON]):  # while it is read, queued, begun: drawn moments
            time.sleep(moments.uniform(0, 15))
            dagster.kill(*killed)
            dagster.start(*killed)
        wait_until(lambda: f"{step}[k3]" in called(calls), "the partition that waits", timeout_s=300)
        dagster.kill(DAEMON, WEBSERVER)
        gate.unlink()
        dagster.start(DAEMON, WEBSERVER)
        ended = lambda: dagster.ui.backfill_status(backfill).startswith("COMPLETED")  # noqa: E731
        wait_until(ended, "the backfill", timeout_s=300)
        assert dagster.ui.backfill_status(backfill) == "COMPLETED_SUCCESS", dagster.log()
        assert called(calls) == [f"{step}[{key}]" for key in KEYS]
        assert dagster.ui.partitions(f"parts/{step}") == {"materialized": 6, "failed": 0}
