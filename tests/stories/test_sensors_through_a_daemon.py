"""Sensors on a dataset's commits, on changed steps and on abandoned outputs, through a real daemon."""

from __future__ import annotations

import shutil
from pathlib import Path

import dagster as dg
import pytest
from abandoned import kill, worker_of
from dagster_processes import CODE, DagsterProcesses, dagster_processes
from hub import hub_on_loopback
from partition_steps import called, part
from running import ROOT, wait_until

from marin_assets.step.graph import build_graph

LOCATION = """
import sys
sys.path.insert(0, {support!r})
from pathlib import Path
import dagster as dg
from hub import DATASET
from partition_steps import part
from running import definitions_of
from marin_assets import dynamic, versioned
from marin_sensors.dataset_revision import dataset_revision
from marin_sensors.outdated import CHEAP, outdated
from marin_sensors.stale_leases import stale_leases

calls, value = Path({calls!r}), int(Path({value!r}).read_text())
steps = [
    part("commits", dynamic("commits"), calls),
    part("changed", None, calls, value=versioned(value), tags={{CHEAP: "true"}}),
    part("abandoned", None, calls),
]
sensors = [
    dataset_revision("c4", DATASET, partitions="commits", assets=["parts/commits"], every_s=5, start=True),
    outdated(every_s=5),
    stale_leases(every_s=5),
]
defs = dg.Definitions.merge(definitions_of(steps), dg.Definitions(sensors=sensors))
"""


@pytest.mark.long
def test_each_does_its_work(tmp_path: Path, prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, calls, value = tmp_path / "home", tmp_path / "calls.txt", tmp_path / "value.txt"
    home.mkdir()
    value.write_text("1")
    shutil.copy(ROOT / ".dagster/dagster.yaml", home)
    location = tmp_path / "location.py"
    support = str(ROOT / "tests" / "support")
    location.write_text(LOCATION.format(support=support, calls=str(calls), value=str(value)))
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    with hub_on_loopback() as hub:
        env = {"MARIN_PREFIX": str(prefix), "DAGSTER_HOME": str(home), "HF_ENDPOINT": hub.url}
        with dagster_processes(location, tmp_path, env) as dagster, dg.DagsterInstance.get() as instance:
            first = f"commits[{hub.commits['main']}]"
            wait_until(lambda: called(calls) == [first], "the first commit", timeout_s=240)
            hub.commits["main"] = "f" * 40
            second = f"commits[{hub.commits['main']}]"
            wait_until(lambda: called(calls) == [first, second], "the second commit", timeout_s=240)

            abandon(calls, prefix)
            gone = "The worker of parts/abandoned at "
            wait_until(lambda: says(instance, "stale_leases", gone), "the abandoned output", timeout_s=240)

            run = dagster.ui.launch("parts/changed")
            wait_until(lambda: dagster.ui.status(run) == "SUCCESS", "the step before its change", timeout_s=240)
            change(dagster, value)
            wait_until(lambda: called(calls).count("changed[all]") == 2, "the changed step", timeout_s=240)
            right = "Every asset that was materialized has the version of its definition."
            wait_until(lambda: says(instance, "outdated", right, last=True), "nothing to be outdated", timeout_s=240)
            runs = instance.get_runs()
    assert called(calls) == ["changed[all]", "changed[all]", first, second], "nothing twice"
    assert sum(run.tags.get("marin/sensor") == "outdated" for run in runs) == 1


def abandon(calls: Path, prefix: Path) -> None:
    """Leave an output half made."""
    step = part("abandoned", None, calls)
    kill(worker_of(str(prefix), build_graph([step])[step].output))


def change(dagster: DagsterProcesses, value: Path) -> None:
    """Give the code server another value of the step."""
    value.write_text("2")
    dagster.kill(CODE)
    dagster.start(CODE)


def says(instance: dg.DagsterInstance, sensor: str, sentence: str, *, last: bool = False) -> bool:
    """Whether a tick of the sensor, or its last one, has said so."""
    for state in instance.all_instigator_state():
        if state.name == sensor:
            ticks = instance.get_ticks(state.instigator_origin_id, state.selector_id, limit=1 if last else None)
            return any(sentence in (tick.skip_reason or "") for tick in ticks)
    return False
