"""A canary through a real daemon: it makes an experiment anew, says what broke, and ends with its run."""

from __future__ import annotations

import shutil
from pathlib import Path

import dagster as dg
import psutil
import pytest
from dagster_processes import dagster_processes
from running import ROOT, wait_until
from webhooks import webhook_on_loopback

LOCATION = """
import sys
sys.path[:0] = [{folder!r}, {support!r}]
import dagster as dg
from marin_sensors.canary import canary
from marin_sensors.failures import failures

defs = dg.Definitions(
    schedules=[canary(cron="* * * * *", module="canary_of_toys", start=True)], sensors=[failures(every_s=5)]
)
"""
TOYS = """
import sys
sys.path.insert(0, {support!r})
import toy_steps
from marin_assets import executor_main

if __name__ == "__main__":
    executor_main([toy_steps.toy("a", toy_steps.{fn}, gate={gate!r})])
"""


@pytest.mark.long
@pytest.mark.timeout(2400)
def test_it_is_made_then_broken_then_stopped(tmp_path: Path, prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, gate, location = tmp_path / "home", tmp_path / "gate", tmp_path / "location.py"
    home.mkdir()
    gate.touch()
    shutil.copy(ROOT / ".dagster/dagster.yaml", home)
    support = str(ROOT / "tests" / "support")
    location.write_text(LOCATION.format(folder=str(tmp_path), support=support))

    def write_toys(fn: str) -> None:
        (tmp_path / "canary_of_toys.py").write_text(TOYS.format(support=support, fn=fn, gate=str(gate)))

    write_toys("leave_nothing")
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    with webhook_on_loopback() as hook:
        env = {"MARIN_PREFIX": str(prefix), "DAGSTER_HOME": str(home), "MARIN_WEBHOOK_URL": hook.url}
        with dagster_processes(location, tmp_path, env) as dagster, dg.DagsterInstance.get() as instance:
            wait_until(lambda: runs(instance, dg.DagsterRunStatus.SUCCESS), "a canary", timeout_s=300)
            assert hook.texts == []

            write_toys("fail")
            wait_until(lambda: hook.texts, "the news of the broken one", timeout_s=300)
            [kept] = (prefix / "canary").glob("2*")
            assert hook.texts[0].startswith("*A run failed: canary*\nThe first run of 'canary_of_toys' ended with exit")
            assert "the value 1 is not liked" in hook.texts[0]
            assert str(kept) in hook.texts[0], "the folder of the broken one is kept, and no other"

            write_toys("wait_with_a_child")
            waiting = wait_until(lambda: started(prefix), "a canary that waits", timeout_s=300)
            [run_id] = runs(instance, dg.DagsterRunStatus.STARTED)
            skipped = "is in progress, so none is started."
            wait_until(lambda: says(instance, skipped), "a tick that starts none", timeout_s=150)
            assert runs(instance, dg.DagsterRunStatus.STARTED) == [run_id]
            dagster.ui.terminate(run_id)
            wait_until(lambda: not alive(waiting), f"the end of {alive(waiting)}", timeout_s=60)
            wait_until(lambda: dagster.ui.status(run_id) == "CANCELED", "the end of the run", timeout_s=60)
            assert [key for key in instance.all_asset_keys() if key != dg.AssetKey("canary")] == []
            assert not [run for run in instance.get_runs() if run.tags.get("dagster/parent_run_id")], "none is retried"


def runs(instance: dg.DagsterInstance, status: dg.DagsterRunStatus) -> list[str]:
    return [run.run_id for run in instance.get_runs(dg.RunsFilter(statuses=[status]))]


def started(prefix: Path) -> list[psutil.Process]:
    """The processes of the experiment that waits at the gate: its own, its Ray, and the child of its step."""
    found = []
    for log in prefix.glob("canary/2*/toy/a-*/.marin/attempts/1.log"):
        lines = log.read_text().splitlines()
        for line in lines if any("waiting in process" in line for line in lines) else ():
            if line.startswith("child "):
                worker = psutil.Process(int(line.split()[1])).parent()
                assert worker is not None
                raylet = worker.parent()
                assert raylet is not None
                found = [worker, *worker.children(), raylet, *raylet.parents()[:1]]
    return found


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    return [each for each in processes if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]


def says(instance: dg.DagsterInstance, sentence: str) -> bool:
    """Whether the last tick of the canary's schedule has said so."""
    for state in instance.all_instigator_state():
        if state.name == "canary":
            ticks = instance.get_ticks(state.instigator_origin_id, state.selector_id, limit=1)
            return any(sentence in (tick.skip_reason or "") for tick in ticks)
    return False
