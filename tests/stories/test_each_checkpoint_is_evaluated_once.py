"""A training under way exports its model; each export is evaluated once, while the daemon is killed again and again."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
from dagster_processes import DAEMON, dagster_processes
from running import ROOT, wait_until
from watched_training import STEPS, allow, evaluated

LOCATION = """
import sys
sys.path.insert(0, {support!r})
import dagster as dg
from running import definitions_of
from watched_training import watched
from marin_sensors.new_checkpoints import new_checkpoints

scores = new_checkpoints(
    "scores", "toy/checkpoints", partitions="toy", assets=["toy/checkpoint_evaluation"], every_s=5, start=True
)
defs = dg.Definitions.merge(definitions_of(watched({folder!r})), dg.Definitions(sensors=[scores]))
"""
SCORES = dg.AssetKey(["toy", "checkpoint_evaluation"])


@pytest.mark.long
def test_while_it_trains_and_through_kills_of_the_daemon(
    tmp_path: Path, prefix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, location = tmp_path / "home", tmp_path / "location.py"
    home.mkdir()
    settings = (ROOT / ".dagster/dagster.yaml").read_text()
    settings = settings.replace("start_timeout_seconds: 180", "start_timeout_seconds: 60")
    (home / "dagster.yaml").write_text(settings.replace("max_concurrent_runs: 1", "max_concurrent_runs: 2"))
    location.write_text(LOCATION.format(support=str(ROOT / "tests" / "support"), folder=str(tmp_path)))
    env = {"MARIN_PREFIX": str(prefix), "DAGSTER_HOME": str(home)}
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    between = tmp_path / "kill between runs and cursor"
    with (
        dagster_processes(location, tmp_path, env, killed_once=between) as dagster,
        dg.DagsterInstance.get() as instance,
    ):

        def is_scored(step: int) -> bool:
            return name_of(step) in instance.get_materialized_partitions(SCORES)

        def training_run() -> dg.DagsterRun:
            run = instance.get_run_by_id(training)
            assert run is not None
            return run

        training = dagster.ui.launch("toy/checkpoints")
        allow(tmp_path, STEPS[0])
        wait_until(lambda: is_scored(STEPS[0]), "the first score", timeout_s=300)
        assert not training_run().is_finished, "it trains on"
        between.touch()
        allow(tmp_path, STEPS[1])
        wait_until(lambda: dagster.has_ended(DAEMON), "the kill between the run and the cursor", timeout_s=120)
        between.with_suffix(".launch").touch()
        dagster.start(DAEMON)
        allow(tmp_path, STEPS[2])
        wait_until(lambda: dagster.has_ended(DAEMON), "the kill before a run has a process", timeout_s=120)
        dagster.start(DAEMON)
        wait_until(lambda: all(map(is_scored, STEPS)), "all scores", timeout_s=480)
        wait_until(lambda: training_run().is_success, "the training", timeout_s=120)
        found = [record.asset_materialization for record in instance.fetch_materializations(SCORES, limit=10).records]
        scores = {str(each.partition): each.metadata["accuracy"].value for each in found if each is not None}
    assert evaluated(tmp_path) == [name_of(step) for step in STEPS]
    assert scores == {name_of(step): step / 1000 for step in STEPS}, "they grow on one asset"


def name_of(step: int) -> str:
    return f"step-{step:07}"
