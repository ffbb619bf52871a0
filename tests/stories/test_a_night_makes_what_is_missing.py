"""The schedule of what is missing, through a real daemon: a night makes it, and the next ones add nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

import dagster as dg
import pytest
from dagster_processes import dagster_processes
from partition_steps import called
from running import ROOT, wait_until

KEYS = [f"k{number}" for number in range(5)]
LOCATION = """
import sys
sys.path.insert(0, {support!r})
from pathlib import Path
import dagster as dg
from partition_steps import part
from running import definitions_of
from marin_assets import static
from marin_sensors.nightly_backfill import nightly_backfill

step = part("counts", static(*{keys!r}), Path({calls!r}), gate={gate!r}, waiting=("k4",))
nightly = nightly_backfill("nightly", ["parts/counts"], "* * * * *", cap=3, start=True)
defs = dg.Definitions.merge(definitions_of([step]), dg.Definitions(schedules=[nightly]))
"""


@pytest.mark.long
def test_two_nights_make_all_and_no_night_adds_to_one_in_progress(
    tmp_path: Path, prefix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, gate, calls = tmp_path / "home", tmp_path / "gate", tmp_path / "calls.txt"
    home.mkdir()
    gate.touch()
    shutil.copy(ROOT / ".dagster/dagster.yaml", home)
    location = tmp_path / "location.py"
    support = str(ROOT / "tests" / "support")
    location.write_text(LOCATION.format(support=support, gate=str(gate), calls=str(calls), keys=KEYS))
    env = {"MARIN_PREFIX": str(prefix), "DAGSTER_HOME": str(home)}
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    with dagster_processes(location, tmp_path, env) as dagster, dg.DagsterInstance.get() as instance:

        def says(sentence: str) -> bool:
            [schedule] = instance.all_instigator_state()
            ticks = instance.get_ticks(schedule.instigator_origin_id, schedule.selector_id)
            return any(sentence in (tick.skip_reason or "") for tick in ticks)

        wait_until(instance.all_instigator_state, "the schedule to be running", timeout_s=120)
        wait_until(lambda: says("1 runs of the last time are in progress"), "the next night to wait", timeout_s=240)
        assert called(calls) == ["counts[k2]", "counts[k3]", "counts[k4]"]
        gate.unlink()
        wait_until(lambda: says("All partitions are complete"), "a night with nothing to do", timeout_s=300)
        assert called(calls) == [f"counts[{key}]" for key in KEYS], dagster.log()
        ranges = [run.tags["dagster/asset_partition_range_start"] for run in instance.get_runs()]
        assert ranges == ["k0", "k2"]
