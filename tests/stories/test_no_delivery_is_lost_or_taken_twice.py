"""Deliveries arrive while the daemon is killed again and again: each becomes a partition and one run."""

from __future__ import annotations

import random
import time
from pathlib import Path

import dagster as dg
import pytest
from dagster_processes import CODE, DAEMON, dagster_processes
from partition_steps import called
from running import ROOT, wait_until

KILLS = 20
DELIVERIES = [f"d{number}" for number in range(8)]
LOCATION = """
import sys
sys.path.insert(0, {support!r})
from pathlib import Path
import dagster as dg
from partition_steps import part
from running import definitions_of
from marin_assets import dynamic
from marin_sensors.deliveries.completeness import Settled
from marin_sensors.new_raw_data import new_raw_data

step = part("raw", dynamic("deliveries"), Path({calls!r}))
watch = new_raw_data(
    "watch", {place!r} + "/{{drop}}/*.txt", partitions="deliveries", assets=["parts/raw"], complete=Settled(1),
    every_s=5, start=True,
)
defs = dg.Definitions.merge(definitions_of([step]), dg.Definitions(sensors=[watch]))
"""


@pytest.mark.long
@pytest.mark.timeout(5400)
def test_through_twenty_kills_of_the_daemon(tmp_path: Path, prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, place, calls = tmp_path / "home", tmp_path / "deliveries", tmp_path / "calls.txt"
    home.mkdir()
    place.mkdir()
    settings = (ROOT / ".dagster/dagster.yaml").read_text()
    (home / "dagster.yaml").write_text(settings.replace("start_timeout_seconds: 180", "start_timeout_seconds: 60"))
    location = tmp_path / "location.py"
    support = str(ROOT / "tests" / "support")
    location.write_text(LOCATION.format(support=support, calls=str(calls), place=str(place)))
    env = {"MARIN_PREFIX": str(prefix), "DAGSTER_HOME": str(home)}
    between = tmp_path / "kill between runs and cursor"
    moments = random.Random(7)
    with dagster_processes(location, tmp_path, env, killed_once=between) as dagster:
        between.touch()
        delivery(place, DELIVERIES[0])
        wait_until(lambda: dagster.has_ended(DAEMON), "the kill between the runs and the cursor", timeout_s=120)
        assert not between.exists()
        between.with_suffix(".launch").touch()
        dagster.start(DAEMON)
        wait_until(lambda: dagster.has_ended(DAEMON), "the kill before the run has a process", timeout_s=120)
        left = DELIVERIES[1:]
        for kill in range(KILLS - 2):
            dagster.kill(DAEMON)
            dagster.start(DAEMON)
            if left and kill % 2:
                delivery(place, left.pop(0))
            time.sleep(moments.uniform(0, 15))  # the drawn moment
        assert not left
        wait_until(lambda: len(called(calls)) == len(DELIVERIES), "a run of each delivery", timeout_s=300)
        monkeypatch.setenv("DAGSTER_HOME", str(home))
        with dg.DagsterInstance.get() as instance:
            wait_until(lambda: all(run.is_finished for run in instance.get_runs()), "all runs to end", timeout_s=300)
            runs = instance.get_runs()
    assert called(calls) == [f"raw[{name}]" for name in DELIVERIES]
    assert sorted(run.tags["dagster/partition"] for run in runs if run.is_success) == DELIVERIES
    lost = [run for run in runs if not run.is_success]
    assert {run.tags["dagster/failure_reason"] for run in lost} == {"START_TIMEOUT"}
    assert DELIVERIES[0] in [run.tags["dagster/partition"] for run in lost]


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("waits", [True, False], ids=["the run waits", "the run is given up"])
def test_when_the_code_server_is_killed_before_a_run_has_a_process(
    tmp_path: Path, prefix: Path, monkeypatch: pytest.MonkeyPatch, *, waits: bool
) -> None:
    home, place, calls = tmp_path / "home", tmp_path / "deliveries", tmp_path / "calls.txt"
    home.mkdir()
    place.mkdir()
    settings = (ROOT / ".dagster/dagster.yaml").read_text()
    retries = "max_user_code_failure_retries: 3000"
    assert retries in settings
    (home / "dagster.yaml").write_text(settings if waits else settings.replace(retries, retries[:-4] + "0"))
    location = tmp_path / "location.py"
    location.write_text(LOCATION.format(support=str(ROOT / "tests/support"), calls=str(calls), place=str(place)))
    env = {"MARIN_PREFIX": str(prefix), "DAGSTER_HOME": str(home)}
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    flag = tmp_path / "kill"
    with (
        dagster_processes(location, tmp_path, env, killed_once=flag) as dagster,
        dg.DagsterInstance.get() as instance,
    ):
        code = flag.with_suffix(".code")
        code.write_text(str(dagster.pid(CODE)))
        delivery(place, DELIVERIES[0])
        wait_until(lambda: dagster.has_ended(CODE) and not code.exists(), "the kill of the code server", timeout_s=120)
        seen = {"dagster/will_retry": "false"}
        wait_until(
            lambda: "Temporarily skipping" in dagster.log() if waits else instance.get_runs(dg.RunsFilter(tags=seen)),
            "the run to be queued again, or given up",
            timeout_s=120,
        )
        dagster.start(CODE)
        wait_until(lambda: called(calls), "the delivery to be processed", timeout_s=300)
        wait_until(lambda: all(run.is_finished for run in instance.get_runs()), "the runs to end", timeout_s=120)
        runs = instance.get_runs()
    assert called(calls) == [f"raw[{DELIVERIES[0]}]"]
    assert [run.is_success for run in runs] == ([True] if waits else [True, False]), "the newest first"
    assert waits or runs[0].tags["marin/lost_run"] == runs[1].run_id


def delivery(place: Path, name: str) -> None:
    folder = place / name
    folder.mkdir()
    (folder / "a.txt").write_text(name)
