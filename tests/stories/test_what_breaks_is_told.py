"""What breaks is told to a webhook, each once, through a real daemon that is killed in between."""

from __future__ import annotations

import os
import shutil
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cluster_runs import env_for, read_until, start_run, write_experiment
from dagster_processes import DAEMON, DagsterProcesses, dagster_processes
from ray_cluster import Cluster
from running import ROOT, wait_until
from usage_lab import HOUR, Lab
from webhooks import SECRET, Webhook, webhook_on_loopback

from marin_resources.hardware.resources import gpu

SECOND = timedelta(seconds=1)
LOCATION = """
import sys
sys.path.insert(0, {support!r})
from pathlib import Path
import dagster as dg
from partition_steps import part
from running import definitions_of
from marin_sensors.budget import budget
from marin_sensors.failures import failures
from marin_sensors.orphaned_jobs import orphaned_jobs

steps = [part("bad", None, Path({calls!r}), bad=("all",))]
sensors = [failures(every_s=5), orphaned_jobs(every_s=5), budget("lab", device_hours={{"gpu_H100": 10}}, every_s=5)]
defs = dg.Definitions.merge(definitions_of(steps), dg.Definitions(sensors=sensors))
"""


@pytest.mark.long
def test_each_is_one_message(tmp_path: Path, prefix: Path, cluster: Cluster) -> None:
    home, gate = tmp_path / "home", tmp_path / "gate"
    home.mkdir()
    gate.touch()
    shutil.copy(ROOT / ".dagster/dagster.yaml", home)
    location = tmp_path / "location.py"
    support = str(ROOT / "tests" / "support")
    location.write_text(LOCATION.format(support=support, calls=str(tmp_path / "calls.txt")))
    with webhook_on_loopback() as webhook:
        env = {**env_for(prefix, home, cluster), "MARIN_WEBHOOK_URL": webhook.url}
        with dagster_processes(location, tmp_path, env) as dagster:
            wait_until(lambda: "breaks from now on" in said(dagster, "failures"), "the first tick", timeout_s=120)
            run = dagster.ui.launch("parts/bad")
            told(webhook, "*A run failed: parts__bad*", "the key 'all' is not liked")

            Lab(str(prefix)).ran("train/a", gpu("H100", 36_000), datetime.now(UTC) - SECOND, SECOND / HOUR)
            told(webhook, "*Budget 'lab': 100% of gpu_H100 spent*", "10.0 of 10 device hours. The largest: train/a")

            script = start_run(write_experiment(tmp_path, gate), env)
            read_until(script, "waiting in process")
            os.kill(script.pid, signal.SIGKILL)
            script.communicate()
            told(webhook, "is still running", "toy/b")
            seen = ticks(dagster, "orphaned_jobs")  # the cursor is kept after a tick, and before the one after that
            wait_until(lambda: ticks(dagster, "orphaned_jobs") >= seen + 2, "another tick", timeout_s=180)

            dagster.kill(DAEMON)
            before = {name: ticks(dagster, name) for name in ("failures", "orphaned_jobs", "lab")}
            dagster.start(DAEMON)
            for name, count in before.items():
                enough = count + 2
                wait_until(lambda name=name, enough=enough: ticks(dagster, name) >= enough, "more ticks", timeout_s=180)
            gate.unlink()
            texts = list(webhook.texts)
            assert dagster.ui.status(run) == "FAILURE"
    heads = [text.splitlines()[0] for text in texts]
    assert len(heads) == len(set(heads)), texts
    assert not any(SECRET in text for text in texts)


def told(webhook: Webhook, *words: str) -> None:
    """Wait for a message with all these words."""
    wait_until(lambda: any(all(word in text for word in words) for text in webhook.texts), str(words), timeout_s=240)


TICKS = """query($s: InstigationSelector!) { instigationStateOrError(instigationSelector: $s) {
    ... on InstigationState { ticks { status skipReason } } } }"""


def _ticks(dagster: DagsterProcesses, sensor: str) -> list[dict[str, str]]:
    selector = {"repositoryLocationName": "marin", "repositoryName": "__repository__", "name": sensor}
    return list(dagster.ui.ask(TICKS, s=selector)["instigationStateOrError"].get("ticks", []))


def ticks(dagster: DagsterProcesses, sensor: str) -> int:
    """How many ticks of the sensor have ended."""
    return sum(tick["status"] != "STARTED" for tick in _ticks(dagster, sensor))


def said(dagster: DagsterProcesses, sensor: str) -> str:
    """What the sensor has said in all its ticks."""
    return " ".join(tick["skipReason"] or "" for tick in _ticks(dagster, sensor))
